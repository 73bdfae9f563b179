"""The demo's own data: small, sound, balanced."""

from __future__ import annotations

from collections import Counter

import pytest

from tinyeval import metrics
from tinyeval.tasks import Registry, Task

TASKS = Registry().get_task_dict(["demo"])


def test_the_demo_is_seven_tasks_in_two_languages() -> None:
    assert len(TASKS) == 7
    assert {t.config.definition.language for t in TASKS.values()} == {"zh", "en"}
    assert {need for t in TASKS.values() for need in t.needs} == {"generate", "loglikelihood", "grammar:json"}


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_every_row_is_a_sound_doc(task: Task) -> None:
    docs = task.eval_docs()
    assert 30 <= len(docs) == task.original_num_docs <= 60
    assert len({d.id for d in docs}) == len({d.query for d in docs}) == len(docs)
    for doc in docs:
        assert doc.query.startswith(doc.instruction)
        assert doc.query == doc.query.rstrip()  # a space at the end would change the first token of the answer
        assert "{" not in doc.query
        if "generate" in task.needs:
            assert doc.references, doc.id
            assert all(r == r.strip() != "" for r in doc.references), doc.id
        if "loglikelihood" in task.needs:
            assert all(0 <= g < len(doc.choices) for g in doc.gold_index), doc.id
            assert len(set(doc.choices)) == len(doc.choices), doc.id
        assert task.construct_requests(doc, doc.query)


@pytest.mark.parametrize("task", [t for t in TASKS.values() if "generate" in t.needs], ids=lambda t: t.name)
def test_the_first_reference_as_an_answer_has_full_marks(task: Task) -> None:
    for doc in task.eval_docs():
        for metric in task.metrics:
            assert metric(doc.references[0], doc.references, doc.choices) == pytest.approx(1.0, abs=1e-8), doc.id


def test_an_answer_in_the_passage_is_a_phrase_of_it() -> None:
    for name in ("demo|qa_zh", "demo|qa_en"):
        for doc in TASKS[name].eval_docs():
            assert any(r.casefold() in doc.query.casefold() for r in doc.references), doc.id


def test_the_classes_and_the_places_of_the_right_choice_are_balanced() -> None:
    labels = Counter(d.references[0] for d in TASKS["demo|classify_en"].eval_docs())
    assert set(labels) == set(TASKS["demo|classify_en"].eval_docs()[0].choices)
    assert max(labels.values()) - min(labels.values()) <= 1
    places = Counter(d.gold_index[0] for d in TASKS["demo|choice_en"].eval_docs())
    assert len(places) == 4
    assert max(places.values()) - min(places.values()) <= 1


def test_always_the_longest_or_the_shortest_choice_is_no_good_strategy() -> None:
    docs = TASKS["demo|choice_en"].eval_docs()
    for pick in (max, min):
        right = sum(d.choices.index(pick(d.choices, key=len)) in d.gold_index for d in docs)
        assert right / len(docs) < 0.45


def test_the_grammar_admits_every_reference() -> None:
    import jsonschema_rs
    import msgspec

    task = TASKS["demo|extract_json"]
    grammar = task.config.definition.generation_grammar
    assert grammar
    schema = jsonschema_rs.validator_for(grammar.value)
    for doc in task.eval_docs():
        assert schema.is_valid(msgspec.json.decode(doc.references[0])), doc.id
    assert {m.name for m in task.metrics} <= set(metrics.names())
