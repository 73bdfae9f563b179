"""Fixtures that several rooms of the tests share: real servers on loopback."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


class Served(NamedTuple):
    """A served model: where, with which key, from which file."""

    url: str
    key: str
    model_path: str


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The embedded server over the small real model, once for all tests."""
    key = secrets.token_urlsafe(12)
    log = (tmp_path_factory.mktemp("embedded") / "server.log").open("wb")
    process = subprocess.Popen(
        [sys.executable, "-m", "tinyserve", "--die-with-parent", "--slots", "4"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        env={**os.environ, "TINYSERVE_API_KEY": key},
    )
    assert process.stdin and process.stdout
    line = process.stdout.readline()
    assert line, f"the embedded server did not start: {Path(log.name).read_text()}"
    ready = json.loads(line)
    yield Served(ready["url"], key, ready["model_path"])
    process.stdin.close()
    process.stdout.close()
    process.wait(10)
    log.close()
