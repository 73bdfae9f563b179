"""ROUGE-L as LongBench and the package `rouge` 1.0.1 define it: summary level, over sets of words.

Sentences end at every ".", the words of a text form a set, and each reference sentence contributes the new
words of its longest common subsequences with the predicted sentences. f = 2pr / (p + r + 1e-8), so a perfect
match is 0.999999995. Of several longest subsequences the one counts that the package's walk through the table
of lengths finds.

The table is kept as bits (Hyyrö 2004), one integer a word of the shorter sentence. Unlike in the package nothing
recurses, so long texts have their true value instead of 0; the `depth_limited` forms give the 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tinyeval.metrics.words import cut

_DEPTH = 991
_DEPTH_ZH = 990
"""Nested calls that the package's walk may take before LongBench's script meets Python's recursion limit of 1000."""

_BITS = 1 << 28
"""Bits of table, and bits of word positions a sentence, that are kept at once: 32 MiB each."""

_Words = tuple[str | None, ...]


def rouge(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """ROUGE-L f-measure over the words between spaces, below 1 even for a perfect match (0.999999995).

    Summary level: sentences end at every ".", and the words of the longest common subsequences of all sentence
    pairs are counted once each. Letter case and punctuation count. 0 if either text is empty or only dots.
    LongBench's `rouge_score`, with one deviation: its 0 for very long sentences is `rouge_depth_limited`.

    Source: package rouge 1.0.1, rouge_l_summary_level; LongBench metrics.py, rouge_score@2e00731.
    """
    return _rouge_l(prediction, reference)


def rouge_zh(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """ROUGE-L f-measure over Chinese words, below 1 even for a perfect match (0.999999995).

    Both texts are cut by jieba's precise mode and judged as `rouge` does: "。" ends no sentence, "." in a number
    does, and punctuation marks are words. LongBench's `rouge_zh_score`, with one deviation: its 0 for very long
    sentences is `rouge_zh_depth_limited`.

    Source: package rouge 1.0.1, rouge_l_summary_level; LongBench metrics.py, rouge_zh_score@2e00731.
    """
    return _rouge_l(_spaced(prediction), _spaced(reference))


def rouge_depth_limited(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """`rouge` as LongBench's script prints it: 0 where the package meets Python's recursion limit.

    The package walks through a pair of sentences by calling itself, once a step. A pair that takes more than 991
    calls (its sentences have about as many words together) makes the value 0. That is the limit under Python
    3.11 to 3.13; 3.8 to 3.10 allow one call less. For comparison with published numbers.

    Source: LongBench eval.py, rouge_score@2e00731, run by Python 3.11 with its recursion limit of 1000.
    """
    return _depth_limited(prediction, reference, _DEPTH)


def rouge_zh_depth_limited(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """`rouge_zh` as LongBench's script prints it: 0 where the package meets Python's recursion limit.

    As `rouge_depth_limited`, with 990 calls instead of 991. For comparison with published numbers.

    Source: LongBench eval.py, rouge_zh_score@2e00731, run by Python 3.11 with its recursion limit of 1000.
    """
    return _depth_limited(_spaced(prediction), _spaced(reference), _DEPTH_ZH)


def _spaced(text: str) -> str:
    return " ".join(cut(text))


def _rouge_l(prediction: str, reference: str) -> float:
    predicted, wanted = _sentences(prediction), _sentences(reference)
    if not predicted or not wanted:
        return 0.0
    has, needs = ({word for words in text for word in words} for text in (predicted, wanted))
    found = len(_union(predicted, wanted, has & needs))
    precision, recall = found / len(has), found / len(needs)
    return 2.0 * ((precision * recall) / (precision + recall + 1e-8))


def _depth_limited(prediction: str, reference: str, limit: int) -> float:
    """The value, or 0 where the walk through a pair of sentences takes more calls than the limit."""
    lines = (
        [_Line(words) for words in dict.fromkeys(map(tuple, _sentences(text)))] for text in (reference, prediction)
    )
    xs, ys = (sorted(of_text, key=lambda line: -len(line.words)) for of_text in lines)
    for x in xs:
        for y in ys:
            if len(x.words) + len(y.words) < limit:  # and so are all that follow
                break
            # A call a step and one for the end; the walk uses up one of the two sentences.
            if min(len(x.words), len(y.words)) >= limit or _walk(x, y)[1] >= limit:
                return 0.0
    return _rouge_l(prediction, reference)


def _sentences(text: str) -> list[list[str]]:
    return [" ".join(part.split()).split(" ") for part in text.split(".") if part]


def _union(predicted: list[list[str]], wanted: list[list[str]], common: set[str]) -> set[str]:
    """The words of the longest common subsequences of all pairs of sentences.

    Leaves out what can't change them: pairs without a common word that is yet to be found, predicted words that
    the reference lacks (the walk passes them by), and all but one of several such reference words in a row.
    """
    lines = [_Line(words) for words in dict.fromkeys(tuple(w for w in s if w in common) for s in predicted)]
    holders: dict[str | None, list[_Line]] = {}
    for line in lines:
        for word in line.at:
            holders.setdefault(word, []).append(line)
    found: set[str | None] = set()
    for words in dict.fromkeys(_squeezed(s, common) for s in wanted):
        missing = set(words) - found
        x = _Line(words)
        for y in dict.fromkeys(line for word in missing for line in holders.get(word, ())):
            if not missing.isdisjoint(y.at):
                missing.difference_update(_walk(x, y)[0])
        found.update(words)
        found -= missing
    return {word for word in found if word is not None}


def _squeezed(words: Iterable[str], common: set[str]) -> _Words:
    """A reference sentence with None for each run of words that the prediction lacks."""
    kept: list[str | None] = []
    for word in words:
        if word in common:
            kept.append(word)
        elif kept and kept[-1] is not None:
            kept.append(None)
    return tuple(kept)


class _Line:
    """A sentence, and where its words stand: positions by word in `at`, and as bits."""

    def __init__(self, words: _Words) -> None:
        self.words = words
        self.at: dict[str | None, list[int]] = {}
        for i, word in enumerate(words):
            self.at.setdefault(word, []).append(i)
        self._masks: dict[str | None, int] = {}

    def mask(self, word: str | None) -> int:
        if word not in self.at:
            return 0
        mask = self._masks.get(word)
        if mask is None:
            mask = _ones(self.at[word])
            if len(self._masks) * len(self.words) <= _BITS:
                self._masks[word] = mask
        return mask


def _ones(positions: Sequence[int]) -> int:
    """The number with ones at these positions, ascending."""
    if len(positions) < 16:
        return sum(1 << i for i in positions)
    ones = bytearray(positions[-1] // 8 + 1)
    for i in positions:
        ones[i >> 3] |= 1 << (i & 7)
    return int.from_bytes(ones, "little")


def _walk(x: _Line, y: _Line) -> tuple[list[str | None], int]:
    """The words of the longest common subsequence of x (reference) and y (prediction), and the steps of the walk.

    The walk starts at the ends of both. At equal words it steps back in both; else in x if that alone keeps the
    length, else in y. Row by row, from the bits of `_rows`: back to the last stop, then to the row before.
    """
    of_x = len(x.words) <= len(y.words)
    rows, line = (x.words, y) if of_x else (y.words, x)
    column = len(line.words)
    size = max(math.isqrt(len(rows)) + 1, _BITS // max(column, 1))
    starts = range(0, len(rows), size)
    states = [(1 << column) - 1]
    for start in starts[:-1]:
        states.append(_rows(rows[start : start + size], line, column, states[-1], of_x)[1])
    found: list[str | None] = []
    for start in reversed(starts):
        part = rows[start : start + size]
        stops = _rows(part, line, column, states.pop(), of_x)[0]
        for i in range(len(part) - 1, -1, -1):
            stop = (stops[i] & ((1 << column) - 1)).bit_length()
            if not stop:
                return found, len(rows) - (start + i + 1) + len(line.words) - len(found)
            column = stop
            if line.words[stop - 1] == part[i]:
                found.append(part[i])
                column -= 1
                if not column:
                    return found, len(rows) - (start + i) + len(line.words) - len(found)
    return found, len(rows) + len(line.words) - column - len(found)


def _rows(words: _Words, line: _Line, width: int, state: int, of_x: bool) -> tuple[list[int], int]:
    """Where the walk stops in each word's row, as bits over the line's width, and the state after the last one.

    A bit of the state is 0 where the length grows by one along the line; the sum's carries are where it grows from
    row to row. Rows of x stop the walk at equal words and where the length grows along y; rows of y at equal
    words and where it does not grow from row to row.
    """
    full = (1 << width) - 1
    state &= full
    stops: list[int] = []
    for word in words:
        mask = line.mask(word)
        both = state & mask
        total, rest = state + both, state ^ both
        state = (total | rest) & full
        stops.append(mask | (full ^ (state if of_x else (total ^ rest) >> 1)))
    return stops, state
