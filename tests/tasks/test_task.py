"""Task definitions: from TOML and rows to Docs and requests, and what a wrong one is told."""

from __future__ import annotations

import json
import re
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyeval.errors import DataError, TaskError
from tinyeval.records import Doc, Grammar, GreedyUntil, Loglikelihood
from tinyeval.tasks import Definition, PromptManager, Task, TaskConfig, digest
from tinyeval.tasks.config import fields_of, fill, load_task, template_function

QA = 'name = "qa"\ndata = "qa.jsonl"\nprompt = "Q: {q}\\nA:"\nreferences = "answers"\nmetric = ["qa_f1"]\n'
CHOICE = (
    'name = "mc"\ndata = "qa.jsonl"\nprompt = "Q: {q}\\nA:"\nchoices = "options"\ngold = "right"\nmetric = ["acc"]\n'
)


def task_file(tmp_path: Path, toml: str, rows: list[Any] | None = None) -> Path:
    (tmp_path / "qa.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows or []), "utf-8")
    path = tmp_path / "qa.toml"
    path.write_text(toml, "utf-8")
    return path


def docs_of(tmp_path: Path, toml: str, rows: list[Any]) -> list[Doc]:
    return Task(load_task(task_file(tmp_path, toml, rows))).eval_docs()


def refusal(tmp_path: Path, toml: str, rows: list[Any] | None = None) -> str:
    """The sentence that a task is refused with, without the folder."""
    with pytest.raises((TaskError, DataError)) as e:
        docs_of(tmp_path, toml, rows or [])
    (sentence,) = str(e.value).splitlines()
    return sentence.replace(f"{tmp_path}/", "")


# Rows to Docs


def test_a_row_becomes_a_doc(tmp_path: Path) -> None:
    toml = QA.replace("prompt", 'instruction = "Answer briefly, {who}.\\n"\nprompt')
    rows = [
        {"id": "a", "q": "1 + 1?", "who": "Ann", "answers": ["2", "two"]},
        {"_id": 7, "q": "{x}", "who": "Bo", "answers": 4},
        {"q": "?", "who": "C", "answers": "yes"},
    ]
    first, second, third = docs_of(tmp_path, toml, rows)
    assert first == Doc(
        id="a",
        query="Answer briefly, Ann.\nQ: 1 + 1?\nA:",
        instruction="Answer briefly, Ann.\n",
        references=("2", "two"),
    )
    assert (second.id, second.references) == ("7", ("4",))
    assert "Q: {x}\n" in second.query  # braces in the data are data
    assert third.id == "2"  # the row's number from 0


def test_several_fields_are_one_reference_as_a_json_object(tmp_path: Path) -> None:
    toml = QA.replace('references = "answers"', 'references = ["name", "age"]').replace("qa_f1", "json_fields")
    (doc,) = docs_of(tmp_path, toml, [{"q": "?", "name": "安", "age": 3, "more": 1}])
    assert doc.references == ('{"name":"安","age":3}',)


@pytest.mark.parametrize(("right", "index"), [(1, 1), ("b", 1), (0, 0)])
def test_gold_is_a_choice_or_its_position(tmp_path: Path, right: object, index: int) -> None:
    (doc,) = docs_of(tmp_path, CHOICE, [{"q": "?", "options": ["a", "b"], "right": right}])
    assert (doc.choices, doc.gold_index) == (("a", "b"), (index,))


def test_a_limit_takes_the_first_rows_and_the_number_of_all_stays_known(tmp_path: Path) -> None:
    rows = [{"q": str(i), "answers": "x"} for i in range(5)]
    task = Task(load_task(task_file(tmp_path, QA, rows)))
    assert task.original_num_docs == 5
    assert [d.id for d in task.eval_docs(2)] == ["0", "1"]
    assert task.eval_docs() == task.eval_docs(99)


def test_rows_past_the_limit_are_not_checked(tmp_path: Path) -> None:
    task = Task(load_task(task_file(tmp_path, QA, [{"q": "?", "answers": "x"}, {"broken": 1}])))
    assert len(task.eval_docs(1)) == 1


def test_a_prompt_function_may_skip_a_row_or_make_several_docs_of_it() -> None:
    def build(row: dict[str, Any], task_name: str) -> list[Doc] | Doc | None:
        docs = [Doc(id=row.get("own", ""), query=f"{task_name} {i}", references=("x",)) for i in range(row["n"])]
        return docs if len(docs) != 1 else docs[0]

    config = TaskConfig(definition=Definition(name="t", metric=["qa_f1"]), prompt_function=build, path=Path("x"))
    docs = Task(config).docs([{"n": 0}, {"n": 1}, {"n": 2}, {"n": 1, "own": "mine"}])
    assert [d.id for d in docs] == ["1", "2.0", "2.1", "mine"]
    assert docs[0].query == "custom|t 0"


def test_a_digest_changes_with_content_and_with_order() -> None:
    a, b = Doc(id="a", query="1"), Doc(id="b", query="2")
    assert digest([a, b]) == digest([a, b])
    assert len({digest([a, b]), digest([b, a]), digest([a]), digest([a, Doc(id="b", query="3")])}) == 4


# Requests


def test_what_several_generative_metrics_need_is_asked_once(tmp_path: Path) -> None:
    toml = QA.replace('["qa_f1"]', '["qa_f1", "rouge", "exact_match"]\ngeneration_size = 5\nstop_sequence = ["\\n"]')
    task = Task(load_task(task_file(tmp_path, toml, [{"q": "?", "answers": "x"}])))
    assert task.needs == {"generate"}
    request = GreedyUntil(context="P", stop_sequence=("\n",), generation_size=5)
    assert task.construct_requests(task.eval_docs()[0], "P") == [request]


def test_each_choice_is_a_log_likelihood_with_a_space_before_it(tmp_path: Path) -> None:
    task = Task(load_task(task_file(tmp_path, CHOICE, [{"q": "?", "options": ["a", "b c"], "right": 0}])))
    assert task.needs == {"loglikelihood"}
    assert task.construct_requests(task.eval_docs()[0], "P") == [
        Loglikelihood(context="P", continuation=" a"),
        Loglikelihood(context="P", continuation=" b c"),
    ]


def test_a_task_may_need_both_and_the_answer_comes_first(tmp_path: Path) -> None:
    toml = CHOICE.replace('["acc"]', '["acc", "accuracy"]\nreferences = "label"')
    task = Task(load_task(task_file(tmp_path, toml, [{"q": "?", "options": ["a", "b"], "right": 0, "label": "a"}])))
    kinds = [type(r) for r in task.construct_requests(task.eval_docs()[0], "P")]
    assert kinds == [GreedyUntil, Loglikelihood, Loglikelihood]


def test_a_grammar_is_a_need_of_its_kind_and_travels_with_the_request(tmp_path: Path) -> None:
    toml = QA + '[generation_grammar]\ntype = "regex"\nvalue = "[0-9]+"\n'
    task = Task(load_task(task_file(tmp_path, toml, [{"q": "?", "answers": "1"}])))
    assert task.needs == {"generate", "grammar:regex"}
    (request,) = task.construct_requests(task.eval_docs()[0], "P")
    assert isinstance(request, GreedyUntil)
    assert request.grammar == Grammar(type="regex", value="[0-9]+")


# Templates

names = st.text(string.ascii_lowercase + "_问题", min_size=1, max_size=6).filter(str.isidentifier)
plain = st.text(st.characters(codec="utf-8"), max_size=12)


@given(st.lists(plain | names.map(lambda n: (n,)), max_size=8), st.dictionaries(names, plain | st.integers()))
@settings(deadline=None)
def test_fill_puts_fields_into_their_places_and_leaves_everything_else(parts: list[Any], row: dict[str, Any]) -> None:
    row = {**{p[0]: "here" for p in parts if isinstance(p, tuple)}, **row}
    template = "".join(
        f"{{{p[0]}}}" if isinstance(p, tuple) else p.replace("{", "{{").replace("}", "}}") for p in parts
    )
    assert fill(template, row) == "".join(str(row[p[0]]) if isinstance(p, tuple) else p for p in parts)
    assert fields_of(template) == [p[0] for p in parts if isinstance(p, tuple)]


@given(plain, plain)
@settings(deadline=None)
def test_what_a_field_says_is_never_read_as_a_template(value: str, other: str) -> None:
    assert fill("{a}|{b}", {"a": value + "{b}", "b": other}) == f"{value}{{b}}|{other}"


@given(st.text("{}ab!:.[]0 ", max_size=10))
@settings(deadline=None)
def test_a_template_is_either_refused_or_filled(template: str) -> None:
    try:
        found = fields_of(template)
    except ValueError:
        return
    assert set(found) <= {"a", "b", "ab", "ba"} | {n for n in found if n.isidentifier()}
    fill(template, dict.fromkeys(found, "x"))


@pytest.mark.parametrize(
    "template", ["{", "}", "{}", "{0}", "{a.b}", "{a[0]}", "{a!r}", "{a:>9}", "{a b}", "{a", "{a:{b}}"]
)
def test_more_than_a_plain_name_in_braces_is_refused(tmp_path: Path, template: str) -> None:
    with pytest.raises(ValueError):  # what it says is seen below
        fields_of(template)
    said = refusal(tmp_path, QA.replace("Q: {q}", template))
    assert said.startswith(f"qa.toml: prompt = {template + chr(10) + 'A:'!r}: ")


def test_a_query_is_taken_apart_into_instruction_and_question() -> None:
    manager = PromptManager(chat=True)
    doc = Doc(id="1", query="Be brief. Why?", instruction="Be brief. ")
    assert manager.doc_to_text(doc) == ("Why?", "Be brief. ")
    assert manager.messages(doc.query) == [{"role": "user", "content": "Be brief. Why?"}]
    with pytest.raises(ValueError, match="Doc 1: the query does not begin with its instruction"):
        manager.doc_to_text(Doc(id="1", query="Why?", instruction="Be brief."))


# What a wrong definition is told


@pytest.mark.parametrize(
    ("toml", "expected"),
    [
        ("name = ", "qa.toml is not valid TOML: "),
        ("", "qa.toml: the key 'name' is missing."),
        ('name = "qa"', "qa.toml: the key 'metric' is missing."),
        (QA + 'promt = "x"', "qa.toml: unknown key 'promt' (did you mean 'prompt'"),
        (QA.replace("data =", "#"), "qa.toml: data = None: name the data file, relative to this one."),
        (
            QA.replace("prompt =", "#"),
            "qa.toml: prompt = None: write the question, with {field} for a field of the row.",
        ),
        (QA.replace('["qa_f1"]', "[]"), "qa.toml: metric = []: name at least one metric."),
        (QA.replace('["qa_f1"]', '"qa_f1"'), "qa.toml: metric = 'qa_f1': expected array, got str."),
        (QA.replace("qa_f1", "qa_f2"), "custom|qa: no metric is named 'qa_f2' (did you mean 'qa_f1'"),
        (QA.replace('"qa"', '"a|b"'), "qa.toml: name = 'a|b': expected a name without '|', ',' or slashes."),
        (QA + "suite = []", "qa.toml: suite = []: expected names without '|', ',' or ':'."),
        (QA + 'suite = ["a:b"]', "qa.toml: suite = ['a:b']: expected names without"),
        (QA + "generation_size = 0", "qa.toml: generation_size = 0: expected int >= 1"),
        (QA + 'generation_size = "64"', "qa.toml: generation_size = '64': expected int, got str."),
        (QA + 'truncate = "head"', "qa.toml: truncate = 'head': expected 'middle' or 'error'."),
        (QA + "chat = 1", "qa.toml: chat = 1: expected bool, got int."),
        (QA + 'choices = ["a", ""]', "qa.toml: choices = ['a', '']: expected a field or texts, none of them empty."),
        (QA + 'gold = "q"', "qa.toml: gold = 'q': name the choices too: gold is the right one of them."),
        (QA + "[generation_grammar]\n", "qa.toml: the key 'generation_grammar.type' is missing."),
        (QA + '[generation_grammar]\ntype = "json"', "qa.toml: the key 'generation_grammar.value' is missing."),
        (
            QA + '[generation_grammar]\ntype = "ebnf"\nvalue = "x"',
            "qa.toml: generation_grammar.type = 'ebnf': expected 'json' or 'regex'.",
        ),
        (QA + '[generation_grammar]\ntype = "json"\nvalue = 5', "qa.toml: generation_grammar.value = 5: expected"),
        (
            QA + '[generation_grammar]\ntype = "json"\n[generation_grammar.value]\ntype = "objet"',
            "qa.toml: generation_grammar = Grammar(type='json', value={'type': 'objet'}): not a valid JSON schema: "
            '"objet" is not valid under any of the schemas',
        ),
        (
            QA + '[generation_grammar]\ntype = "json"\n[generation_grammar.value]\ntype = "object"',
            "qa.toml: generation_grammar = Grammar(type='json', value={'type': 'object'}): the schema needs",
        ),
        (
            QA + '[generation_grammar]\ntype = "json"\nvalue = "{}"',
            "qa.toml: generation_grammar = Grammar(type='json', value='{}'): the schema needs `properties`",
        ),
        (
            QA + '[generation_grammar]\ntype = "regex"\n[generation_grammar.value]\na = 1',
            "qa.toml: generation_grammar = Grammar(type='regex', value={'a': 1}): the value of a regex is a text.",
        ),
    ],
)
def test_a_wrong_definition_is_told_with_file_key_value_and_expectation(
    tmp_path: Path, toml: str, expected: str
) -> None:
    assert refusal(tmp_path, toml, [{"q": "?", "answers": "x"}]).startswith(expected)


def test_a_task_file_in_another_encoding_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "zh.toml"
    path.write_bytes(b'name = "zh"\n' + 'prompt = "问题：{q}"\n'.encode("gb18030"))
    with pytest.raises(TaskError, match=re.escape("zh.toml, line 2: not UTF-8 (byte 0xce at offset 22); convert it")):
        load_task(path)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ('[generation_grammar]\ntype = "regex"\nvalue = "[0-9"', "not a valid regular expression: unterminated"),
        ('stop_sequence = ["."]\n[generation_grammar]\ntype = "regex"\nvalue = "[0-9]"', "a stop string would cut it"),
    ],
)
def test_a_grammar_that_would_harm_other_requests_or_itself_is_refused(
    tmp_path: Path, more: str, expected: str
) -> None:
    assert expected in refusal(tmp_path, QA + more)


def test_a_schema_that_refers_elsewhere_is_refused_and_nothing_is_fetched(tmp_path: Path) -> None:
    (tmp_path / "elsewhere.json").write_text("{}")
    for uri in ("http://127.0.0.1:9/x", (tmp_path / "elsewhere.json").as_uri()):
        grammar = f'[generation_grammar]\ntype = "json"\n[generation_grammar.value.properties.a]\n"$ref" = "{uri}"\n'
        assert "a schema must hold all that it refers to" in refusal(tmp_path, QA + grammar)


def test_a_missing_task_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(
        TaskError, match=r"nowhere\.toml can't be read: No such file or directory; name a file that exists."
    ):
        load_task(tmp_path / "nowhere.toml")


# What a wrong row is told


@pytest.mark.parametrize(
    ("toml", "row", "expected"),
    [
        (
            QA,
            {"question": "?", "answers": "x"},
            "the prompt names the field 'q', but the row has only: question, answers.",
        ),
        (QA, {"q": "?"}, "references names the field 'answers', but the row has only: q."),
        (QA, {"q": "?", "answers": []}, "the field 'answers' = []: expected a text or a list of at least one text."),
        (
            QA,
            {"q": "?", "answers": None},
            "references names the field 'answers', but it is null in this row.",
        ),
        (QA, {"q": "?", "answers": [{"a": 1}]}, "the field 'answers' = [{'a': 1}]: expected a text or a list"),
        (QA.replace("Q: {q}\\nA:", "{q}"), {"q": " ", "answers": "x"}, "the prompt is empty."),
        (
            QA.replace('references = "answers"\n', ""),
            {"q": "?"},
            "the metric qa_f1 needs references; the task names none.",
        ),
        (
            QA.replace("qa_f1", "accuracy") + 'choices = ["yes", "no"]',
            {"q": "?", "answers": "maybe"},
            "the metric accuracy: the reference 'maybe' is none of the choices ['yes', 'no'].",
        ),
        (
            QA.replace("qa_f1", "classification"),
            {"q": "?", "answers": "x"},
            "the metric classification: it needs choices: the classes.",
        ),
        (
            QA.replace("qa_f1", "json_fields"),
            {"q": "?", "answers": "Ann, 36"},
            "the metric json_fields: the reference 'Ann, 36' is no JSON object with fields.",
        ),
        (
            QA.replace("qa_f1", "json_exact"),
            {"q": "?", "answers": "{}"},
            "the metric json_exact: the reference '{}' is no",
        ),
        (CHOICE, {"q": "?", "right": 0}, "choices names the field 'options', but the row has only: q, right."),
        (CHOICE, {"q": "?", "options": ["a", "b"]}, "gold names the field 'right', but the row has only: q, options."),
        (
            CHOICE,
            {"q": "?", "options": ["a", "b"], "right": 2},
            "the field 'right' = 2: expected one of the choices or its position from 0 to 1.",
        ),
        (CHOICE, {"q": "?", "options": ["a", "b"], "right": -1}, "the field 'right' = -1: expected one of the choices"),
        (CHOICE, {"q": "?", "options": ["a", "b"], "right": True}, "the field 'right' = True: expected one of the"),
        (
            CHOICE,
            {"q": "?", "options": ["a", "b"], "right": "c"},
            "the field 'right' = 'c': expected one of the choices",
        ),
        (CHOICE, {"q": "?", "options": "ab", "right": 0}, "the field 'options' = 'ab': expected a list of texts"),
        (
            CHOICE,
            {"q": "?", "options": ["a", ""], "right": 0},
            "the field 'options' = ['a', '']: expected a list of texts",
        ),
        (CHOICE, {"q": "?", "options": ["a"], "right": 0}, "the metric acc needs at least two choices and a gold one."),
        (
            CHOICE.replace('gold = "right"\n', ""),
            {"q": "?", "options": ["a", "b"]},
            "the metric acc needs at least two choices and a gold one.",
        ),
    ],
)
def test_a_wrong_row_is_told_with_file_number_field_and_expectation(
    tmp_path: Path, toml: str, row: dict[str, Any], expected: str
) -> None:
    assert refusal(tmp_path, toml, [row]).startswith(f"qa.jsonl, row 1: {expected}")


def test_the_first_wrong_row_is_the_one_that_is_told(tmp_path: Path) -> None:
    rows = [{"q": "?", "answers": "x"}, {"q": "?"}, {}]
    assert refusal(tmp_path, QA, rows).startswith("qa.jsonl, row 2: references names the field 'answers'")


@pytest.mark.parametrize("key", ["id", "_id"])
def test_a_duplicate_id_is_told_with_both_rows(tmp_path: Path, key: str) -> None:
    rows = [{key: i, "q": "?", "answers": "x"} for i in ("a", "b", "a")]
    assert refusal(tmp_path, QA, rows) == "qa.jsonl, row 3: the id 'a' is already that of row 1; give each row its own."


def test_a_missing_data_file_is_told_with_its_whole_path(tmp_path: Path) -> None:
    path = task_file(tmp_path, QA.replace("qa.jsonl", "away.jsonl"))
    with pytest.raises(
        DataError, match=re.escape(f"{tmp_path / 'away.jsonl'} can't be read: No such file or directory")
    ):
        Task(load_task(path)).eval_docs()


def test_template_function_needs_no_file() -> None:
    build = template_function(Definition(name="t", metric=["qa_f1"], prompt="{q}", references="a"))
    assert build({"q": "x", "a": "y"}, "t") == Doc(id="", query="x", references=("y",))
