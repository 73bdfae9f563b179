"""What the user writes after -t, and the tasks it names."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tinyeval.errors import DataError, TaskError
from tinyeval.tasks import Registry

TASK = 'data = "d.jsonl"\nprompt = "{q}"\nreferences = "a"\nmetric = ["exact_match"]\n'
DEMO = ["demo|qa_zh", "demo|qa_en", "demo|summary_en", "demo|classify_en", "demo|choice_en", "demo|extract_json"]


@pytest.fixture
def library(tmp_path: Path) -> Registry:
    folder = tmp_path / "library"
    for task in ("exams/law", "exams/medicine", "other/law", "other/mmlu:law", "other/mmlu:art"):
        suite, name = task.split("/")
        path = folder / suite / f"{name.replace(':', '_')}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_name("d.jsonl").write_text('{"q": "?", "a": "x"}')
        path = path.with_name(f"{name}.toml")
        path.write_text(f'name = "{name}"\n{TASK}')
    (folder / "exams" / "rows.json").write_text('[{"instruction": "i", "output": "o"}]')
    (folder / "groups.toml").write_text(
        'laws = ["exams|law", "other|law"]\nall = ["laws", "other", "custom_en=exams/rows.json"]'
    )
    return Registry(folder)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("medicine", ["exams|medicine"]),
        ("law", ["exams|law", "other|law"]),  # every suite that has it
        ("exams|law", ["exams|law"]),
        ("exams|law|0", ["exams|law"]),
        ("exams|law|0|1", ["exams|law"]),
        ("exams", ["exams|law", "exams|medicine"]),
        ("exams|*", ["exams|law", "exams|medicine"]),
        ("m*", ["exams|medicine", "other|mmlu:art", "other|mmlu:law"]),
        ("other|mmlu", ["other|mmlu:art", "other|mmlu:law"]),  # a superset
        ("mmlu", ["other|mmlu:art", "other|mmlu:law"]),
        ("laws", ["exams|law", "other|law"]),
        ("medicine, exams|law ,medicine,", ["exams|medicine", "exams|law"]),  # in order, each once
        ("mine.toml", ["mine.toml"]),
    ],
)
def test_a_definition_names_tasks(library: Registry, text: str, names: list[str]) -> None:
    assert library.expand_task_definition(text) == names


def test_a_group_may_hold_groups_suites_and_files(library: Registry) -> None:
    tasks = library.get_task_dict(["all"])
    assert list(tasks) == [
        "exams|law", "other|law", "other|mmlu:art", "other|mmlu:law", "custom|custom_en:rows",
    ]  # fmt: skip
    assert all(len(task.eval_docs()) == 1 for task in tasks.values())


def test_a_suite_is_the_folder_when_the_file_names_none(library: Registry) -> None:
    assert library.get_task_instance("exams|law").config.definition.suite == ["exams"]


def test_a_file_of_names_has_one_a_line_and_comments(library: Registry, tmp_path: Path) -> None:
    file = tmp_path / "names.txt"
    file.write_text("# mine\nexams|law  # the first\n\nmmlu\n", "utf-8")
    assert library.expand_task_definition(str(file)) == ["exams|law", "other|mmlu:art", "other|mmlu:law"]


def test_a_task_file_anywhere_is_a_task_with_paths_relative_to_it(library: Registry, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "d.jsonl").write_text(json.dumps({"q": "?", "a": "x"}))
    (tmp_path / "sub" / "t.toml").write_text(f'name = "t"\n{TASK}')
    (task,) = library.get_task_dict([str(tmp_path / "sub" / "t.toml")]).values()
    assert task.name == "custom|t"
    assert len(task.eval_docs()) == 1


def test_definitions_that_overlap_give_each_task_once(library: Registry) -> None:
    assert list(library.get_task_dict(["exams|law", "law", "laws"])) == ["exams|law", "other|law"]


def test_the_installed_library_has_the_demo() -> None:
    assert Registry().expand_task_definition("demo")[:6] == DEMO
    assert set(DEMO) <= set(Registry().names())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("qa_zn", "no task is named 'qa_zn' (did you mean 'qa_zh' or "),
        ("demo|qa_zn", "no task is named 'demo|qa_zn' (did you mean 'demo|qa_zh' or 'demo|qa_en'"),
        ("dem", "no task is named 'dem' (did you mean 'demo'"),
        ("demo|qa_zn|0", "no task is named 'demo|qa_zn|0' (did you mean 'demo|qa_zh'"),
        ("%", "no task is named '%'; a file is named FILE.toml or custom_zh=FILE."),
        ("", "no task is named in ''."),
        (" , ", "no task is named in ' , '."),
        ("demo|qa_zh|5", "demo|qa_zh|5: few-shot examples are not supported yet; ask for 0 of them: demo|qa_zh|0."),
        ("demo|qa_zh|few", "demo|qa_zh|few: expected suite|task|few_shot|truncate_few_shots, the last two as numbers."),
        ("a|b|0|0|0", "a|b|0|0|0: expected suite|task|few_shot|truncate_few_shots"),
        ("custom_fr=rows.json", "custom_fr=rows.json: expected custom_zh=FILE or custom_en=FILE."),
        ("nowhere.txt", "nowhere.txt can't be read: No such file or directory; name a file that exists."),
    ],
)
def test_an_unknown_name_is_told_with_the_nearest_ones(text: str, expected: str) -> None:
    with pytest.raises(TaskError, match=re.escape(expected)):
        Registry().get_task_dict([text])


def test_a_missing_custom_file_is_told() -> None:
    with pytest.raises(DataError, match=re.escape("custom_zh=nowhere.json: the file nowhere.json does not exist.")):
        Registry().get_task_dict(["custom_zh=nowhere.json"])


def test_two_files_of_one_identity_are_refused(library: Registry, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.toml").write_text(f'name = "same"\n{TASK}')
    with pytest.raises(
        TaskError, match=re.escape("b.toml: a task 'custom|same' is already chosen; rename one of the two")
    ):
        library.get_task_dict([str(tmp_path / "a.toml"), str(tmp_path / "b.toml")])


def test_a_file_of_names_in_another_encoding_is_told_with_its_line(library: Registry, tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_bytes(b"law\n" + "法律\n".encode("gb18030"))
    with pytest.raises(TaskError, match=r"names.txt, line 2: not UTF-8 \(byte 0xb7 at offset 4\)"):
        library.expand_task_definition(str(tmp_path / "names.txt"))


def test_a_file_of_names_that_lists_itself_is_told(library: Registry, tmp_path: Path) -> None:
    names = tmp_path / "names.txt"
    names.write_text(f"{names}\n")
    with pytest.raises(TaskError, match="lists itself"):
        library.expand_task_definition(str(names))
