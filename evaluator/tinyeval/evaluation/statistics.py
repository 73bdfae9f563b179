"""A metric over Docs: mean, standard error, interval."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tinyeval.records import Result


def summarize(values: Sequence[float], failed: int) -> Result:
    """The mean of values with its standard error (sample standard deviation / √n) and 95 % interval (± 1.96 of it).

    The sums are exact (`math.fsum`), so the order of the values does not matter.

    Args:
        values: one a scored Doc.
        failed: Docs without one.
    """
    n = len(values)
    if n == 0:
        return Result(value=None, stderr=None, ci95=None, n=0, failed=failed)
    mean = math.fsum(values) / n
    if n == 1:
        return Result(value=mean, stderr=None, ci95=None, n=1, failed=failed)
    stderr = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1) / n)
    return Result(value=mean, stderr=stderr, ci95=(mean - 1.96 * stderr, mean + 1.96 * stderr), n=n, failed=failed)
