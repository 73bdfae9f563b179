"""Means with what they are worth, against the standard library's own statistics."""

from __future__ import annotations

import random
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyeval.evaluation.statistics import summarize
from tinyeval.records import Result

values = st.lists(st.floats(0, 1), max_size=40)


def test_no_value_has_no_mean() -> None:
    assert summarize([], 3) == Result(value=None, stderr=None, ci95=None, n=0, failed=3)


def test_one_value_has_no_error() -> None:
    assert summarize([0.25], 0) == Result(value=0.25, stderr=None, ci95=None, n=1, failed=0)


def test_two_values_by_hand() -> None:
    # mean ½, sample variance ½, standard error √(½ / 2) = ½, interval ½ ± 0.98
    result = summarize([0.0, 1.0], 1)
    assert (result.value, result.stderr, result.n, result.failed) == (0.5, 0.5, 2, 1)
    assert result.ci95 == pytest.approx((-0.48, 1.48))


def test_equal_values_have_no_spread() -> None:
    assert summarize([0.1] * 10, 0).stderr == pytest.approx(0, abs=1e-15)


@given(values.filter(lambda v: len(v) > 1))
@settings(deadline=None)
def test_mean_error_and_interval_are_the_textbooks(found: list[float]) -> None:
    result = summarize(found, 0)
    mean, stderr = statistics.fmean(found), statistics.stdev(found) / len(found) ** 0.5
    assert result.value == pytest.approx(mean, abs=1e-12)
    assert result.stderr == pytest.approx(stderr, abs=1e-9)
    assert result.ci95 == pytest.approx((mean - 1.96 * stderr, mean + 1.96 * stderr), abs=1e-9)


@given(values, st.randoms(use_true_random=False))
@settings(deadline=None)
def test_the_order_of_values_changes_not_a_bit(found: list[float], order: random.Random) -> None:
    shuffled = order.sample(found, len(found))
    assert summarize(shuffled, 2) == summarize(found, 2)
