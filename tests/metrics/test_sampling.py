"""pass@k, avg@k and maj@k against their definitions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyeval.metrics import exact, extraction, letters, registry
from tinyeval.metrics.registry import Sample
from tinyeval.metrics.sampling import avg_at_k, maj_at_k, pass_at_k


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A registry of the metrics used here, whatever else is registered."""
    monkeypatch.setattr(registry, "_metrics", dict(registry._metrics))
    monkeypatch.setattr(registry, "_families", {})
    for function in (exact.quasi_exact_match, exact.f1_bag, extraction.math_match, extraction.gsm8k_match):
        registry._metrics.pop(function.__name__, None)
        registry.register(function.__name__, function)
    registry._metrics.pop("letter_match", None)
    registry.register("letter_match", letters.letter_match, check=letters.no_letters)
    registry.register("short", lambda p, r, c: float(len(p)), higher_is_better=False)
    for name, function in (("pass", pass_at_k), ("avg", avg_at_k), ("maj", maj_at_k)):
        for end in ("@{k}", "@{k}:{of}"):
            registry.register(name + end, function, needs="sampling", per="sample")
    yield


def value(name: str, texts: list[str], references: list[str], choices: list[str] | None = None) -> float:
    return registry.get(name)(texts, references, choices)


@given(st.lists(st.booleans(), min_size=1, max_size=9), st.integers(1, 9))
@settings(deadline=None)
def test_pass_at_k_is_the_share_of_draws_with_a_right_one(right: list[bool], k: int) -> None:
    sample = Sample(tuple("对" if r else "错" for r in right), ["对"])
    if k > len(right):
        with pytest.raises(ValueError, match=f"pass@{k} needs at least {k} samples of each question"):
            pass_at_k(sample, k=k)
        return
    draws = list(itertools.combinations(right, k))
    assert pass_at_k(sample, k=k) == pytest.approx(sum(map(any, draws)) / len(draws), abs=1e-12)


@pytest.mark.parametrize(("n", "right", "k"), [(200, 3, 100), (1000, 1, 10), (32, 0, 32), (5, 5, 1), (4, 1, 4)])
def test_pass_at_k_equals_the_binomials(n: int, right: int, k: int) -> None:
    sample = Sample(["7"] * right + ["8"] * (n - right), ["7"])
    assert pass_at_k(sample, k=k) == pytest.approx(1 - math.comb(n - right, k) / math.comb(n, k), abs=1e-12)


def test_too_few_samples_are_an_error_not_a_number() -> None:
    for name in ("pass@100", "avg@100:f1_bag", "maj@100"):
        with pytest.raises(
            ValueError, match=r"@100 needs at least 100 samples of each question, and this one has 32\."
        ):
            value(name, ["8"] * 32, ["7"])


@pytest.mark.parametrize("of", ["short", "pass"])
def test_only_metrics_of_one_text_between_zero_and_one(of: str) -> None:
    registry.register("pass", pass_at_k, needs="sampling", per="sample")
    for name in ("pass", "avg", "maj"):
        with pytest.raises(ValueError, match=f"{name}@1 takes a metric of one text with values from 0 to 1"):
            value(f"{name}@1:{of}", ["x"], ["x"])


def test_an_unknown_metric_is_told() -> None:
    with pytest.raises(KeyError, match="no metric is named 'math_mach'"):
        value("maj@1:math_mach", ["x"], ["x"])


def test_a_k_of_zero_is_an_error() -> None:
    with pytest.raises(ValueError, match="pass@0 needs a k of at least 1"):
        pass_at_k(Sample(["x"], ["x"]), k=0)


@pytest.mark.parametrize(
    ("name", "texts", "references", "expected"),
    [
        ("pass@1", ["a", "b"], ["b"], 0.5),
        ("pass@2:f1_bag", ["a b", "c"], ["a"], 0.0),  # partial credit is not right
        ("pass@1", ["a", "b"], ["x", "b", "a"], 1.0),  # the best reference
        ("pass@1", ["a", "b"], [], 0.0),
        ("avg@2", ["a", "b", "b"], ["b"], 0.5),  # the first two
        ("avg@2:f1_bag", ["a b", "c"], ["a"], 1 / 3),
        ("avg@1", [""], [""], 1.0),
        ("maj@4", ["a", "b", "a", "b"], ["b"], 0.0),  # a tie: a was seen first
        ("maj@4", ["b", "a", "a", "b"], ["b"], 1.0),
        ("maj@3", ["厦门大学。", "北京", "“厦门大学”"], ["厦门大学"], 1.0),
        ("maj@3", ["a", "b", "b", "a", "a"], ["a"], 0.0),  # the first three
        ("maj@3", ["", "", "x"], ["x"], 0.0),
        ("maj@3:math_match", ["\\boxed{0.5}", "no idea", "答案是1/2。"], ["0.5"], 1.0),
        ("maj@4:math_match", ["no idea", "no idea", "no idea", "\\boxed{7}"], ["7"], 1.0),
        ("maj@2:math_match", ["no idea", ""], ["7"], 0.0),
        ("maj@3:gsm8k_match", ["#### 7", "so 7.0", "8"], ["…#### 7"], 1.0),
        ("maj@3:gsm8k_match", ["x", "x", "x"], ["x"], 0.0),
        ("maj@3:letter_match", ["选B", "The answer is (B)", "C"], ["B"], 1.0),
        ("maj@3:letter_match", ["嗯", "嗯", "B"], ["B"], 1.0),
        ("maj@3:f1_bag", ["a b", "b a", "c"], ["b a"], 1.0),
    ],
)
def test_values(name: str, texts: list[str], references: list[str], expected: float) -> None:
    assert value(name, texts, references) == pytest.approx(expected, abs=1e-12)


def test_choices_bound_the_letters_that_vote() -> None:
    assert value("maj@3:letter_match", ["选E", "选E", "选B"], ["B"], ["甲", "乙", "丙"]) == 1.0
    assert value("maj@3:letter_match", ["选E", "选E", "选B"], ["B"]) == 0.0


@given(st.lists(st.sampled_from(["a", "A.", "b", "", "3.0", "3", "\ud800"]), min_size=1, max_size=8), st.data())
@settings(deadline=None)
def test_values_are_in_range_and_maj_of_one_is_the_first(texts: list[str], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(texts)))
    sample = Sample(texts, ["a", "3"])
    assert 0.0 <= pass_at_k(sample, k=k) <= 1.0
    assert 0.0 <= avg_at_k(sample, k=k) <= 1.0
    assert maj_at_k(sample, k=k) in (0.0, 1.0)
    assert maj_at_k(sample, k=1) == avg_at_k(sample, k=1)
    assert pass_at_k(sample, k=1) == pytest.approx(avg_at_k(sample, k=len(texts)))
