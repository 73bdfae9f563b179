"""Exact answers, their prefixes and suffixes, and bags of words and characters."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyeval.metrics import exact

ALL = [
    exact.perfect_exact_match,
    exact.quasi_exact_match,
    exact.prefix_exact_match,
    exact.prefix_quasi_exact_match,
    exact.suffix_exact_match,
    exact.exact_match_triviaqa,
    exact.contains,
    exact.f1_bag,
    exact.f1_quasi,
    exact.f1_char_zh,
]
SYMMETRIC = [f for f in ALL if f.__name__.split("_")[0] not in ("prefix", "suffix", "contains")]
TEXTS = st.lists(
    st.sampled_from(
        ["The ", "a", "A", " ", "-", "，", "。", "厦门", "大学", "3", "3.5", "1,000", "．", "Ｂ", "b", "\ud800"]
    )
    | st.characters(),
    max_size=12,
).map("".join)


@pytest.mark.parametrize(
    ("prediction", "reference", "expected"),
    [
        ("3.5", "35", 0.0),
        ("-5", "5", 0.0),
        ("−5", "-5", 1.0),
        ("1,000", "1000", 1.0),
        ("1.0", "1", 1.0),
        ("+5", "5", 1.0),
        (".5", "0.50", 1.0),
        ("-0", "0", 1.0),
        ("3-5", "35", 0.0),
        ("1.2.3", "1.2.30", 0.0),
        ("57081.86元", "人民币57081.86元。", 0.0),
        ("57081.86 元。", "57,081.860元", 1.0),
        ("５７０８１．８６元", "57081.86元", 1.0),
        ("气温是-5度", "气温是5度", 0.0),
        ("COVID-19", "covid 19", 1.0),
        ("A well-known fact!", "the well known fact", 1.0),
        ("“厦门大学”。", "厦门大学", 1.0),
        ("《红楼梦》", "红楼梦", 1.0),
        ("**Paris**", "`paris`", 1.0),
        ("ＧＰＴ", "gpt", 1.0),
        ("Ｓtraße", "STRASSE", 1.0),
        ("cafe\u0301", "café", 1.0),
        ("x<5", "x>5", 0.0),
        ("vitamin A", "vitamin", 0.0),
        ("A", "", 0.0),
        ("!", "", 0.0),
        ("!", "?", 0.0),
        ("", "", 1.0),
        (" \n", "", 1.0),
        ("", "x", 0.0),
    ],
)
def test_quasi_exact_match(prediction: str, reference: str, expected: float) -> None:
    assert exact.quasi_exact_match(prediction, reference) == expected


@pytest.mark.parametrize(
    ("metric", "prediction", "reference", "expected"),
    [
        (exact.perfect_exact_match, "42", "42", 1.0),
        (exact.perfect_exact_match, "42\n", "42", 0.0),
        (exact.perfect_exact_match, "", "", 1.0),
        (exact.prefix_exact_match, " 厦门大学位于福建", "厦门大学", 1.0),
        (exact.prefix_exact_match, "10", "1", 1.0),
        (exact.prefix_exact_match, "x", "", 0.0),
        (exact.prefix_exact_match, " ", "", 1.0),
        (exact.suffix_exact_match, "答案是厦门\n", "厦门", 1.0),
        (exact.suffix_exact_match, "厦门。", "厦门", 0.0),
        (exact.suffix_exact_match, "x", " ", 0.0),
        (exact.prefix_quasi_exact_match, "The Black Sea, I think", "black sea", 1.0),
        (exact.prefix_quasi_exact_match, "厦门大学位于福建", "“厦门大学”", 1.0),
        (exact.prefix_quasi_exact_match, "10 dogs", "1", 0.0),
        (exact.prefix_quasi_exact_match, "1.0 dogs", "1", 1.0),
        (exact.prefix_quasi_exact_match, "Option A is right", "option A", 1.0),
        (exact.prefix_quasi_exact_match, "Sea", "black sea", 0.0),
        (exact.prefix_quasi_exact_match, "x", "", 0.0),
        (exact.prefix_quasi_exact_match, "", "", 1.0),
        (exact.contains, "它在　厦门大学 里", "厦门大学", 1.0),
        (exact.contains, "The  black\nSEA.", "Black Sea", 1.0),
        (exact.contains, "3.5", "35", 0.0),
        (exact.contains, "x", "", 0.0),
        (exact.contains, "", "", 1.0),
        (exact.exact_match_triviaqa, "The Beatles!", "beatles", 1.0),
        (exact.exact_match_triviaqa, "rock_‘n’_roll", "Rock 'n' Roll", 1.0),
        (exact.exact_match_triviaqa, "3.5", "3 5", 1.0),
        (exact.exact_match_triviaqa, "3.5", "35", 0.0),
        (exact.exact_match_triviaqa, "A", "", 0.0),
        (exact.exact_match_triviaqa, "", "", 1.0),
        (exact.f1_bag, "a a a b", "a b", 2 / 3),
        (exact.f1_bag, "A b", "a b", 0.5),
        (exact.f1_bag, "", "", 1.0),
        (exact.f1_bag, "", "x", 0.0),
        (exact.f1_quasi, "The sea, the SEA", "sea", 2 / 3),
        (exact.f1_quasi, "57081.86元", "人民币 57,081.86 元。", 0.8),
        (exact.f1_quasi, "x", "", 0.0),
        (exact.f1_char_zh, "我在厦门大学", "厦门大学", 0.8),
        (exact.f1_char_zh, "共 1,000 元。", "1000元", 0.8),  # 共, 1000, 元 against 1000, 元
        (exact.f1_char_zh, "GPT模型", "gpt 模型", 1.0),
        (exact.f1_char_zh, "", "", 1.0),
        (exact.f1_char_zh, "", "厦", 0.0),
    ],
)
def test_values(metric: Callable[[str, str], float], prediction: str, reference: str, expected: float) -> None:
    assert metric(prediction, reference) == pytest.approx(expected, abs=1e-12)


def test_an_empty_reference_is_told() -> None:
    assert exact.no_reference(" \n", ()) == "the reference is empty"
    assert exact.no_reference("x", ()) is None


@pytest.mark.parametrize("metric", ALL)
@given(text=TEXTS, other=TEXTS)
@settings(max_examples=60, deadline=None)
def test_values_are_in_range_and_a_text_matches_itself(
    metric: Callable[[str, str], float], text: str, other: str
) -> None:
    assert metric(text, text) == 1.0
    assert 0.0 <= metric(text, other) <= 1.0
    if metric in SYMMETRIC:
        assert metric(text, other) == metric(other, text)
    if other.strip():
        assert metric("", other) == 0.0


@given(st.integers(-(10**12), 10**12), st.integers(0, 9))
def test_numbers_equal_by_value_however_written(number: int, zeros: int) -> None:
    for text in (f"{number:,}", f"{number}." + "0" * (zeros + 1), f"（{number}）"):
        assert exact.quasi_exact_match(text, str(number)) == 1.0
    assert exact.quasi_exact_match(str(number), str(number + 1)) == 0.0
    assert exact.quasi_exact_match(f"{number}.5", f"{number}5") == 0.0


@pytest.mark.parametrize("unit", ["a ", "1", "1,000", "-", "，", "a\u0301\u0323", "厦门", "\ud800"])
def test_a_long_text_has_a_value(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    for metric in ALL:
        assert metric(text, text) == 1.0
        assert metric("", text) == 0.0
