"""Edit distance, common prefix, TER's edits and what a summary copies, against plain definitions of each."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.lib_ter import translation_edit_rate

from tinyeval.metrics import distance
from tinyeval.metrics.registry import Metric, Sample

texts = st.text(alphabet="abc 厦门大学。\n\ud800", max_size=24)
EXTRACTIVE: list[Callable[[Sample], float]] = [
    distance.summarization_coverage,
    distance.summarization_density,
    distance.summarization_compression,
]


def levenshtein(a: Sequence[str], b: Sequence[str]) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


def fragments(summary: Sequence[str], source: Sequence[str]) -> list[int]:
    """The lengths of Grusky's fragments, by the steps of the paper's figure 3."""
    lengths: list[int] = []
    i = 0
    while i < len(summary):
        longest = j = 0
        while j < len(source):
            if summary[i] == source[j]:
                end, other = i, j
                while end < len(summary) and other < len(source) and summary[end] == source[other]:
                    end, other = end + 1, other + 1
                longest, j = max(longest, end - i), other
            else:
                j += 1
        if longest:
            lengths.append(longest)
        i += max(longest, 1)
    return lengths


def summarized(answer: str, source: str) -> list[float]:
    return [f(Sample(answer, (), (), {"text": source})) for f in EXTRACTIVE]


@given(texts, texts)
@settings(deadline=None)
def test_edit_distance_is_levenshteins(prediction: str, reference: str) -> None:
    expected = levenshtein(prediction, reference)
    assert distance.edit_distance(prediction, reference) == expected
    longer = max(len(prediction), len(reference))
    assert distance.edit_similarity(prediction, reference) == (1 - expected / longer if longer else 1.0)


@given(texts, texts)
@settings(deadline=None)
def test_distances_do_not_depend_on_the_order_and_lie_in_their_range(prediction: str, reference: str) -> None:
    for measure in (distance.edit_distance, distance.edit_similarity, distance.longest_common_prefix):
        assert measure(prediction, reference) == measure(reference, prediction)
        assert 0 <= measure(prediction, reference) <= max(len(prediction), len(reference), 1)
    assert distance.edit_similarity(prediction, reference) <= 1.0


@given(texts, texts, texts)
@settings(deadline=None)
def test_longest_common_prefix_is_as_long_as_both_begin_alike(prefix: str, x: str, y: str) -> None:
    size = int(distance.longest_common_prefix(prefix + x, prefix + y))
    a, b = prefix + x, prefix + y
    assert size >= len(prefix)
    assert a[:size] == b[:size]
    assert a[size : size + 1] != b[size : size + 1] or size == len(a) == len(b)


@pytest.mark.parametrize(
    ("prediction", "reference", "edits", "similarity", "prefix"),
    [
        ("kitten", "sitting", 3, 4 / 7, 0),
        ("厦门大学", "厦门理工大学", 2, 4 / 6, 2),
        ("", "", 0, 1.0, 0),
        ("", "四个字符", 4, 0.0, 0),
        ("Same", "same", 1, 0.75, 0),
        (" a", "a", 1, 0.5, 0),
        ("the text goes on", "the text ends", 6, 10 / 16, 9),
        ("\ud800x", "\ud800y", 1, 0.5, 1),
    ],
)
def test_known_distances(prediction: str, reference: str, edits: int, similarity: float, prefix: int) -> None:
    assert distance.edit_distance(prediction, reference) == edits
    assert distance.edit_similarity(prediction, reference) == pytest.approx(similarity, abs=1e-12)
    assert distance.longest_common_prefix(prediction, reference) == prefix


def test_the_nearest_of_several_references_counts() -> None:
    metric = Metric(name="edit_distance", function=distance.edit_distance, highest=math.inf, higher_is_better=False)
    assert metric("厦门", ["北京大学", "厦门市"]) == 1.0


def test_a_megabyte_has_a_value() -> None:
    text = "长文本 with words " * 70_000
    assert distance.edit_distance(text, "x" + text) == 1.0
    assert distance.longest_common_prefix(text, text + "x") == len(text)
    words = len(text.split()) * 5 // 3  # three characters, which are words, and two further words
    assert summarized(text, text) == [1.0, float(words), 1.0]
    assert summarized("甲 乙 丙 " * 50_000, "甲 乙 丁 " * 50_000) == pytest.approx([2 / 3, 4 / 3, 1.0], abs=1e-12)


@given(st.lists(st.sampled_from("abcde"), max_size=40), st.lists(st.sampled_from("abcde"), max_size=40))
@settings(max_examples=200, deadline=None)
def test_the_edits_of_ter_are_sacrebleus(predicted: list[str], wanted: list[str]) -> None:
    assert distance.word_edits(predicted, wanted) == translation_edit_rate(predicted, wanted)[0]


@pytest.mark.parametrize("size", [60, 110])
@pytest.mark.parametrize("change", ["moved", "cut", "longer", "other"])
def test_the_edits_of_ter_are_sacrebleus_where_its_beam_or_its_limits_matter(size: int, change: str) -> None:
    random_ = random.Random(f"{size} {change}")
    wanted = [f"w{random_.randrange(size)}" for _ in range(size)]
    predicted = {
        "moved": wanted[size // 2 :] + wanted[: size // 2],
        "cut": random_.sample(wanted, 5),
        "longer": wanted[:10] + ["x"] * 70 + wanted[5:],
        "other": random_.choices(wanted, k=size - 20),
    }[change]
    assert distance.word_edits(predicted, wanted) == translation_edit_rate(predicted, wanted)[0]


def test_very_long_texts_are_compared_without_moves() -> None:
    words = [f"w{i}" for i in range(3_000)]
    moved = words[1_000:] + words[:1_000]
    assert distance.word_edits(moved, words) == 2_000
    assert distance.word_edits(words, words) == 0


@given(st.lists(st.sampled_from("abc"), max_size=30), st.lists(st.sampled_from("abc"), max_size=40))
@settings(max_examples=300, deadline=None)
def test_fragments_are_the_papers(summary: list[str], source: list[str]) -> None:
    found = fragments(summary, source)
    size = len(summary) or 1
    expected = [sum(found) / size, sum(n * n for n in found) / size, len(source) / size if summary else 0.0]
    assert summarized(" ".join(summary), " ".join(source)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("answer", "source", "values"),
    [
        ("the cat sat", "The cat sat down. It slept.", [1.0, 3.0, 8 / 3]),  # two full stops are words
        ("a cat slept", "The cat sat down. It slept.", [2 / 3, 2 / 3, 8 / 3]),
        ("a a b", "a a a b", [1.0, 5 / 3, 4 / 3]),  # the run inside the first one is passed over, as in the paper
        ("厦门大学很美", "我在厦门大学。", [4 / 6, 16 / 6, 7 / 6]),
        ("用Python 3编程", "Python 3 很好", [2 / 5, 4 / 5, 4 / 5]),
        ("", "some source", [0.0, 0.0, 0.0]),
        ("some answer", "", [0.0, 0.0, 0.0]),
        ("\ud800 b", "\ud800 b", [1.0, 2.0, 1.0]),
    ],
)
def test_known_fragments(answer: str, source: str, values: list[float]) -> None:
    assert summarized(answer, source) == pytest.approx(values, abs=1e-12)


@given(texts, texts)
@settings(deadline=None)
def test_fragments_lie_in_their_range(answer: str, source: str) -> None:
    coverage, density, compression = summarized(answer, source)
    assert 0 <= coverage <= 1
    assert coverage <= density + 1e-12 <= len(answer) + 1
    assert compression >= 0
    assert summarized(answer, source) == [coverage, density, compression]


@pytest.mark.parametrize("metric", EXTRACTIVE)
@pytest.mark.parametrize("specific", [{}, {"text": None}])
def test_a_missing_source_is_an_error(metric: Callable[[Sample], float], specific: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r'specific\["text"\]'):
        metric(Sample("answer", ["reference"], (), specific))
