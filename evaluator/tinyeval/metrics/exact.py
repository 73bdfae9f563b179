"""Exact answers after folding, their prefixes and suffixes, and F1 over bags of words or characters.

All take white space alone for an empty answer. Two empty answers are equal (SQuAD's rule), an empty one and another
are not; so an empty reference is right only for an empty prediction, also as a prefix, a suffix or a part.
"""

from __future__ import annotations

import functools
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence

import regex

_HAN = "\u3400-\u4dbf\u4e00-\u9fff"
_NUMBER = regex.compile(
    rf"""(
        (?<![0-9.]) [0-9]+ (?:\.[0-9]+){{2,}}                                  # a version or date: 1.10.2
      | (?:(?<![^\W{_HAN}]) (?<![)\]-]) [-+])?
        (?: (?:[0-9]{{1,3}}(?:,[0-9]{{3}})+(?![0-9]) | [0-9]+) (?:\.[0-9]+)? | (?<![\w.])\.[0-9]+ )
    )""",
    regex.VERBOSE,
)
_DASH = regex.compile(r"\p{Pd}")
_PUNCTUATION = regex.compile(r"[\p{P}`]")
_UNIT = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]|[^\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]+")
_MARKS = regex.compile(r"\p{M}{32}")  # composing sorts marks, in quadratic time
_ARTICLES = frozenset({"a", "an", "the"})
_TRIVIAQA = str.maketrans(dict.fromkeys(string.punctuation + "‘’´`", " "))


def perfect_exact_match(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """1 if both texts are equal, character by character; white space at their ends counts.

    Source: lighteval's `perfect_exact_match`.
    """
    return float(prediction == reference)


def quasi_exact_match(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """1 if both texts are equal after normalisation.

    Letter case and full or half width do not matter; hyphens and other dashes separate words; punctuation of all
    scripts, backticks included, is deleted; "a", "an", "the" before another word are dropped. Numbers are recognised
    before that and compared by value: 1,000 equals 1000 and 1.0 equals 1, but 3.5 is not 35 and -5 is not 5; a number
    is a word of its own ("5km" equals "5 km"). A minus directly after a letter or digit is a hyphen, except after
    Chinese. Symbols that are no punctuation (+ < $ °) stay; % goes. A text of punctuation alone stays as it is, so it
    equals no empty answer.

    Unlike HELM, numbers come before punctuation, punctuation of all scripts goes, not ASCII's alone, and an article
    at the end stays ("vitamin A", the option "A").

    Source: HELM (Liang et al. 2022), quasi-exact match.
    """
    return float(quasi_words(prediction) == quasi_words(reference))


def prefix_exact_match(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """1 if the prediction begins with the reference; white space at the ends of both is stripped.

    By characters: "10" begins with "1". An empty reference is right for an empty prediction alone.

    Source: HELM (Liang et al. 2022), prefix exact match.
    """
    text, gold = prediction.strip(), reference.strip()
    return float(text.startswith(gold) if gold else not text)


def prefix_quasi_exact_match(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """1 if the prediction begins with the reference, both normalised as in quasi_exact_match.

    The reference's last word may go on ("厦门大学" begins "厦门大学位于…", and "no" begins "north"), unless it is a
    number: "10" does not begin with "1". An empty reference is right for an empty prediction alone.

    Source: HELM (Liang et al. 2022), prefix quasi-exact match.
    """
    variants = ((f(prediction), f(reference)) for f in (quasi_words, _words))
    return float(any(_begins(words, gold) for words, gold in variants))


def suffix_exact_match(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """1 if the prediction ends with the reference; white space at the ends of both is stripped.

    By characters: "10" ends with "0". An empty reference is right for an empty prediction alone.

    Source: lighteval's `exact_match` of type "suffix".
    """
    text, gold = prediction.strip(), reference.strip()
    return float(text.endswith(gold) if gold else not text)


def contains(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """1 if the reference occurs in the prediction.

    Letter case, full or half width and the amount of white space do not matter, punctuation does. By characters:
    "no" occurs in "know". An empty reference is right for an empty prediction alone.

    Source: RULER (Hsieh et al. 2024), `string_match_part`, with the folding added.
    """
    text, gold = (" ".join(_fold(t).split()) for t in (prediction, reference))
    return float(gold in text if gold else not text)


def exact_match_triviaqa(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """1 if both texts are equal after TriviaQA's normalisation.

    Lower case, underscores and ASCII punctuation (with ‘ ’ ´) become spaces, the words "a", "an", "the" are dropped.
    So 3.5 equals "3 5", as in the official script; use quasi_exact_match where numbers count. Both sides are
    normalised. Unlike the script, a text of articles or punctuation alone ("A", "!") keeps them, so that it equals no
    empty answer.

    Source: TriviaQA (Joshi et al. 2017), `triviaqa_evaluation.py`.
    """
    return float(_triviaqa(prediction) == _triviaqa(reference))


def f1_bag(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """F1 over the multisets of the words between white space, taken as they are.

    A repeated word counts as often as both have it: "a a a b" against "a b" is 2/3. Chinese without spaces is one
    word; f1_char_zh or qa_f1_zh suit it. Two empty texts give 1.

    Source: SQuAD (Rajpurkar et al. 2016), F1 without its normalisation.
    """
    return _f1(prediction.split(), reference.split())


def f1_quasi(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """F1 over the multisets of words, both texts normalised as in quasi_exact_match. Two empty texts give 1.

    Source: HELM (Liang et al. 2022), F1, over multisets as in SQuAD.
    """
    return _f1(quasi_words(prediction), quasi_words(reference))


def f1_char_zh(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """F1 over the multisets of Chinese characters: "我在厦门大学" against "厦门大学" is 0.8.

    Case, width, punctuation and numbers are treated as in quasi_exact_match; a number, and a run of letters of other
    scripts, is one unit (kana and hangul are taken by characters). No word is dropped. Two empty texts give 1.

    Source: CMRC 2018 (Cui et al. 2019), its units, as a bag instead of the longest common substring.
    """
    return _f1(*([unit for word in _words(t) for unit in _units(word)] for t in (prediction, reference)))


def no_reference(reference: str, choices: Sequence[str]) -> str | None:
    """That the reference is empty, if it is."""
    return None if reference.strip() else "the reference is empty"


def quasi_words(text: str) -> list[str]:
    """The words of a text as quasi_exact_match compares them; none only if it is empty."""
    words = _words(text)
    return [w for i, w in enumerate(words) if w not in _ARTICLES or i == len(words) - 1]


def fold_width(text: str) -> str:
    """The text with full-width and half-width forms made ordinary, minus signs "-", and accents composed."""
    if text.isascii():
        return text
    text = text.translate(_widths())
    return text if _MARKS.search(text) else unicodedata.normalize("NFC", text)


@functools.cache
def _widths() -> dict[int, str]:
    table = {0x2212: "-", 0x2010: "-", 0x2011: "-"}
    for code in (0x3000, *range(0xFF01, 0xFFEF)):
        kind, _, plain = unicodedata.decomposition(chr(code)).partition(" ")
        if kind in ("<wide>", "<narrow>"):
            table[code] = chr(int(plain, 16))
    return table


def _fold(text: str) -> str:
    return fold_width(text).casefold()


def _words(text: str) -> list[str]:
    folded = _fold(text).strip()
    words: list[str] = []
    for i, part in enumerate(_NUMBER.split(folded)):
        words += [_number(part)] if i % 2 else _PUNCTUATION.sub("", _DASH.sub(" ", part)).split()
    return words or folded.split()


def _number(text: str) -> str:
    if text.count(".") > 1:
        return text
    whole, _, fraction = text.lstrip("+-").replace(",", "").partition(".")
    whole, fraction = whole.lstrip("0") or "0", fraction.rstrip("0")
    value = f"{whole}.{fraction}" if fraction else whole
    return "-" + value if text[0] == "-" and value != "0" else value


def _is_number(word: str) -> bool:
    return word[-1] in string.digits


def _units(word: str) -> list[str]:
    return [word] if _is_number(word) else _UNIT.findall(word)


def _begins(words: list[str], gold: list[str]) -> bool:
    if not gold or len(words) < len(gold):
        return words == gold
    *first, last = gold
    found = words[len(first)]
    return words[: len(first)] == first and (found == last or (not _is_number(last) and found.startswith(last)))


def _triviaqa(text: str) -> list[str]:
    lowered = text.lower()
    words = lowered.translate(_TRIVIAQA).split()
    return [w for w in words if w not in _ARTICLES] or words or lowered.split()


def _f1(prediction: list[str], reference: list[str]) -> float:
    if not prediction or not reference:
        return float(prediction == reference)
    shared = sum((Counter(prediction) & Counter(reference)).values())
    return 2 * shared / (len(prediction) + len(reference))
