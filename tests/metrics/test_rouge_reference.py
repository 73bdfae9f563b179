"""ROUGE-L here equals the package `rouge` 1.0.1, of which LongBench's values are made."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge import Rouge

from tinyeval import metrics
from tinyeval.metrics.words import cut

# Few words, so that repeats and ties are common; bare dots, empty sentences and runs of spaces among them.
words = st.sampled_from(["a", "b", "c", "d", "the", "cat", "sat.", ".", "..", "x.y", "", " ", "\n", "\t", "é", "猫"])
texts = st.lists(words, max_size=24).map(" ".join)
chinese = st.text(alphabet="我们在厦门大学学习中文和英语。，. \n1a", max_size=40)


def official(prediction: str, reference: str) -> float:
    """As LongBench calls it: what raises is worth nothing."""
    try:
        return cast("Any", Rouge()).get_scores([prediction], [reference], avg=True)["rouge-l"]["f"]
    except Exception:  # noqa: BLE001
        return 0.0


@given(texts, texts)
@settings(max_examples=400, deadline=None)
def test_rouge_of_random_words_is_the_reference_packages(prediction: str, reference: str) -> None:
    assert metrics.get("rouge")(prediction, reference) == pytest.approx(official(prediction, reference), abs=1e-12)


@given(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=40), st.lists(st.sampled_from("abc"), min_size=1, max_size=40)
)
@settings(max_examples=200, deadline=None)
def test_ties_between_subsequences_are_broken_as_in_the_reference_package(x: list[str], y: list[str]) -> None:
    prediction, reference = " ".join(x), " ".join(y)
    assert metrics.get("rouge")(prediction, reference) == pytest.approx(official(prediction, reference), abs=1e-12)


@given(chinese, chinese)
@settings(max_examples=200, deadline=None)
def test_rouge_zh_is_the_reference_package_over_jieba_words(prediction: str, reference: str) -> None:
    expected = official(" ".join(cut(prediction)), " ".join(cut(reference)))
    assert metrics.get("rouge_zh")(prediction, reference) == pytest.approx(expected, abs=1e-12)


@given(texts, texts)
@settings(max_examples=100, deadline=None)
def test_rouge_lies_between_its_bounds(prediction: str, reference: str) -> None:
    assert 0.0 <= metrics.get("rouge")(prediction, reference) < 1.0


def test_a_perfect_match_is_a_hair_below_one_as_in_the_reference_package() -> None:
    assert metrics.get("rouge")("the cat sat", "the cat sat") == pytest.approx(0.999999995, abs=1e-12)


@pytest.mark.parametrize("empty", ["", ".", "...", " . ."])
def test_a_text_without_a_word_is_worth_what_the_reference_package_says(empty: str) -> None:
    assert metrics.get("rouge")(empty, "a b") == pytest.approx(official(empty, "a b"), abs=1e-12)
    assert metrics.get("rouge")("a b", empty) == pytest.approx(official("a b", empty), abs=1e-12)
