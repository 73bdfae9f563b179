"""Final answers: found in English and Chinese texts, compared exactly."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyeval.metrics import extraction
from tinyeval.metrics.extraction import extract_answer, extract_boxed, extract_number, strip_reasoning
from tinyeval.metrics.formulas import math_equal

METRICS = [extraction.math_match, extraction.gsm8k_match, extraction.last_number_match]
PIECES = st.lists(
    st.sampled_from(
        ["\\boxed{", "}", "{", "<think>", "</think>", "#### ", "答案是", "The answer is ", "1,000", "-5", "3/4", "50%"]
    )
    | st.sampled_from(
        ["\\frac{1}{2}", "\\frac", "\\sqrt", "$", "(", ")", ",", "，", "\n", " ", ".", "万", "\ud800", "x=", "π", "^"]
    ),
    max_size=30,
).map("".join)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"so \boxed{\frac{1}{2}}.", r"\frac{1}{2}"),
        (r"\boxed{1} and then \boxed{ 2 }", "2"),
        (r"\boxed{\boxed{5}}", r"\boxed{5}"),
        (r"\boxed{\{1,2\}}", r"\{1,2\}"),
        (r"\boxed{7} but \boxed{8", "7"),  # cut off: the last complete one
        (r"\fbox{9}", "9"),
        (r"a } stray \boxed {3}", "3"),
        (r"\boxed", None),
        ("no box", None),
        (r"\boxed{}", ""),
    ],
)
def test_the_last_complete_box_with_all_its_braces(text: str, expected: str | None) -> None:
    assert extract_boxed(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>5</think>7", "7"),
        ("6<think>5", "6"),
        ("it is 5</think>7", "7"),
        ("<think>a<think>b</think>c</think>d", "d"),
        ("A<think>x</think>B<think>y</think>C", "ABC"),
        ("no tags", "no tags"),
        ("<think></think>", ""),
    ],
)
def test_reasoning_is_not_read(text: str, expected: str) -> None:
    assert strip_reasoning(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The answer is 42.", "42"),
        ("The answer is 3.5, because of that.", "3.5"),
        ("**Final Answer:** 12", "12"),
        ("The answer is not 5. The answer is 6. Is it 7?", "6"),
        ("So the answer is: $\\frac{3}{4}$ of 100.", "\\frac{3}{4}"),
        ("The answer is approximately 3.14 metres.", "3.14"),
        ("The answer is equal to $x^2+1$.", "x^2+1"),
        ("答案是42。因为6乘7。", "42"),
        ("所以，答案为 \\(\\sqrt{2}\\)", "\\sqrt{2}"),
        ("最终答案：５个苹果，共10元", "5"),
        ("答案不是5，最后得到 8", "8"),
        ("Step 1. Step 2.\n#### 7.\n", "7"),
        ("#### 2. Second step\nso 9 remain", "9"),
        ("\\boxed{3} and the answer is 4", "3"),
        ("There are 12 apples and 5 pears", "5"),
        ("so x = \\frac{3}{4} here", "3/4"),
        ("(1, 2)", "(1, 2)"),
        ("x^2 + 1", "x^2 + 1"),
        ("增长到3.5万人", "35000"),
        ("I think so", None),
        ("", None),
        ("<think>The answer is 5", None),
        ("不知道", None),
    ],
)
def test_the_final_answer(text: str, expected: str | None) -> None:
    assert extract_answer(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,234.50 in all", "1234.50"),
        ("7.", "7"),
        ("from 3-5", "5"),
        ("气温为-5度", "-5"),
        ("covid-19", "19"),
        ("增长 50%", "50%"),
        ("2 million people", "2000000"),
        ("on 12/25/2024", "2024"),
        ("No.5", "5"),
        (".5", ".5"),
        ("１２３", "123"),
        ("无", None),
        ("", None),
    ],
)
def test_the_last_number(text: str, expected: str | None) -> None:
    assert extract_number(text) == expected


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("1,000", "1000"),
        ("1{,}000", "1000"),
        ("1,234, 5", "5, 1234"),
        ("(5)", "5"),
        ("0.5", r"\frac{1}{2}"),
        ("1/2", r"\dfrac12"),
        (r"\frac{-1}{2}", "-0.5"),
        ("1 1/2", "1.5"),
        (r"1\frac{1}{2}", "3/2"),
        ("50%", "0.5"),
        (r"50\%", "50"),
        (r"3\times10^{5}", "300000"),
        ("2.50", "2.5"),
        ("$5", "5"),
        (r"\$5.00", "5"),
        ("5 cm", "5"),
        (r"5\text{ cm}^2", "5"),
        ("5平方米", "5"),
        ("3.5万元", "35000"),
        ("3 million dollars", "3000000"),
        (r"45^\circ", "45"),
        ("x=5", "5"),
        ("x = 5", "x=5"),
        (r"\frac{\pi}{2}", "π/2"),
        (r"\frac{\sqrt{3}}{2}", "√3/2"),
        (r"\sqrt3", r"\sqrt{3}"),
        (r"\left(1, \frac12\right)", "(1,0.5)"),
        (r"\{1,2\}", r"\{2, 1\}"),
        ("1, 2", "2,1"),
        (r"1 \text{ or } 2", "2,1"),
        ("x=1 或 x=2", "1,2"),
        (r"(-\infty,0]\cup[1,\infty)", "(-∞,0] ∪ [1.0,∞)"),
        (r"\text{Monday}", "monday"),
        ("x^{2}", "x^2"),
        (r"2\cdot x", "2x"),
        ("（1，2）", "(1,2)"),
        (r"\boxed{5}", "5"),
        (r"\boxed{\sqrt{2}}", r"√2"),
        (r"\frac {{\sqrt 2}} {{x}}", r"√2/x"),
        (r"\frac{1}{\sqrt{a+1}}", r"\frac 1{\sqrt{a+1}}"),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_equal_answers(a: str, b: str) -> None:
    assert math_equal(a, b) and math_equal(b, a)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("", ""),
        ("$", ""),
        ("3.5", "35"),
        ("-5", "5"),
        ("1/3", "0.333"),
        ("(1,2)", "(2,1)"),
        ("(1,2]", "[1,2]"),
        ("x=5", "y=5"),
        ("5x", "5"),
        ("5万", "5"),
        ("1/0", "2/0"),
        ("2^{10}", "1024"),
        (r"\frac{1}{2x}", r"\frac{1}{2}x"),
        ("1,2", "1,2,2"),
        ("x", "X"),
        ("5\\text{ million}", "5"),
        ("3分之一", "3"),
        ("0.5%", "0.05"),
        ("9" * 5000, "9" * 5001),
    ],
)
def test_different_answers(a: str, b: str) -> None:
    assert not math_equal(a, b) and not math_equal(b, a)


@pytest.mark.parametrize(
    ("metric", "prediction", "reference", "expected"),
    [
        ("math_match", "I think 8", "7", 0.0),
        ("math_match", r"so \boxed{0.5}", r"we get \boxed{\frac{1}{2}}", 1.0),
        ("math_match", "no idea", "none", 0.0),
        ("math_match", "", "", 0.0),
        ("math_match", "<think>7</think>", "7", 0.0),
        ("math_match", r"The answer is \(x=3\) or \(x=4\).", "3", 0.0),
        ("math_match", r"The answer is \(x=3\) or \(x=4\).", "3, 4", 1.0),
        ("math_match", "The answer is:\n\n\\[\n\\frac{7}{8}\n\\]", "7/8", 1.0),
        ("math_match", "因此答案是 3/4。", "0.75", 1.0),
        ("gsm8k_match", "I think 8", "7", 0.0),
        ("gsm8k_match", "#### 7.", "6 + 1 = 7\n#### 7", 1.0),
        ("gsm8k_match", "#### 7\nIn 2024 too", "#### 7", 1.0),
        ("gsm8k_match", "about 1,000", "#### 1000", 1.0),
        ("gsm8k_match", "no idea", "none", 0.0),
        ("gsm8k_match", "共 18 元", "…\n#### 18", 1.0),
        ("last_number_match", "3 then 4", "4.0", 1.0),
        ("last_number_match", "3.5", "35", 0.0),
        ("last_number_match", "x", "y", 0.0),
    ],
)
def test_values(metric: str, prediction: str, reference: str, expected: float) -> None:
    assert getattr(extraction, metric)(prediction, reference) == expected


def test_references_that_cannot_be_judged_are_told() -> None:
    assert extraction.no_answer(" ", ()) == "the reference is empty"
    assert extraction.no_answer("7", ()) is None
    assert extraction.no_number("none", ()) == "the reference 'none' has no number"
    assert extraction.no_number("#### 7", ()) is None


@given(PIECES, PIECES)
@settings(max_examples=300, deadline=None)
def test_any_text_has_a_value_and_equality_is_symmetric(a: str, b: str) -> None:
    for metric in METRICS:
        assert metric(a, b) in (0.0, 1.0)
    assert math_equal(a, b) == math_equal(b, a)


@given(st.fractions(max_denominator=10**6), st.integers(1, 50))
def test_fractions_are_exact(number: Fraction, factor: int) -> None:
    over, under = number.numerator * factor, number.denominator * factor
    assert math_equal(rf"\frac{{{over}}}{{{under}}}", str(number))
    assert not math_equal(f"{over}/{under}", str(number + Fraction(1, 10**9)))


@given(st.decimals(-(10**9), 10**9, allow_nan=False, places=3))
def test_any_way_to_write_a_number_is_found_in_either_language(number: object) -> None:
    for text in (f"The answer is {number}.", f"答案是{number}。", f"it is {number:,}", rf"\boxed{{{number:,}}}"):
        assert extraction.math_match(text, str(number)) == 1.0


@pytest.mark.parametrize(
    "unit", ["1", "1 ", "1,000", "{", "\\boxed{", "<think>", "答案是", "The answer is not ", "#### "]
)
@pytest.mark.parametrize("metric", METRICS)
def test_a_long_text_has_a_value(metric: object, unit: str) -> None:
    text = unit * (300_000 // len(unit))
    assert metric(text, "7") == 0.0  # type: ignore[operator]
