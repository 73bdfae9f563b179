"""Task files and data files that are wrong get a sentence and status 2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("files", "arguments", "expected"),
    [
        # Task files
        (
            lambda task, rows: {"qa.toml": b'name = "qa"\n# ' + "任务".encode("gb18030")},
            "-t qa.toml",
            "qa.toml, line 2: not UTF-8 (byte 0xc8 at offset 14)",
        ),
        (lambda task, rows: {"qa.toml": "name ="}, "-t qa.toml", "qa.toml is not valid TOML: Invalid value (at "),
        (
            lambda task, rows: {"qa.toml": task + 'metrics = ["acc"]'},
            "-t qa.toml",
            "qa.toml: unknown key 'metrics' (did you mean 'metric'",
        ),
        (
            lambda task, rows: {"qa.toml": task.replace("exact", "exakt")},
            "-t qa.toml",
            "no metric is named 'exakt_match' (did you mean 'exact_",
        ),
        (
            lambda task, rows: {
                "qa.toml": task + '[generation_grammar]\ntype = "json"\nvalue = { type = "objekt", properties = {} }'
            },
            "-t qa.toml",
            'not a valid JSON schema: "objekt" is not valid under any of the schemas',
        ),
        # Data files
        (
            lambda task, rows: {"qa.toml": task},
            "-t qa.toml",
            "qa.jsonl can't be read: No such file or directory; name a file that exists.",
        ),
        (
            lambda task, rows: {"qa.toml": task, "qa.jsonl": ""},
            "-t qa.toml",
            "qa.jsonl has no rows; at least one is needed.",
        ),
        (
            lambda task, rows: {"qa.toml": task, "qa.jsonl": rows + '{"question": "?", "a": "x"}\n'},
            "-t qa.toml",
            "qa.jsonl, row 4: the prompt names the field 'q', but the row has only: question, a.",
        ),
        (
            lambda task, rows: {"qa.toml": task, "qa.jsonl": rows + rows},
            "-t qa.toml",
            "qa.jsonl, row 4: the id '0' is already that of row 1; give each row its own.",
        ),
        (
            lambda task, rows: {
                "qa.toml": task,
                "qa.jsonl": rows.encode() + '{"q": "问题", "a": "x"}'.encode("gb18030"),
            },
            "-t qa.toml",
            "qa.jsonl, line 4: not UTF-8 (byte 0xce at offset",
        ),
        (
            lambda task, rows: {"qa.toml": task, "qa.jsonl": rows + '{"q": "?" "a": "x"}\n'},
            "-t qa.toml",
            "qa.jsonl, line 4: row 4 is not valid JSON: Expecting ',' delimiter.",
        ),
        (
            lambda task, rows: {"qa.toml": task, "qa.jsonl": rows + '["?", "x"]\n'},
            "-t qa.toml",
            "qa.jsonl, row 4: expected an object with named fields, found a list.",
        ),
        (
            lambda task, rows: {"mine.json": '[{"instruction": "i"\n'},
            "-t custom_zh=mine.json",
            "mine.json, line 2: row 1 is not valid JSON",
        ),
        (
            lambda task, rows: {"mine.json": '[{"instruction": "i", "answer": "o"}]'},
            "-t custom_zh=mine.json",
            "mine.json, row 1: the field 'output' is missing; the row has only: instruction, answer.",
        ),
    ],
)
def test_a_mistake_in_a_task_is_one_sentence_with_status_2_and_changes_nothing(
    refused: Any, qa: Any, files: Callable[[str, str], dict[str, str | bytes]], arguments: str, expected: str
) -> None:
    refused(files(qa["qa.toml"], qa["qa.jsonl"]), arguments, expected)
