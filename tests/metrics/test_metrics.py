"""Values worked out by hand, and the registry of metrics."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyeval import metrics
from tinyeval.metrics import registry
from tinyeval.metrics.words import cut

CLASSES = ["date", "date of birth", "number", "place"]


def value(metric: str, prediction: Any, references: Any, choices: list[str] | None = None) -> float:
    return metrics.get(metric)(prediction, references, choices)


@pytest.mark.parametrize(
    ("prediction", "reference", "expected"),
    [
        ("厦门大学。", "厦门大学", 1.0),
        ("57081.86元", "人民币57081.86元。", 0.8),  # 57081.86, 元 of 人民币, 57081.86, 元: 2 · 1 · ⅔ / (1 + ⅔)
        ("不是厦门大学", "厦门大学", 2 / 3),  # 不是, 厦门大学: a negation still shares a word
        ("厦门", "北京", 0.0),
        ("", "厦门", 0.0),
        ("。，！", "厦门", 0.0),
        ("厦门", "", 0.0),
        ("《红楼梦》", "红楼梦", 2 / 3),  # 《 is no punctuation of the official list, 》 is
        ("GPT 模型", "gpt模型", 1.0),
    ],
)
def test_qa_f1_zh_compares_chinese_words(prediction: str, reference: str, expected: float) -> None:
    assert value("qa_f1_zh", prediction, reference) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("prediction", "reference", "expected"),
    [
        ("The Black Sea.", "black sea", 1.0),
        ("It is the Black Sea", "Black Sea", 2 / 3),  # it is black sea: precision ½, recall 1
        ("sea sea", "sea", 2 / 3),  # a repeated word counts once
        ("U.S.A.", "usa", 1.0),
        ("the a an", "the", 0.0),  # articles alone leave nothing to share
        ("", "x", 0.0),
        ("x", "", 0.0),
        ("red blue", "green", 0.0),
    ],
)
def test_qa_f1_compares_normalised_english_words(prediction: str, reference: str, expected: float) -> None:
    assert value("qa_f1", prediction, reference) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("prediction", "reference", "expected"),
    [(" 42\n", "42", 1.0), ("42.", "42", 0.0), ("Paris", "paris", 0.0), ("", "", 1.0), ("  ", "", 1.0), ("", "x", 0.0)],
)
def test_exact_match_ignores_white_space_at_the_ends_only(prediction: str, reference: str, expected: float) -> None:
    assert value("exact_match", prediction, reference) == expected


@pytest.mark.parametrize(
    ("prediction", "reference", "expected"),
    [
        ("number", "number", 1.0),
        ("Number.", "number", 1.0),  # letter case does not matter
        ("place, not number", "place", 1.0),  # the first named counts
        ("place, not number", "number", 0.0),
        ("date of birth", "date of birth", 1.0),  # the longer of two names at one place
        ("date of birth", "date", 0.0),
        ("a date", "date", 1.0),
        ("", "date", 0.0),
        ("person", "date", 0.0),
    ],
)
def test_accuracy_judges_the_class_named_first(prediction: str, reference: str, expected: float) -> None:
    assert value("accuracy", prediction, reference, CLASSES) == expected


@pytest.mark.parametrize(
    ("prediction", "reference", "expected"),
    [
        ("number", "number", 1.0),
        ("number or place", "number", 0.5),  # each class named shares
        ("Number", "number", 0.0),  # case-sensitive, unlike accuracy
        ("date of birth", "date of birth", 1.0),  # "date" is part of the reference and is struck
        ("date of birth", "date", 0.5),  # but not the other way round
        ("place", "number", 0.0),
        ("", "number", 0.0),
    ],
)
def test_classification_shares_its_point_among_the_classes_named(
    prediction: str, reference: str, expected: float
) -> None:
    assert value("classification", prediction, reference, CLASSES) == expected


REFERENCE = '{"name": "Ann", "age": 36, "member": true, "tags": ["a", 1]}'


@pytest.mark.parametrize(
    ("prediction", "expected"),
    [
        (REFERENCE, 1.0),
        ('\n {"tags": ["a", 1], "member": true, "age": 36, "name": "Ann", "more": 1} ', 1.0),  # order, extras
        ('{"name": "Ann", "age": 36.0, "member": true, "tags": ["a", 1.0]}', 1.0),  # numbers equal by value
        ('{"name": "Ann", "age": "36", "member": true, "tags": ["a", 1]}', 0.75),  # never numbers and texts
        ('{"name": "Ann", "age": 36, "member": 1, "tags": ["a", true]}', 0.5),  # never truth values and numbers
        ('{"name": "ann"}', 0.0),
        ('{"name": "Ann"}', 0.25),
        ('{"name": "Ann", "age": null}', 0.25),
        ("{}", 0.0),
        ("", 0.0),
        ("no JSON", 0.0),
        ('{"name": "Ann"', 0.0),
        ('```json\n{"name": "Ann"}\n```', 0.0),
        ('["Ann"]', 0.0),
        ("36", 0.0),
        ("null", 0.0),
        ('{"name": "\ud83d"}', 0.0),  # half a character
        ('{"age": 1e999}', 0.0),
        ("[" * 5000, 0.0),  # a model that has lost its way
        ('{"name":' * 5000, 0.0),
    ],
)
def test_json_fields_is_the_share_of_fields_with_exactly_the_same_value(prediction: str, expected: float) -> None:
    assert value("json_fields", prediction, REFERENCE) == expected
    assert value("json_exact", prediction, REFERENCE) == float(expected == 1.0)


@pytest.mark.parametrize(
    ("found", "wanted", "expected"),
    [
        ('{"a": {"b": true}}', '{"a": {"b": 1}}', 0),
        ('{"a": {"b": 1}}', '{"a": {"b": 1.0}}', 1),
        ('{"a": [1]}', '{"a": [1, 2]}', 0),
    ],
)
def test_values_inside_a_field_are_compared_as_strictly_as_the_field(found: str, wanted: str, expected: int) -> None:
    assert value("json_fields", found, wanted) == expected


@pytest.mark.parametrize(
    ("logprobs", "gold", "acc", "acc_norm"),
    [
        ([-1.0, -20.0], [0], 1, 1),
        ([-1.0, -20.0], [1], 0, 0),
        ([-3.0, -8.0], [1], 0, 1),  # -3/1 against -8/10: the longer one wins by length
        ([-1.0, -1.0], [0], 1, 0),  # the first of equals; by length -1/1 against -1/10
        ([-1.0, -10.0], [0], 1, 1),  # equals by length: the first
        ([-1.0, -10.0], [1], 0, 0),
        ([-1.0, -2.0], [0, 1], 1, 1),  # any gold one
        ([-1.0, -0.5], [], 0, 0),
    ],
)
def test_the_most_probable_choice_is_judged_and_the_first_of_equals_counts(
    logprobs: list[float], gold: list[int], acc: int, acc_norm: int
) -> None:
    choices = ["a", "abcdefghij"]
    assert value("acc", logprobs, gold, choices) == acc
    assert value("acc_norm", logprobs, gold, choices) == acc_norm


def test_acc_norm_counts_characters_not_bytes() -> None:
    assert value("acc_norm", [-3.0, -3.5], [1], ["厦门", "abc"]) == 1.0


@pytest.mark.parametrize(
    "name", ["qa_f1", "qa_f1_zh", "rouge", "rouge_zh", "accuracy", "classification", "json_fields"]
)
def test_an_empty_prediction_is_worth_the_lowest_value(name: str) -> None:
    metric = metrics.get(name)
    assert metric("", ['{"date": 1}'], CLASSES) == metric.lowest == 0.0


def test_the_best_reference_counts_and_none_gives_the_lowest_value() -> None:
    assert value("qa_f1", "Black Sea", ["the river", "black sea"]) == 1.0
    assert value("qa_f1", "Black Sea", []) == 0.0
    assert value("qa_f1", "Black Sea", "Black Sea") == 1.0  # a lone text is one reference, not its letters


@given(st.text(max_size=60), st.text(min_size=1, max_size=60))
@settings(deadline=None)
def test_every_text_has_a_value_within_the_metrics_range(prediction: str, reference: str) -> None:
    for name in ("exact_match", "qa_f1", "qa_f1_zh", "rouge", "rouge_zh", "accuracy", "classification"):
        metric = metrics.get(name)
        assert metric.lowest <= metric(prediction, reference, [reference, "b"]) <= metric.highest, name


@given(st.text(max_size=80))
@settings(deadline=None)
def test_chinese_words_join_to_the_text_again(text: str) -> None:
    assert "".join(cut(text)) == text


def test_an_unknown_metric_names_the_nearest_and_where_all_are_shown() -> None:
    with pytest.raises(
        KeyError, match=re.escape("no metric is named 'qa_f1_z' (did you mean 'qa_f1_zh' or 'qa_f1'")
    ) as e:
        metrics.get("qa_f1_z")
    assert "`tinyeval metrics list` shows all" in e.value.args[0]


@pytest.fixture
def own_metric() -> Iterator[str]:
    name = "own_starts_alike"
    metrics.register(name, lambda prediction, reference, choices: float(prediction[:1] == reference[:1]))
    yield name
    del registry._metrics[name]  # pyright: ignore[reportPrivateUsage]


def test_a_metric_of_ones_own_is_registered_once_and_used_by_name(own_metric: str) -> None:
    assert own_metric in metrics.names()
    assert value(own_metric, "apple", ["avocado"]) == 1.0
    with pytest.raises(ValueError, match="already named 'own_starts_alike'"):
        metrics.register(own_metric, lambda prediction, reference, choices: 0.0)
