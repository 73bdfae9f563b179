"""Final answers found in a text, in English and Chinese: formulas and numbers.

Every step takes time linear in the text. Reasoning between <think> tags is never read.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence

from tinyeval.metrics.exact import fold_width
from tinyeval.metrics.formulas import SCALES, math_equal, value

_LONGEST = 2000
_NUM = r"(?:(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|(?<![\w.])\.[0-9]+)"
_NUMBER = re.compile(
    rf"(?P<sign>(?<![^\W\u4e00-\u9fff])(?<![)\]}}-])[-+])?"
    rf"(?:\\[dtc]?frac\{{(?P<over>-?[0-9]{{1,400}})\}}\{{(?P<under>[0-9]{{1,400}})\}}"
    rf"|(?<![0-9])(?<![0-9]\.)(?:(?:[0-9]{{1,4}}/){{2,9}}(?=[0-9]))?(?P<whole>{_NUM})(?:/(?P<by>[0-9]{{1,400}})(?![0-9/]))?"
    rf"(?:\s?(?P<scale>万亿|亿|万|(?:thousand|million|billion|trillion)\b))?(?P<percent>\s?\\?%)?)"
)
_TAGS = re.compile(r"<(/?)think>")
_BRACES = re.compile(r"\\(?:boxed|fbox)\s?\{|\\.|[{}]", re.DOTALL)
_STATED = re.compile(
    r"\banswer[\s*_]{0,9}(?:(?:is|are|was|equals|should be|would be|must be)\b|[:：=])[\s*_:：]{0,9}"
    r"|答案[\s*]{0,9}(?:应?该?[是为]|等于|[:：=])[\s*_:：]{0,9}"
    r"|(?<!#)####[ \t]{0,9}(?=[-−+$¥￥€£(\[\\.\d])(?!\d{1,9}[.)、][ \t]{0,9}[^\d\s])",
    re.IGNORECASE,
)
_DENIED = re.compile(r"not\b|n't\b|(?:in)?correct\b|wrong\b|[不错]", re.IGNORECASE)
_END = re.compile(
    r"\n|[。！？]|；|(?<!\\);(?=\s)|[.?](?=\s|$|\*)|，(?=\s?[\u4e00-\u9fff])|,\s(?=[A-Za-z]{2})"
    r"|\s(?:because|since|so|which|where|as)\b"
)
_QUOTED = re.compile(r"\$\$?([^$\n]{1,500})\$\$?(?!\d)|\\\((.{1,500}?)\\\)|\\\[(.{1,500}?)\\\]", re.DOTALL)
_NAMES = re.compile(r"\\[A-Za-z]+|\b(?:sqrt|sin|cos|tan|log|ln|pi|mod)\b")
_PROSE = re.compile(r"[A-Za-z]{2}|[\u4e00-\u9fff]")
_NEGATIVE = re.compile(r"负|不|\bminus\b|\bnegative\b|\bnot\b", re.IGNORECASE)


def math_match(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    r"""1 if the prediction's final answer equals the reference's, as numbers or as normalised LaTeX.

    The final answer is the content of the last complete \boxed{}; else what follows the last of "the answer is …",
    "Answer: …", "答案是…", "答案：…" and "#### …"; else the whole text if it is a formula without words; else the last
    number, which is a guess. A text without any of these has no answer and is wrong, also against such a reference.
    The reference is read in the same way, except that without a box or statement all of it is the answer.

    Compared exactly: integers, decimals, 1,000 separators, a/b, \frac, mixed numbers, a·10^n, %, 万 and million are
    rational numbers (0.333 is not 1/3). 50% equals 0.5, and also 50, since many references leave the sign out.
    Currency, degrees and units after a number are dropped (5 cm equals 5 m). Tuples, intervals, sets and lists are
    compared by element; sets and lists without brackets in any order. All else must be the same formula after
    notation is unified (\dfrac12 and 1/2, \sqrt3 and √3, x=5 and 5); equal values in another form
    (\frac{2}{\sqrt2} and \sqrt2) do not match. <think> blocks are not read.

    Source: the answer normalisation of MATH (Hendrycks et al. 2021) and Minerva (Lewkowycz et al. 2022), with exact
    numbers.
    """
    found = extract_answer(prediction)
    return float(found is not None and math_equal(found, _explicit(reference) or reference))


def gsm8k_match(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """1 if the number after the last "####" equals the reference's; where there is no "####", the last number counts.

    1,000 equals 1000 and "#### 7." equals 7. No number is wrong, also when the reference has none. <think> blocks
    are not read.

    Source: GSM8K (Cobbe et al. 2021).
    """
    found, wanted = gsm8k_answer(prediction), gsm8k_answer(reference)
    return float(found is not None and wanted is not None and math_equal(found, wanted))


def last_number_match(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """1 if the last number of the prediction equals the last one of the reference, by value.

    No number is wrong, also when the reference has none. <think> blocks are not read.

    Source: the "flexible-extract" filter of lm-evaluation-harness's gsm8k task, compared by value.
    """
    found, wanted = extract_number(strip_reasoning(prediction)), extract_number(reference)
    return float(found is not None and wanted is not None and math_equal(found, wanted))


def no_answer(reference: str, choices: Sequence[str]) -> str | None:
    """That the reference is empty, if it is."""
    return None if (_explicit(reference) or reference).strip() else "the reference is empty"


def no_number(reference: str, choices: Sequence[str]) -> str | None:
    """That the reference has no number, if it has none."""
    return None if gsm8k_answer(reference) else f"the reference {reference[:80]!r} has no number"


def strip_reasoning(text: str) -> str:
    """The text without <think>…</think>.

    Nothing after a <think> that is never closed remains, and nothing before a </think> that was never opened.
    """
    kept: list[str] = []
    start, thinking = 0, False
    for tag in _TAGS.finditer(text):
        if tag[1]:
            kept = kept if thinking else []
            start, thinking = tag.end(), False
        elif not thinking:
            kept.append(text[start : tag.start()])
            thinking = True
    return "".join(kept if thinking else [*kept, text[start:]])


def extract_boxed(text: str) -> str | None:
    r"""The content of the last complete \boxed{} (or \fbox{}), nested braces and all; None if there is none."""
    start = min((at for at in (text.find(r"\boxed"), text.find(r"\fbox")) if at >= 0), default=None)
    if start is None:
        return None
    found: tuple[int, int] | None = None
    opened: list[int] = []
    for mark in _BRACES.finditer(text, start):
        if mark[0] == "{":
            opened.append(-1)
        elif mark[0] == "}":
            if opened and (begin := opened.pop()) >= 0:
                found = begin, mark.start()
        elif mark[0][-1] == "{" and len(mark[0]) > 2:
            opened.append(mark.end())
    return text[slice(*found)].strip() if found else None


def extract_answer(text: str) -> str | None:
    """The final answer of a text as math_match finds it, or None; <think> blocks are not read."""
    text = strip_reasoning(text)
    if explicit := _explicit(text):
        return explicit
    whole = text.strip().rstrip(".。")
    if len(whole) <= 200 and "\n" not in whole and re.search(r"\w", whole) and not _is_prose(whole):
        return whole
    return extract_number(text)


def gsm8k_answer(text: str) -> str | None:
    """The number after the last "####" of a text that a number follows, else its last number, or None."""
    text = fold_width(strip_reasoning(text))
    marks = [m.end() for m in _STATED.finditer(text) if m[0][0] == "#"]
    for at in reversed(marks):
        if number := _NUMBER.search(text[at : at + _LONGEST].split("\n", 1)[0]):
            return _exact(number)
    return extract_number(text)


def extract_number(text: str) -> str | None:
    r"""The last number of a text in plain digits, such as "-1234.5", "3/4" or "50%"; None if there is none.

    1,234.5 is one number, as are 3/4, \frac{3}{4}, 3.5万 (35000) and 2 million. A minus directly after a letter or
    digit is a hyphen, except after Chinese.
    """
    last = deque(_NUMBER.finditer(fold_width(text)), maxlen=1)
    return _exact(last[0]) if last else None


def _explicit(text: str) -> str | None:
    boxed = extract_boxed(text)
    if boxed:
        return boxed
    for at in reversed([m.end() for m in _STATED.finditer(text)]):
        if not _DENIED.match(text, at) and (stated := _statement(text[at : at + 500])):
            return stated
    return None


def _statement(text: str) -> str:
    """What is said to be the answer at the beginning of a text."""
    quoted = _QUOTED.match(text)
    if quoted and not _QUOTED.search(_END.split(text[quoted.end() :], maxsplit=1)[0]):
        return "".join(filter(None, quoted.groups())).strip()
    answer = _END.split(text, maxsplit=1)[0].strip(" \t*_`\"'“”‘’")
    if _is_prose(answer) and not _NEGATIVE.search(answer):
        formulas = list(_QUOTED.finditer(answer))
        if len(formulas) == 1:
            return "".join(filter(None, formulas[0].groups())).strip()
        numbers = list(_NUMBER.finditer(fold_width(answer)))
        if len(numbers) == 1:
            return _exact(numbers[0])
    return answer


def _is_prose(text: str) -> bool:
    return bool(_PROSE.search(_NAMES.sub("", text)))


def _exact(number: re.Match[str]) -> str:
    sign = "-" if number["sign"] == "-" else ""
    if number["over"]:
        text = f"{sign}{number['over']}/{number['under']}"
    else:
        text = sign + number["whole"].replace(",", "") + (f"/{number['by']}" if number["by"] else "")
    if number["scale"] and len(text) < 400 and (exact := value(text)) is not None:
        text = str(exact * 10 ** SCALES[number["scale"]])
    return text.replace("--", "") + ("%" if number["percent"] else "")
