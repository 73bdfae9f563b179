"""LongBench's and TinyEval's own metrics: the official values, and beside each a sibling without its faults.

Official are `count`, `retrieval`, `retrieval_zh`, `code_sim`, `gaokao_math` here, `classification` in `answers`,
`qa_f1` in `overlap` and `rouge` in `rouge`. Names that end in `_fixed` are the siblings; `rouge` has none here,
since rougeL and rougeL_zh are what it was meant to be.

LongBench: THUDM/LongBench at 2e00731f, `LongBench/metrics.py`. TinyEval: datawhalechina/tiny-universe at 25c84e1a.
"""

from __future__ import annotations

import difflib
import functools
import itertools
import re
import unicodedata
from collections import Counter, deque
from collections.abc import Sequence
from decimal import Decimal

import regex

from tinyeval.metrics.registry import Sample
from tinyeval.metrics.words import cut

_DIGITS = r"(?<!\d)(?<!\d\.)(?:(?<![\w)\]])[-−])?(?:\d{1,3}(?:,\d{3})++(?!\d)|\d++)(?:\.\d++)?"
_HAN = "零〇一二两三四五六七八九十百千万"
_NUMERAL = rf"{_DIGITS}|(?<![{_HAN}唯统])[{_HAN}]{{1,9}}(?![{_HAN}共些样般直定旦])"  # but not 一共, 一定, 唯一
_IS = r"(?:\s*+(?:应为|应是|是|为|is|are|[:=*_$\"'“{(\[【]))*+\s*+"
_CUE = rf"(?:(?i:answer)|答案|\\boxed){_IS}"
_NAMED = rf"\b(?i:paragraphs?)[\s:#*-]*+({_DIGITS})|段落\s*+第?({_NUMERAL})|第\s*+({_NUMERAL})\s*+个?段"
_ITEM = rf"(?:(?i:paragraphs?)\s*+#?|段落?\s*+第?|第\s*+)?({_NUMERAL})(?:\s*+(?:(?i:paragraphs?)|个?段落?|篇))?"
_ALONE = rf"[\s*_\"'“(（\[【#]*+{_ITEM}[^\w\n]*+(?:\n|$)"
_COUNTED = rf"({_NUMERAL})\s*+(?:(?i:unique|distinct|different|non-)|(?:个|段|篇)?(?:不同|不重复|独立|独特|唯一))"
_OPTIONS = r"[A-D](?:\s*+(?:[,、;/&+和与及]|and\b)?\s*+[A-D])*+"
_OPTION_CUE = rf"(?:答案|故选|应选|选择|选|\b(?i:answers?)\b|\\boxed){_IS}"
_ONLY_OPTIONS = rf"(?i:\W*+(?:{_OPTION_CUE})?({_OPTIONS})\W*+)"
_OPERATORS = ("=", "∩", "∪", "∈", "⊆", "⊂", r"\cap", r"\cup", r"\in", r"\subset", "∠", "△")


def first_line(prediction: str) -> str:
    r"""What LongBench judges of an answer in trec, triviaqa, samsum and lsht: leading "\n" dropped, cut at the next."""
    return prediction.lstrip("\n").partition("\n")[0]


def count(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    r"""Share of the prediction's numbers that are the reference, as LongBench's passage_count has it.

    A number is a run of digits of any script and is compared as a text: "7 of 30" is worth 0.5 for "7", "7.0" too
    (7 and 0), "07", "７" and "seven" nothing. Without a number the value is 0.

    Source: count_score, THUDM/LongBench@2e00731f.
    """
    return _share(prediction, reference)


def count_fixed(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    r"""1 if the number that the prediction ends up with equals the reference, else 0.

    `count` pays for a share of all numbers, so an explained answer loses, and a list of guesses gains. Here one
    number counts: the one after the last "answer is", "答案是" or \boxed, else one that has the first line to
    itself, else the last of "7 unique", "7 different" or 7个不同, else the last one. It is compared as a number:
    7, 07, 7.0 and ７ are equal, "-7" and "17" are others, "1,000" is 1000. Where there are no digits, a Chinese
    numeral is read (七, 二十三); English words are not.

    Source: count_score, THUDM/LongBench@2e00731f, corrected.
    """
    wanted = _final(reference, _NAMED, _DIGITS)
    text = unicodedata.normalize("NFKC", prediction)
    found = _final(text, rf"{_CUE}({_NUMERAL})", _ALONE, _COUNTED, _DIGITS, _NUMERAL)
    return float(wanted is not None and found == wanted)


def retrieval(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """Share of the prediction's numbers that are the reference's paragraph, as LongBench's passage_retrieval_en has it.

    The reference reads "Paragraph 3"; every run of digits in the prediction counts, wherever it stands and whatever
    it means: "Paragraph 3 (1999)" is worth 0.5. Without a number the value is 0. A reference without "Paragraph N"
    (for which the official code raises IndexError) gives 0.

    Source: retrieval_score, THUDM/LongBench@2e00731f.
    """
    gold = re.search(r"Paragraph (\d+)", reference)
    return _share(prediction, gold[1]) if gold else 0.0


def retrieval_zh(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """Share of the prediction's numbers that are the reference's paragraph, as LongBench's passage_retrieval_zh has it.

    Like `retrieval`, for references that read "段落3"; without that the value is 0 (the official code raises
    IndexError). Chinese numerals (段落三) are no numbers.

    Source: retrieval_zh_score, THUDM/LongBench@2e00731f.
    """
    gold = re.search(r"段落(\d+)", reference)
    return _share(prediction, gold[1]) if gold else 0.0


def retrieval_fixed(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    r"""1 if the paragraph that the prediction ends up with is the reference's, else 0.

    `retrieval` pays for a share of all numbers, so a year beside it costs half, and naming all thirty
    paragraphs gains. Here one paragraph counts: the one after the last "answer is", "答案是" or \boxed, else one
    that has the first line to itself, else the last one named (Paragraph 3, 段落3, 第三段), else the last number.
    Numbers compare by value (3, 03 and ３ are equal); Chinese numerals count where they name a paragraph or are
    the whole answer. Reads both languages; the reference may be a bare number.

    Source: retrieval_score, THUDM/LongBench@2e00731f, corrected.
    """
    wanted = _final(reference, _NAMED, _DIGITS)
    text = unicodedata.normalize("NFKC", prediction)
    found = _final(text, rf"{_CUE}{_ITEM}", _ALONE, _NAMED, _DIGITS)
    return float(wanted is not None and found == wanted)


def retrieval_zh_fixed(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """1 if the paragraph that the prediction ends up with is the reference's, else 0: `retrieval_fixed`, in Chinese.

    段落3, 段落三, 第3段 and "答案是三" name the paragraph of the reference 段落3; the rules are those of
    `retrieval_fixed`, which reads both languages.

    Source: retrieval_zh_score, THUDM/LongBench@2e00731f, corrected.
    """
    return retrieval_fixed(prediction, reference)


def code_sim(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    r"""Similarity of the predicted line of code with the reference, in whole percents / 100, as LongBench has it.

    The line is the first one without "`", "#" and "//" anywhere (so a comment at its end or a URL in it hides it),
    leading "\n" dropped; none is an empty text. The similarity is that of fuzzywuzzy *without* python-Levenshtein:
    difflib's matching blocks, which drops frequent characters of a reference of 200 characters or more, and whose
    time may grow with the product of both lengths. Two equal texts, also empty ones, are worth 1.

    Many published numbers were made with python-Levenshtein installed and are 1 to 3 points higher:
    `code_sim_levenshtein`.

    Source: code_sim_score, THUDM/LongBench@2e00731f; fuzzywuzzy 0.18.0.
    """
    line = _official_line(prediction)
    ratio = 1.0 if line == reference else difflib.SequenceMatcher(None, line, reference).ratio()
    return round(100 * ratio) / 100


def code_sim_levenshtein(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """`code_sim` where python-Levenshtein is installed: indel similarity in whole percents / 100.

    Same line as in `code_sim`; the similarity is 1 - (insertions + deletions) / (sum of both lengths), which
    fuzzywuzzy takes as soon as it finds that package.

    Source: code_sim_score, THUDM/LongBench@2e00731f; fuzzywuzzy 0.18.0 with python-Levenshtein 0.27.5.
    """
    return round(100 * _indel_similarity(_official_line(prediction), reference)) / 100


def code_sim_fixed(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """Indel similarity of the predicted line of code with the reference, not rounded.

    1 - (insertions + deletions) / (sum of both lengths): symmetric, no characters ignored, no optional package that
    changes it. The line is the first that is neither blank nor a comment; a comment is a line that *begins* with
    "#" or "//", and such lines count too where the reference is one. Of an answer with a code fence it is the first
    such line inside, whatever prose comes before; a fence that only closes ends the code. Backticks around a whole
    line and carriage returns are dropped, indentation counts.

    Source: code_sim_score, THUDM/LongBench@2e00731f, corrected.
    """
    wanted = reference.strip("\r\n")
    return _indel_similarity(_code_line(prediction, comments=_is_comment(wanted)), wanted)


def gaokao_math(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """TinyEval's score of a multiple-choice answer, its faults included: 1, 0.5 or 0.

    A reference of one letter: 1 if it is the last of A, B, C, D anywhere in the prediction ("Answer" has an A).
    A longer one ("BC"): the capital letters A to D from the front, until one lies more than 5 characters behind
    the one before it, both measured at their *last* occurrence; 1 if they, sorted, are the reference as written,
    0.5 if they are fewer than it has characters and all in it. A prediction with exactly one letter gets 0.5,
    whichever it is.

    Source: GAOKAO_math, datawhalechina/tiny-universe@25c84e1a, content/TinyEval/Eval/metrics.py.
    """
    letters = re.findall("[A-D]", prediction)
    if len(reference) <= 1 or not letters:
        return float(letters[-1:] == [reference])
    last = {letter: prediction.rfind(letter) for letter in "ABCD"}
    found = set(letters[:1]) if len(letters) > 1 else set[str]()
    for before, letter in itertools.pairwise(letters):
        if last[letter] - last[before] > 6:
            break
        found.add(letter)
    if "".join(sorted(found)) == reference:
        return 1.0
    return 0.5 if len(found) < len(reference) and all(letter in reference for letter in found) else 0.0


def gaokao_math_8e6a5fe(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """TinyEval's older score of a multiple-choice answer, of which its published 10.0 was made: 1 or 0.

    1 if the last of A, B, C, D anywhere in the prediction is the reference, so one of several letters never scores.

    Source: GAOKAO_math, datawhalechina/tiny-universe@8e6a5fe, content/TinyEval/Eval/metrics.py.
    """
    return float(re.findall("[A-D]", prediction)[-1:] == [reference])


def gaokao_math_fixed(sample: Sample) -> float:
    r"""Score of a multiple-choice answer by the Gaokao's rule: 1 all right letters, 0.5 some and no wrong one, else 0.

    The letters A to D of all references together are the key: "BC", "C,B" and the two references "B", "C" are the
    same. The answer's letters are those after the last 答案, 选, "answer is" or \boxed, else the last ones that stand
    alone: together at most with spaces, commas or 和/and between them, not in a word, not the name of a set or figure
    (A={1}, A∩B, △ABC). Full-width letters count, lower-case ones where nothing else is answered. `gaokao_math`
    differs in all of this: any single letter had half of the points, letters in words and names of sets counted, and
    the distance between letters was taken at their last occurrence.

    Source: GAOKAO_math, datawhalechina/tiny-universe@25c84e1a, corrected.
    """
    key = {letter for r in sample.references for letter in re.findall("[A-D]", unicodedata.normalize("NFKC", str(r)))}
    found = _option_letters(unicodedata.normalize("NFKC", sample.prediction))
    if not found or not found <= key:
        return 0.0
    return 1.0 if found == key else 0.5


def classification_fixed(prediction: str, reference: str, choices: Sequence[str]) -> float:
    """1 / number of classes that the prediction names, if the reference is among them, else 0.

    Letter case and width do not matter. A class inside the name of another counts only where it stands alone
    ("two step" is not step, 经济新闻 not 经济), and a name in letters that are written
    with spaces must be a whole word ("Foods" does not name Food). `classification` is case-sensitive, looks for parts
    of words, and strikes names that are part of the reference while it walks the list, which skips some of them.

    Source: classification_score, THUDM/LongBench@2e00731f, corrected.
    """
    named = {m[0] for m in _class_names(tuple(choices)).finditer(_folded(prediction)) if m[0]}
    return 1.0 / len(named) if _folded(reference) in named else 0.0


def qa_f1_fixed(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """F1 over the multisets of words of both texts, punctuation of all scripts apart.

    Unlike `qa_f1`: punctuation separates words ("a-b" is two) instead of joining them, curly quotes, dashes and "。"
    are punctuation too, 3.5 is not 35 while 1,000 is 1000, letter width does not matter, and articles are only left
    out where something else remains (a reference "A" can be found). "U.S." is US, "don't" one word. Two texts without
    words have 1, one such text 0.

    Source: qa_f1_score, THUDM/LongBench@2e00731f, corrected.
    """
    return _f1(_english(prediction), _english(reference))


def qa_f1_zh_fixed(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """F1 over the multisets of jieba words of both texts, punctuation of all scripts apart.

    Unlike `qa_f1_zh`: texts are cleaned before they are cut, so a space or line break between two Chinese characters
    changes nothing, 《 and · are punctuation too, full-width digits and letters equal the others, and 3.5 is not 35.
    Traditional characters are not made simplified. Two texts without words have 1, one such text 0.

    Source: qa_f1_zh_score, THUDM/LongBench@2e00731f, corrected.
    """
    return _f1(_chinese(prediction), _chinese(reference))


def no_number(reference: str, choices: Sequence[str]) -> str | None:
    """That the reference has no number, if it has none."""
    found = _final(reference, _NAMED, _DIGITS)
    return f"the reference {reference[:80]!r} has no number" if found is None else None


def no_paragraph(reference: str, choices: Sequence[str]) -> str | None:
    """That the reference names no "Paragraph N", if it doesn't."""
    found = re.search(r"Paragraph \d", reference)
    return None if found else f'the reference {reference[:80]!r} names no paragraph, like "Paragraph 3"'


def no_paragraph_zh(reference: str, choices: Sequence[str]) -> str | None:
    """That the reference names no 段落N, if it doesn't."""
    found = re.search(r"段落\d", reference)
    return None if found else f"the reference {reference[:80]!r} names no paragraph, like 段落3"


def no_option(reference: str, choices: Sequence[str]) -> str | None:
    """That the reference has none of the letters A to D, if so."""
    found = re.search("[A-D]", unicodedata.normalize("NFKC", reference))
    return None if found else f"the reference {reference[:80]!r} names none of the options A to D"


def _share(prediction: str, gold: str) -> float:
    numbers = re.findall(r"\d+", prediction)
    return numbers.count(gold) / len(numbers) if numbers else 0.0


def _final(text: str, *rules: str) -> Decimal | None:
    """The number of the first rule that finds one: its last match, or for _ALONE the one that the text begins with."""
    for rule in rules:
        last = deque([re.match(rule, text)] if rule == _ALONE else re.finditer(rule, text), maxlen=1)
        if last and (match := last[0]):
            return _number(match[match.lastindex or 0])
    return None


def _number(text: str) -> Decimal:
    if text[0] not in _HAN:
        return Decimal(text.replace(",", "").replace("−", "-"))
    values = {c: "001223456789"[i] for i, c in enumerate(_HAN[:12])}
    units = {"十": 10, "百": 100, "千": 1000, "万": 10000}
    if not units.keys() & set(text):
        return Decimal("".join(values[c] for c in text))
    total = section = digit = 0
    for c in text:
        if c in values:
            digit = int(values[c])
        elif c == "万":
            total, section, digit = (total + section + digit or 1) * units[c], 0, 0
        else:
            section, digit = section + (digit or 1) * units[c], 0
    return Decimal(total + section + digit)


def _official_line(prediction: str) -> str:
    lines = prediction.lstrip("\n").split("\n")
    return next((x for x in lines if "`" not in x and "#" not in x and "//" not in x), "")


def _code_line(prediction: str, comments: bool) -> str:
    lines = [re.sub(r"^(\s*)(`+)([^`]+)\2\s*$", r"\1\3", x.rstrip("\r")) for x in prediction.split("\n")]
    fences = [i for i, x in enumerate(lines) if x.lstrip().startswith("```")]
    before, inside = lines, list[str]()
    if fences:
        before = lines[: fences[0]]
        if len(fences) > 1 or lines[fences[0]].strip("` ") or not any(x.strip() for x in before):
            inside = lines[fences[0] + 1 : fences[1] if len(fences) > 1 else None]
    return next((x for x in inside + before if x.strip() and (comments or not _is_comment(x))), "")


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith(("#", "//"))


def _indel_similarity(a: str, b: str) -> float:
    from rapidfuzz.distance import Indel

    return Indel.normalized_similarity(a, b)


def _option_letters(text: str) -> set[str]:
    if only := re.fullmatch(_ONLY_OPTIONS, text):
        return set(re.findall("[A-D]", only[1].upper().replace("AND", "")))
    edges = rf"(?<![A-Za-z\\])({_OPTIONS})(?![A-Za-z])"
    groups = list(re.finditer(_OPTION_CUE + edges, text)) or [
        m
        for m in re.finditer(edges, text)
        if not text[m.end() : m.end() + 12].lstrip().startswith(_OPERATORS)
        and not text[max(0, m.start() - 12) : m.start()].rstrip().endswith(_OPERATORS)
    ]
    return set(re.findall("[A-D]", groups[-1][1])) if groups else set()


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


@functools.lru_cache(maxsize=64)
def _class_names(choices: tuple[str, ...]) -> regex.Pattern[str]:
    joined = r"[^\W_\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}]"
    names = sorted({_folded(c) for c in choices} - {""}, key=lambda c: (-len(c), c))
    whole = (
        (rf"(?<!{joined})" if regex.match(joined, c) else "")
        + regex.escape(c)
        + (rf"(?!{joined})" if regex.match(joined, c[-1]) else "")
        for c in names
    )
    return regex.compile("|".join(whole) or "(?!)")


def _cleaned(text: str) -> str:
    """Folded, punctuation and ASCII symbols made spaces; points between digits stay."""
    text = regex.sub(r"(?<=\d),(?=\d{3}(?!\d))|(?<=\p{L})['’](?=\p{L})", "", _folded(text))
    text = regex.sub(r"\b\p{L}(?:\.\p{L}\b)+\.?", lambda m: m[0].replace(".", ""), text)
    return regex.sub(r"(?<!\d)\.|\.(?!\d)|[^\P{P}.]|[$+<=>^`|~]", " ", text)


def _english(text: str) -> list[str]:
    words = _cleaned(text).split()
    return [w for w in words if w not in ("a", "an", "the")] or words


def _chinese(text: str) -> list[str]:
    return [w for w in cut(_cleaned(regex.sub(r"(?<=\p{Han})\s++(?=\p{Han})", "", text))) if w.strip()]


def _f1(prediction: list[str], reference: list[str]) -> float:
    if not prediction and not reference:
        return 1.0
    shared = sum((Counter(prediction) & Counter(reference)).values())
    return 2 * shared / (len(prediction) + len(reference))
