"""Multiple choice by log-likelihood."""

from __future__ import annotations

from collections.abc import Sequence


def acc(logprobs: Sequence[float], gold: Sequence[int], choices: Sequence[str]) -> float:
    """1 if the choice of the highest summed log-probability is a gold one; the first of equals counts."""
    return float(_best(logprobs) in gold)


def acc_norm(logprobs: Sequence[float], gold: Sequence[int], choices: Sequence[str]) -> float:
    """Like acc, each log-probability divided by the choice's length in characters.

    The length is that of the choice without the space before it, as in lm-evaluation-harness's `acc_norm`.
    """
    return float(_best([p / len(c) for p, c in zip(logprobs, choices, strict=True)]) in gold)


def _best(values: Sequence[float]) -> int:
    return max(range(len(values)), key=lambda i: values[i])
