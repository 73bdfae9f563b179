"""ROUGE equals Google's package `rouge-score`, and is the same over Chinese words."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyeval.metrics import summary
from tinyeval.metrics.registry import Metric
from tinyeval.metrics.words import cut

Rouge = Callable[..., float]

PLAIN: dict[str, Rouge] = {
    "rouge1": summary.rouge1,
    "rouge2": summary.rouge2,
    "rougeL": summary.rouge_l,
    "rougeLsum": summary.rouge_lsum,
}
STEMMED: dict[str, Rouge] = {
    "rouge1": summary.rouge1_stem,
    "rouge2": summary.rouge2_stem,
    "rougeL": summary.rouge_l_stem,
    "rougeLsum": summary.rouge_lsum_stem,
}
CHINESE: dict[str, Rouge] = {
    "rouge1": summary.rouge1_zh,
    "rouge2": summary.rouge2_zh,
    "rougeL": summary.rouge_l_zh,
}
ALL = [*PLAIN.values(), *STEMMED.values(), *CHINESE.values()]

# Few words and many line ends, so that repeats, ties and lines in common are frequent.
words = st.sampled_from(["a", "b", "c", "The", "cats", "cat", "agreed", "running", "x.y", "3,5", "é", "猫", "\n", "\n"])
texts = st.lists(words, max_size=30).map(" ".join)
chinese = st.text(alphabet="我们在厦门大学学习中文和英语。，. \nAa1", max_size=40)


def official(prediction: str, reference: str, **options: Any) -> dict[str, float]:
    scorer = pytest.importorskip("rouge_score.rouge_scorer", reason="the reference package rouge-score is missing")
    scores = cast("Any", scorer).RougeScorer(list(PLAIN), **options).score(reference, prediction)
    return {name: score.fmeasure for name, score in scores.items()}


@given(texts, texts)
@settings(max_examples=300, deadline=None)
def test_values_are_the_reference_packages(prediction: str, reference: str) -> None:
    expected = official(prediction, reference)
    for name, rouge in PLAIN.items():
        assert rouge(prediction, reference) == pytest.approx(expected[name], abs=1e-12), name


@given(texts, texts)
@settings(max_examples=150, deadline=None)
def test_values_over_stems_are_the_reference_packages(prediction: str, reference: str) -> None:
    expected = official(prediction, reference, use_stemmer=True)
    for name, rouge in STEMMED.items():
        assert rouge(prediction, reference) == pytest.approx(expected[name], abs=1e-12), name


@pytest.mark.parametrize("bits", [4, 40, 1 << 28])
def test_ties_between_subsequences_are_broken_as_in_the_reference_package(
    bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary, "_BITS", bits)  # few bits kept at a time: the states are made again
    random_ = random.Random(bits)
    for _ in range(150):
        prediction, reference = (" ".join(random_.choices("abc\n", k=random_.randrange(60))) for _ in "pr")
        expected = official(prediction, reference)["rougeLsum"]
        assert summary.rouge_lsum(prediction, reference) == pytest.approx(expected, abs=1e-12)


@given(chinese, chinese)
@settings(max_examples=150, deadline=None)
def test_chinese_values_are_the_reference_packages_over_jieba_words(prediction: str, reference: str) -> None:
    class Words:
        def tokenize(self, text: str) -> list[str]:
            return [w.lower() for w in cut(text) if any(c.isalnum() for c in w)]

    expected = official(prediction, reference, tokenizer=Words())
    for name, rouge in CHINESE.items():
        assert rouge(prediction, reference) == pytest.approx(expected[name], abs=1e-12), name


@pytest.mark.parametrize(
    ("rouge", "prediction", "reference", "value"),
    [
        (summary.rouge1, "alpha beta", "alpha beta", 1.0),
        (summary.rouge1, "the cat the cat", "the cat sat", 4 / 7),
        (summary.rouge2, "the cat sat down", "the cat sat", 0.8),
        (summary.rouge2, "cat", "cat", 0.0),
        (summary.rouge_l, "police kill the gunman", "police killed the gunman", 0.75),
        (summary.rouge_l, "the gunman kill police", "police killed the gunman", 0.5),
        (summary.rouge_lsum, "w1 w2 w6 w7 w8\nw1 w3 w8 w9 w5", "w1 w2 w3 w4 w5", 8 / 15),
        (summary.rouge1_stem, "three summaries agreed", "Three summary agree.", 1.0),
        (summary.rouge1, "three summaries agreed", "Three summary agree.", 1 / 3),
        (summary.rouge2_stem, "running dogs", "run dog", 1.0),
        (summary.rouge1_stem, "toes", "toe", 1.0),
        (summary.rouge1_stem, "was", "wa", 0.0),  # its stem, but words of 3 characters stay
        (summary.rouge_l_stem, "running quickly", "runs quickly", 1.0),
        (summary.rouge_lsum_stem, "cats\nrunning", "running\ncats", 1.0),
        (summary.rouge1, "厦门大学", "厦门大学", 0.0),
        (summary.rouge1_zh, "厦门大学", "厦门大学。", 1.0),
        (summary.rouge1_zh, "我爱北京", "我爱上海", 2 / 3),
        (summary.rouge2_zh, "我爱北京天安门", "我爱北京", 0.8),
        (summary.rouge_l_zh, "北京，我爱", "我爱北京！", 2 / 3),
        (summary.rouge_l_zh, "使用 PYTHON 编程", "使用Python编程", 1.0),
    ],
)
def test_known_values(rouge: Rouge, prediction: str, reference: str, value: float) -> None:
    assert rouge(prediction, reference) == pytest.approx(value, abs=1e-12)


def test_the_best_of_several_references_counts() -> None:
    assert Metric(name="rouge1", function=summary.rouge1)("alpha beta", ["alpha beta", "x y"]) == 1.0
    assert Metric(name="rouge1_zh", function=summary.rouge1_zh)("厦门", []) == 0.0


@pytest.mark.parametrize("rouge", ALL)
@pytest.mark.parametrize("text", ["", " \n", "…。！", "\ud800", "\n\n\n"])
def test_a_text_without_words_is_worth_nothing(rouge: Rouge, text: str) -> None:
    assert rouge(text, "some words 一些词语") == rouge("some words 一些词语", text) == rouge(text, text) == 0.0


@pytest.mark.parametrize("rouge", [*PLAIN.values(), *CHINESE.values()])
def test_lone_surrogates_only_separate_words(rouge: Rouge) -> None:
    assert rouge("two\ud800words here", "two words here") == 1.0


@given(texts, texts)
@settings(max_examples=100, deadline=None)
def test_values_lie_between_0_and_1_and_do_not_depend_on_what_came_before(prediction: str, reference: str) -> None:
    first = [rouge(prediction, reference) for rouge in ALL]
    assert all(0.0 <= value <= 1.0 for value in first)
    assert first == [rouge(prediction, reference) for rouge in ALL]


@given(texts, texts)
@settings(max_examples=100, deadline=None)
def test_both_texts_are_alike_but_for_rouge_lsum(prediction: str, reference: str) -> None:
    for rouge in (summary.rouge1, summary.rouge2, summary.rouge_l):
        assert rouge(prediction, reference) == pytest.approx(rouge(reference, prediction), abs=1e-12)


@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=30), st.lists(st.sampled_from("abcd"), max_size=30))
def test_rouge_lsum_of_single_lines_is_rouge_l(x: list[str], y: list[str]) -> None:
    prediction, reference = " ".join(x), " ".join(y)
    assert summary.rouge_lsum(prediction, reference) == summary.rouge_l(prediction, reference)


def test_long_texts_need_neither_a_deep_stack_nor_a_table() -> None:
    """20,000 words each: a table of lengths would have 400 million entries."""
    size = 20_000
    assert size > 10 * sys.getrecursionlimit()
    first = " ".join(f"w{i % 97}" for i in range(size))
    second = " ".join(f"w{(i + 1) % 97}" for i in range(size))
    assert summary.rouge_l(first, second) == pytest.approx(1 - 1 / size, abs=1e-12)
    assert summary.rouge_lsum(first, second) == pytest.approx(1 - 1 / size, abs=1e-12)
    lines = "\n".join(f"line {i % 50} of many" for i in range(5_000))
    assert summary.rouge_lsum(lines, lines) == 1.0


@pytest.mark.parametrize("rouge", [summary.rouge1, summary.rouge2_stem, summary.rouge_l_stem, summary.rouge_lsum])
def test_a_megabyte_without_a_space_is_one_word(rouge: Rouge) -> None:
    text = "y" * 1_000_000
    assert rouge(text, text) == (0.0 if rouge is summary.rouge2_stem else 1.0)
    assert rouge(text, "y y") == 0.0
