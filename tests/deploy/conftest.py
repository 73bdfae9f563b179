"""What the tests of the embedded server share: a stand-in hub, and an environment that reaches nothing else."""

import importlib.util
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


def _stand_in_hub() -> Any:
    """Load the file beside this one, which no import path leads to."""
    name = "stand_in_hub"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
        assert spec is not None and spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@pytest.fixture
def hub() -> Iterator[Any]:
    """A running `stand_in_hub.StandInHub`."""
    with _stand_in_hub().StandInHub() as running:
        yield running


@pytest.fixture
def closed_url() -> str:
    """A loopback URL that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


@pytest.fixture
def hub_environment(tmp_path: Path, closed_url: str) -> dict[str, str]:
    """Environment for a subprocess: an empty cache, no token, and a hub that is out of reach."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HF_", "HUGGING_FACE", "TINYSERVE_", "TRANSFORMERS_"))
        and not name.lower().endswith("_proxy")
    }
    return {
        **kept,
        "HF_HOME": str(tmp_path / "hf"),
        "HF_ENDPOINT": closed_url,
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_UPDATE_CHECK": "1",
    }
