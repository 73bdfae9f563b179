"""The embedded server from the evaluator's side: started, told, stopped, and its mistakes passed on in words."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tinyeval.config import ModelConfig
from tinyeval.endpoints.detect import connect
from tinyeval.endpoints.llamacpp import LlamaCpp
from tinyeval.endpoints.local import LocalServer
from tinyeval.endpoints.tokenizer import LocalTokenizer
from tinyeval.errors import ConfigError, EndpointError

pytestmark = pytest.mark.slow


async def test_it_serves_on_loopback_with_a_key_of_its_own_and_ends_with_the_endpoint(tmp_path: Path) -> None:
    endpoint = await connect("small", ModelConfig(api="local", concurrency=2, max_length=512), 0, tmp_path)
    try:
        assert isinstance(endpoint, LlamaCpp)
        url = endpoint._transport.url
        assert url.startswith("http://127.0.0.1:")
        assert endpoint.identity.max_concurrent_requests == 2
        assert endpoint.identity.max_total_tokens == 512
        assert endpoint.identity.model_id == "SmolLM2-135M-Instruct.Q4_1.gguf"
        assert endpoint.identity.model_sha and endpoint.identity.model_sha.startswith("b179c952")
        assert isinstance(endpoint.tokenizer, LocalTokenizer), "the tokenizer inside the model file is used"
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{url}/props")
        endpoint.check_alive()
    finally:
        await endpoint.close()
    with pytest.raises(EndpointError, match="the embedded server ended"):
        endpoint.check_alive()


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [("weights.gguf", b"no weights at all", "GGUF"), ("missing.gguf", None, "missing.gguf")],
)
async def test_a_model_that_can_not_be_served_is_told_in_a_sentence(
    tmp_path: Path, capfd: Any, name: str, content: bytes | None, expected: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigError, match=r"^models\.x: the embedded server") as caught:
        await LocalServer.start(ModelConfig(api="local", model=str(tmp_path / name)), tmp_path, "models.x")
    assert expected in str(caught.value) + capfd.readouterr().err


async def test_a_server_that_dies_while_it_starts_is_reported_with_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dying = tmp_path / "python"
    dying.write_text("#!/bin/sh\necho 'ggml: out of memory' >&2\nkill -ABRT $$\n")
    dying.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(dying))
    with pytest.raises(EndpointError, match=r"did not start \(killed by SIGABRT\)") as caught:
        await LocalServer.start(ModelConfig(api="local"), tmp_path, "models.x")
    assert "ggml: out of memory" in str(caught.value)


def test_serve_keeps_the_embedded_server_in_the_foreground_until_interrupted(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "tinyeval", "serve", "--slots", "1", "--context", "256"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    assert process.stdout
    ready = json.loads(process.stdout.readline())
    process.stdout.close()
    with urllib.request.urlopen(f"{ready['url']}/health") as reply:
        assert json.load(reply) == {"status": "ok"}
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(20) == 130
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and Path(f"/proc/{ready['pid']}/cmdline").exists():
        time.sleep(0.05)
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"{ready['url']}/health")


@pytest.mark.skipif(os.name != "posix", reason="there is no SIGTERM elsewhere")
def test_serve_leaves_no_server_behind_when_it_is_terminated(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "tinyeval", "serve", "--slots", "1", "--context", "256"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdout
    ready = json.loads(process.stdout.readline())
    process.stdout.close()
    process.terminate()
    assert process.wait(20) == 0
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"{ready['url']}/health")


def test_serve_passes_a_mistake_on(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tinyeval", "serve", "--model", "nowhere.gguf"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("tinyserve: ") and "Traceback" not in done.stderr
