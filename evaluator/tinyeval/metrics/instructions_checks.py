"""Whether a text follows an instruction: a function a kind of instruction, its arguments named as IFEval's."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from typing import Any

import regex

from tinyeval.metrics.languages import UNSPACED, is_language
from tinyeval.metrics.words import cut

YES_NO_MAYBE = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
"""The answers of `constrained_response` where the instruction names no others."""

_LETTER = rf"[\w--[{UNSPACED}]]"
_SPACED_WORD = regex.compile(rf"{_LETTER}(?:[-.'’]?{_LETTER})*", regex.V1)
_CHINESE = regex.compile(r"\p{Han}+")
_OTHER_WORD = regex.compile(r"[\w--\p{Han}]+", regex.V1)
_WORDLIKE = regex.compile(r"\w")
_BEGINS = regex.compile(_LETTER, regex.V1)
_END = regex.compile(r"""([.!?…。！？｡]+)["'”’)\]」』》）*_]*""")
_DOTTED = regex.compile(r"[\w.]+$")
_NEVER_LAST = regex.compile(r"mrs?|ms|dr|prof|st|gen|sen|gov|capt|lt|col|sgt|rev|hon|vs|fig|e\.g|i\.e|cf|[a-hj-z]")
_RARELY_LAST = regex.compile(r"etc|inc|ltd|co|corp|jr|sr|u\.[skn]|[ap]\.m|ph\.d|approx")
_PLACEHOLDER = regex.compile(r"\[[^\[\]\n]*\]|［[^［］\n]*］|【[^【】\n]*】")
_BULLET = regex.compile(r"^[^\S\n]*(?:\*(?!\*)|-(?!-)|•)[^\S\n]*[^\s]", regex.M)
_HIGHLIGHT = regex.compile(r"\*{1,3}[^\s*](?:[^\n*]*[^\s*])?\*{1,3}")
_NUMBER = r"(?:\d+|[〇零一二三四五六七八九十百]+)"
_FENCE = regex.compile(r"```(?:json)?", regex.I)
_QUOTES = frozenset({('"', '"'), ("＂", "＂"), ("“", "”"), ("「", "」"), ("『", "』")})
_QUOTE_MARKS = "".join(a + b for a, b in sorted(_QUOTES))
_DEPTH = 200


def existence(text: str, keywords: Sequence[str]) -> bool:
    """Every keyword is in the text, in whatever letter case, also inside a word."""
    folded = text.casefold()
    return all(k.casefold() in folded for k in keywords)


def frequency(text: str, keyword: str, frequency: int, relation: str) -> bool:
    """How often a keyword is in the text, in whatever letter case, also inside a word."""
    return _holds(text.casefold().count(keyword.casefold()), relation, frequency)


def forbidden_words(text: str, forbidden_words: Sequence[str]) -> bool:
    """None of the words is in the text as a whole word, in whatever letter case."""
    folded = text.casefold()
    return not any(_whole(word.casefold()).search(folded) for word in forbidden_words)


def letter_frequency(text: str, letter: str, let_frequency: int, let_relation: str) -> bool:
    """How often a letter or other character is in the text, in whatever letter case."""
    return _holds(text.lower().count(letter.lower()), let_relation, let_frequency)


def response_language(text: str, language: str) -> bool:
    """The text is in the language."""
    return is_language(text, language)


def number_sentences(text: str, num_sentences: int, relation: str) -> bool:
    """How many sentences there are."""
    return _holds(_sentences(text), relation, num_sentences)


def number_words(text: str, num_words: int, relation: str) -> bool:
    """How many words there are: runs of letters, digits and _, runs of Chinese characters cut by jieba."""
    count = len(_OTHER_WORD.findall(text))
    for run in _CHINESE.finditer(text):
        if count >= num_words:  # more can't change the answer
            break
        count += len(cut(run[0]))
    return _holds(count, relation, num_words)


def number_paragraphs(text: str, num_paragraphs: int) -> bool:
    """Exactly so many paragraphs between the dividers ***."""
    parts = _parts(text, "***")
    return len(parts) == num_paragraphs and all(parts)


def nth_paragraph_first_word(text: str, num_paragraphs: int, nth_paragraph: int, first_word: str) -> bool:
    """Exactly so many paragraphs between blank lines, the nth of which begins with the word."""
    parts = [p.strip() for p in regex.split(r"\n[^\S\n]*\n", text) if p.strip()]
    if len(parts) != num_paragraphs or nth_paragraph > num_paragraphs:
        return False
    start = regex.sub(r"^\W+", "", parts[nth_paragraph - 1]).casefold()
    wanted = first_word.strip().casefold()
    if not _BEGINS.match(wanted):
        return start.startswith(wanted)
    found = regex.match(rf"{_LETTER}(?:[-'’]?{_LETTER})*", start, regex.V1)
    word = found[0] if found else ""
    return wanted in (word, regex.split("['’]", word)[0])


def number_placeholders(text: str, num_placeholders: int) -> bool:
    """At least so many placeholders in square brackets, Chinese ones too: [地址], 【地址】."""
    return len(_PLACEHOLDER.findall(text)) >= num_placeholders


def postscript(text: str, postscript_marker: str) -> bool:
    """The marker of a postscript is in the text, in whatever letter case, with or without spaces in it."""
    marker = postscript_marker.casefold().split()
    spaced = r"\s?".join(regex.escape(c) for c in "".join(marker))
    before = rf"(?<!{_LETTER})" if _BEGINS.match(spaced) else ""
    return regex.search(before + spaced, text.casefold(), regex.V1) is not None


def number_bullet_lists(text: str, num_bullets: int) -> bool:
    """Exactly so many lines that begin with the bullet *, - or •."""
    return len(_BULLET.findall(text)) == num_bullets


def constrained_response(text: str, options: Sequence[str] = YES_NO_MAYBE) -> bool:
    """One of the options is in the text."""
    return any(option in text for option in options)


def number_highlighted_sections(text: str, num_highlights: int) -> bool:
    """At least so many parts *between* one to three asterisks, within a line, no white space next to these inside."""
    return len(_HIGHLIGHT.findall(text)) >= num_highlights


def multiple_sections(text: str, section_spliter: str, num_sections: int) -> bool:
    """At least so many sections, each under the word and a number."""
    word = regex.escape(section_spliter.strip())
    chinese = rf"^[ \t　#*>【\[（(]*(?:{word}\s?{_NUMBER}|第\s?{_NUMBER}\s?{word})"
    return len(regex.findall(rf"{word}\s?\d+|{chinese}", text, regex.M)) >= num_sections


def json_format(text: str) -> bool:
    """The whole text is JSON, with or without a Markdown fence around it."""
    bare = text.strip()
    if fence := _FENCE.match(bare):
        bare = bare[fence.end() :].removesuffix("```").strip()
    if _depth(bare) > _DEPTH:
        return False
    try:
        json.loads(bare, parse_int=str, parse_constant=_no_json)
    except ValueError:
        return False
    return True


def title(text: str) -> bool:
    """A line has a title in double angular brackets: <<title>>."""
    for line in text.replace("＜", "<").replace("＞", ">").split("\n"):
        start, end = line.find("<<"), line.rfind(">>")
        if 0 <= start < end and line[start:end].strip("<> \t"):
            return True
    return False


def two_responses(text: str) -> bool:
    """Exactly two different texts, six asterisks between them."""
    parts = _parts(text, "******")
    return len(parts) == 2 and all(parts) and parts[0] != parts[1]


def repeat_prompt(text: str, prompt_to_repeat: str) -> bool:
    """The text begins with the prompt, in whatever letter case."""
    return text.strip().casefold().startswith(prompt_to_repeat.strip().casefold())


def end_checker(text: str, end_phrase: str) -> bool:
    """The text ends with the phrase, in whatever letter case, apart from quotation marks after it."""
    end = end_phrase.strip().rstrip(_QUOTE_MARKS).casefold()
    return text.strip().rstrip(_QUOTE_MARKS).rstrip().casefold().endswith(end)


def quotation(text: str) -> bool:
    """The whole text is in double quotation marks, Chinese ones too: “ ”, 「 」, 『 』."""
    bare = text.strip()
    return len(bare) > 1 and (bare[0], bare[-1]) in _QUOTES


def capital_word_frequency(text: str, capital_frequency: int, capital_relation: str) -> bool:
    """How many words are in capital letters; a word has no space, U.S. and DON'T are one."""
    return _holds(sum(w.isupper() for w in _SPACED_WORD.findall(text)), capital_relation, capital_frequency)


def english_capital(text: str) -> bool:
    """The text is English and its letters are capitals."""
    return text.isupper() and is_language(text, "en")


def english_lowercase(text: str) -> bool:
    """The text is English and none of its letters is a capital."""
    return text.islower() and is_language(text, "en")


def no_comma(text: str) -> bool:
    """There is no comma, neither , nor ，; the enumeration mark 、 is none."""
    return "," not in text and "，" not in text


def _holds(count: int, relation: str, wanted: int) -> bool:
    return count >= wanted if relation == "at least" else count < wanted


@functools.lru_cache(maxsize=1024)
def _whole(word: str) -> regex.Pattern[str]:
    """Finds a word; where it begins or ends with a letter of a spaced script, no other may be next to it."""
    before = rf"(?<!{_LETTER})" if _BEGINS.match(word) else ""
    after = rf"(?!{_LETTER})" if _BEGINS.match(word[-1:]) else ""
    return regex.compile(before + regex.escape(word) + after, regex.V1)


def _parts(text: str, divider: str) -> list[str]:
    """The parts between dividers, an empty one at either end left out."""
    parts = [p.strip() for p in text.split(divider)]
    if not parts[0]:
        del parts[0]
    if parts and not parts[-1]:
        del parts[-1]
    return parts


def _sentences(text: str) -> int:
    count = start = 0
    for mark in _END.finditer(text):
        if _ends(text, mark):
            count += bool(_WORDLIKE.search(text, start, mark.start()))
            start = mark.end()
    return count + bool(_WORDLIKE.search(text, start))


def _ends(text: str, mark: regex.Match[str]) -> bool:
    """Whether a sentence ends at a mark: not after an abbreviation, an initial or a line's number."""
    dots = mark[1]
    if any(c in "。！？｡" for c in dots):
        return True
    after = text[mark.end() : mark.end() + 20]
    if _BEGINS.match(after) or after.startswith(("/", "=", "&")):
        return False
    following = after.strip()[:1]
    if "!" in dots or "?" in dots:
        return True
    if len(dots) > 1 or dots == "…":
        return not following.islower()
    before = text[max(0, mark.start() - 20) : mark.start()]
    line = before.rpartition("\n")[2].strip(" \t#*-")
    if line.isdigit() and ("\n" in before or mark.start() <= 20):
        return False
    words = _DOTTED.findall(before)
    last = words[-1].casefold() if words else ""
    if _NEVER_LAST.fullmatch(last):
        return False
    return not _RARELY_LAST.fullmatch(last) or not following.islower()


def _depth(text: str) -> int:
    deepest = depth = 0
    for part in regex.findall(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', text, regex.S):
        if part in ("[", "{"):
            depth += 1
            deepest = max(deepest, depth)
        elif part in ("]", "}"):
            depth -= 1
    return deepest


def _no_json(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
