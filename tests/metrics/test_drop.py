"""DROP's answers of several spans."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyeval.metrics.drop import best_total, drop_em, drop_f1

SPANS = st.lists(st.sampled_from(["3", "3.0", "Tom", "tom brady", "厦门", "the", "", "3 厦门", "-"]), max_size=5)
MATRICES = st.tuples(st.integers(1, 5), st.integers(1, 5)).flatmap(
    lambda shape: st.lists(
        st.lists(st.integers(0, 8).map(lambda n: n / 8), min_size=shape[1], max_size=shape[1]),
        min_size=shape[0],
        max_size=shape[0],
    )
)


def spans(texts: list[str]) -> str:
    return "[" + ",".join(f'"{t}"' for t in texts) + "]"


@pytest.mark.parametrize(
    ("prediction", "reference", "em", "f1"),
    [
        ("Tom Brady", "tom brady.", 1.0, 1.0),
        ("the Tom Brady", "Tom Brady", 1.0, 1.0),
        ("Brady", "Tom Brady", 0.0, 2 / 3),
        ("3", "3.0", 1.0, 1.0),
        ("1,000", "1000", 1.0, 1.0),
        ("3.5", "35", 0.0, 0.0),
        ("4 yards", "3 yards", 0.0, 0.0),  # numbers must agree
        ("3 yards", "yards", 0.0, 2 / 3),  # only the reference's numbers are asked for
        ("yards", "3 yards", 0.0, 0.0),
        ("-5", "5", 1.0, 1.0),  # as in the official script
        ('["Tom", "Jerry"]', '["jerry", "tom"]', 1.0, 1.0),
        ('["Tom"]', '["Tom", "Jerry"]', 0.0, 0.5),
        ('["Tom", "Jerry", "Spike"]', '["Tom"]', 0.0, 1 / 3),
        ('["Tom", "Tom"]', '["Tom"]', 0.0, 0.5),
        ('["a b", "a"]', '["a", "a b c"]', 0.0, None),
        ("well-known", "well known", 1.0, 1.0),
        ("to to be", "to be be", 0.0, 1.0),  # sets of words
        ("厦门大学", "厦门大学", 1.0, 1.0),
        ("厦门", "厦门大学", 0.0, 0.0),
        ('["厦门", "北京"]', '["北京", "上海"]', 0.0, 0.5),
        ("[not json", "[not json", 1.0, 1.0),
        ("[1, 2]", "1 2", 1.0, 1.0),  # no strings: one span
        ("[" * 100_000, "x", 0.0, 0.0),
        ("A", "", 0.0, 0.0),
        ("", "", 1.0, 1.0),
        ("[]", "", 1.0, 1.0),
        ("", "x", 0.0, 0.0),
        ("x", "", 0.0, 0.0),
        ("\ud800", "x", 0.0, 0.0),
        ('["\ud800"]', '["\ud800"]', 1.0, 1.0),
    ],
)
def test_values(prediction: str, reference: str, em: float, f1: float | None) -> None:
    assert drop_em(prediction, reference) == em
    if f1 is not None:
        assert drop_f1(prediction, reference) == pytest.approx(f1, abs=1e-12)


def test_spans_are_aligned_for_the_best_total_not_first_come() -> None:
    # x y – x y z: 0.8, and z – z w: 2/3; first come, first served would pair x y z with z w.
    assert drop_f1('["x y z", "z"]', '["x y", "z w"]') == pytest.approx((0.8 + 2 / 3) / 2)
    assert best_total([[0.9, 0.8], [0.8, 0.0]]) == pytest.approx(1.6)


@given(MATRICES)
@settings(max_examples=150, deadline=None)
def test_the_alignment_is_the_best_of_all(scores: list[list[float]]) -> None:
    wide = scores if len(scores) <= len(scores[0]) else [list(c) for c in zip(*scores, strict=True)]
    orders = itertools.permutations(range(len(wide[0])), len(wide))
    best = max(sum(row[j] for row, j in zip(wide, order, strict=True)) for order in orders)
    assert best_total(scores) == pytest.approx(best, abs=1e-9)


def test_the_alignment_equals_scipy() -> None:
    optimize = pytest.importorskip("scipy.optimize", reason="scipy is not installed")
    import numpy as np

    random = np.random.default_rng(0)
    for shape in ((30, 30), (5, 60), (60, 5), (1, 1)):
        scores = random.random(shape)
        rows, columns = optimize.linear_sum_assignment(-scores)
        assert best_total(scores.tolist()) == pytest.approx(scores[rows, columns].sum(), abs=1e-9)


@given(SPANS, SPANS)
@settings(max_examples=200, deadline=None)
def test_order_does_not_matter_and_values_are_in_range(a: list[str], b: list[str]) -> None:
    em, f1 = drop_em(spans(a), spans(b)), drop_f1(spans(a), spans(b))
    assert em in (0.0, 1.0)
    assert 0.0 <= f1 <= 1.0 + 1e-12
    assert drop_em(spans(a[::-1]), spans(b)) == em
    assert drop_f1(spans(a[::-1]), spans(b[::-1])) == pytest.approx(f1, abs=1e-12)
    assert drop_em(spans(a), spans(a)) == 1.0


@pytest.mark.parametrize("unit", ["a", "1", "- ", "the ", "厦门 "])
def test_a_long_text_has_a_value(unit: str) -> None:
    text = unit * (300_000 // len(unit))
    assert drop_f1(text, "x y") == 0.0
    assert drop_em(text, "x y") == 0.0


def test_many_predicted_spans_have_a_value() -> None:
    assert drop_f1(spans(["x"] * 20_000), spans(["x", "y"])) == pytest.approx(1 / 20_000)
