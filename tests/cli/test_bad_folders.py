"""Folders that can't be a run, other settings and damaged runs are told; what stood there stays as it was."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("-t qa.toml -o qa.jsonl", "can't be written: Not a directory; choose another folder with -o."),
        ("-t qa.toml -o qa.jsonl/run", "can't be written: Not a directory; choose another folder with -o."),
        (f"-t qa.toml -o {'x' * 300}", "File name too long; choose another with -o."),
        ("-t qa.toml -o .", ". exists and is not the folder of a run; choose another with -o."),
        ("--resume .", ". is not the folder of a run: run.json can't be read (No such file or directory)."),
    ],
)
def test_a_mistake_in_a_folder_is_one_sentence_with_status_2_and_changes_nothing(
    refused: Any, qa: Any, arguments: str, expected: str
) -> None:
    refused(qa, arguments, expected)


@pytest.mark.parametrize(
    ("arguments", "config", "expected"),
    [
        ("--limit 2", "", "limit was None and is 2 now"),
        ("--seed 5", "", "seed was 0 and is 5 now"),
        ("-t demo|qa_en", "", "tasks.custom|qa was there and is not now; tasks.demo|qa_en was not there and is now"),
        ("-t qa.toml", "chat = false", "models.qwen.chat was None and is False now"),
        (
            "-t qa.toml",
            "[models.qwen.generation]\ntemperature = 1",
            "models.qwen.generation.temperature was 0.0 and is 1.0 now",
        ),
    ],
)
def test_a_run_with_other_settings_is_told_what_changed_and_stays_as_it_is(
    tinyeval: Any, begun: Path, tmp_path: Path, contents: Any, arguments: str, config: str, expected: str
) -> None:
    (tmp_path / "c.toml").write_text((tmp_path / "c.toml").read_text() + config)
    before = contents(begun)
    task = [] if "-t" in arguments else ["-t", "qa.toml"]
    outcome = tinyeval("run", "c.toml", *task, *arguments.split(), "-o", "run")
    assert outcome.status == 2
    assert outcome.stderr.startswith("tinyeval: run is a run with other settings: ")
    assert expected in outcome.stderr
    assert outcome.stderr.endswith("Choose another folder with -o, or go back to those settings.\n")
    assert contents(begun) == before


def test_a_changed_question_is_another_run(tinyeval: Any, begun: Path, tmp_path: Path, contents: Any) -> None:
    path = tmp_path / "qa.jsonl"
    path.write_text(path.read_text().replace("Question 1", "Query 1"))
    before = contents(begun)
    outcome = tinyeval("run", "c.toml", "-t", "qa.toml", "-o", "run")
    assert outcome.status == 2
    assert re.search(r"other settings: tasks\.custom\|qa\.docs was '\w+' and is '\w+' now\.", outcome.stderr)
    assert contents(begun) == before


COMMANDS = [["run", "c.toml", "-t", "qa.toml", "-o", "run"], ["run", "--resume", "run"], ["score", "run"]]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize(
    ("file", "damage", "expected"),
    [
        ("qwen/custom.qa.jsonl", lambda d: b"?" + d, "qwen/custom.qa.jsonl, line 1 is damaged ("),
        ("qwen/custom.qa.jsonl", lambda d: d[:9] + b"\n" + d[9:], "qwen/custom.qa.jsonl, line 1 is damaged ("),
        ("run.json", lambda d: d[:99], "run.json is damaged: "),
        ("run.json", lambda d: b"\xff" + d, "run.json is damaged: "),
        ("run.json", lambda d: b"[]", "run.json is damaged: Expected `object`, got `array`."),
    ],
)
def test_a_damaged_run_is_told_by_every_command_and_left_as_it_is(
    tinyeval: Any, begun: Path, contents: Any, command: list[str], file: str, damage: Any, expected: str
) -> None:
    path = begun / file
    path.write_bytes(damage(path.read_bytes()))
    before = contents(begun)
    outcome = tinyeval(*command)
    assert outcome.stderr.splitlines()[-1].startswith(f"tinyeval: run/{expected}")
    assert (outcome.status, outcome.stdout) == (2, "")
    assert contents(begun) == before


def test_a_damaged_configuration_in_a_run_is_told_on_resuming(tinyeval: Any, begun: Path) -> None:
    record = json.loads((begun / "run.json").read_text())
    record["config"]["models"]["qwen"]["url"] = 5
    (begun / "run.json").write_text(json.dumps(record))
    outcome = tinyeval("run", "--resume", "run")
    assert outcome.status == 2
    assert outcome.stderr.startswith("tinyeval: run/run.json: models.*.url = {'qwen': {'url': 5")
    assert outcome.stderr.endswith(": expected str | array, got int.\n")


def test_scoring_what_is_no_run_is_told(tinyeval: Any, write: Any) -> None:
    outcome = tinyeval("score", "nowhere")
    reason = "nowhere/run.json can't be read (No such file or directory)."
    assert outcome == (2, "", f"tinyeval: nowhere is not the folder of a run: {reason}\n")
    write({"preds.txt": "{}"})
    assert "can't be read (Not a directory)" in tinyeval("score", "preds.txt").stderr


def test_an_unfinished_run_is_scored_with_its_gaps_counted(tinyeval: Any, begun: Path) -> None:
    outcome = tinyeval("score", "run", "--json")
    assert outcome.status == 1
    result = json.loads(outcome.stdout)["results"]["qwen"]["custom|qa"]["exact_match"]
    assert (result["value"], result["n"], result["failed"]) == (1.0, 2, 1)
    assert "1 Docs have no score" in outcome.stderr
