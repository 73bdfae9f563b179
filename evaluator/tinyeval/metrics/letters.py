"""Option letters found in a text, in English and Chinese.

The strongest kind of statement that a text has decides, and within a kind the last one. Every step takes time linear
in the text. Reasoning between <think> tags is never read.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from tinyeval.metrics.exact import fold_width
from tinyeval.metrics.extraction import extract_boxed, strip_reasoning

_COUNT = 10
_WRAPPED = re.compile(r"\\(?:text(?:bf|rm)?|math(?:bf|rm)|boxed|fbox)\s?\{([^{}]*)\}")
_MARKUP = str.maketrans("", "", "*`$")
_SMALL = re.compile(r"(?<![\w\\])\([a-z]\)")
_EDGE = r"(?![A-Za-z0-9'’_])"


def letter_match(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    r"""1 if the option letters that the prediction chooses are exactly the reference's ("B", or several: "ABD").

    Letters reach as far as there are choices; A to J where the task gives none. The strongest of these statements that
    occurs decides, and within one kind the last: \boxed{B}; "the answer is (B)", "Answer: B", "答案：B", "选B",
    "正确选项是B"; the text begins with "B." or "(B)"; "B is correct", "B正确"; a lone letter: on a line, in brackets,
    or a capital in a sentence, where "A" counts only at the very end of the text and "I" never. Several letters are
    read as a set: "ABD", "A、B、D", "A, B and D", and also "A or B", which is undecided. Full-width letters are
    folded; small letters count in brackets, in \boxed{} and alone. Denials ("the answer is not B", "不选B") are no
    statements. No letter is wrong. <think> blocks are not read.

    Source: TinyEval's own; statements as in the answer patterns of simple-evals, lighteval's extractive_match and
    OpenCompass's `first_option_postprocess`.
    """
    wanted = _reference(reference)
    return float(bool(wanted) and extract_letters(prediction, len(choices) or _COUNT) == wanted)


def no_letters(reference: str, choices: Sequence[str]) -> str | None:
    """Why the reference is no option letter among the choices, if it is none."""
    letters = _reference(reference)
    if not letters:
        return f"the reference {reference[:80]!r} is no option letter"
    last = chr(64 + _limit(len(choices) or _COUNT))
    return None if max(letters) <= last else f"the reference {reference[:80]!r} is beyond the last option, {last}"


def extract_letters(text: str, count: int = _COUNT) -> frozenset[str]:
    """The option letters that a text chooses as letter_match finds them, among the first `count`; maybe none."""
    text = fold_width(strip_reasoning(text))
    group, tiers = _patterns(_limit(count))
    boxed = extract_boxed(text)
    if boxed and (found := _found(group, _clean(boxed).upper() if len(boxed) < 40 else _clean(boxed))):
        return found
    text = _clean(text).strip()
    if len(text) <= 4:
        text = text.upper()
    for tier in tiers:
        if found := _found(tier, text):
            return found
    return frozenset()


@functools.cache
def _patterns(count: int) -> tuple[re.Pattern[str], tuple[re.Pattern[str], ...]]:
    """What a \\boxed{} begins with, and the kinds of statements from the strongest on; each captures the letters."""
    any_letter = f"[A-{chr(64 + count)}]"
    capital = f"(?![AI]){any_letter}" if count > 1 else r"(?!)"
    article = r"A(?!['’]|\s[a-z])|A(?=\s(?:because|since|as|and|is|which|for|with|due|or)\b)"
    pronoun = r"I(?!['’]|,?\s[a-z])|I(?=\s(?:because|since|and|is)\b)"
    letter = "|".join([capital, article, *([pronoun] if count >= 9 else [])])
    run = rf"(?:[(\[]?(?:{letter})[)\]]?){{1,10}}{_EDGE}"
    joint = r"(?:\s?(?:[,、;/&和与及或]|还是)\s?(?:(?:and|or)\s)?|\s(?:and|or)\s)"
    group = rf"((?>{run}(?:{joint}{run}){{0,9}}))"
    listed = rf"((?>{run}(?:{joint}{run}){{1,9}}))"
    denied = r"(?!(?:选项)?(?:是|为)?[不错]|\s(?:is|are)\s(?:not|wrong|incorrect)\b)"
    said = (
        r"(?i:\banswers?|\b(?:correct|right|best)\s(?:option|choice)s?)"
        r"(?i:\s(?:is|are|was|would\sbe|should\sbe|must\sbe)\b|\s?[:=])[\s:\"'“(\[]{0,5}?"
        r"(?i:(?:(?:clearly|therefore|thus|likely|probably|definitely|options?|choices?|letters?)\s){0,3})"
        rf"{group}{denied}"
    )
    zh = (
        r"(?:答案|正确的?选项|正确的是)\s?(?:应该|应|就|只能|只)?(?:是|为|选择?)?[\s:\"“是为选]{0,5}(?:选项)?\s?"
        + group
        + denied,
        rf"(?<![不别勿未])(?<!不[能应该可会])(?<!不应该)选择?\s?:?\s?(?:选项)?\s?{group}{denied}",
    )
    start = rf"\A{group}(?:(?<=[)\]])|\s?[.:、。]|\s{{0,9}}(?:\n|\Z))"
    right = rf"(?<![\w.'’-]){group}(?i:\s(?:is|are)\s(?:the\s)?(?:correct|right|best)\b|(?:选项)?(?:是|为)?正确)"
    alone = (
        rf"^\s{{0,9}}{group}\s{{0,9}}[.。]?\s{{0,9}}$",
        rf"([(\[]{any_letter}{{1,26}}[)\]])(?!\w)",
        rf"(?<![\w.'’+-]){listed}(?![+#-])",
        rf"(?<![\w.'’+-])({capital}){_EDGE}(?![+#-])",
        r"(?<![\w.'’-])(A)(?=[.!。]?\s*\Z)",
    )
    kinds = ("|".join((said, *zh)), start, right, "|".join(alone))
    return re.compile(rf"\A\s*{group}(?:[)\]]|\s?[.:、。,]|\s*\Z)"), tuple(re.compile(k, re.MULTILINE) for k in kinds)


def _found(kind: re.Pattern[str], text: str) -> frozenset[str]:
    last = frozenset[str]()
    for match in kind.finditer(text):
        letters = [c for c in "".join(filter(None, match.groups())) if "A" <= c <= "Z"]
        if len(set(letters)) == len(letters):
            last = frozenset(letters)
    return last


def _clean(text: str) -> str:
    text = _WRAPPED.sub(r"\1", text.translate(_MARKUP))
    return _SMALL.sub(lambda m: m[0].upper(), text)


def _limit(count: int) -> int:
    return min(max(count, 1), 26)


def _reference(text: str) -> frozenset[str]:
    text = fold_width(text).strip().strip("().[]。").upper()
    letters = re.sub(r"\s?(?:[,、;/&和与及]\s?(?:AND\s)?|\sAND\s)\s?|\s", "", text)
    return frozenset(letters) if re.fullmatch("[A-Z]{1,26}", letters) else frozenset()
