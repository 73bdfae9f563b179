"""Answers that mean the same: a gold found in the prediction, as whole words, asserted and not denied.

text ─ folded text ─ items (words, Chinese characters, quantities) ─ where a gold stands ─ what is said of it there
"""

from __future__ import annotations

import functools
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, cast

import regex

from tinyeval.metrics import negation
from tinyeval.metrics.quantity import Quantity, same, scan
from tinyeval.metrics.registry import Sample
from tinyeval.metrics.words import cut

_BEFORE_NFKC = {ord("²"): "^2", ord("³"): "^3", ord("½"): " 1/2", ord("¼"): " 1/4", ord("¾"): " 3/4"} | {
    **dict.fromkeys(map(ord, "‘’‛ʼ"), "'"),
    **dict.fromkeys(map(ord, "“”„‟"), '"'),
    **dict.fromkeys(map(ord, "‐‑‒–−﹣－"), "-"),
    **dict.fromkeys(map(ord, "\u200b\u200c\u200d\ufeff\u00ad"), ""),
}
_LONE = regex.compile(r"[\ud800-\udfff]")
_THIN = regex.compile(r"(?<=\d)[\u00a0\u2009\u202f](?=\d{3}(?!\d))")
_MARKS = regex.compile(r"(?<=\p{Latin})[\u0300-\u036f]+")
_MARKUP = regex.compile(r"\*\*|__|`")
_POINT = regex.compile(r"(?<![\w.])\.(?=\d)")
_OUTSIDE = " \t\r\n.,;:!?。、\"'()[]{}《》〈〉「」『』【】…"
_INITIALS = regex.compile(r"(?<![\w.])(?:\p{L}\.[ ]?){2,}(?!\w)|(?<![\w.])(?:\p{L}\. ?)+(?=\p{L}\.)")
_ITEM = regex.compile(r"\p{Han}|(?:(?!\p{Han})[\p{L}\p{M}\p{N}])+(?:['.@_](?:(?!\p{Han})[\p{L}\p{N}])+)*[+#]*")
_HAN = regex.compile(r"\p{Han}")
_ARTICLE = regex.compile(r"[Tt]he|THE|an?|A(?=\s\p{Ll})|An(?=\s)")
_SHORT = {"mt": "mount", "st": "saint"}
_TITLES = frozenset(("dr", "prof", "professor", "sir", "doctor"))
_COMPASS = frozenset(
    "new old north south east west northern southern eastern western northeast northwest upper lower".split()  # noqa: SIM905
)
_NUMBERED = frozenset("ii iii iv v vi vii viii jr sr".split())  # noqa: SIM905
_LISTED = regex.compile(
    r"\s*(?:[,;、/&\n]|》\s*《|(?<![a-z])(?:and|or)(?![a-z])|以及|[和与及或跟同])\s*", regex.IGNORECASE
)
_GAP = regex.compile(
    r"(?:[\s\p{P}+&]|(?<![a-z])(?:and|as well as|then|the|an?)(?![a-z])|以及|还有|[和与及跟同])*", regex.IGNORECASE
)
_OR_AFTER = regex.compile(r"[\"')》」\s]*(?:,?\s*or\b|、|或者?|抑或|还是(?!\p{L}*[。,!]))", regex.IGNORECASE)
_OR_BEFORE = regex.compile(
    r"(?r)(?:\bor\s+(?:in |the |an? |at |on )*|、|或者?|抑或|还是|就是)[\"'(《「\s]*", regex.IGNORECASE
)
_AND = regex.compile(r"[\"'》)\s]*(?:,?\s*\band\b|&|以及|[和与及])[\"'《(\s]*", regex.IGNORECASE)
_COMMA = regex.compile(r"[\"'》)\s]*[,、;][\"'《(\s]*")
_BOUND_BEFORE = regex.compile(
    r"(?r)(?:(?:more|less|fewer|greater|higher|lower|other) than|over|under|above|below|at (?:least|most)|up to|"
    r"超过|多于|少于|高于|低于|大于|小于|不到|不足|不满|未满|至少|至多|最多|最少|[<>≤≥])[有达为]?\s*",
    regex.IGNORECASE,
)
_BOUND_AFTER = regex.compile(r"\s*(?:多|余|以上|以下|以内|之内|or (?:more|less|fewer|so many))")
_STRONG = regex.compile(r"[!?。\n]|(?<=\w{4})\.\s")
_RANGE = regex.compile(r"\s?[-~:/比]\s?")
_TO = frozenset(("to", "至", "到"))


def answer_match(sample: Sample) -> float:
    """1 if the answer means the same as a gold, otherwise 0. Chinese and English, without a model.

    The answer may be a sentence that holds the gold as whole words (厦门 does not stand in 厦门大学). Letter case,
    width, traditional or simplified characters, accents, articles and punctuation do not matter. Numbers, money,
    measures, dates and times are compared by exact value: 五万七千零八十一元八角六分 is 57,081.86元, 3 km is 三千米,
    15 is not 150. Money of different currencies is never equal; a bare number equals an amount. A list may come in any
    order, and so may the parts of a name (Obama, Barack).

    The answer counts as wrong where a gold is denied (不是厦门大学, "rather than Paris"), left open ("I don't know
    whether it is Paris"), or one of several candidates ("Paris or London"). A gold that is a yes or no is compared
    with what the answer says. An empty answer matches only an empty gold.

    Other names of a gold come from `specific["aliases"]`: `{gold: [names]}`, a list of names, or a list of such lists.
    The question is not read: a gold mentioned for another reason counts, and a paraphrase that shares no words does
    not.

    Source: this package's own definition. Scope of negation after NegEx (Chapman et al., 2001); words by jieba 0.42.1,
    simplified characters by OpenCC (t2s).
    """
    golds = [*sample.references, *_aliases(sample.specific.get("aliases"), sample.references)]
    return float(means_one_of(sample.prediction, golds))


def means_one_of(prediction: str, golds: Sequence[str]) -> bool:
    """Whether a text asserts one of the golds."""
    folded = fold(prediction)
    plain = _plain(folded)
    wanted = list(dict.fromkeys(fold(gold) for gold in golds))
    if any(_plain(gold) == plain for gold in wanted):
        return True
    if not plain:
        return False
    answer = _read(folded)
    cues = negation.find(folded)
    names = [_read(gold) for gold in wanted]
    found = [[*_places(answer, name)] for name in names]
    begins, ends = {a for spans in found for a, _ in spans}, {b for spans in found for _, b in spans}
    for gold, name, spans in zip(wanted, names, found, strict=True):
        if (answer_is := negation.yes_or_no(gold)) is not None:
            if negation.polarity(folded) is answer_is:
                return True
        elif _asserted(answer, cues, name, spans, begins, ends):
            return True
    return False


def fold(text: str) -> str:
    """A text with what does not change its meaning made equal: width, script, quotes, accents, markup."""
    text = _THIN.sub(",", _LONE.sub("\ufffd", text)).translate(_BEFORE_NFKC)
    text = unicodedata.normalize("NFKC", text).replace("\u2044", "/")
    if not text.isascii():
        text = unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFD", text)))
        if _HAN.search(text):
            text = _simplified()(text)
    text = _POINT.sub("0.", _MARKUP.sub("", text))
    return _INITIALS.sub(lambda m: regex.sub(r"[. ]", "", m.group()) + (" " if m.group().endswith(" ") else ""), text)


class _Items(NamedTuple):
    """A text's items in columns."""

    text: str
    keys: list[str]
    starts: list[int]
    ends: list[int]
    opens: list[bool]
    closes: list[bool]
    quantities: dict[int, Quantity]


def _read(text: str) -> _Items:
    edges = {0, *accumulate(map(len, cut(text)))} if _HAN.search(text) else set[int]()
    items = _Items(text, [], [], [], [], [], {})
    dropped = _Items(text, [], [], [], [], [], {})
    at = 0
    for quantity in [*scan(text, edges), None]:
        for match in _ITEM.finditer(text, at, quantity.start if quantity else len(text)):
            _word(items, dropped, match, edges)
        if quantity:
            _put(
                items, repr(sorted(quantity.readings) or sorted(map(str, quantity.days))), quantity.start, quantity.end
            )
            items.quantities[len(items.keys) - 1] = quantity
            at = quantity.end
    return _ranges(items if items.keys else dropped)


def _word(items: _Items, dropped: _Items, match: regex.Match[str], edges: set[int]) -> None:
    word, start, end = match.group(), match.start(), match.end()
    han = _HAN.match(word) is not None
    key = word.casefold().removesuffix("'s").replace("'", "")
    article = _ARTICLE.match(items.text, start)
    if (article and article.end() == end) or (word == "的" and start in edges and end in edges):
        _put(dropped, key, start, end)
    else:
        _put(items, _SHORT.get(key, key), start, end, not han or start in edges, not han or end in edges)


def _put(items: _Items, key: str, start: int, end: int, opens: bool = True, closes: bool = True) -> None:
    for column, value in zip(items[1:6], (key, start, end, opens, closes), strict=True):
        cast("list[Any]", column).append(value)


def _ranges(items: _Items) -> _Items:
    """Two numbers joined by a dash, a colon or 比 are one item's parts: neither stands alone."""
    for at in sorted(items.quantities):
        if at + 1 in items.quantities and _RANGE.fullmatch(items.text, items.ends[at], items.starts[at + 1]):
            items.closes[at] = items.opens[at + 1] = False
    return items


def _places(answer: _Items, name: _Items) -> Iterator[tuple[int, int]]:
    """The spans of items in which the answer has the name, whatever it says about it."""
    keys = _aligned(answer, name)
    spans = {
        span
        for variant, link in _variants(name, len(answer.keys))
        for span in _find(keys, variant)
        if _stands(answer, name, *span, link)
    }
    spans |= {span for span in _verbatim(answer, name.text.strip(_OUTSIDE)) if _stands(answer, name, *span, 0)}
    yield from sorted(_widened(answer, span) for span in spans)
    if not spans and len(parts := _parts(name)) > 1:
        yield from _enumerations(answer, [[*_places(answer, part)] for part in parts])


def _aligned(answer: _Items, name: _Items) -> list[str]:
    """The answer's keys, a quantity's replaced by the name's key where both have the same value."""
    wanted = {name.keys[at]: quantity for at, quantity in name.quantities.items()}
    keys, known = list(answer.keys), dict[str, str]()
    for at, quantity in answer.quantities.items() if wanted else ():
        key = keys[at]
        if key not in known:
            alone = len(keys) == 1
            known[key] = next((k for k, q in wanted.items() if same(q, quantity, alone)), key)
        keys[at] = known[key]
    return keys


def _variants(name: _Items, size: int) -> Iterator[tuple[list[str], int]]:
    """Orders of the name's words, each with the word before which a comma must stand (0: none)."""
    keys = name.keys
    yield keys, 0
    if len(keys) < 2:
        return
    if keys[0] in _TITLES:
        yield keys[1:], 0
    if len(keys) > 2 and keys[-1] in ("市", "省"):
        yield keys[:-1], 0
    if size == 1 and [*name.quantities] == [0] and (len(keys) == 2 or _HAN.match(keys[1])):
        yield keys[:1], 0
    if name.quantities or len(keys) > 6 or any(map(_HAN.match, keys)):
        return
    for at in range(1, len(keys)):
        left, right = keys[:at], keys[at:]
        yield [*right, *left], 0 if "," in name.text[name.ends[at - 1] : name.starts[at]] else len(right)
        yield [*right, "of", *left], 0
        if keys[at] == "of":
            yield [*keys[at + 1 :], *left], 0


def _find(keys: list[str], wanted: list[str]) -> Iterator[tuple[int, int]]:
    text, needle = "\x1f".join(["", *keys, ""]), "\x1f".join(["", *wanted, ""])
    offsets = [0, *accumulate(len(key) + 1 for key in keys)]
    at = text.find(needle) if wanted else -1
    while at >= 0:
        first = bisect_left(offsets, at)
        yield first, first + len(wanted)
        at = text.find(needle, at + 1)


def _verbatim(answer: _Items, name: str) -> Iterator[tuple[int, int]]:
    """Where a Chinese name stands letter by letter, whichever of its characters were taken for numbers."""
    at = answer.text.find(name) if _HAN.search(name) else -1
    while at >= 0:
        first, last = bisect_left(answer.starts, at), bisect_right(answer.ends, at + len(name))
        if first < last and answer.starts[first] == at and answer.ends[last - 1] == at + len(name):
            yield first, last
        at = answer.text.find(name, at + 1)


def _stands(answer: _Items, name: _Items, first: int, last: int, link: int) -> bool:
    """Whether a span is the name as whole words, and not a part of a longer name."""
    text, start, end = answer.text, answer.starts[first], answer.ends[last - 1]
    if not answer.opens[first] or not (answer.closes[last - 1] or _widened(answer, (first, last))[1] > last):
        return False
    if link and "," not in text[answer.ends[first + link - 1] : answer.starts[first + link]]:
        return False
    if last - first > 1 and _STRONG.search(text, start, end) and not _STRONG.search(name.text[:-1]):
        return False
    compass = first and answer.keys[first - 1] in _COMPASS and answer.ends[first - 1] + 1 == start
    if compass and text[answer.starts[first - 1]].isupper() == name.text.lstrip()[:1].isupper():
        return False
    return not (
        last < len(answer.keys) and answer.keys[last] in _NUMBERED and text[end] == " " and text[start].isupper()
    )


def _widened(answer: _Items, span: tuple[int, int]) -> tuple[int, int]:
    """上海 in 上海市 is the same place."""
    first, last = span
    wider = not answer.closes[last - 1] and last < len(answer.keys) and answer.keys[last] in ("市", "省")
    return (first, last + 1) if wider and answer.closes[last] and last - first > 1 else span


def _parts(name: _Items) -> list[_Items]:
    """The items of a list; a text without separators is its own only one."""
    inside = [(q.start, q.end) for q in name.quantities.values()]
    cuts = [(0, 0)]
    for match in _LISTED.finditer(name.text):
        at = bisect_right(name.starts, match.start()) - 1
        whole = at < 0 or name.ends[at] <= match.start() or (name.opens[at] and name.closes[at])
        if whole and not any(a <= match.start() < b for a, b in inside):
            cuts.append(match.span())
    ends = [*(a for a, _ in cuts[1:]), len(name.text)]
    parts = [name.text[begin:end] for (_, begin), end in zip(cuts, ends, strict=True)]
    return [part for part in map(_read, parts) if part.keys] if 1 < len(parts) < 100 else []


def _enumerations(answer: _Items, places: list[list[tuple[int, int]]]) -> Iterator[tuple[int, int]]:
    """Where all of several names stand one after another, in any order, with nothing but separators between."""
    spans = sorted((first, -last, number) for number, found in enumerate(places) for first, last in found)
    begin, stop = 0, -1
    seen: set[int] = set()
    for first, negative, number in [*spans, (len(answer.keys) + 1, 0, 0)]:
        if first < stop:
            continue
        joined = 0 < stop <= first < len(answer.keys) and _GAP.fullmatch(
            answer.text, answer.ends[stop - 1], answer.starts[first]
        )
        if not joined:
            if len(seen) == len(places):
                yield begin, stop
            begin = first
            seen.clear()
        stop = -negative
        seen.add(number)


def _asserted(
    answer: _Items, cues: negation.Cues, name: _Items, spans: list[tuple[int, int]], begins: set[int], ends: set[int]
) -> bool:
    """Whether the answer says yes to the name: its last word about it counts.

    A denial that follows the name (Venus is not ...) may be about something else and undoes no assertion.
    """
    holds: bool | None = None
    several = len(_parts(name)) > 1
    for first, last in spans:
        start, end = answer.starts[first], answer.ends[last - 1]
        if _bounded(answer.text, name, start, end):
            continue
        said, before = negation.status(cues, start, end)
        if _one_of_several(answer, first, last, begins, ends, several):
            said, before = "open", True
        if said == "asserted":
            holds = True
        elif before or (said == "denied" and holds is None):
            holds = False
    return holds is True


def _bounded(text: str, name: _Items, start: int, end: int) -> bool:
    """Whether a bare quantity of the name is a bound in the answer: more than 200 is not 200."""
    last = len(name.keys) - 1
    return bool(
        (0 in name.quantities and _BOUND_BEFORE.match(text, max(0, start - 20), start))
        or (last in name.quantities and _BOUND_AFTER.match(text, end))
    )


def _one_of_several(answer: _Items, first: int, last: int, begins: set[int], ends: set[int], several: bool) -> bool:
    """Whether the answer offers the span beside something that is no gold: "X or Y", 甲、乙, nothing but "X and Y"."""
    text, size = answer.text, len(answer.keys)
    if last < size and last not in begins:
        end, few = answer.ends[last - 1], size - last <= (6 if _HAN.match(answer.keys[-1]) else 3)
        if _OR_AFTER.match(text, end) or (first == 0 and few and _AND.match(text, end)):
            return True
        if several and few and _COMMA.match(text, end):
            return True
    if first and first not in ends:
        start, few = answer.starts[first], first <= (6 if _HAN.match(answer.keys[0]) else 3)
        if _OR_BEFORE.match(text, max(0, start - 40), start):
            return True
        return last == size and few and _AND.fullmatch(text, answer.ends[first - 1], start) is not None
    return False


def _plain(text: str) -> str:
    return " ".join((text.strip(_OUTSIDE) or text).casefold().split())


def _aliases(given: Any, golds: Sequence[str]) -> Iterator[str]:
    """The names that mean the same as a gold, from any of the three shapes."""
    if isinstance(given, str):
        yield given
    elif isinstance(given, Mapping):
        for gold, names in cast("Mapping[Any, Any]", given).items():
            if gold in golds:
                yield from _aliases(names, golds)
    elif isinstance(given, Iterable):
        for names in cast("Iterable[Any]", given):
            yield from _aliases(names, golds)


@functools.cache
def _simplified() -> Callable[[str], str]:
    import opencc  # pyright: ignore[reportMissingTypeStubs]

    return cast("Callable[[str], str]", cast("Any", opencc).OpenCC("t2s").convert)
