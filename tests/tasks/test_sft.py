"""Files of instruction, input and output are tasks as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tinyeval.errors import DataError
from tinyeval.records import Doc
from tinyeval.tasks import Registry, Task


def task(tmp_path: Path, rows: list[Any], kind: str = "custom_zh", name: str = "rows.json") -> Task:
    (tmp_path / name).write_text(json.dumps(rows, ensure_ascii=False), "utf-8")
    (found,) = Registry().get_task_dict([f"{kind}={tmp_path / name}"]).values()
    return found


def test_instruction_and_input_ask_on_lines_of_their_own_and_the_output_is_the_reference(tmp_path: Path) -> None:
    rows = [
        {"instruction": "翻译", "input": "sea", "output": "海"},
        {"instruction": "你好", "input": "", "output": "你好！", "system": "kept out"},
        {"instruction": "再见", "output": "再见！"},
        {"instruction": "", "input": "只有问题", "output": "a"},
        {"instruction": "x", "input": None, "output": "a"},
    ]
    assert task(tmp_path, rows).eval_docs() == [
        Doc(id="0", query="翻译\nsea", references=("海",)),
        Doc(id="1", query="你好", references=("你好！",)),
        Doc(id="2", query="再见", references=("再见！",)),
        Doc(id="3", query="只有问题", references=("a",)),
        Doc(id="4", query="x", references=("a",)),
    ]


@pytest.mark.parametrize(
    ("kind", "metric", "language"),
    [("custom_zh", ["rouge_zh", "qa_f1_zh"], "zh"), ("custom_en", ["rouge", "qa_f1"], "en")],
)
def test_the_language_decides_how_words_are_found(tmp_path: Path, kind: str, metric: list[str], language: str) -> None:
    found = task(tmp_path, [{"instruction": "i", "output": "o"}], kind)
    assert found.name == f"custom|{kind}:rows"
    assert [m.name for m in found.metrics] == metric
    assert found.config.definition.language == language
    assert found.needs == {"generate"}


def test_a_table_of_the_same_fields_is_the_same_task(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("instruction,input,output\n翻译,sea,海\n你好,,你好！\n", "utf-8")
    (found,) = Registry().get_task_dict([f"custom_zh={path}"]).values()
    assert [d.query for d in found.eval_docs()] == ["翻译\nsea", "你好"]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"instruction": "i", "answer": "o"}, "the field 'output' is missing; the row has only: instruction, answer."),
        ({"input": "i", "output": "o"}, "the field 'instruction' is missing; the row has only: input, output."),
        ({"instruction": 5, "output": "o"}, "the field 'instruction' = 5: expected a text."),
        ({"instruction": "i", "output": ["o"]}, "the field 'output' = ['o']: expected a text."),
        ({"instruction": "i", "input": {"a": 1}, "output": "o"}, "the field 'input' = {'a': 1}: expected a text."),
        ({"instruction": " ", "input": "\n", "output": "o"}, "the prompt is empty."),
    ],
)
def test_a_wrong_row_is_told_with_its_number_and_field(tmp_path: Path, row: dict[str, Any], expected: str) -> None:
    with pytest.raises(DataError) as e:
        task(tmp_path, [{"instruction": "i", "output": "o"}, row]).eval_docs()
    assert str(e.value) == f"{tmp_path / 'rows.json'}, row 2: {expected}"


def test_a_row_without_anything_to_compare_with_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="row 1: the field 'output' is empty"):
        task(tmp_path, [{"instruction": "x", "output": " "}]).eval_docs()
