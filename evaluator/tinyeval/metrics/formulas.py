r"""Mathematical answers compared: exact numbers, tuples and sets of them, and otherwise formulas in one notation.

Nothing is evaluated: 2^10 is not 1024, and \frac{2}{\sqrt2} is not \sqrt2. An answer longer than 2,000 characters is
compared as it is, apart from white space.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

from tinyeval.metrics.exact import fold_width

_LONGEST = 2000
_DEEPEST = 5
SCALES = {"万": 4, "亿": 8, "万亿": 12, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
"""The powers of ten behind words for large numbers."""
_SCALE_WORDS = "|".join(sorted(SCALES, key=len, reverse=True))
_DIGITS = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_VALUE = re.compile(
    rf"(?P<top>[+-]?{_DIGITS})(?:(?:\*10\^|e)\(?(?P<power>[+-]?[0-9]{{1,3}})\)?)?"
    rf"(?:/\(?(?P<under>[+-]?{_DIGITS})\)?)?(?P<percent>%?)"
)
_AFTER_NUMBER = r"(?<=[0-9}%)π])"
_AREA = r"\s*(?:\^\s*\{?[23]\}?)?\s*"


def _mixed(m: re.Match[str]) -> str:
    whole, over, under = (int(m[i]) for i in (1, 2, 3))
    return f"{whole * under + over}/{under}"


def _worded(m: re.Match[str]) -> str:
    word = m[1].strip()
    return "," if word.casefold() in ("and", "or", "和", "或", "且") else f" {word} "


def _joined(m: re.Match[str]) -> str:
    return m[1].replace(",", "")


def _scaled(m: re.Match[str]) -> str:
    return str(Fraction(m[1]) * 10 ** SCALES[m[2]])


_REWRITES: list[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]] = [
    (re.compile(pattern), by)
    for pattern, by in [
        (r"\\(?:left|right|displaystyle|textstyle|limits|[Bb]igg?[lr]?)(?![A-Za-z])", ""),
        (r"\\(?:boxed|fbox)(?![A-Za-z])", ""),
        (r"(?<=[A-Za-z}\]^_])\s+(?=\{)", ""),
        (r",\\!|\{,\}", ","),
        (r"(?<!\\)\\[,;:! ]|\\q?quad(?![A-Za-z])|~", " "),
        (r"\\?\$|[¥€£]|(?<!\\)\\[()\[\]]", ""),
        (r"\\\{|\\lbrace(?![A-Za-z])", "⦃"),
        (r"\\\}|\\rbrace(?![A-Za-z])", "⦄"),
        (r"\\[dtc]frac(?![A-Za-z])", r"\\frac"),
        (r"\\frac\s*([0-9])", r"\\frac{\1}"),
        (r"\\frac\s*(\{[^{}]*\})\s*([0-9A-Za-z])", r"\\frac\1{\2}"),
        (r"\\sqrt\s*([0-9])|√\s*([0-9]+|[a-z])|(?<!\\)\bsqrt\s*\(([^()]*)\)", r"\\sqrt{\1\2\3}"),
        (r"\^\s*\{?\s*\\circ\s*\}?|°|\\degree(?![A-Za-z])", ""),
        (r"\\%|\s*\bpercent\b", "%"),
        (r"(?<![\d.}])\b([0-9]{1,100})\s*\\frac\{\s*([0-9]{1,100})\s*\}\{\s*([0-9]{1,100})\s*\}", _mixed),
        (r"(?<![\d./])\b([0-9]{1,100})\s+([0-9]{1,100})/([0-9]{1,100})(?![\d/.])", _mixed),
        (
            _AFTER_NUMBER
            + r"\s*\\(?:text|mathrm|mbox|rm)\s*\{(?!\s*(?:and|or|和|或|"
            + _SCALE_WORDS
            + r")\b)[^{}]*\}"
            + _AREA
            + r"\.?\s*$",
            "",
        ),
        (r"\\(?:text(?:bf|it|rm|tt)?|math(?:rm|bf|it|sf)|mbox|operatorname)\s*\{([^{}]*)\}", _worded),
        (r"(?<![A-Za-z\\])(?:and|or)(?![A-Za-z])|(?<![\u4e00-\u9fff])[和或且](?![\u4e00-\u9fff])|、", ","),
        (r"\\pi(?![A-Za-z])|(?<![A-Za-z\\])pi(?![A-Za-z])", "π"),
        (r"\\infty(?![A-Za-z])|\binfinity\b", "∞"),
        (r"\\cup(?![A-Za-z])", "∪"),
        (r"\\leq?(?![A-Za-z])|<=", "≤"),
        (r"\\geq?(?![A-Za-z])|>=", "≥"),
        (r"\\neq?(?![A-Za-z])", "≠"),
        (r"\\pm(?![A-Za-z])", "±"),
        (r"\\(?:cdot|times)(?![A-Za-z])|[×·⋅]", "*"),
        (r"\\in(?![A-Za-z])", "∈"),
        (r"(?<![\d.,])([0-9]{1,3}(?:,[0-9]{3})+)(?!\d|,\d)(?=[^()\[\]⦃⦄]*$)", _joined),
        (rf"(?<![\w.])([0-9]{{1,100}}(?:\.[0-9]{{1,100}})?)\s*({_SCALE_WORDS})(?![A-Za-z])", _scaled),
        (_AFTER_NUMBER + r"\s+(?![A-Za-z]*\()[A-Za-z]{2,}(?:[ /][A-Za-z]+)*" + _AREA + r"\.?$", ""),
        (_AFTER_NUMBER + r"\s*(?:cm|mm|km|kg|mg|ml|mL|lb|ft)" + _AREA + r"\.?$", ""),
        (_AFTER_NUMBER + r"\s*(?!分之|[十百零点又]|千(?![克米瓦]))[\u4e00-\u9fff]{1,8}" + _AREA + "$", ""),
    ]
]
_NESTED = re.compile(
    r"\\frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}|\\sqrt\s*(\[[^\[\]{}]*\])?\s*\{([^{}]*)\}|([\^_])\s*\{([^{}]*)\}|(?<![A-Za-z}\]])\{([^{}]*)\}"
)
_ATOM = re.compile(r"[\w.π]+|√(?:\[\w+\])?\(\w+\)")
_ONE = re.compile(r"[0-9.]+|[A-Za-zπ]|√(?:\[\w+\])?\(\w+\)")
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")
_NAMED = re.compile(r"([A-Za-zθ](?:_\w)?(?:\([a-z]\))?)[=∈]([^=]*)")
_PAIRS = {"(": ")]", "[": ")]", "⦃": "⦄"}


def math_equal(a: str, b: str) -> bool:
    """Whether two mathematical answers are the same, as described in math_match; never if one is empty."""
    if max(len(a), len(b)) > _LONGEST:
        return "".join(a.split()) == "".join(b.split())
    x, y = _plain(a), _plain(b)
    if not x or not y:
        return False
    (names, x), (others, y) = _unnamed(x), _unnamed(y)
    if names and others and names != others:
        return False
    if _key(x) == _key(y):
        return True
    return x.endswith("%") != y.endswith("%") and _key(x.removesuffix("%")) == _key(y.removesuffix("%"))


def value(plain: str) -> Fraction | None:
    """The exact value of a number in plain notation (`-1/2`, `2.50`, `3*10^-4`, `50%`); None for all else."""
    number = _VALUE.fullmatch(plain) if len(plain) <= _LONGEST else None
    if not number:
        return None
    under = Fraction(number["under"] or 1)
    if not under:
        return None
    return (
        Fraction(number["top"]) * Fraction(10) ** int(number["power"] or 0) / under / (100 if number["percent"] else 1)
    )


def _plain(text: str) -> str:
    """The answer in one notation without LaTeX groups and white space."""
    text = fold_width(text).strip().rstrip(".。,;")
    for pattern, by in _REWRITES:
        text = pattern.sub(by, text)
    while (flat := _NESTED.sub(_flat, text)) != text:
        text = flat
    text = "".join(text.split()).rstrip(".。,;")
    text = re.sub(r"(?<=\w)\*(?=[A-Za-zπ√(])", "", text)
    text = _WORD.sub(lambda m: m[0].casefold(), text)
    inner = text[1:-1]
    return inner if text[:1] == "⦃" and text[-1:] == "⦄" and "⦃" not in inner and "⦄" not in inner else text


def _flat(group: re.Match[str]) -> str:
    over, under, degree, root, script, raised, plain = (part and part.strip() for part in group.groups())
    if under is not None:
        over = over or ""
        top = over if _is_product(over.lstrip("-")) else f"({over})"
        return f"{top}/{under}" if _ONE.fullmatch(under) else f"{top}/({under})"
    if root is not None:
        return f"√{degree or ''}({root})"
    if script:
        return f"{script}{raised}" if len(raised or "") == 1 else f"{script}({raised})"
    return plain or ""


def _is_product(text: str) -> bool:
    return not text or "".join(_ATOM.findall(text)) == text


def _unnamed(plain: str) -> tuple[list[str], str]:
    """The variables that an answer such as "x=5" or "x=1,x=2" gives values to, and the values alone."""
    parts = [_NAMED.fullmatch(part) for part in _split(plain, ",")]
    if not all(parts):
        return [], plain
    named = [part for part in parts if part]
    names = sorted({part[1] for part in named})
    if len(names) > 1:
        return [], plain
    return names, ",".join(part[2] for part in named)


def _key(plain: str, depth: int = 0) -> str:
    """What equal answers have in common."""
    if (number := value(plain)) is not None:
        return str(number)
    if depth > _DEEPEST:
        return plain
    for separator in "∪,":
        if len(parts := _split(plain, separator)) > 1:
            return separator.join(sorted(_key(part, depth + 1) for part in parts))
    if len(plain) > 2 and plain[-1] in _PAIRS.get(plain[0], ""):
        parts = [_key(part, depth + 1) for part in _split(plain[1:-1], ",")]
        if len(parts) == 1 and plain[0] + plain[-1] == "()":
            return parts[0]
        return plain[0] + ",".join(sorted(parts) if plain[0] == "⦃" else parts) + plain[-1]
    return plain


def _split(plain: str, separator: str) -> list[str]:
    """The parts between separators that stand outside all brackets."""
    parts, start, depth = list[str](), 0, 0
    for at, char in enumerate(plain):
        depth += (char in "([⦃") - (char in ")]⦄")
        if char == separator and not depth:
            parts.append(plain[start:at])
            start = at + 1
    return [*parts, plain[start:]]
