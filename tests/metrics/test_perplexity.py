"""Perplexity over the whole task: units, sums, infinities, resampling."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyeval.metrics import perplexity
from tinyeval.metrics.registry import Continuation, Metric, Sample

INF = math.inf
Rows = list[tuple[float, int]]
ROWS = st.lists(st.tuples(st.floats(-500, 0), st.integers(1, 300)), min_size=1, max_size=12)
PERPLEXITIES = [
    perplexity.word_perplexity,
    perplexity.byte_perplexity,
    perplexity.token_perplexity,
    perplexity.target_perplexity,
    perplexity.target_word_perplexity,
]
BITS = [perplexity.bits_per_byte, perplexity.target_bits_per_byte]


def sample(text: str, logprob: float, tokens: int | None = None) -> Sample:
    return Sample([Continuation(logprob=logprob, tokens=tokens)], [text])


def total(combine: Callable[..., Any], rows: Rows) -> float:
    return float(combine(rows, np.ones((1, len(rows))))[0])


@pytest.mark.parametrize(
    ("text", "words", "size"),
    [
        (" a b ", 2, 5),
        ("a\n\tb　c", 3, 8),
        ("厦门大学", 1, 12),
        ("厦门 大学。", 2, 16),
        ("\ud800", 1, 3),
        ("e\u0301", 1, 3),
    ],
)
def test_units(text: str, words: int, size: int) -> None:
    assert perplexity.words(sample(text, -1)) == (-1, words)
    assert perplexity.utf8_bytes(sample(text, -1)) == (-1, size)
    assert perplexity.tokens(sample(text, -1, 7)) == (-1, 7)


def test_values_are_of_the_sums_not_means_of_the_values() -> None:
    rows: Rows = [(-2.0, 1), (-4.0, 5)]
    for combine in PERPLEXITIES:
        assert total(combine, rows) == pytest.approx(math.e)  # exp(6 / 6), not the mean of exp(2) and exp(0.8)
    for combine in BITS:
        assert total(combine, rows) == pytest.approx(1 / math.log(2))


def test_a_fair_coin_a_byte_is_a_bit() -> None:
    rows: Rows = [(-8 * math.log(2), 8), (-3 * math.log(2), 3)]
    assert total(perplexity.byte_perplexity, rows) == pytest.approx(2)
    assert total(perplexity.bits_per_byte, rows) == pytest.approx(1)


def test_certainty_and_impossibility_are_the_ends_of_the_range() -> None:
    for combine, least in [*((p, 1.0) for p in PERPLEXITIES), *((b, 0.0) for b in BITS)]:
        assert total(combine, [(0.0, 3), (0.0, 1)]) == least
        assert total(combine, [(-1.0, 3), (-INF, 1)]) == INF
        assert total(combine, []) == INF
    assert total(perplexity.word_perplexity, [(-5000.0, 2)]) == INF  # exp(2500) is over the floats
    assert total(perplexity.bits_per_byte, [(-5000.0, 2)]) == pytest.approx(2500 / math.log(2))


def test_an_impossible_text_that_is_not_drawn_does_not_count() -> None:
    weights = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    found = perplexity.bits_per_byte([(-math.log(2), 1), (-INF, 4)], weights)
    assert found.tolist() == [1.0, INF, INF]


@pytest.mark.parametrize(
    ("function", "broken", "message"),
    [
        (perplexity.words, sample("", -1), "the text '' has no word"),
        (perplexity.words, sample(" \n　", -1), "has no word"),
        (perplexity.utf8_bytes, sample("", -1), "has no byte"),
        (perplexity.tokens, sample("a", -1, 0), "has no token"),
        (perplexity.tokens, sample("a", -1), "does not tell how many tokens"),
        (perplexity.words, sample("a", math.nan), "log-probability of nan"),
        (perplexity.words, sample("a", 0.5), "log-probability of 0.5"),
        (perplexity.words, sample("a", INF), "log-probability of inf"),
        (perplexity.words, Sample([], []), "0 log-probabilities are given for 0 texts"),
        (perplexity.words, Sample([Continuation(logprob=-1)], ["a", "b"]), "1 log-probabilities are given for 2 texts"),
    ],
)
def test_what_cant_be_divided_is_said(function: Callable[[Sample], Any], broken: Sample, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        function(broken)


def test_rounding_above_zero_is_zero() -> None:
    assert perplexity.words(sample("a b", 1e-6)) == (0.0, 2)


def test_of_several_golds_the_likeliest_a_unit_counts() -> None:
    golds = [Continuation(logprob=-6.0, tokens=2), Continuation(logprob=-8.0, tokens=8)]
    s = Sample(golds, ["北京", "the capital of China, Beijing"])
    assert perplexity.tokens(s) == (-8.0, 8)
    assert perplexity.words(s) == (-8.0, 5)
    assert perplexity.utf8_bytes(s) == (-8.0, 29)
    assert perplexity.utf8_bytes(Sample(golds[::-1], ["北", "北京"])) == (-6.0, 6)


def test_users_give_a_plain_float() -> None:
    metric = Metric(
        name="bits_per_byte",
        function=perplexity.utf8_bytes,
        combine=perplexity.bits_per_byte,
        per="corpus",
        needs="perplexity",
        highest=INF,
        higher_is_better=False,
    )
    assert metric(-12 * math.log(2), "厦门大学") == pytest.approx(1)
    assert metric.description.startswith("The bits that the model needs")


def test_a_long_text() -> None:
    text = "厦门 大学" * 80_000
    assert perplexity.words(sample(text, -1e6)) == (-1e6, 80_001)
    assert perplexity.utf8_bytes(sample(text, -1e6)) == (-1e6, 80_000 * 13)


@given(ROWS, st.data())
def test_weights_are_repeated_rows(rows: Rows, data: st.DataObject) -> None:
    counts = st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows)).filter(any)
    drawn = data.draw(st.lists(counts, min_size=1, max_size=4))
    for combine in [*PERPLEXITIES, *BITS]:
        found = combine(rows, np.array(drawn, dtype=np.float64))
        assert found.shape == (len(drawn),)
        for value, line in zip(found.tolist(), drawn, strict=True):
            repeated = [row for row, n in zip(rows, line, strict=True) for _ in range(n)]
            assert value == pytest.approx(total(combine, repeated), rel=1e-9)


@given(ROWS)
def test_ranges_and_the_relation_of_bits_to_perplexity(rows: Rows) -> None:
    for combine in PERPLEXITIES:
        assert total(combine, rows) >= 1
    bits = total(perplexity.bits_per_byte, rows)
    assert bits >= 0
    assert total(perplexity.byte_perplexity, rows) == pytest.approx(2**bits if bits < 1024 else INF, rel=1e-9)
    assert bits == total(perplexity.bits_per_byte, rows)
