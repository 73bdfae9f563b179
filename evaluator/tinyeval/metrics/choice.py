"""Multiple choice by log-likelihood.

Choices are ranked from the greatest value down; of equal values the earlier choice ranks first, also where all are
minus infinity. Without choices or without a gold one a metric has its worst value. A log-probability that is no
number or plus infinity makes the sample fail.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import cast

from tinyeval.metrics.registry import Continuation, Sample


def acc(sample: Sample) -> float:
    """1 if the choice of the highest summed log-probability is a gold one; the first of equals counts.

    Source: lm-evaluation-harness `acc`.
    """
    return _hit(_logprobs(sample), sample)


def acc_norm(sample: Sample) -> float:
    """Like acc, each log-probability divided by the choice's length in characters.

    The length is that of the choice without the space before it; lighteval 0.8 counts that space. An empty choice
    counts as one character.

    Source: lm-evaluation-harness `acc_norm`.
    """
    return _hit(_per_unit(sample, len), sample)


def acc_bytes(sample: Sample) -> float:
    """Like acc, each log-probability divided by the choice's length in UTF-8 bytes.

    A Chinese character has three bytes. The space before the choice is not counted; an empty choice counts as one
    byte.

    Source: lm-evaluation-harness `acc_bytes`.
    """
    return _hit(_per_unit(sample, _bytes), sample)


def acc_tokens(sample: Sample) -> float:
    """Like acc, each log-probability divided by the number of tokens of the choice, as the server counted them.

    A choice of no token counts as one token. The sample fails where the server does not tell the number.

    Source: lighteval 0.8 `LogProbTokenNorm`, padding not counted.
    """
    values: list[float] = []
    for i, (p, c) in enumerate(zip(_logprobs(sample), _continuations(sample), strict=True), 1):
        if c.tokens is None:
            raise ValueError(f"the server does not tell how many tokens choice {i} has, so it can't be divided by them")
        values.append(p / max(1, c.tokens))
    return _hit(values, sample)


def acc_pmi(sample: Sample) -> float:
    """Like acc, by pointwise mutual information: each log-probability less the one after the unconditioned query.

    A choice that is impossible after the question ranks last, whatever it is without the question.

    Source: Holtzman et al. 2021, "Surface Form Competition" (domain-conditional PMI).
    """
    values: list[float] = []
    for i, (p, c) in enumerate(zip(_logprobs(sample), _continuations(sample), strict=True), 1):
        if c.unconditioned is None:
            raise ValueError(f"choice {i} has no log-probability after the unconditioned query")
        base = _number(c.unconditioned, i)
        values.append(p if p == -math.inf else p - base)
    return _hit(values, sample)


def mrr(sample: Sample) -> float:
    """The reciprocal rank of the best gold choice, by summed log-probability: 1, 1/2, 1/3 ...

    The rank is 1 plus the choices that are more likely, plus the earlier ones that are as likely.

    Source: Voorhees 1999, "The TREC-8 Question Answering Track Report".
    """
    order = _ranked(_logprobs(sample))
    golds = _golds(sample)
    return next((1 / rank for rank, i in enumerate(order, 1) if i in golds), 0.0)


def recall(sample: Sample, k: int) -> float:
    """1 if a gold choice is among the k of the highest summed log-probability.

    With k choices or fewer it is always 1; `recall@1` is acc.

    Source: lighteval 0.8 `recall_at_2`.
    """
    return float(not _golds(sample).isdisjoint(_ranked(_logprobs(sample))[:k]))


def greedy_match(sample: Sample) -> float:
    """1 if a gold is what the model would have said itself: each of its tokens the likeliest at its place.

    The sample fails where no gold is known to be and the server does not tell of one.

    Source: lighteval 0.8 `acc_golds_likelihood`.
    """
    told = [c.greedy for c in _continuations(sample)]
    if any(told):
        return 1.0
    if None in told:
        raise ValueError("the server does not tell whether a gold is the greedy continuation")
    return 0.0


def choice_probability(sample: Sample) -> float:
    """The probability of the gold choices together, where the choices' probabilities are made to add up to 1.

    Where all are impossible, all are equally likely.

    Source: lighteval 0.8 `normalized_multi_choice_prob_metric`, with the sum over golds.
    """
    return _mass(_logprobs(sample), _golds(sample))


def truthfulqa_mc1(sample: Sample) -> float:
    """1 if the likeliest choice is the first gold one.

    `specific["len_mc1"]`, where there, tells how many of the choices belong to MC1; those of MC2 follow them.

    Source: Lin et al. 2022, "TruthfulQA".
    """
    size = _mc1_size(sample)
    return float(bool(sample.references) and _ranked(_logprobs(sample)[:size])[:1] == [sample.references[0]])


def truthfulqa_mc2(sample: Sample) -> float:
    """The probability of the true answers together, where the answers' probabilities are made to add up to 1.

    All gold positions count. lm-evaluation-harness and lighteval end the true answers at the first gap in the gold
    positions, so they miss one where the true answers are not all in front (question 371). Where all answers are
    impossible, all are equally likely. `specific["len_mc1"]`, where there, tells how many choices belong to MC1 and
    come first; they are left out.

    Source: Lin et al. 2022, "TruthfulQA".
    """
    start = _mc1_size(sample) or 0
    return _mass(_logprobs(sample)[start:], {i - start for i in _golds(sample) if i >= start})


def brier_score(sample: Sample) -> float:
    """The Brier score of the choices' probabilities, 0..2; lower is better.

    The sum over choices of (probability - outcome)², the outcome 1 for the gold choice and 0 for the others; the
    probabilities are made to add up to 1. With several golds the one of the lowest score counts. Where all choices
    are impossible, all are equally likely.

    Source: Brier 1950, "Verification of Forecasts Expressed in Terms of Probability".
    """
    shares = _shares(_logprobs(sample))
    squares = math.fsum(p * p for p in shares)
    return min((min(2.0, max(0.0, squares - 2 * shares[i] + 1)) for i in _golds(sample)), default=2.0)


def empty_choice(reference: str, choices: Sequence[str]) -> str | None:
    """That a choice has no length to divide by, if one has none."""
    return next((f"choice {i} is empty: it has no length" for i, c in enumerate(choices, 1) if not c), None)


def _continuations(sample: Sample) -> Sequence[Continuation]:
    return cast("Sequence[Continuation]", sample.prediction)


def _logprobs(sample: Sample) -> list[float]:
    return [_number(c.logprob, i) for i, c in enumerate(_continuations(sample), 1)]


def _number(logprob: float, place: int) -> float:
    if math.isnan(logprob) or logprob == math.inf:
        raise ValueError(f"choice {place} has a log-probability of {logprob}, which is none")
    return logprob


def _golds(sample: Sample) -> set[int]:
    count = len(sample.prediction)
    for i in sample.references:
        if not 0 <= i < count:
            raise ValueError(f"the gold position {i} is none of the {count} choices'")
    return set(sample.references)


def _per_unit(sample: Sample, length: Callable[[str], int]) -> list[float]:
    logprobs = _logprobs(sample)
    if len(logprobs) != len(sample.choices):
        raise ValueError(f"{len(logprobs)} log-probabilities are given for {len(sample.choices)} choices")
    return [p / max(1, length(text)) for p, text in zip(logprobs, sample.choices, strict=True)]


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _ranked(values: Sequence[float]) -> list[int]:
    return sorted(range(len(values)), key=lambda i: -values[i])


def _hit(values: Sequence[float], sample: Sample) -> float:
    return float(not _golds(sample).isdisjoint(_ranked(values)[:1]))


def _shares(logprobs: Sequence[float]) -> list[float]:
    """Probabilities that add up to 1, from logarithms of any size."""
    top = max(logprobs, default=0.0)
    parts = [1.0 if top == -math.inf else math.exp(p - top) for p in logprobs]
    total = math.fsum(parts)
    return [p / total for p in parts]


def _mass(logprobs: Sequence[float], golds: set[int]) -> float:
    shares = _shares(logprobs)
    return min(1.0, math.fsum(shares[i] for i in golds))


def _mc1_size(sample: Sample) -> int | None:
    size = sample.specific.get("len_mc1")
    if size is None:
        return None
    if not isinstance(size, int) or not 0 < size < len(sample.prediction):
        raise ValueError(f"len_mc1 is {size!r}: no number of choices that leaves some for MC2")
    return size
