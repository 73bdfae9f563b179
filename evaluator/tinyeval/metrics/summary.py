"""ROUGE as Google's package `rouge-score` defines it, and the same over Chinese words.

Lengths of longest common subsequences come from bits (Hyyrö 2004), one integer for each word of one of the texts:
nothing recurses and no table of lengths is kept.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, cast

import regex

from tinyeval.metrics.words import cut

_LATIN = re.compile("[a-z0-9]+")
_LETTER = regex.compile(r"[\p{L}\p{N}]")

_LONGEST_WORD = 100
"""Characters of the longest word that is stemmed."""

_BITS = 1 << 28
"""Bits of table, and bits of word positions a text, that are kept at once: 32 MiB each."""

_Words = tuple[str, ...]


def rouge1(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """ROUGE-1 f-measure: words that both texts have, repeated ones as often as both repeat them.

    Words are runs of a-z and 0-9 after lower-casing; all else separates them. So text without Latin letters or
    digits, such as Chinese, has no words and is worth 0 even against itself: take rouge1_zh for it. 0 where either
    text has no words.

    Source: Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries"; package rouge-score 0.1.2, rouge1.
    """
    return _overlap(_latin(prediction), _latin(reference))


def rouge2(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """ROUGE-2 f-measure: pairs of adjacent words that both texts have.

    Words as in rouge1; take rouge2_zh for Chinese. 0 where either text has fewer than two words.

    Source: Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries"; package rouge-score 0.1.2, rouge2.
    """
    return _overlap(_pairs(_latin(prediction)), _pairs(_latin(reference)))


def rouge_l(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """ROUGE-L f-measure: the longest sequence of words that both texts have in the same order, gaps allowed.

    Words as in rouge1; take rougeL_zh for Chinese. Sentences and lines do not matter. 0 where either text has no
    words.

    Source: Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries"; package rouge-score 0.1.2, rougeL.
    """
    return _subsequence(_latin(prediction), _latin(reference))


def rouge_lsum(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """ROUGE-Lsum f-measure: words of the longest common subsequences of lines, one line a sentence.

    For each line of the reference, its words that are in the longest common subsequence with any line of the
    prediction; none counts more often than the prediction has it. Of several longest subsequences the package's one
    counts. Words as in rouge1. Equals rougeL where both texts have one line.

    Source: Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries"; package rouge-score 0.1.2, rougeLsum.
    """
    return _lines_subsequence(*([_latin(line) for line in text.split("\n")] for text in (prediction, reference)))


def rouge1_stem(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """ROUGE-1 f-measure (rouge1) over word stems, so that "summaries" equals "summary"; for English.

    Words of more than 3 characters are stemmed by nltk's PorterStemmer; those of more than 100 stay as they are.

    Source: package rouge-score 0.1.2, rouge1 with use_stemmer.
    """
    return _overlap(_stemmed(prediction), _stemmed(reference))


def rouge2_stem(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """ROUGE-2 f-measure (rouge2) over word stems, as in rouge1_stem; for English.

    Source: package rouge-score 0.1.2, rouge2 with use_stemmer.
    """
    return _overlap(_pairs(_stemmed(prediction)), _pairs(_stemmed(reference)))


def rouge_l_stem(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """ROUGE-L f-measure (rougeL) over word stems, as in rouge1_stem; for English.

    Source: package rouge-score 0.1.2, rougeL with use_stemmer.
    """
    return _subsequence(_stemmed(prediction), _stemmed(reference))


def rouge_lsum_stem(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """ROUGE-Lsum f-measure (rougeLsum) over word stems, as in rouge1_stem; for English.

    Source: package rouge-score 0.1.2, rougeLsum with use_stemmer.
    """
    return _lines_subsequence(*([_stemmed(line) for line in text.split("\n")] for text in (prediction, reference)))


def rouge1_zh(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """ROUGE-1 f-measure over Chinese words.

    Words are those of jieba's precise mode, lower-cased; white space, punctuation and all else without a letter or
    digit is dropped. 0 where either text has no words.

    Source: Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries"; words by jieba 0.42.
    """
    return _overlap(_chinese(prediction), _chinese(reference))


def rouge2_zh(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """ROUGE-2 f-measure over Chinese words: pairs of adjacent words that both texts have.

    Words as in rouge1_zh. 0 where either text has fewer than two words.

    Source: Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries"; words by jieba 0.42.
    """
    return _overlap(_pairs(_chinese(prediction)), _pairs(_chinese(reference)))


def rouge_l_zh(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """ROUGE-L f-measure over Chinese words: the longest sequence that both texts have in the same order.

    Words as in rouge1_zh; sentences and lines do not matter. LongBench's ROUGE-L is rouge_zh. 0 where either text
    has no words.

    Source: Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries"; words by jieba 0.42.
    """
    return _subsequence(_chinese(prediction), _chinese(reference))


def _latin(text: str) -> _Words:
    return tuple(_LATIN.findall(text.lower()))


@functools.lru_cache(maxsize=8)
def _stemmed(text: str) -> _Words:
    return tuple(_stem(w) if 3 < len(w) <= _LONGEST_WORD else w for w in _latin(text))


@functools.lru_cache(maxsize=8)
def _chinese(text: str) -> _Words:
    return tuple(w.lower() for w in cut(text) if _LETTER.search(w))


@functools.lru_cache(maxsize=1 << 16)
def _stem(word: str) -> str:
    return cast("str", _stemmer().stem(word))


@functools.cache
def _stemmer() -> Any:
    from nltk.stem import porter  # pyright: ignore[reportMissingTypeStubs]

    return cast("Any", porter).PorterStemmer()


def _pairs(words: _Words) -> list[tuple[str, str]]:
    return list(itertools.pairwise(words))


def _f(found: int, predicted: int, wanted: int) -> float:
    if not found:
        return 0.0
    precision, recall = found / predicted, found / wanted
    return 2 * precision * recall / (precision + recall)


def _overlap(predicted: Sequence[Any], wanted: Sequence[Any]) -> float:
    has, needs = Counter(predicted), Counter(wanted)
    return _f(sum(min(n, has[w]) for w, n in needs.items() if w in has), len(predicted), len(wanted))


def _subsequence(predicted: _Words, wanted: _Words) -> float:
    shorter, longer = sorted((predicted, wanted), key=len)
    line = _Line(shorter)
    state = line.full
    for word in longer:
        state = line.after(word, state)
    return _f(len(shorter) - state.bit_count(), len(predicted), len(wanted))


def _lines_subsequence(predicted: Sequence[_Words], wanted: Sequence[_Words]) -> float:
    has = Counter(w for words in predicted for w in words)
    found: Counter[str] = Counter()
    for words, times in _unions(predicted, wanted):
        for word in words:
            found[word] += times
    hits = sum(min(n, has[w]) for w, n in found.items())
    return _f(hits, has.total(), sum(map(len, wanted)))


def _unions(predicted: Sequence[_Words], wanted: Sequence[_Words]) -> Iterable[tuple[list[str], int]]:
    """The words that each wanted line has in common with any predicted one, and how often that line is wanted.

    A pair of lines is compared only where the predicted one has a word that is not found yet.
    """
    holders: dict[str, list[int]] = {}
    sets = {words: set(words) for words in dict.fromkeys(predicted)}
    lines = list(sets)
    for number, words in enumerate(lines):
        for word in dict.fromkeys(words):
            holders.setdefault(word, []).append(number)
    for words, times in Counter(wanted).items():
        line = _Line(words)
        missing = {i for i, w in enumerate(words) if w in holders}
        left = {words[i] for i in missing}
        coverable = sorted(missing)
        for number in dict.fromkeys(n for w in dict.fromkeys(words) for n in holders.get(w, ())):
            if left.isdisjoint(sets[lines[number]]):
                continue
            missing.difference_update(line.common(lines[number]))
            left = {words[i] for i in missing}
        yield [words[i] for i in coverable if i not in missing], times


class _Line:
    """The words of a line as bits: where each of them is."""

    def __init__(self, words: _Words) -> None:
        self.width = len(words)
        self.full = (1 << self.width) - 1
        self._places: dict[str, list[int]] = {}
        for i, word in enumerate(words):
            self._places.setdefault(word, []).append(i)
        self._masks: dict[str, int] = {}

    def mask(self, word: str) -> int:
        mask = self._masks.get(word)
        if mask is None:
            bits = bytearray((self.width + 7) >> 3)
            for i in self._places.get(word, ()):
                bits[i >> 3] |= 1 << (i & 7)
            mask = int.from_bytes(bits, "little")
            if len(self._masks) * self.width <= _BITS:
                self._masks[word] = mask
        return mask

    def after(self, word: str, state: int) -> int:
        """The state after one more word of the other line.

        A bit is 0 where the longest common subsequence of this line's beginning and the words so far grows by one.
        """
        if word not in self._places:
            return state
        both = state & self.mask(word)
        return ((state + both) | (state - both)) & self.full

    def common(self, words: _Words) -> list[int]:
        """The places in this line of the longest common subsequence with another line.

        The walk begins at the ends of both lines. At equal words it steps back in both; else in the other line where
        only that keeps the length, else in this one. The states are made again from some of them, so that few are
        kept at a time.
        """
        size = max(math.isqrt(len(words)) + 1, _BITS // max(self.width, 1))
        parts = [words[at : at + size] for at in range(0, len(words), size)]
        states = [self.full]
        for part in parts[:-1]:
            states.append(functools.reduce(lambda state, word: self.after(word, state), part, states[-1]))
        found: list[int] = []
        below = self.full
        for part in reversed(parts):
            rows = [states.pop()]
            for word in part:
                rows.append(self.after(word, rows[-1]))
            for word in reversed(part):
                mask = self.mask(word) & below
                stop = (mask | (below & ~rows.pop())).bit_length()
                if not stop:
                    return found
                if mask.bit_length() == stop:
                    found.append(stop - 1)
                    stop -= 1
                below = self.full >> (self.width - stop)
        return found
