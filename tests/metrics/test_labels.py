"""F1 and Matthews correlation over labels: values by hand, and scikit-learn's where it is installed."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyeval.metrics import labels
from tinyeval.metrics.registry import Continuation, Metric, Sample

GENERATED = [labels.f1_macro, labels.f1_micro, labels.generative_mcc]
CHOSEN = [labels.loglikelihood_f1, labels.multi_f1_numeric, labels.mcc]

Rows = list[tuple[Any, ...]]
classes = st.sampled_from(["yes", "no", "也许", ""])
pairs: st.SearchStrategy[Rows] = st.lists(st.tuples(classes, classes), min_size=1, max_size=30)


def value(combine: Callable[..., Any], rows: Sequence[tuple[Any, ...]]) -> float:
    return float(combine(rows, np.ones((1, len(rows))))[0])


def generated(prediction: str, *references: str) -> tuple[str | None, str]:
    return labels.labels(Sample(prediction, references))


def chosen(logprobs: Sequence[float], *golds: int) -> tuple[int | None, int | None, int]:
    return labels.positions(Sample([Continuation(logprob=p) for p in logprobs], golds))


def binary_f1(rows: Rows, label: Any) -> float:
    right = sum(row[0] == row[1] == label for row in rows)
    return 2 * right / max(1, sum((row[0] == label) + (row[1] == label) for row in rows))


# Gold:            是    是    是    否    否    不知道
# Predicted:       是    是    否    否    胡说   否
TABLE: Rows = [
    generated(" 是\n", "是"),
    generated("是", "是"),
    generated("否", "是"),
    generated("否", "否"),
    generated("胡说", "否"),
    generated("否", "不知道"),
]


def test_values_by_hand() -> None:
    # F1: 是 2*2/(3+2), 否 2*1/(2+3), 不知道 0; "胡说" is no class of its own.
    assert value(labels.f1_macro, TABLE) == pytest.approx((0.8 + 0.4 + 0.0) / 3, abs=1e-12)
    assert value(labels.f1_micro, TABLE) == pytest.approx(3 / 6, abs=1e-12)
    # Right * all - gold . predicted = 3*6 - (3*2 + 2*3); 36 - (9+4+1) golds, 36 - (4+9+1) predictions.
    assert value(labels.generative_mcc, TABLE) == pytest.approx((18 - 12) / math.sqrt(22 * 22), abs=1e-12)


def test_values_of_choices_by_hand() -> None:
    rows = [chosen([-1.0, -2.0, -3.0], 0), chosen([-1.0, -0.5, -3.0], 0), chosen([-2.0, -1.0, -3.0], 1)]
    # F1 of choice 0: 2/3, of choice 1: 2/3; choice 2 is neither gold nor predicted.
    assert value(labels.loglikelihood_f1, rows) == pytest.approx(2 / 3, abs=1e-12)
    assert value(labels.multi_f1_numeric, rows) == pytest.approx(4 / 9, abs=1e-12)
    assert value(labels.mcc, rows) == pytest.approx((2 * 3 - (2 + 2)) / 4, abs=1e-12)


def test_binary_matthews_is_the_phi_coefficient() -> None:
    rows = [("a", "a")] * 6 + [("a", "b")] * 1 + [("b", "a")] * 2 + [("b", "b")] * 3
    phi = (6 * 3 - 1 * 2) / math.sqrt((6 + 1) * (6 + 2) * (3 + 1) * (3 + 2))
    assert value(labels.generative_mcc, rows) == pytest.approx(phi, abs=1e-12)
    assert value(labels.generative_mcc, [("a", "b"), ("b", "a")]) == pytest.approx(-1.0, abs=1e-12)


def test_a_label_is_the_text_without_outer_space_and_case() -> None:
    assert generated(" YES ", "no", "Yes\n") == ("yes", "yes")
    assert generated("Straße", "STRASSE") == ("strasse", "strasse")
    assert generated("other", "No", "Yes") == ("no", "other")
    assert generated("也许", "也许") == ("也许", "也许")
    assert generated("", "yes") == ("yes", "")
    assert generated("yes") == (None, "yes")


def test_long_and_broken_texts_are_labels_of_a_digest() -> None:
    long = "一个很长的答案 " * 100_000
    gold, predicted = generated(long, long + "\n")
    assert gold == predicted
    assert len(predicted) < 100
    assert generated(long + "！", long)[1] != predicted
    assert generated("\ud800", "\ud800") == (generated("\ud800")[1],) * 2
    assert generated("\ud800")[1].encode() != generated("\udfff")[1].encode()


def test_the_likeliest_choice_is_predicted_and_the_first_of_equals() -> None:
    assert chosen([-3.0, -1.0, -1.0], 2) == (2, 1, 3)
    assert chosen([-3.0, -1.0, -1.0], 0, 1) == (1, 1, 3)
    assert chosen([-1.0, -2.0], 1, 0) == (0, 0, 2)
    assert chosen([-math.inf, -math.inf], 1) == (1, 0, 2)
    assert chosen([-1.0]) == (None, 0, 1)
    assert chosen([]) == (None, None, 0)


@pytest.mark.parametrize(("logprobs", "gold"), [([math.nan, -1.0], 0), ([math.inf, -1.0], 0), ([-1.0], 1)])
def test_what_is_no_log_probability_or_no_choice_is_an_error(logprobs: list[float], gold: int) -> None:
    with pytest.raises(ValueError, match="choice"):
        chosen(logprobs, gold)


@given(pairs)
@settings(deadline=None)
def test_values_follow_the_definitions(rows: Rows) -> None:
    golds = sorted({gold for gold, _ in rows})
    assert value(labels.f1_macro, rows) == pytest.approx(sum(binary_f1(rows, c) for c in golds) / len(golds), abs=1e-12)
    assert value(labels.f1_micro, rows) == pytest.approx(sum(g == p for g, p in rows) / len(rows), abs=1e-12)
    numbered = [(golds.index(g), [*golds, p].index(p), 5) for g, p in rows]
    expected = sum(binary_f1(numbered, c) for c in range(5)) / 5
    assert value(labels.multi_f1_numeric, numbered) == pytest.approx(expected, abs=1e-12)


@given(pairs)
@settings(max_examples=50, deadline=None)
def test_values_are_scikit_learns(rows: Rows) -> None:
    metrics = cast("Any", pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed"))
    gold, predicted = ([row[i] for row in rows] for i in (0, 1))
    options = {"zero_division": 0}
    macro = metrics.f1_score(gold, predicted, average="macro", labels=sorted(set(gold)), **options)
    assert value(labels.f1_macro, rows) == pytest.approx(macro, abs=1e-12)
    assert value(labels.f1_micro, rows) == pytest.approx(
        metrics.f1_score(gold, predicted, average="micro", **options), abs=1e-12
    )
    if len({*gold, *predicted}) > 1:
        matthews = metrics.matthews_corrcoef(gold, predicted)
        assert value(labels.generative_mcc, rows) == pytest.approx(matthews, abs=1e-12)


@given(pairs, st.randoms(use_true_random=False))
@settings(deadline=None)
def test_values_are_in_range_and_do_not_depend_on_the_order(rows: Rows, random_: random.Random) -> None:
    mixed = random_.sample(rows, len(rows))
    for combine in GENERATED:
        found = value(combine, rows)
        assert (-1.0 if combine is labels.generative_mcc else 0.0) <= found <= 1.0
        assert value(combine, mixed) == pytest.approx(found, abs=1e-12)


@pytest.mark.parametrize("cells", [1, 7, 1 << 22])
@pytest.mark.parametrize("combine", [*GENERATED, *CHOSEN])
def test_each_line_of_weights_has_the_value_of_the_corpus_it_stands_for(
    combine: Callable[..., Any], cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(labels, "_CELLS", cells)
    random_ = random.Random(cells)
    rows = [(random_.choice([0, 1, 2, None]), random_.choice([0, 1, 3]), 4) for _ in range(12)]
    draws = [[random_.randrange(12) for _ in range(12)] for _ in range(15)]
    weights = np.array([np.bincount(draw, minlength=12) for draw in draws], dtype=float)
    found = combine(rows, weights)
    assert found.shape == (15,)
    for i, draw in enumerate(draws):
        assert found[i] == pytest.approx(value(combine, [rows[j] for j in draw]), abs=1e-12)
    assert combine(rows, weights / 7) == pytest.approx(found, abs=1e-9)


@pytest.mark.parametrize("combine", [*GENERATED, *CHOSEN])
def test_nothing_to_count_is_worth_nothing(combine: Callable[..., Any]) -> None:
    assert combine([], np.ones((3, 0))).tolist() == [0.0, 0.0, 0.0]
    assert value(combine, [(None, None, 0)]) == 0.0
    assert value(combine, [(0, 1, 2), (0, 1, 2)]) == 0.0
    assert combine([(0, 0, 2), (1, 1, 2)], np.zeros((1, 2))).tolist() == [0.0]


def test_one_class_only_has_no_correlation() -> None:
    assert value(labels.generative_mcc, [("a", "a"), ("a", "a")]) == 0.0
    third = np.full((1, 3), 0.1)
    assert labels.generative_mcc([("a", "a"), ("a", "b"), ("a", "a")], third).tolist() == [0.0]


def test_an_answer_without_a_gold_is_wrong() -> None:
    rows = [("a", "a"), ("b", "b"), (None, "a")]
    assert value(labels.f1_micro, rows) == pytest.approx(2 / 3, abs=1e-12)
    assert value(labels.f1_macro, rows) == pytest.approx((2 / 3 + 1) / 2, abs=1e-12)
    assert value(labels.generative_mcc, rows) == value(labels.generative_mcc, [("a", "a"), ("b", "b"), ("c", "a")])


def test_many_rows_of_many_labels() -> None:
    random_ = random.Random(1)
    rows = [(f"类{random_.randrange(3000)}", f"类{random_.randrange(3000)}") for _ in range(3000)]
    weights = np.random.default_rng(1).multinomial(3000, np.full(3000, 1 / 3000), 200).astype(float)
    micro = weights @ np.array([gold == predicted for gold, predicted in rows]) / 3000
    assert labels.f1_micro(rows, weights) == pytest.approx(micro, abs=1e-12)
    assert ((labels.f1_macro(rows, weights) >= 0) & (labels.f1_macro(rows, weights) < 0.01)).all()


def test_one_sample_is_judged_through_the_registry() -> None:
    metric = Metric(name="f1_macro", function=labels.labels, per="corpus", combine=labels.f1_macro)
    assert metric("是的", ["不", "是的"]) == 1.0
    assert metric("是的", []) == 0.0
