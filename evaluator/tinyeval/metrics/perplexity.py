"""Perplexity: how likely a model finds texts, over the whole task.

A row is a text's summed natural log-probability and its number of units; a unit is a word, a byte or a token.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from tinyeval.metrics.registry import Continuation, Sample, Statistics

if TYPE_CHECKING:
    from tinyeval.metrics.registry import Values, Weights

_NOISE = 1e-3
"""A log-probability up to this much above 0 is taken for rounding."""


def words(sample: Sample) -> tuple[float, int]:
    """Log-probability and words of the text that is likeliest a word."""
    return _likeliest(sample, "word", lambda text, _: len(text.split()))


def utf8_bytes(sample: Sample) -> tuple[float, int]:
    """Log-probability and UTF-8 bytes of the text that is likeliest a byte."""
    return _likeliest(sample, "byte", lambda text, _: len(text.encode("utf-8", "surrogatepass")))


def tokens(sample: Sample) -> tuple[float, int]:
    """Log-probability and tokens of the text that is likeliest a token."""
    return _likeliest(sample, "token", _tokens)


def word_perplexity(rows: Sequence[Statistics], weights: Weights) -> Values:
    """The perplexity of texts a word, 1 to infinity; lower is better.

    exp(-summed log-probability / words), each summed over all texts, so a long text counts more than a short one.
    Words are what is between white space: " a b " has two (lighteval counts four). Chinese text has hardly any white
    space; take byte_perplexity or bits_per_byte for it. A text without a word makes the sample fail.

    Source: lm-evaluation-harness `word_perplexity`.
    """
    return _exp(_rate(rows, weights))


def byte_perplexity(rows: Sequence[Statistics], weights: Weights) -> Values:
    """The perplexity of texts a UTF-8 byte, 1 to infinity; lower is better.

    exp(-summed log-probability / bytes), each summed over all texts. It compares models of different tokenizers, and
    languages with and without spaces. An empty text makes the sample fail.

    Source: lm-evaluation-harness `byte_perplexity`.
    """
    return _exp(_rate(rows, weights))


def bits_per_byte(rows: Sequence[Statistics], weights: Weights) -> Values:
    """The bits that the model needs for a UTF-8 byte of the texts, 0 to infinity; lower is better.

    -summed log-probability / bytes / ln 2, each summed over all texts: the logarithm of byte_perplexity to base 2. An
    empty text makes the sample fail.

    Source: Gao et al. 2020, "The Pile"; lm-evaluation-harness `bits_per_byte`.
    """
    return _rate(rows, weights) / math.log(2)


def token_perplexity(rows: Sequence[Statistics], weights: Weights) -> Values:
    """The perplexity of texts a token, 1 to infinity; lower is better.

    exp(-summed log-probability / tokens), each summed over all texts, tokens as the server counted them: models of
    different tokenizers can't be compared by it. The sample fails where the server does not tell the number.

    Source: Jelinek et al. 1977, "Perplexity: a measure of the difficulty of speech recognition tasks".
    """
    return _exp(_rate(rows, weights))


def target_perplexity(rows: Sequence[Statistics], weights: Weights) -> Values:
    """The perplexity of the gold answers a token, 1 to infinity; lower is better.

    exp(-summed log-probability / tokens), each summed over all samples; of several golds the likeliest a token
    counts. lighteval's `ppl` divides by the number of samples instead, so it grows with the answers' lengths. The
    sample fails where the server does not tell the number of tokens.

    Source: Jelinek et al. 1977, "Perplexity: a measure of the difficulty of speech recognition tasks".
    """
    return _exp(_rate(rows, weights))


def target_word_perplexity(rows: Sequence[Statistics], weights: Weights) -> Values:
    """The perplexity of the gold answers a word, 1 to infinity; lower is better.

    exp(-summed log-probability / words), each summed over all samples; of several golds the likeliest a word counts.
    Words are what is between white space; take target_bits_per_byte for Chinese. A gold without a word makes the
    sample fail.

    Source: lm-evaluation-harness `word_perplexity`, over the golds.
    """
    return _exp(_rate(rows, weights))


def target_bits_per_byte(rows: Sequence[Statistics], weights: Weights) -> Values:
    """The bits that the model needs for a UTF-8 byte of the gold answers, 0 to infinity; lower is better.

    -summed log-probability / bytes / ln 2, each summed over all samples; of several golds the likeliest a byte
    counts. The space before a gold is not counted. An empty gold makes the sample fail.

    Source: lm-evaluation-harness `bits_per_byte`, over the golds.
    """
    return _rate(rows, weights) / math.log(2)


def _likeliest(sample: Sample, unit: str, count: Callable[[str, Continuation], int]) -> tuple[float, int]:
    found = cast("Sequence[Continuation]", sample.prediction)
    texts = sample.references
    if not texts or len(found) != len(texts):
        raise ValueError(f"{len(found)} log-probabilities are given for {len(texts)} texts")
    rows: list[tuple[float, int]] = []
    for c, text in zip(found, texts, strict=True):
        if math.isnan(c.logprob) or c.logprob > _NOISE:
            raise ValueError(f"a text has a log-probability of {c.logprob}, which is none")
        units = count(text, c)
        if units < 1:
            raise ValueError(f"the text {text[:80]!r} has no {unit} to divide its log-probability by")
        rows.append((min(0.0, c.logprob), units))
    return max(rows, key=lambda row: row[0] / row[1])


def _tokens(text: str, continuation: Continuation) -> int:
    if continuation.tokens is None:
        raise ValueError("the server does not tell how many tokens a text has, so it can't be divided by them")
    return continuation.tokens


def _rate(rows: Sequence[Statistics], weights: Weights) -> Values:
    """Nats a unit for each line of weights; infinite without rows or with an impossible one."""
    import numpy as np

    table = np.asarray(rows, dtype=np.float64).reshape(-1, 2)
    impossible = np.isneginf(table[:, 0])
    nats = (weights * np.where(impossible, 0.0, -table[:, 0])).sum(axis=1)
    units = (weights * table[:, 1]).sum(axis=1)
    lost = (weights * impossible).sum(axis=1) > 0
    known = (units > 0) & ~lost
    return np.where(known, nats / np.where(known, units, 1.0), np.inf)


def _exp(rates: Values) -> Values:
    import numpy as np

    with np.errstate(over="ignore"):
        return np.exp(rates)
