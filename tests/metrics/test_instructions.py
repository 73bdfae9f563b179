"""IFEval's instructions: each followed and broken in English and Chinese; strict, loose, and references that fail."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyeval.metrics import instructions
from tinyeval.metrics.instructions import (
    instruction_loose,
    instruction_strict,
    prompt_loose,
    prompt_strict,
    unknown_instruction,
)

AT_LEAST, LESS = {"relation": "at least"}, {"relation": "less than"}
SECTION = {"section_spliter": "Section", "num_sections": 2}
CHAPTER = {"section_spliter": "部分", "num_sections": 2}
CASES: list[tuple[str, dict[str, Any], str, str]] = [  # id, arguments, an answer that follows, one that does not
    ("keywords:existence", {"keywords": ["Rose", "wind"]}, "ROSES in the window.", "Roses in the sun."),
    ("keywords:existence", {"keywords": ["厦门", "海"]}, "厦门靠海。", "厦门是一座城市。"),
    ("keywords:frequency", {"keyword": "tea", "frequency": 3, **AT_LEAST}, "Tea, tea, teapot.", "Tea and a teapot."),
    ("keywords:frequency", {"keyword": "茶", "frequency": 2, **LESS}, "我喝茶。", "茶馆里喝茶。"),
    ("keywords:forbidden_words", {"forbidden_words": ["cat", "No"]}, "Nothing is in the category.", "no!"),
    ("keywords:forbidden_words", {"forbidden_words": ["北京", "Java"]}, "我用JavaScript写。", "我在北京大学。"),
    ("keywords:forbidden_words", {"forbidden_words": ["Java"]}, "我用JavaScript写。", "我用java写程序。"),
    (
        "keywords:letter_frequency",
        {"letter": "q", "let_frequency": 2, "let_relation": "at least"},
        "Quick quiz",
        "Quit",
    ),
    (
        "keywords:letter_frequency",
        {"letter": "的", "let_frequency": 2, "let_relation": "less than"},
        "我的",
        "我的目的",
    ),
    ("language:response_language", {"language": "en"}, "It is the end of the day.", "C'est la fin de la journée."),
    ("language:response_language", {"language": "de"}, "Ich habe nicht die Zeit.", "I do not have the time for it."),
    ("language:response_language", {"language": "zh"}, "我用 Python 写程序。", "私はプログラムを書きます。"),
    ("language:response_language", {"language": "ja"}, "私はプログラムを書きます。", "我写程序。"),
    ("language:response_language", {"language": "ru"}, "Это не то, что я хотел.", "Це не те, що я хотів і люблю."),
    (
        "length_constraints:number_sentences",
        {"num_sentences": 2, **AT_LEAST},
        "Dr. Li came. He sat.",
        "Mr. A. Li paid 3.5",
    ),
    ("length_constraints:number_sentences", {"num_sentences": 3, **LESS}, "你好！我在。", "你好！我在。走吧？"),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "One.\n***\nTwo.", "One.\n\nTwo."),
    (
        "length_constraints:number_paragraphs",
        {"num_paragraphs": 2},
        "***\n第一段。\n\n***\n第二段。",
        "一\n***\n***\n二",
    ),
    ("length_constraints:number_words", {"num_words": 5, **AT_LEAST}, "It's a well-known.", "It's a fine."),
    ("length_constraints:number_words", {"num_words": 4, **LESS}, "我爱厦门大学。", "我爱北京和厦门。"),
    ("length_constraints:number_words", {"num_words": 4, **AT_LEAST}, "我喜欢Python语言。", "我爱厦门大学。"),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, "Dear [name], at [place]", "Dear [name]"),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, "【姓名】住在[地址]", "《姓名》住在【地址】"),
    ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, "Bye.\n\np. p. s. write", "Bye.\n\nP.S. write"),
    ("detectable_content:postscript", {"postscript_marker": "附言："}, "再见。\n附言：多写信。", "再见。附上照片。"),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "List:\n* one\n  - two\n---\n**b**", "* one"),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "要点：\n-一\n• 二", "要点：\n1. 一\n2. 二"),
    ("detectable_format:constrained_response", {}, "Well. My answer is no.", "My answer is perhaps."),
    ("detectable_format:constrained_response", {"options": ["我的答案是：是。"]}, "我的答案是：是。", "是。"),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, "*one* and **two**", "* one\n* two *a*"),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, "**重点**和*要点*", "**重点"),
    ("detectable_format:multiple_sections", SECTION, "Section 1\nA\nSection 2\nB", "Section 1\nA\nsection 2"),
    ("detectable_format:multiple_sections", CHAPTER, "第一部分\n甲\n## 部分2\n乙", "第一部分\n甲，这部分一样"),
    ("detectable_format:json_format", {}, '```JSON\n{"a": [1, null]}\n```', 'Here it is: {"a": 1}'),
    ("detectable_format:json_format", {}, '{"城市": "厦门"}', "{'城市': '厦门'}"),
    ("detectable_format:title", {}, "<<A day>>\n\nIt rained.", "<< >>\n<A day>"),
    ("detectable_format:title", {}, "＜＜雨天＞＞\n下雨了。", "《雨天》\n下雨了。"),
    ("combination:two_responses", {}, "One.\n******\nTwo.", "Same.\n******\nSame."),
    ("combination:two_responses", {}, "甲\n******\n乙\n******", "甲\n******\n乙\n******\n丙"),
    ("combination:repeat_prompt", {"prompt_to_repeat": "What is it? "}, "what is IT? A cat.", "A cat."),
    ("combination:repeat_prompt", {"prompt_to_repeat": "厦门在哪里？"}, "厦门在哪里？在福建。", "在福建。"),
    ("startend:end_checker", {"end_phrase": "Any questions?"}, 'So be it. "any questions?"', "Any questions? No."),
    ("startend:end_checker", {"end_phrase": "还有问题吗？"}, "“好。还有问题吗？”\n", "还有问题吗？好。"),
    ("startend:quotation", {}, ' "All of it." ', '"Some" of it.'),
    ("startend:quotation", {}, "“都在里面。”", "“都在里面。"),
    ("change_case:english_capital", {}, "IT IS A DAY.", "It IS A DAY."),
    ("change_case:english_capital", {}, "THE CITY OF XIAMEN (厦门) IS HERE.", "这是 API 接口。"),
    ("change_case:english_lowercase", {}, "it is a day.", "it is A day."),
    ("change_case:english_lowercase", {}, "the city is 厦门.", "我用 python 写程序。"),
    ("punctuation:no_comma", {}, "No, ".replace(",", " sir") + "it is not.", "No, sir."),
    ("punctuation:no_comma", {}, "苹果、梨；桃。", "苹果，梨。"),
]
CAPITALS = "change_case:capital_word_frequency"
FIRST = "length_constraints:nth_paragraph_first_word"
CASES += [
    (CAPITALS, {"capital_frequency": 3, "capital_relation": "at least"}, "DON'T touch the U.S. DO-IT",
     "DO IT Yourself"),
    (CAPITALS, {"capital_frequency": 2, "capital_relation": "less than"}, "使用API接口", "使用API和SDK"),
    (FIRST, {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "well"},
     "A.\n\n\n\n'Well, b.", "A.\n\nWell-known b."),
    (FIRST, {"num_paragraphs": 2, "nth_paragraph": 1, "first_word": "It"}, "It's.\n\nNo.", "It is.\n\nNo.\n\nYes."),
    (FIRST, {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "厦门"},
     "甲。\n\n“厦门大学”。", "厦门。\n\n在厦门。"),
]  # fmt: skip
HOSTILE = ["", " \n", "\ud800", "\ud800 。\udfff", "\x00", "[" * 30_000, '"\\' * 15_000, "*a " * 10_000, "\n" * 30_000,
           "第一部分" * 5_000, "P. S. " * 5_000, "<<" * 15_000, "``` " * 9_000, "a\u0301。" * 9_000]  # fmt: skip


def one(name: str, given: dict[str, Any]) -> str:
    return json.dumps({"id": name, **given}, ensure_ascii=False)


@pytest.mark.parametrize(("name", "given", "follows", "breaks"), CASES)
def test_followed_and_broken(name: str, given: dict[str, Any], follows: str, breaks: str) -> None:
    reference = one(name, given)
    assert unknown_instruction(reference, ()) is None
    assert (instruction_strict(follows, reference), prompt_strict(follows, reference)) == (1, 1)
    assert (instruction_strict(breaks, reference), prompt_strict(breaks, reference)) == (0, 0)


def test_every_instruction_has_examples_in_both_languages() -> None:
    names = [name for name, *_ in CASES]
    assert set(names) == set(instructions.IDS)
    assert len(instructions.IDS) == 25
    for name in instructions.IDS:
        told = ["".join((*map(str, given.values()), good, bad)) for n, given, good, bad in CASES if n == name]
        chinese = [any("一" <= c <= "鿿" for c in text) for text in told]
        assert {True, False} <= set(chinese), name
        assert name in (instruction_strict.__doc__ or "").replace("\n", " ")


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Hello there. this is me. e.g. you", 3),
        ("It costs 3.5 yuan at 5 p.m. on the day. Come!", 2),
        ("1. Go home.\n2. Sleep\n", 2),
        ("Wait... what? Yes... No!!! “Right.” (Fine.)", 5),
        ("See www.a.com/b?c=d now. I did", 2),
        ("A heading\n\nA text", 1),
        ("他说：“走吧。”然后走了……没有回来。", 3),
        ("3.14是圆周率。对吗？！", 2),
        ("好。Then we left.好", 3),
        ("。！？ . ... ***", 0),
    ],
)
def test_sentences(text: str, count: int) -> None:
    def value(relation: str, number: int) -> float:
        given = {"num_sentences": number, "relation": relation}
        return prompt_strict(text, one("length_constraints:number_sentences", given))

    assert (value("at least", count), value("less than", count + 1)) == (1, 1)
    assert (value("at least", count + 1), value("less than", count)) == (0, 0)


def test_json_of_any_depth_is_no_crash() -> None:
    reference = one("detectable_format:json_format", {})
    assert prompt_strict("[" * 200 + "]" * 200, reference) == 1
    assert prompt_strict("[" * 201 + "]" * 201, reference) == 0
    assert prompt_strict('["' + "[" * 300 + '"]', reference) == 1  # no brackets but a text
    assert prompt_strict("9" * 10_000, reference) == 1
    assert prompt_strict("[NaN]", reference) == 0


def test_shares_and_all() -> None:
    reference = json.dumps(
        [{"id": "punctuation:no_comma"}, {"id": "startend:quotation"}, {"id": "keywords:existence", "keywords": ["雨"]}]
    )
    assert instruction_strict("下雨了。", reference) == pytest.approx(2 / 3)
    assert prompt_strict("下雨了。", reference) == 0
    assert (instruction_strict("“下雨了。”", reference), prompt_strict("“下雨了。”", reference)) == (1, 1)
    assert instruction_strict("", reference) == instruction_loose(" \n ", reference) == prompt_loose("", reference) == 0


@pytest.mark.parametrize(
    ("answer", "given"),
    [
        ("Sure, here it is:\nNo commas", {"id": "punctuation:no_comma"}),
        ("没有逗号\n好的，完成", {"id": "punctuation:no_comma"}),
        ('Here:\n"All of it."\nDone.', {"id": "startend:quotation"}),
        ("**还有问题吗？**", {"id": "startend:end_checker", "end_phrase": "还有问题吗？"}),
        ("Sure:\n*“好。”*\nDone.", {"id": "startend:quotation"}),
        ('Here:\n{"a": 1}', {"id": "detectable_format:json_format"}),
    ],
)
def test_a_relaxed_version_may_follow(answer: str, given: dict[str, Any]) -> None:
    reference = json.dumps([given])
    assert (instruction_strict(answer, reference), prompt_strict(answer, reference)) == (0, 0)
    assert (instruction_loose(answer, reference), prompt_loose(answer, reference)) == (1, 1)


def test_another_version_may_follow_another_instruction() -> None:
    reference = json.dumps([{"id": "punctuation:no_comma"}, {"id": "keywords:existence", "keywords": ["sure"]}])
    answer = "Sure, here:\nNo commas"
    assert (instruction_strict(answer, reference), instruction_loose(answer, reference)) == (0.5, 1)
    assert prompt_loose(answer, reference) == 1


def test_a_row_of_the_data_is_a_reference_with_nulls_and_floats() -> None:
    row = {
        "key": 1,
        "prompt": "...",
        "instruction_id_list": ["punctuation:no_comma", "length_constraints:number_words"],
        "kwargs": [{"num_words": None, "relation": None}, {"num_words": 3.0, "relation": "at least", "letter": None}],
    }
    assert unknown_instruction(json.dumps(row), ()) is None
    assert instruction_strict("one, two", json.dumps(row)) == 0
    assert prompt_strict("one two three", json.dumps(row)) == 1


WORDS, LANGUAGE = "length_constraints:number_words", "language:response_language"


@pytest.mark.parametrize(
    ("reference", "phrase"),
    [
        ("", "the reference has no instructions"),
        ("[]", "the reference has no instructions"),
        ("no JSON", "'no JSON' is no JSON list of instructions with ids"),
        ("\ud800", "is no JSON list"),
        ("[" * 100_000, "is no JSON list"),
        ('["punctuation:no_comma"]', "is no JSON list"),
        ('[{"name": "punctuation:no_comma"}]', "is no JSON list"),
        ('{"instruction_id_list": ["punctuation:no_comma"], "kwargs": []}', "is no JSON list"),
        ('{"instruction_id_list": ["punctuation:no_comma"]}', "is no JSON list"),
        ('{"instruction_id_list": [1], "kwargs": [{}]}', "is no JSON list"),
        ('{"id": "punctuation:no_coma"}', "no instruction is named 'punctuation:no_coma' (did you mean"),
        (one("punctuation:no_comma", {"relation": "at least"}), "no_comma takes no 'relation'"),
        (one(WORDS, {"num_words": 5}), "needs 'relation'"),
        (one(WORDS, {"num_words": None, "relation": "at least"}), "needs 'num_words'"),
        (one(WORDS, {"num_words": "5", "relation": "at least"}), "is '5': it must be a whole number of 0 or more"),
        (one(WORDS, {"num_words": 2.5, "relation": "at least"}), "whole number"),
        (one(WORDS, {"num_words": True, "relation": "at least"}), "whole number"),
        (one(WORDS, {"num_words": -1, "relation": "at least"}), "whole number"),
        (one(WORDS, {"num_words": float("nan"), "relation": "at least"}), "whole number"),
        (one(WORDS, {"num_words": 5, "relation": "at most"}), "must be 'at least' or 'less than'"),
        (one("keywords:existence", {"keywords": "雨"}), "must be a list of texts"),
        (one("keywords:existence", {"keywords": []}), "must be a list of texts"),
        (one("keywords:existence", {"keywords": ["雨", ""]}), "must be a list of texts"),
        (one("startend:end_checker", {"end_phrase": " "}), "must be a text"),
        (one("keywords:letter_frequency", {"letter": "ab", "let_frequency": 1, "let_relation": "less than"}),
         "must be one character"),
        (one(LANGUAGE, {"language": "tlh"}), "is 'tlh': it must be one of ar, bg"),
        (one(LANGUAGE, {"language": ["en"]}), "must be one of ar, bg"),
        (one(FIRST, {"num_paragraphs": 2, "nth_paragraph": 0, "first_word": "a"}), "whole number of 1 or more"),
        (one(FIRST, {"num_paragraphs": 2, "nth_paragraph": 3, "first_word": "a"}), "a paragraph after the last one"),
    ],
)  # fmt: skip
def test_what_cant_be_checked_is_said(reference: str, phrase: str) -> None:
    said = unknown_instruction(reference, ())
    assert said is not None
    assert phrase in said
    if "no instructions" in phrase:
        assert instruction_strict("x", reference) == prompt_strict("x", reference) == prompt_loose("x", reference) == 0
    else:
        with pytest.raises(ValueError, match=r"reference|instruction"):
            instruction_strict("x", reference)


ALL = json.dumps([{"id": name, **given} for name, given, *_ in CASES])


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_have_values(text: str) -> None:
    strict, loose = instruction_strict(text, ALL), instruction_loose(text, ALL)
    assert 0 <= strict <= loose < 1


PIECES = st.sampled_from([*(c[2] for c in CASES), *(c[3] for c in CASES), "\n", "\n\n", "*", "，", " "])


@settings(deadline=None)
@given(st.lists(PIECES | st.text(max_size=5), max_size=6), st.lists(st.sampled_from(CASES), min_size=1, max_size=4))
def test_loose_is_never_below_strict(pieces: list[str], cases: list[Any]) -> None:
    answer = "".join(pieces)
    reference = json.dumps([{"id": name, **given} for name, given, *_ in cases])
    strict, loose = instruction_strict(answer, reference), instruction_loose(answer, reference)
    assert 0 <= strict <= loose <= 1
    assert prompt_strict(answer, reference) == float(strict == 1)
    assert prompt_loose(answer, reference) == float(loose == 1)
    assert strict == instruction_strict(answer, reference)
