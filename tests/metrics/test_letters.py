"""Option letters in English and Chinese answers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyeval.metrics.letters import extract_letters, letter_match, no_letters

WORDS = st.lists(
    st.sampled_from(
        ["A", "B", "AB", "I", "(c)", "答案", "选", "是", "：", "answer is ", "\\boxed{", "}", ", ", "、", ". "]
    )
    | st.sampled_from(["\n", " ", "not ", "不", "Ｂ", "\ud800", "*", "<think>", "</think>"]),
    max_size=25,
).map("".join)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"So \boxed{B}. A is wrong.", "B"),
        (r"\boxed{\text{(C)}}", "C"),
        (r"\boxed{D. 5 cm}", "D"),
        (r"\boxed{b}", "B"),
        (r"\boxed{A, C}", "AC"),
        (r"\boxed{12}. The answer is B", "B"),
        ("The answer is (B).", "B"),
        ("the correct answer is **C**, because A fails", "C"),
        ("Answer: D", "D"),
        ("The answer is (b)", "B"),
        ("The answer is option A because it fits", "A"),
        ("First I thought the answer is A. But the answer is C.", "C"),
        ("The answer is not B. The answer is C", "C"),
        ("The correct option is B", "B"),
        ("答案：B", "B"),
        ("答案是Ｂ。", "B"),
        ("A错误，B正确，故选 B", "B"),
        ("所以正确选项是B", "B"),
        ("正确答案为：C", "C"),
        ("不选A，应选D", "D"),
        ("答案不是A，选C", "C"),
        ("本题选ABD。", "ABD"),
        ("答案：A、B、D", "ABD"),
        ("Answer: A, B and D", "ABD"),
        ("Answer: A, C, and D", "ACD"),
        ("B. Paris, not C. London", "B"),
        ("(B) because Paris is the capital", "B"),
        ("B", "B"),
        ("b", "B"),
        ("a.", "A"),
        ("A", "A"),
        ("A. 厦门", "A"),
        ("B、厦门大学", "B"),
        ("Let us see.\n\nC\n", "C"),
        ("I would go with B", "B"),
        ("I would pick A.", "A"),
        ("Both (A) and then (C)", "C"),
        ("(C) is correct", "C"),
        ("分析后，D选项正确，而 B 偏题", "D"),
        ("A dog bit me", ""),
        ("A good question. I think so.", ""),
        ("The answer is I think unclear", ""),
        ("Answer: A dog", ""),
        ("It's a C++ file", ""),
        ("DNA and U.S.A. say", ""),
        ("不知道", ""),
        ("", ""),
        ("<think>the answer is B", ""),
        ("<think>选A</think>选B", "B"),
        ("the answer is B, I believe", "B"),
        ("答案A不对，答案B对，不是C", "B"),
        ("选A或B，最后选C。", "C"),
        ("The answer is A or B", "AB"),  # undecided is not right
        ("The answer is C. Answer A is wrong: the answer is A is wrong", "C"),
    ],
)
def test_the_letters_chosen(text: str, expected: str) -> None:
    assert "".join(sorted(extract_letters(text))) == expected


def test_letters_reach_as_far_as_the_choices() -> None:
    assert extract_letters("Answer: E", 4) == frozenset()
    assert extract_letters("Answer: L", 12) == {"L"}
    assert letter_match("Answer: E", "E", ["1", "2", "3", "4", "5"]) == 1.0
    assert letter_match("Answer: E", "E", ["1", "2"]) == 0.0


@pytest.mark.parametrize(
    ("prediction", "reference", "expected"),
    [
        ("选B", "B", 1.0),
        ("选AB", "BA", 1.0),
        ("选AB", "A", 0.0),
        ("选A", "A、B", 0.0),
        ("(B)", "b", 1.0),
        ("", "", 0.0),
        ("x", "", 0.0),
        ("没有答案", "?", 0.0),
    ],
)
def test_sets_must_be_equal(prediction: str, reference: str, expected: float) -> None:
    assert letter_match(prediction, reference) == expected


def test_references_that_are_no_letters_are_told() -> None:
    assert no_letters("B", ["x", "y"]) is None
    assert no_letters("A, B", ()) is None
    assert no_letters("C", ["x", "y"]) == "the reference 'C' is beyond the last option, B"
    assert no_letters("厦门", ()) == "the reference '厦门' is no option letter"
    assert no_letters("", ()) == "the reference '' is no option letter"


@given(WORDS, st.integers(-1, 40))
@settings(max_examples=300, deadline=None)
def test_letters_are_among_the_options(text: str, count: int) -> None:
    letters = extract_letters(text, count)
    assert all("A" <= c <= chr(64 + min(max(count, 1), 26)) for c in letters)
    assert letters == extract_letters(text, count)


@given(st.sets(st.sampled_from("ABCDEFGHIJ"), min_size=1), st.sampled_from(["、", ", ", "", "，", " and "]))
def test_any_set_is_read_back(letters: set[str], joint: str) -> None:
    for text in ("答案：{}", "故选{}。", "The answer is {}.", "\\boxed{{{}}}"):
        assert extract_letters(text.format(joint.join(sorted(letters)))) == letters


@pytest.mark.parametrize(
    "unit", ["A", "A ", "B, ", "(", "选", "答案", "answer ", "\n", " ", "answer is A dog ", "\\boxed{"]
)
def test_a_long_text_has_a_value(unit: str) -> None:
    assert letter_match(unit * (300_000 // len(unit)), "J") == 0.0
