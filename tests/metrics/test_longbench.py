"""LongBench's and TinyEval's own metrics: official values worked out by hand, and what the siblings do better."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyeval.metrics import longbench as lb
from tinyeval.metrics.answers import classification
from tinyeval.metrics.overlap import qa_f1, qa_f1_zh
from tinyeval.metrics.registry import Metric, Sample

CLASSES = ["步", "两步", "体育", "Food", "Food and drink", "Step", "Two step"]


def gaokao_fixed(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    return lb.gaokao_math_fixed(Sample(prediction, [reference]))


METRICS: dict[str, Any] = {
    "count": lb.count,
    "count_fixed": lb.count_fixed,
    "retrieval": lb.retrieval,
    "retrieval_fixed": lb.retrieval_fixed,
    "retrieval_zh": lb.retrieval_zh,
    "retrieval_zh_fixed": lb.retrieval_zh_fixed,
    "code_sim": lb.code_sim,
    "code_sim_levenshtein": lb.code_sim_levenshtein,
    "code_sim_fixed": lb.code_sim_fixed,
    "gaokao_math": lb.gaokao_math,
    "gaokao_math_8e6a5fe": lb.gaokao_math_8e6a5fe,
    "gaokao_math_fixed": gaokao_fixed,
    "classification_fixed": lb.classification_fixed,
    "qa_f1_fixed": lb.qa_f1_fixed,
    "qa_f1_zh_fixed": lb.qa_f1_zh_fixed,
}


@pytest.mark.parametrize(
    ("prediction", "expected"),
    [
        ("\n\nApple\nQuestion: next", "Apple"),
        ("苹果", "苹果"),
        (" \nApple", " "),  # only "\n" is dropped
        ("\r\nApple", "\r"),
        ("Apple\rPear\u2028Plum", "Apple\rPear\u2028Plum"),  # only "\n" ends the line
        ("\n\n", ""),
        ("", ""),
    ],
)
def test_the_first_line_is_cut_as_longbench_cuts_it(prediction: str, expected: str) -> None:
    assert lb.first_line(prediction) == expected


@pytest.mark.parametrize(
    ("prediction", "reference", "official", "fixed"),
    [
        ("12", "12", 1.0, 1.0),
        ("There are 12 of them.", "12", 1.0, 1.0),
        ("不同的段落一共有12个", "12", 1.0, 1.0),
        ("12 and 12", "12", 1.0, 1.0),
        ("Out of 40, the final answer is 12.", "12", 1 / 2, 1.0),
        ("答案是12（一共40段）", "12", 1 / 2, 1.0),
        ("12\n\nParagraphs 3, 8 and 9 repeat.", "12", 1 / 4, 1.0),  # a first line of its own
        ("There are 12 unique paragraphs: 1, 4 and 7", "12", 1 / 4, 1.0),
        ("有12个不同的段落，即1、4、7", "12", 1 / 4, 1.0),
        ("10 11 12", "12", 1 / 3, 1.0),
        ("12 11 10", "12", 1 / 3, 0.0),  # a list of guesses
        ("012", "12", 0.0, 1.0),
        ("12.0", "12", 1 / 2, 1.0),
        ("１２", "12", 0.0, 1.0),
        ("-12", "12", 1.0, 0.0),
        ("1,200", "1200", 0.0, 1.0),
        ("112", "12", 0.0, 0.0),
        ("3.12", "12", 1 / 2, 0.0),
        ("一共有十二个段落", "12", 0.0, 1.0),
        ("答案一定是12，不是13", "12", 1 / 2, 0.0),  # no cue stands right before it: the last number
        ("二十三", "23", 0.0, 1.0),
        ("一千零五", "1005", 0.0, 1.0),
        ("十二万三千", "123000", 0.0, 1.0),
        ("唯一的一个", "1", 0.0, 1.0),
        ("twelve", "12", 0.0, 0.0),
        ("", "12", 0.0, 0.0),
        ("", "", 0.0, 0.0),
        ("7", "seven", 0.0, 0.0),
    ],
)
def test_count_pays_for_a_share_of_the_numbers_and_its_sibling_for_one(
    prediction: str, reference: str, official: float, fixed: float
) -> None:
    assert lb.count(prediction, reference) == pytest.approx(official, abs=1e-12)
    assert lb.count_fixed(prediction, reference) == fixed


@pytest.mark.parametrize(
    ("prediction", "official", "fixed"),
    [
        ("Paragraph 14", 1.0, 1.0),
        ("段落14", 1.0, 1.0),
        ("14", 1.0, 1.0),
        ("Paragraph 14 (from 1987)", 1 / 2, 1.0),
        ("段落14，写于1987年", 1 / 2, 1.0),
        ("Paragraph 2 is close. The answer is Paragraph 14, not Paragraph 3.", 1 / 3, 1.0),
        ("段落2接近，答案是段落14，不是段落3", 1 / 3, 1.0),
        ("Paragraph 14\n\nIt names 3 rivers.", 1 / 2, 1.0),
        ("**Paragraph 14**", 1.0, 1.0),
        ("Paragraph: #14", 1.0, 1.0),
        ("段落十四", 0.0, 1.0),
        ("第十四段", 0.0, 1.0),
        ("第14个段落", 1.0, 1.0),
        ("答案是十四", 0.0, 1.0),
        ("段落１４", 0.0, 1.0),
        ("Paragraph 1, Paragraph 14, Paragraph 20", 1 / 3, 0.0),
        ("Paragraph 4", 0.0, 0.0),
        ("Paragraph 140", 0.0, 0.0),
        ("the fourteenth", 0.0, 0.0),
        ("", 0.0, 0.0),
    ],
)
def test_retrieval_pays_for_a_share_of_the_numbers_and_its_sibling_for_one(
    prediction: str, official: float, fixed: float
) -> None:
    assert lb.retrieval(prediction, "Paragraph 14") == pytest.approx(official, abs=1e-12)
    assert lb.retrieval_zh(prediction, "段落14") == pytest.approx(official, abs=1e-12)
    for reference in ("Paragraph 14", "段落14", "14"):
        assert lb.retrieval_fixed(prediction, reference) == fixed
        assert lb.retrieval_zh_fixed(prediction, reference) == fixed


LONG = "f(a, b); " * 30  # more than 200 characters, each of them frequent


@pytest.mark.parametrize(
    ("prediction", "reference", "difflib", "levenshtein", "fixed"),
    [
        ("return a", "return a", 1.0, 1.0, 1.0),
        ("return a", "return b", 0.88, 0.88, 7 / 8),  # 87.5 % to the even whole percent
        ("返回值", "返回数值", 0.86, 0.86, 6 / 7),
        ("", "", 1.0, 1.0, 1.0),
        ("", "return b", 0.0, 0.0, 0.0),
        ("return b", "", 0.0, 0.0, 0.0),
        ("\n\nreturn a\nreturn b", "return a", 1.0, 1.0, 1.0),
        ("a = b // 2", "a = b // 2", 0.0, 0.0, 1.0),  # hidden by its "//"
        ("u = 'http://h'", "u = 'http://h'", 0.0, 0.0, 1.0),
        ("i++; # 加一\nj", "i++; # 加一", 0.0, 0.0, 1.0),
        ("# 说明\nreturn a", "return a", 1.0, 1.0, 1.0),
        ("  // why\nreturn a", "return a", 1.0, 1.0, 1.0),
        ("#include <io>", "#include <io>", 0.0, 0.0, 1.0),  # the reference is such a line itself
        ("\r\nreturn a\r\n", "return a", 0.0, 0.0, 1.0),
        ("  \nreturn a", "return a", 0.2, 0.2, 1.0),
        ("Sure:\n```python\nreturn a\n```", "return a", 0.31, 0.31, 1.0),
        ("```\n# code\n\nreturn a\n```\nDone.", "return a", 0.0, 0.0, 1.0),  # the blank line is the first without marks
        ("return a\n```\nThat was it.", "return a", 1.0, 1.0, 1.0),
        ("`return a`", "return a", 0.0, 0.0, 1.0),
        ("xyabcx", "abcxyx", 0.67, 0.67, 2 * 4 / 12),
        ("abcbabc", "bacbcab", None, 0.71, 2 * 5 / 14),  # acbab or abcab: 5 in common
        ("x" + LONG, LONG, 0.0, 1.0, 540 / 541),  # autojunk: no character of the reference is looked for
    ],
)
def test_code_sim_compares_one_line(
    prediction: str, reference: str, difflib: float | None, levenshtein: float, fixed: float
) -> None:
    if difflib is not None:
        assert lb.code_sim(prediction, reference) == pytest.approx(difflib, abs=1e-12)
    assert lb.code_sim_levenshtein(prediction, reference) == pytest.approx(levenshtein, abs=1e-12)
    assert lb.code_sim_fixed(prediction, reference) == pytest.approx(fixed, abs=1e-12)


lines = st.text(alphabet="ab(=) 值\ud800", max_size=30)


def common(a: str, b: str) -> int:
    """Length of the longest common subsequence, from its definition."""

    @functools.cache
    def of(i: int, j: int) -> int:
        if not i or not j:
            return 0
        return of(i - 1, j - 1) + 1 if a[i - 1] == b[j - 1] else max(of(i - 1, j), of(i, j - 1))

    return of(len(a), len(b))


@given(lines.filter(str.strip), lines.filter(str.strip))
@settings(max_examples=150, deadline=None)
def test_code_sim_fixed_is_twice_the_common_subsequence_over_both_lengths(a: str, b: str) -> None:
    expected = 2 * common(a, b) / (len(a) + len(b))
    assert lb.code_sim_fixed(a, b) == pytest.approx(expected, abs=1e-12)
    assert lb.code_sim_fixed(a, b) == lb.code_sim_fixed(b, a)


@given(lines, lines)
@settings(max_examples=300, deadline=None)
def test_code_sim_levenshtein_is_the_ratio_of_that_package_in_whole_percents(a: str, b: str) -> None:
    reference = pytest.importorskip("Levenshtein", reason="python-Levenshtein is not installed")
    assert lb.code_sim_levenshtein(a, b) == round(100 * reference.ratio(a, b)) / 100


@pytest.mark.parametrize(
    ("prediction", "reference", "head", "old", "fixed"),
    [
        ("C", "C", 1.0, 1.0, 1.0),
        ("选C，排除A", "C", 0.0, 0.0, 1.0),
        ("The Answer is hard", "A", 1.0, 1.0, 0.0),  # a letter in a word
        ("Answer a question", "A", 1.0, 1.0, 0.0),
        ("故选：（Ｃ）", "C", 0.0, 0.0, 1.0),
        (r"\boxed{C}", "C", 1.0, 1.0, 1.0),
        ("c", "C", 0.0, 0.0, 1.0),
        ("CD", "C", 0.0, 0.0, 0.0),
        ("", "C", 0.0, 0.0, 0.0),
        ("无法判断", "C", 0.0, 0.0, 0.0),
        ("AD", "AD", 1.0, 0.0, 1.0),
        ("A、D", "AD", 1.0, 0.0, 1.0),
        ("DA", "AD", 1.0, 0.0, 1.0),
        ("AD", "DA", 0.0, 0.0, 1.0),  # the reference is not sorted
        ("AD", "A,D", 0.5, 0.0, 1.0),
        ("a and d", "AD", 0.0, 0.0, 1.0),
        ("A", "AD", 0.5, 0.0, 0.5),
        ("B", "AD", 0.5, 0.0, 0.0),  # any single letter has half
        ("BB", "AD", 0.0, 0.0, 0.0),
        ("AB", "AD", 0.0, 0.0, 0.0),
        ("AC", "ACD", 0.5, 0.0, 0.5),
        ("ABCD", "AD", 0.0, 0.0, 0.0),
        ("A12345D", "AD", 1.0, 0.0, 0.5),
        ("A123456D", "AD", 0.5, 0.0, 0.5),
        ("A对，B错，D对，所以答案是AD", "AD", 0.0, 0.0, 1.0),
        ("集合B={1}与集合C={2}，选AD", "AD", 0.0, 0.0, 1.0),
        ("由A∩B知选项成立的是 A 和 D", "AD", 0.0, 0.0, 1.0),
    ],
)
def test_gaokao_scores_the_letters_of_an_answer(
    prediction: str, reference: str, head: float, old: float, fixed: float
) -> None:
    assert lb.gaokao_math(prediction, reference) == head
    assert lb.gaokao_math_8e6a5fe(prediction, reference) == old
    assert gaokao_fixed(prediction, reference) == fixed


def test_the_letters_of_all_references_are_one_key_of_gaokao_math_fixed() -> None:
    metric = Metric(name="gaokao_math_fixed", function=lb.gaokao_math_fixed, per="sample")
    assert metric("答案：AD", ["A", "D"]) == metric("答案：AD", ["AD"]) == metric("答案：AD", "D, A") == 1.0
    assert metric("答案：A", ["A", "D"]) == 0.5
    assert metric("答案：A", []) == 0.0


@pytest.mark.parametrize(
    ("prediction", "reference", "official", "fixed"),
    [
        ("体育", "体育", 1.0, 1.0),
        ("类别：体育或Food", "体育", 1 / 2, 1 / 2),
        ("food", "Food", 0.0, 1.0),
        ("Ｆｏｏｄ", "Food", 0.0, 1.0),
        ("Foods and games", "Food", 1.0, 0.0),  # a part of a word
        ("Food and drink", "Food and drink", 1.0, 1.0),
        ("Food and drink", "Food", 1 / 2, 0.0),
        ("两步", "步", 1 / 2, 0.0),
        ("两步", "两步", 1.0, 1.0),
        ("Two step", "Two step", 1.0, 1.0),
        ("Two step, then a step", "Step", 0.0, 1 / 2),
        ("Politics", "Food", 0.0, 0.0),
        ("", "Food", 0.0, 0.0),
        ("Food", "", 0.0, 0.0),
    ],
)
def test_classification_fixed_means_the_longest_name(
    prediction: str, reference: str, official: float, fixed: float
) -> None:
    assert classification(prediction, reference, CLASSES) == official
    assert lb.classification_fixed(prediction, reference, CLASSES) == fixed


def test_the_official_classification_skips_a_name_behind_a_struck_one_and_the_fixed_one_does_not() -> None:
    nested = ["红", "红茶", "红茶杯"]
    assert classification("红茶杯", "红茶杯", nested) == 1 / 2  # 红 is struck, 红茶 skipped
    assert lb.classification_fixed("红茶杯", "红茶杯", nested) == 1.0
    assert lb.classification_fixed("红茶杯和红茶", "红茶", nested) == 1 / 2
    assert lb.classification_fixed("红", "红", []) == lb.classification_fixed("", "", [""]) == 0.0


@pytest.mark.parametrize(
    ("prediction", "reference", "official", "fixed"),
    [
        ("the Red Lake", "red lake", 1.0, 1.0),
        ("red-blue", "red blue", 0.0, 1.0),
        ("“red”", "red", 0.0, 1.0),
        ("3.5", "35", 1.0, 0.0),
        ("1,000 km.", "1000 km", 1.0, 1.0),
        ("A", "a", 0.0, 1.0),  # the article is all there is
        ("the A", "b", 0.0, 0.0),
        ("U.S. law", "US law", 1.0, 1.0),
        ("don't", "don’t", 0.0, 1.0),
        ("red red", "red", 2 / 3, 2 / 3),
        ("red", "", 0.0, 0.0),
        ("", "red", 0.0, 0.0),
        ("...", "", 0.0, 1.0),  # neither has a word
    ],
)
def test_qa_f1_fixed_separates_words_at_punctuation(
    prediction: str, reference: str, official: float, fixed: float
) -> None:
    assert qa_f1(prediction, reference) == pytest.approx(official, abs=1e-12)
    assert lb.qa_f1_fixed(prediction, reference) == pytest.approx(fixed, abs=1e-12)


@pytest.mark.parametrize(
    ("prediction", "reference", "official", "fixed"),
    [
        ("北京。", "北京", 1.0, 1.0),
        ("《论语》", "论语", 2 / 3, 1.0),
        ("鲁·迅", "鲁迅", 0.0, 0.0),  # the sign parts the name: two words instead of one, or three
        ("厦门\n大学", "厦门大学", 0.0, 1.0),
        ("２０２４年", "2024年", 2 / 7, 1.0),  # full-width digits are five words of one character
        ("3.5元", "35元", 1.0, 1 / 2),
        ("57081.86元", "人民币57081.86元。", 0.8, 0.8),
        ("北京", "", 0.0, 0.0),
        ("", "北京", 0.0, 0.0),
        ("。", "", 0.0, 1.0),
    ],
)
def test_qa_f1_zh_fixed_cleans_before_it_cuts(prediction: str, reference: str, official: float, fixed: float) -> None:
    assert qa_f1_zh(prediction, reference) == pytest.approx(official, abs=1e-12)
    assert lb.qa_f1_zh_fixed(prediction, reference) == pytest.approx(fixed, abs=1e-12)


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (lb.no_number, ["7", "段落三", "7.5"], ["", "seven"]),
        (lb.no_paragraph, ["Paragraph 3"], ["", "3", "paragraph 3", "段落3"]),
        (lb.no_paragraph_zh, ["段落3"], ["", "3", "段落 3", "Paragraph 3"]),
        (lb.no_option, ["B", "BD", "Ｂ"], ["", "E", "甲"]),
    ],
)
def test_a_reference_that_nothing_can_equal_is_told(check: Any, good: list[str], bad: list[str]) -> None:
    assert [check(x, ()) for x in good] == [None] * len(good)
    assert all(check(x, ()).startswith(f"the reference {x!r} ") for x in bad)


@pytest.mark.parametrize("name", METRICS)
def test_a_reference_without_what_is_asked_for_is_worth_nothing(name: str) -> None:
    assert METRICS[name]("Paragraph 3, 答案是B", "", CLASSES) == 0.0


NUMBERS = ["7", "12", "３", "1,000", ".5", "-", "Paragraph 7", "段落7", "第三段", "一", "答案是", "answer is "]
OTHERS = ["A", "BC", "D", "=", "、", "and", r"\boxed{", "Food", "两步", "the", "。", "·", "", " ", "\ud800"]
pieces = st.sampled_from([*NUMBERS, *OTHERS, "```", "`", "# ", "//", "return x", "\n"])
texts = st.lists(pieces, max_size=12).map("".join)


@pytest.mark.parametrize("name", METRICS)
@given(prediction=texts | st.text(max_size=30), reference=texts)
@settings(max_examples=80, deadline=None)
def test_every_value_is_between_nothing_and_one(name: str, prediction: str, reference: str) -> None:
    value = METRICS[name](prediction, reference, CLASSES)
    assert type(value) is float
    assert 0.0 <= value <= 1.0
    assert value == METRICS[name](prediction, reference, CLASSES)


@pytest.mark.parametrize("name", METRICS)
def test_long_and_broken_texts_have_a_value(name: str) -> None:
    for text in (" " * 200_000, "7" * 200_000, "AC, " * 50_000, "段落三。\n" * 20_000, "\ud800" * 1000, "1." * 50_000):
        assert 0.0 <= METRICS[name](text, "Paragraph 3", CLASSES) <= 1.0
