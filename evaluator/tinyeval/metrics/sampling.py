"""Several samples of one question: pass@k, avg@k and maj@k over any metric of one text.

A sample is right when that metric gives it its highest value against the best reference; partial credit is not right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tinyeval.metrics import registry
from tinyeval.metrics.extraction import extract_answer, extract_number, gsm8k_answer, strip_reasoning
from tinyeval.metrics.formulas import math_equal
from tinyeval.metrics.letters import extract_letters
from tinyeval.metrics.registry import Metric, Sample

_OF = "quasi_exact_match"


def pass_at_k(sample: Sample, k: int, of: str = _OF) -> float:
    """The probability that at least one of k samples is right, estimated without bias from all n samples.

    1 - C(n-c, k) / C(n, k), c of n being right. `pass@4:math_match` asks math_match whether a sample is right;
    without a name it is quasi_exact_match. All samples of the question are used; fewer than k are an error, never a
    number.

    Source: Chen et al. 2021 (Codex), equation 1.
    """
    metric = _of(f"pass@{k}", of)
    texts = _texts(f"pass@{k}", sample, k)
    right, n = sum(_right(metric, sample, text) for text in texts), len(texts)
    if n - right < k:
        return 1.0
    missed = 1.0
    for i in range(n - right + 1, n + 1):
        missed *= 1.0 - k / i
    return 1.0 - missed


def avg_at_k(sample: Sample, k: int, of: str = _OF) -> float:
    """The mean value of the first k samples, each against its best reference.

    `avg@4:f1_bag` takes the values of f1_bag, partial credit included; without a name it is quasi_exact_match. Fewer
    than k samples are an error, never a number.

    Source: the mean of k runs, as `avg_at_n` of lighteval.
    """
    metric = _of(f"avg@{k}", of)
    texts = _texts(f"avg@{k}", sample, k)[:k]
    return sum(_value(metric, sample, text) for text in texts) / k


def maj_at_k(sample: Sample, k: int, of: str = _OF) -> float:
    """1 if the most frequent answer among the first k samples is right.

    `maj@8:math_match` lets the answers vote that math_match reads out of the texts, and so do gsm8k_match,
    last_number_match and letter_match; a text without an answer has no vote, and without any vote the value is 0. With
    other metrics (quasi_exact_match if none is named) two texts give the same answer if the metric calls one right
    with the other as its reference, or if they are equal apart from white space at their ends; an empty text votes too.
    Of answers with equally
    many votes the one seen first wins. Fewer than k samples are an error, never a number.

    Source: self-consistency (Wang et al. 2022); Minerva's maj1@k (Lewkowycz et al. 2022).
    """
    metric = _of(f"maj@{k}", of)
    texts = _texts(f"maj@{k}", sample, k)[:k]
    read, same = _VOTES.get(of, (_whole, _same_by(metric, sample.choices)))
    first: list[tuple[str, Any]] = []
    votes: list[int] = []
    for text in texts:
        if not (answer := read(text, sample.choices)) and of in _VOTES:
            continue
        at = next((i for i, (_, other) in enumerate(first) if same(answer, other)), None)
        if at is None:
            first.append((text, answer))
            votes.append(1)
        else:
            votes[at] += 1
    if not votes:
        return 0.0
    return float(_right(metric, sample, first[votes.index(max(votes))][0]))


def _letters(text: str, choices: Sequence[str]) -> frozenset[str]:
    return extract_letters(text, len(choices)) if choices else extract_letters(text)


def _whole(text: str, choices: Sequence[str]) -> str:
    return text


def _equal(a: Any, b: Any) -> bool:
    return a == b


_VOTES: dict[str, tuple[Callable[[str, Sequence[str]], Any], Callable[[Any, Any], bool]]] = {
    "math_match": (lambda text, _: extract_answer(text), math_equal),
    "gsm8k_match": (lambda text, _: gsm8k_answer(text), math_equal),
    "last_number_match": (lambda text, _: extract_number(strip_reasoning(text)), math_equal),
    "letter_match": (_letters, _equal),
}


def _same_by(metric: Metric, choices: Sequence[str]) -> Callable[[Any, Any], bool]:
    def same(a: str, b: str) -> bool:
        if a.strip() == b.strip():
            return True
        return not metric.check(b, choices) and metric.value(Sample(a, [b], choices)) == metric.highest

    return same


def _of(name: str, of: str) -> Metric:
    metric = registry.get(of)
    one_text = metric.needs == "generative" and metric.per != "corpus"
    if not one_text or not metric.higher_is_better or (metric.lowest, metric.highest) != (0.0, 1.0):
        raise ValueError(f"{name} takes a metric of one text with values from 0 to 1, 1 being best; {of} is none.")
    return metric


def _texts(name: str, sample: Sample, k: int) -> Sequence[str]:
    if k < 1:
        raise ValueError(f"{name} needs a k of at least 1.")
    texts: Sequence[str] = sample.prediction
    if len(texts) < k:
        raise ValueError(f"{name} needs at least {k} samples of each question, and this one has {len(texts)}.")
    return texts


def _value(metric: Metric, sample: Sample, text: str) -> float:
    return metric.value(Sample(text, sample.references, sample.choices, sample.specific))


def _right(metric: Metric, sample: Sample, text: str) -> bool:
    return _value(metric, sample, text) == metric.highest
