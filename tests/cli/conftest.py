"""Bad input gets a sentence: what was found, where, what was expected, what to do; never a traceback.

Exit status 2 for the user's mistake, 3 for an endpoint's fault; whatever stood in the folder stays as it was.
What the tests of this share is here: the command, a task, and a run that was begun.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tinyeval.cli import main
from tinyeval.endpoints.protocol import Identity
from tinyeval.inference.folder import ModelRecord, RunFolder
from tinyeval.inference.journal import Entry, Journal
from tinyeval.records import Response

Files = dict[str, str | bytes]


class Outcome(NamedTuple):
    """How a command ended."""

    status: int
    stdout: str
    stderr: str


Command = Callable[..., Outcome]


@pytest.fixture
def tinyeval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str | Path) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["tinyeval", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as e:
            main()
        out, err = capsys.readouterr()
        return Outcome(int(e.value.code or 0), out, err)

    return run


@pytest.fixture
def qa() -> Files:
    """The files of a task, custom|qa, with three rows."""
    task = 'name = "qa"\ndata = "qa.jsonl"\nprompt = "{q}"\nreferences = "a"\nmetric = ["exact_match"]\n'
    rows = "".join(json.dumps({"id": i, "q": f"Question {i}?", "a": str(i)}) + "\n" for i in range(3))
    return {"qa.toml": task, "qa.jsonl": rows}


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., None]:
    """Writes files into the folder of the test, or into another."""

    def write_(files: Files, folder: Path = tmp_path) -> None:
        for name, content in files.items():
            (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    return write_


@pytest.fixture
def contents() -> Callable[[Path], dict[str, bytes]]:
    """Reads every file below a folder."""

    def contents_(folder: Path) -> dict[str, bytes]:
        return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}

    return contents_


@pytest.fixture
def closed_url() -> str:
    """A loopback URL that nothing listens on."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


@pytest.fixture
def refused(tinyeval: Command, write: Any, contents: Any, tmp_path: Path) -> Callable[..., None]:
    """Holds that `tinyeval run` beside these files ends in one sentence with status 2, and changes nothing."""

    def check(files: Files, arguments: str, expected: str) -> None:
        write(files)
        before = contents(tmp_path)
        outcome = tinyeval("run", *arguments.split())
        assert expected in outcome.stderr
        assert outcome.stderr.startswith("tinyeval: ")
        assert outcome.stderr.count("\n") == 1
        assert (outcome.status, outcome.stdout) == (2, "")
        assert contents(tmp_path) == before
        assert sorted(p.name for p in tmp_path.iterdir()) == sorted(files)

    return check


@pytest.fixture
def begun(tinyeval: Command, write: Any, qa: Files, closed_url: str, tmp_path: Path) -> Path:
    """A run whose server can't be reached any more, with two answers from before."""
    write(qa | {"c.toml": f'[models.qwen]\nurl = "{closed_url}"\n'})
    outcome = tinyeval("run", "c.toml", "-t", "qa.toml", "-o", "run")
    assert outcome.status == 3, outcome.stderr
    identity = Identity(api="tgi", model_id="m", max_total_tokens=2048, max_concurrent_requests=4)
    RunFolder(tmp_path / "run").connected("qwen", ModelRecord(identity=identity, url=closed_url))
    with closing(Journal(tmp_path / "run" / "qwen" / "custom.qa.jsonl")) as journal:
        for i in range(2):
            journal.append(Entry(doc=str(i), index=0, key="k", response=Response(text=str(i), finish_reason="stop")))
    return tmp_path / "run"
