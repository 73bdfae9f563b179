"""A metric over Docs: value, standard error, 95 % interval, and what repeated questions tell.

Docs that share a cluster (a text that several questions ask about, or one question asked several times) are not
independent: sums run over clusters, and resampling draws whole clusters.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

from tinyeval.metrics import Metric
from tinyeval.records import Agreement, Result, Variance

if TYPE_CHECKING:
    import numpy as np

Z95 = 1.959963984540054
"""The normal distribution's 97.5 % quantile."""

RESAMPLES = 1000
SEED = 20240229
"""Of the bootstrap: the same rows have the same interval, everywhere and always."""

_BATCH = 4_000_000
"""Weights held at once while resampling."""


def summarize(
    values: Sequence[float],
    failed: int,
    clusters: Sequence[Hashable] | None = None,
    questions: Sequence[Hashable] | None = None,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Result:
    """The mean of values with its standard error and 95 % interval.

    The standard error is the sample standard deviation / √n, cluster-robust where values share clusters (Liang and
    Zeger 1986, with the factor G / (G - 1) for G clusters). The interval is ± 1.96 of it within `bounds`; where all
    values are 0 or 1 it is Wilson's (1927), whose n is the number of independent values that would have the same
    standard error. The sums are exact (`math.fsum`), so the order of the values does not matter.

    Args:
        values: one a scored Doc.
        failed: Docs without one.
        clusters: what each value shares with others; None: nothing.
        questions: which question each value answers, where questions are asked several times.
        bounds: the metric's lowest and highest value.
    """
    n = len(values)
    if n == 0:
        return Result(value=None, stderr=None, ci95=None, n=0, failed=failed)
    mean = math.fsum(values) / n
    keys = clusters or questions or range(n)
    groups = len(set(keys))
    shared = groups if groups < n else None
    variance = _variance(values, questions) if questions else None
    if groups == 1 or not math.isfinite(mean):
        return Result(value=mean, stderr=None, ci95=None, n=n, failed=failed, clusters=shared, variance=variance)
    deviations = [v - mean for v in values]
    if shared:
        together: dict[Hashable, list[float]] = {}
        for key, deviation in zip(keys, deviations, strict=True):
            together.setdefault(key, []).append(deviation)
        deviations = [math.fsum(parts) for parts in together.values()]
    stderr = math.sqrt(math.fsum(d * d for d in deviations) * groups / (groups - 1)) / n
    binary = all(v in (0.0, 1.0) for v in values)
    if binary:
        spread = mean * (1 - mean)
        effective = spread / stderr**2 * groups / (groups - 1) if shared and stderr else groups
        ci95 = wilson(mean, effective)
    else:
        ci95 = max(bounds[0], mean - Z95 * stderr), min(bounds[1], mean + Z95 * stderr)
    return Result(
        value=mean,
        stderr=stderr,
        ci95=ci95,
        n=n,
        failed=failed,
        interval="wilson" if binary else "normal",
        clusters=shared,
        variance=variance,
    )


def wilson(share: float, n: float) -> tuple[float, float]:
    """Wilson's 95 % score interval of a share that was seen in n independent draws."""
    z = Z95 * Z95 / n
    middle = (share + z / 2) / (1 + z)
    half = Z95 * math.sqrt(share * (1 - share) / n + z / n / 4) / (1 + z)
    return max(0.0, middle - half), min(1.0, middle + half)


def resample(
    metric: Metric,
    rows: Sequence[tuple[Any, ...]],
    failed: int,
    clusters: Sequence[Hashable] | None = None,
) -> Result:
    """A corpus metric's value with the standard error and percentile interval of 1,000 seeded resamples.

    Clusters are drawn with replacement, all their rows with them (Efron 1979). The draws are NumPy's legacy
    generator's, whose stream is frozen.

    Args:
        metric: a corpus metric.
        rows: its statistics, a tuple a scored Doc.
        failed: Docs without any.
        clusters: what each row shares with others; None: nothing.
    """
    import numpy as np

    n = len(rows)
    if n == 0:
        return Result(value=None, stderr=None, ci95=None, n=0, failed=failed)
    assert metric.combine
    value = metric.total(rows)
    numbers: dict[Hashable, int] = {}
    member = np.array([numbers.setdefault(k, len(numbers)) for k in clusters or range(n)])
    groups = len(numbers)
    shared = groups if groups < n else None
    if groups == 1 or not math.isfinite(value):
        return Result(value=value, stderr=None, ci95=None, n=n, failed=failed, clusters=shared)
    stream = np.random.RandomState(SEED)
    batch = max(1, min(RESAMPLES, _BATCH // n))
    found: list[np.ndarray[Any, Any]] = []
    for start in range(0, RESAMPLES, batch):
        size = min(batch, RESAMPLES - start)
        draws = [np.bincount(stream.randint(groups, size=groups), minlength=groups) for _ in range(size)]
        weights = np.stack(draws)[:, member].astype(np.float64)
        found.append(metric.combine(rows, weights))
    values = np.concatenate(found)
    low, high = (float(q) for q in np.quantile(values, [0.025, 0.975]))
    return Result(
        value=value,
        stderr=float(np.std(values, ddof=1)),
        ci95=(low, high),
        n=n,
        failed=failed,
        interval="bootstrap",
        clusters=shared,
    )


def agreement(pairs: Sequence[tuple[float, ...]]) -> Agreement | None:
    """How far two raters' verdicts of 0 or 1 agree (Cohen 1960); None without any.

    Args:
        pairs: the two verdicts on each Doc.
    """
    if not pairs:
        return None
    n = len(pairs)
    seen = sum(a == b for a, b in pairs) / n
    first, second = (sum(pair[k] for pair in pairs) / n for k in (0, 1))
    chance = first * second + (1 - first) * (1 - second)
    return Agreement(share=seen, kappa=(seen - chance) / (1 - chance) if chance < 1 else None)


def _variance(values: Sequence[float], questions: Sequence[Hashable]) -> Variance | None:
    """The one-way random-effects estimates (method of moments); None if no question has two values."""
    asked: dict[Hashable, list[float]] = {}
    for question, value in zip(questions, values, strict=True):
        asked.setdefault(question, []).append(value)
    spare = len(values) - len(asked)
    if not spare:
        return None
    means = [math.fsum(v) / len(v) for v in asked.values()]
    deviations = ((x - m) ** 2 for m, v in zip(means, asked.values(), strict=True) for x in v)
    within = math.fsum(deviations) / spare
    count = len(means)
    between = 0.0
    if count > 1:
        middle = math.fsum(means) / count
        seen = math.fsum((m - middle) ** 2 for m in means) / (count - 1)
        between = max(0.0, seen - within * math.fsum(1 / len(v) for v in asked.values()) / count)
    return Variance(between=between, within=within, questions=count)
