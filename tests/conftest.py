"""Fixtures that several rooms of the tests share: real servers on loopback."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

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


class FakeTgi:
    """The fake TGI server as a process (see tests/servers/fake_tgi.py)."""

    def __init__(self, url: str, process: subprocess.Popen[bytes]) -> None:
        self.url, self.process = url, process

    def fail_next(self, *faults: object, route: str = "/generate") -> None:
        """Lets the next requests to a route end so: a status, "drop", "hang", "cut"."""
        body = json.dumps({route: faults}).encode()
        headers = {"content-type": "application/json"}
        urllib.request.urlopen(urllib.request.Request(f"{self.url}/faults", body, headers)).close()

    def counters(self) -> dict[str, Any]:
        """What was asked so far."""
        with urllib.request.urlopen(f"{self.url}/counters") as reply:
            return json.load(reply)

    def kill(self) -> None:
        """Ends it without a goodbye."""
        self.process.kill()
        self.process.wait()


@pytest.fixture
def fake_tgi() -> Iterator[Callable[..., FakeTgi]]:
    """Starts fake TGI servers with the flags given."""
    started: list[FakeTgi] = []

    def start(*flags: str) -> FakeTgi:
        script = Path(__file__).parent / "servers/fake_tgi.py"
        process = subprocess.Popen([sys.executable, str(script), "--port", "0", *flags], stdout=subprocess.PIPE)
        assert process.stdout
        started.append(FakeTgi(process.stdout.readline().decode().strip(), process))
        process.stdout.close()
        return started[-1]

    yield start
    for server in started:
        server.kill()
