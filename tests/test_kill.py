"""kill -9 at random moments, again and again: nothing is asked twice but what was in flight, nothing is lost."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

ROWS, IN_FLIGHT = 150, 4
TASK = 'name = "t"\ndata = "t.jsonl"\nprompt = "{q}"\nreferences = "a"\nmetric = ["qa_f1"]\ngeneration_size = 16\n'


@pytest.mark.parametrize("seed", range(3))
def test_a_run_that_is_killed_again_and_again_ends_like_one_that_was_not(
    fake_tgi: Any, tmp_path: Path, seed: int
) -> None:
    draw = random.Random(seed)
    rows = [json.dumps({"id": f"r{i}", "q": f"Question {i}?", "a": "the cat"}) for i in range(ROWS)]
    (tmp_path / "t.jsonl").write_text("\n".join(rows))
    (tmp_path / "t.toml").write_text(TASK)
    calm, server = fake_tgi(), fake_tgi("--latency", "0.02")

    def command(url: str, output: str) -> list[str]:
        (tmp_path / f"{output}.toml").write_text(f'[models.m]\nurl = "{url}"\nconcurrency = {IN_FLIGHT}\n')
        return [sys.executable, "-m", "tinyeval", "run", f"{output}.toml", "-t", "t.toml", "-o", output]

    subprocess.run(command(calm.url, "whole"), cwd=tmp_path, check=True, capture_output=True)
    journal = tmp_path / "killed/m/custom.t.jsonl"
    kills = 0
    while True:
        process = subprocess.Popen(
            command(server.url, "killed"), cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        begun = journal.read_bytes().count(b"\n") if journal.exists() else 0
        stop_at = begun + draw.randrange(0, 50)
        while process.poll() is None and (not journal.exists() or journal.read_bytes().count(b"\n") <= stop_at):
            time.sleep(0.002)
        time.sleep(draw.random() * 0.02)
        process.send_signal(signal.SIGKILL)
        if process.wait() == 0:
            break
        kills += 1
    assert kills >= 2
    assert (tmp_path / "killed/results.json").read_bytes() == (tmp_path / "whole/results.json").read_bytes()
    prompts: dict[str, int] = server.counters()["prompts"]
    asked_again = sum(prompts.values()) - ROWS
    assert len(prompts) == ROWS
    assert asked_again <= kills * IN_FLIGHT
