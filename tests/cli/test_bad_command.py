"""A mistyped command line, and the real command as a process of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize("arguments", ["rnu", "run --limit 0", "run --limit many", "run --no-such-option", "score"])
def test_a_mistyped_command_line_is_the_users_mistake(tinyeval: Any, arguments: str) -> None:
    outcome = tinyeval(*arguments.split())
    assert outcome.status == 2
    assert outcome.stderr.startswith("Usage: ")
    assert "Traceback" not in outcome.stderr


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tinyeval", *arguments], cwd=folder, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize(
    ("arguments", "status", "expected"),
    [
        (["run", "-t", "demo|qa_zn"], 2, "tinyeval: no task is named 'demo|qa_zn' (did you mean 'demo|qa_zh'"),
        (["run", "gb.toml"], 2, "tinyeval: gb.toml, line 1: not UTF-8 (byte 0xc5 at offset 2)"),
        (["run", "-t", "qa.toml", "-m", "q={url}"], 3, "tinyeval: {url} does not answer"),
        (["score", "begun"], 2, "tinyeval: begun/qwen/custom.qa.jsonl, line 1 is damaged ("),
    ],
)
def test_the_real_command_says_the_same(
    begun: Path, write: Any, qa: Any, closed_url: str, tmp_path: Path, arguments: list[str], status: int, expected: str
) -> None:
    folder = tmp_path / "elsewhere"
    shutil.copytree(begun, folder / "begun")
    journal = folder / "begun" / "qwen" / "custom.qa.jsonl"
    journal.write_bytes(b"?" + journal.read_bytes())
    write(qa | {"gb.toml": b"# " + "配置".encode("gb18030")}, folder)
    done = command(folder, *(a.replace("{url}", closed_url) for a in arguments))
    assert done.returncode == status, done.stderr
    assert done.stderr.startswith(expected.replace("{url}", closed_url))
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
