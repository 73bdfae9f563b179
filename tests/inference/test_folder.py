"""The folder of a run: the same command finds it again, another one is kept out."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tinyeval.config import Config, Generation, ModelConfig
from tinyeval.endpoints.protocol import Identity
from tinyeval.errors import RunError
from tinyeval.inference.folder import ModelRecord, RunFolder, default_path, differences, file_name, models_of
from tinyeval.records import Doc, Grammar
from tinyeval.tasks import Definition, Task, TaskConfig

CONFIG = Config(models={"b": ModelConfig(url="http://h", api_key="${KEY}"), "a": ModelConfig(url="http://i")})
IDENTITY = Identity(api="tgi", model_id="m", max_total_tokens=2048, max_concurrent_requests=4)


def task(name: str = "t", n: int = 2, **fields: Any) -> tuple[dict[str, Task], dict[str, list[Doc]]]:
    """A task and its Docs, both by identity, as a plan holds them."""
    definition = Definition(name=name, metric=["qa_f1"], **fields)

    def build(row: dict[str, Any], task_name: str) -> Doc:
        return Doc(id="", query=row["q"], references=("x",))

    found = Task(TaskConfig(definition=definition, prompt_function=build, path=Path("rows.json")))
    found._rows = [{"q": f"问题 {i}"} for i in range(n)]  # pyright: ignore[reportPrivateUsage]
    return {found.name: found}, {found.name: found.eval_docs()}


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def answered(folder: RunFolder) -> None:
    """From the first answer on a run is bound to its settings."""
    journal = folder.journal(models_of(folder.record)[0], next(iter(folder.record.tasks)))
    journal.parent.mkdir(exist_ok=True)
    journal.write_bytes(b'{"doc":"0","index":0,"key":"k"}\n')


def test_a_run_begins_once_and_is_found_again_unchanged(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    assert not folder.begin(CONFIG, *task())
    answered(folder)
    before = files(tmp_path)
    assert folder.begin(CONFIG, *task())
    assert files(tmp_path) == before
    assert set(before) == {"run/run.json", "run/docs/custom.t.jsonl", "run/b/custom.t.jsonl"}
    assert [json.loads(line)["query"] for _, line in folder.docs("custom|t", 2)] == ["问题 0", "问题 1"]
    assert models_of(folder.record) == ["b", "a"]  # the configuration's order


def test_what_does_not_shape_answers_may_change(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.begin(CONFIG, *task())
    answered(folder)
    model = ModelConfig(url="http://elsewhere", api_key="${OTHER}", concurrency=1, timeout=5, api="tgi")
    assert folder.begin(Config(output="x", models={**CONFIG.models, "b": model}), *task(description="new words"))


@pytest.mark.parametrize(
    ("config", "changes", "expected"),
    [
        (Config(limit=1, models=CONFIG.models), {}, "limit was None and is 1 now"),
        (Config(seed=3, models=CONFIG.models), {}, "seed was 0 and is 3 now"),
        (Config(models={"b": CONFIG.models["b"]}), {}, "models.a was there and is not now"),
        (Config(models={**CONFIG.models, "c": ModelConfig(url="http://j")}), {}, "models.c was not there and is now"),
        (
            Config(models={**CONFIG.models, "a": ModelConfig(url="http://i", generation=Generation(temperature=1.0))}),
            {},
            "models.a.generation.temperature was 0.0 and is 1.0 now",
        ),
        (CONFIG, {"generation_size": 9}, "tasks.custom|t.generation_size was None and is 9 now"),
        (CONFIG, {"n": 3}, "tasks.custom|t.docs was '"),
        (CONFIG, {"name": "u"}, "tasks.custom|t was there and is not now; tasks.custom|u was not there and is now"),
    ],
)
def test_a_run_with_other_settings_is_refused_with_what_changed_and_left_as_it_is(
    tmp_path: Path, config: Config, changes: dict[str, Any], expected: str
) -> None:
    folder = RunFolder(tmp_path)
    folder.begin(CONFIG, *task())
    answered(folder)
    before = files(tmp_path)
    with pytest.raises(RunError) as e:
        folder.begin(config, *task(**changes))
    assert str(e.value).startswith(f"{tmp_path} is a run with other settings: {expected}")
    assert str(e.value).endswith("Choose another folder with -o, or go back to those settings.")
    assert files(tmp_path) == before


@pytest.mark.parametrize(
    "change",
    [
        {"chat": False},
        {"max_length": 512},
        {"tokenizer": "org/other"},
        {"generation": Generation(top_k=1)},
        {"api": "local", "url": None, "model": "x.gguf"},
        {"api": "local", "url": None, "revision": "x"},
    ],
)
def test_everything_of_a_model_that_shapes_its_answers_is_a_setting(tmp_path: Path, change: dict[str, Any]) -> None:
    folder = RunFolder(tmp_path)
    folder.begin(CONFIG, *task())
    answered(folder)
    changed = msgspec.structs.replace(CONFIG.models["a"], **change)
    with pytest.raises(RunError, match=r"other settings: models\.a\.\w+"):
        folder.begin(Config(models={**CONFIG.models, "a": changed}), *task())


@pytest.mark.parametrize(
    "change",
    [
        {"stop_sequence": ["\n"]},
        {"truncate": "error"},
        {"chat": False},
        {"generation_size": 1},
        {"generation_grammar": Grammar(type="regex", value="a")},
    ],
)
def test_everything_of_a_task_that_shapes_its_answers_is_a_setting(tmp_path: Path, change: dict[str, Any]) -> None:
    folder = RunFolder(tmp_path)
    folder.begin(CONFIG, *task())
    answered(folder)
    with pytest.raises(RunError, match=r"other settings: tasks\.custom\|t\.\w+"):
        folder.begin(CONFIG, *task(**change))


def test_differences_are_told_key_by_key() -> None:
    before = {"same": 1, "gone": 1, "deep": {"a": [1], "b": None}}
    now = {"same": 1, "new": 1, "deep": {"a": [2], "b": {"c": 1}}}
    assert differences(before, now) == [
        "gone was there and is not now",
        "deep.a was [1] and is [2] now",
        "deep.b was None and is {'c': 1} now",
        "new was not there and is now",
    ]
    assert differences(before, before) == []


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(RunError, match="exists and is not the folder of a run; choose another with -o"):
        RunFolder(tmp_path).begin(CONFIG, *task())
    assert list(files(tmp_path)) == ["thesis.tex"]
    with pytest.raises(
        RunError, match=re.escape(f"{tmp_path} is not the folder of a run: {tmp_path / 'run.json'} can't be")
    ):
        _ = RunFolder(tmp_path).record


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("file", "can't be written: "),
        ("file/sub", "can't be written: Not a directory; "),
        ("x" * 300, "File name too long; "),
    ],
)
def test_a_folder_that_can_not_be_made_is_told(tmp_path: Path, path: str, expected: str) -> None:
    (tmp_path / "file").write_text("kept")
    with pytest.raises(RunError, match=f"{expected}.*choose another"):
        RunFolder(tmp_path / path).begin(CONFIG, *task())
    assert files(tmp_path) == {"file": b"kept"}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "run.json is damaged: Input data was truncated."),
        (b"{", "run.json is damaged: Input data was truncated."),
        (b"\xff", "run.json is damaged: JSON is malformed: "),
        (b'"\xff"', "run.json is damaged: "),
        (b"{}", "run.json is damaged: Object missing required field `settings`."),
        (
            b'{"settings": {}, "tasks": {"t": 5}}',
            "run.json is damaged: Expected `object`, got `int` - at `$.tasks[...]`.",
        ),
    ],
)
def test_a_damaged_run_json_is_told(tmp_path: Path, content: bytes, expected: str) -> None:
    folder = RunFolder(tmp_path)
    folder.begin(CONFIG, *task())
    answered(folder)
    (tmp_path / "run.json").write_bytes(content)
    for act in (lambda: folder.record, lambda: folder.begin(CONFIG, *task())):
        with pytest.raises(RunError, match=re.escape(expected)):
            act()
    assert (tmp_path / "run.json").read_bytes() == content


def test_damaged_docs_are_told_also_when_only_some_are_missing(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.begin(CONFIG, *task())
    answered(folder)
    path = tmp_path / "docs" / "custom.t.jsonl"
    whole = path.read_bytes()
    for content, expected in (
        (whole[:-9], "custom.t.jsonl is damaged: "),
        (whole.splitlines(keepends=True)[0], "custom.t.jsonl is damaged: it has 1 of 2 Docs."),
        (b"", "custom.t.jsonl is damaged: it has 0 of 2 Docs."),
    ):
        path.write_bytes(content)
        with pytest.raises(RunError, match=re.escape(expected)):
            list(folder.docs("custom|t", 2))
    path.unlink()
    with pytest.raises(RunError, match=re.escape("custom.t.jsonl can't be read: No such file or directory.")):
        list(folder.docs("custom|t", 2))


def test_another_server_under_the_same_name_is_refused(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.begin(CONFIG, *task())
    answered(folder)
    folder.connected("a", ModelRecord(identity=IDENTITY))
    folder.connected("a", ModelRecord(identity=msgspec.structs.replace(IDENTITY, max_concurrent_requests=9)))
    with pytest.raises(RunError, match=r"begun with another server for a: model_id was 'm' and is 'n' now\."):
        folder.connected("a", ModelRecord(identity=msgspec.structs.replace(IDENTITY, model_id="n")))
    assert folder.record.models["a"].identity.model_id == "m"


def test_what_is_served_stays_known_when_the_run_goes_on(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.begin(CONFIG, *task())
    answered(folder)
    folder.connected("a", ModelRecord(identity=IDENTITY, refused={"custom|t": "why"}))
    folder.begin(CONFIG, *task())
    answered(folder)
    assert folder.record.models["a"].refused == {"custom|t": "why"}


def test_a_literal_key_is_not_written(tmp_path: Path) -> None:
    config = Config(models={"a": ModelConfig(url="http://h", api_key="sk-secret")})
    RunFolder(tmp_path).begin(config, *task())
    assert b"sk-secret" not in b"".join(files(tmp_path).values())


def test_the_same_command_has_the_same_folder_and_another_one_another() -> None:
    path = default_path(CONFIG, *task())
    assert path == default_path(CONFIG, *task())
    assert path.parent == Path("runs")
    assert path.name.startswith("b+a-")
    others = [
        default_path(Config(limit=1, models=CONFIG.models), *task()),
        default_path(Config(models={**CONFIG.models, "a": ModelConfig(url="http://other")}), *task()),
        default_path(CONFIG, *task(n=3)),
    ]
    assert len({path, *others}) == 4


def test_a_tasks_name_is_a_file_name_everywhere() -> None:
    assert file_name("demo|qa_zh") == "demo.qa_zh"
    assert file_name("custom|custom_zh:人设 (1)") == "custom.custom_zh_人设__1_"


@pytest.mark.parametrize(("one", "other"), [("a:b", "a_b"), ("Law", "law"), ("t.scores", "t")])
def test_two_tasks_never_share_a_file(tmp_path: Path, one: str, other: str) -> None:
    (tasks, docs), (more, more_docs) = task(one), task(other)
    with pytest.raises(
        RunError, match=re.escape(f"the tasks 'custom|{one}' and 'custom|{other}' would share the file")
    ):
        RunFolder(tmp_path).begin(CONFIG, tasks | more, docs | more_docs)
    assert not files(tmp_path)


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = RunFolder(tmp_path)
    folder.write_json("results.json", {"a": "一"})
    assert (tmp_path / "results.json").read_text("utf-8") == '{\n  "a": "一"\n}\n'

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(
        RunError, match=r"results\.json can't be written: No space left on device; choose another folder"
    ):
        folder.write_json("results.json", {"b": 2})
    assert json.loads((tmp_path / "results.json").read_text("utf-8")) == {"a": "一"}
    assert list(files(tmp_path)) == ["results.json"]
