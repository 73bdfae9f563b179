"""Values with what they are worth, against scipy's and the standard library's statistics and worked examples."""

from __future__ import annotations

import math
import random
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tinyeval.evaluation.statistics import RESAMPLES, resample, summarize, wilson
from tinyeval.metrics.registry import Metric
from tinyeval.records import Result, Variance

values = st.lists(st.floats(0, 1), max_size=40)


def ratio(rows: list[tuple[float, float]], weights: np.ndarray) -> np.ndarray:
    """The ratio of two sums."""
    sums = weights @ np.array(rows)
    return sums[:, 0] / np.maximum(sums[:, 1], 1e-12)


RATIO = Metric(name="ratio", function=lambda sample: (0.0, 1.0), per="corpus", combine=ratio)


def test_no_value_has_no_mean() -> None:
    assert summarize([], 3) == Result(value=None, stderr=None, ci95=None, n=0, failed=3)
    assert resample(RATIO, [], 3) == Result(value=None, stderr=None, ci95=None, n=0, failed=3)


def test_one_value_has_no_error() -> None:
    assert summarize([0.25], 0) == Result(value=0.25, stderr=None, ci95=None, n=1, failed=0)
    assert resample(RATIO, [(1.0, 4.0)], 0) == Result(value=0.25, stderr=None, ci95=None, n=1, failed=0)


def test_two_values_by_hand() -> None:
    # mean ½, sample variance 0.18, standard error √(0.18 / 2) = 0.3, interval ½ ± 0.588
    result = summarize([0.2, 0.8], 1)
    assert (result.value, result.n, result.failed, result.interval) == (0.5, 2, 1, "normal")
    assert result.stderr == pytest.approx(0.3)
    assert result.ci95 == pytest.approx((-0.088, 1.088), abs=1e-4)
    assert summarize([0.2, 0.8], 1, bounds=(0.0, 1.0)).ci95 == (0.0, 1.0)


def test_equal_values_have_no_spread() -> None:
    assert summarize([0.1] * 10, 0).stderr == pytest.approx(0, abs=1e-15)


@given(values.filter(lambda v: len(v) > 1 and any(0 < x < 1 for x in v)))
@settings(deadline=None)
def test_mean_error_and_interval_are_the_textbooks(found: list[float]) -> None:
    result = summarize(found, 0)
    mean, stderr = statistics.fmean(found), stats.sem(found)
    assert result.value == pytest.approx(mean, abs=1e-12)
    assert result.stderr == pytest.approx(stderr, abs=1e-9)
    z = stats.norm.ppf(0.975)
    assert result.ci95 == pytest.approx((mean - z * stderr, mean + z * stderr), abs=1e-9)


@given(values, st.randoms(use_true_random=False))
@settings(deadline=None)
def test_the_order_of_values_changes_not_a_bit(found: list[float], order: random.Random) -> None:
    shuffled = order.sample(found, len(found))
    assert summarize(shuffled, 2) == summarize(found, 2)


# Shares


@given(st.integers(2, 300), st.data())
@settings(deadline=None)
def test_right_and_wrong_have_wilsons_interval(n: int, data: st.DataObject) -> None:
    right = data.draw(st.integers(0, n))
    result = summarize([1.0] * right + [0.0] * (n - right), 0)
    wanted = stats.binomtest(right, n).proportion_ci(method="wilson")
    assert result.interval == "wilson"
    assert result.ci95 == pytest.approx((wanted.low, wanted.high), abs=1e-12)


def test_all_right_is_not_certainty() -> None:
    result = summarize([1.0] * 20, 0)
    assert (result.value, result.stderr) == (1.0, 0.0)
    assert result.ci95 == pytest.approx((0.8389, 1.0), abs=1e-4)


# Clusters


def test_the_cluster_robust_error_by_hand() -> None:
    # clusters (1, 1), (0, 0), (1, 0): mean ½, sums of deviations 1, -1, 0: √(2 · 3/2) / 6
    result = summarize([1.0, 1.0, 0.0, 0.0, 1.0, 0.0], 0, clusters=list("aabbcc"))
    assert result.stderr == pytest.approx(math.sqrt(3) / 6)
    assert result.clusters == 3
    assert result.interval == "wilson"


@given(st.lists(st.floats(0, 1), min_size=2, max_size=20), st.integers(2, 4))
@settings(deadline=None)
def test_rows_that_are_only_repeated_tell_nothing_more(found: list[float], times: int) -> None:
    once = summarize(found, 0)
    repeated = summarize(found * times, 0, clusters=list(range(len(found))) * times)
    assert repeated.value == pytest.approx(once.value)
    assert repeated.stderr == pytest.approx(once.stderr, abs=1e-12)
    assert repeated.ci95 == pytest.approx(once.ci95, abs=1e-9)
    assert repeated.n == len(found) * times


def test_one_cluster_alone_has_no_error() -> None:
    result = summarize([0.0, 1.0, 0.3], 0, clusters=["a"] * 3)
    assert (result.value, result.stderr, result.ci95, result.clusters) == (pytest.approx(1.3 / 3), None, None, 1)


def test_clusters_of_one_are_no_clusters() -> None:
    assert summarize([0.0, 0.5, 1.0], 0, clusters=["a", "b", "c"]) == summarize([0.0, 0.5, 1.0], 0)


# Repeated questions


def test_variance_between_and_within_questions_by_hand() -> None:
    # means 0.5 and 0.9; within = (0.02 + 0.02) / 2; between = 0.08 - 0.02 / 2
    result = summarize([0.4, 0.6, 0.8, 1.0], 0, questions=["a", "a", "b", "b"])
    assert result.variance is not None
    assert result.variance.within == pytest.approx(0.02)
    assert result.variance.between == pytest.approx(0.07)
    assert result.variance.questions == 2
    assert result.clusters == 2, "answers to one question are not independent"


def test_one_way_variance_components_are_found_again() -> None:
    draw = random.Random(3)
    asked, found = [], []
    for question in range(4000):
        level = draw.gauss(0.5, 0.3)
        for _ in range(3):
            asked.append(question)
            found.append(draw.gauss(level, 0.2))
    variance = summarize(found, 0, questions=asked).variance
    assert variance is not None
    assert variance.between == pytest.approx(0.09, rel=0.05)
    assert variance.within == pytest.approx(0.04, rel=0.05)


def test_questions_asked_once_have_no_variance_within() -> None:
    assert summarize([0.0, 0.5], 0, questions=["a", "b"]).variance is None


def test_answers_that_never_differ_have_none_within() -> None:
    result = summarize([0.25, 0.25, 0.75, 0.75], 0, questions=["a", "a", "b", "b"])
    assert result.variance == Variance(between=0.125, within=0.0, questions=2)


# The bootstrap


def test_a_bootstrap_of_means_has_the_analytic_error() -> None:
    draw = random.Random(5)
    rows = [(draw.random(), 1.0) for _ in range(400)]
    result, analytic = resample(RATIO, rows, 0), summarize([r[0] for r in rows], 0)
    assert result.interval == "bootstrap"
    assert result.value == pytest.approx(analytic.value)
    assert result.stderr == pytest.approx(analytic.stderr, rel=0.1)
    assert analytic.ci95 is not None
    assert result.ci95 == pytest.approx(analytic.ci95, abs=0.01)


def test_a_bootstrap_draws_whole_clusters() -> None:
    draw = random.Random(6)
    rows = [(draw.random(), 1.0) for _ in range(200)]
    clusters = list(range(200))
    once = resample(RATIO, rows, 0, clusters)
    repeated = resample(RATIO, rows * 4, 0, clusters * 4)
    assert repeated.clusters == 200
    assert repeated.stderr == pytest.approx(once.stderr)
    assert repeated.ci95 == pytest.approx(once.ci95)


def test_equal_rows_have_equal_intervals_however_many_are_drawn_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(float(i % 7), float(i % 3 + 1)) for i in range(50)]
    result = resample(RATIO, rows, 0)
    assert resample(RATIO, rows, 0) == result
    monkeypatch.setattr("tinyeval.evaluation.statistics._BATCH", 50 * 7)
    assert resample(RATIO, rows, 0) == result
    assert RESAMPLES % 7, "a last batch that is not full is part of this test"


@given(st.floats(0, 1), st.floats(1, 1e6))
def test_wilsons_interval_holds_the_share_and_stays_in_range(share: float, n: float) -> None:
    low, high = wilson(share, n)
    assert 0 <= low <= share + 1e-12 and share - 1e-12 <= high <= 1
