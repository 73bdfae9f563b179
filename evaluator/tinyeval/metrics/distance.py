"""How far texts are apart, and how much of a source a summary repeats.

The search for moved words, which TER needs, gives sacrebleu's numbers in a fraction of its time: a move is measured by
the true distance (rapidfuzz), and by the walk near the diagonal only where that may differ and it would be the best.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
from collections.abc import Iterator, Sequence

import regex

from tinyeval.metrics.registry import Sample

_WORD = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]|[\w--[\p{Han}\p{Hiragana}\p{Katakana}]]+|[^\w\s]", regex.V1)

_BEAM = 25
_SHIFT_WORDS = 10
_SHIFT_DISTANCE = 50
_SHIFTS_TRIED = 1000
_CELLS = 4_000_000
_FAR = 1 << 60
_BOTH, _DROP, _ADD = range(3)


def edit_distance(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """Levenshtein distance, 0 to infinity; lower is better.

    The fewest characters to insert, delete or replace that make one text of the other. Every character counts, white
    space and letter case too. lighteval counts words (Treebank) instead.

    Source: Levenshtein 1966, "Binary codes capable of correcting deletions, insertions, and reversals".
    """
    from rapidfuzz.distance import Levenshtein

    return float(Levenshtein.distance(prediction, reference, score_hint=64))


def edit_similarity(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """1 - edit_distance / characters of the longer text; 1 where both are empty.

    Source: Lee et al. 2022, "Deduplicating Training Data Makes Language Models Better".
    """
    longer = max(len(prediction), len(reference))
    return 1.0 - edit_distance(prediction, reference) / longer if longer else 1.0


def longest_common_prefix(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """Characters that both texts begin with, 0 to infinity: how far a model repeats a text it has seen.

    Every character counts, white space and letter case too; 0 where either text is empty. A higher value counts as
    better, so of several references the one that is repeated furthest counts.

    Source: HELM 0.2, copyright metrics, longest_common_prefix_length, over characters.
    """
    from rapidfuzz.distance import Prefix

    return float(Prefix.similarity(prediction, reference))


def summarization_coverage(sample: Sample) -> float:
    """The share of the answer's words that are in fragments copied from the source, `specific["text"]`.

    Fragments are found from the answer's beginning on: at each word the longest run of words that the source has
    too, then on behind it. A word is a run of letters and digits, lower-cased; a Chinese or Japanese character and a
    punctuation mark are words of their own. The references do not matter. 0 for an answer without words.

    Source: Grusky et al. 2018, "Newsroom" (fragments by its algorithm in figure 3); words not by spaCy as there.
    """
    size, _, fragments = _fragments(sample)
    return sum(fragments) / size if size else 0.0


def summarization_density(sample: Sample) -> float:
    """The mean length of the copied fragment that a word of the answer is in, 0 to infinity.

    Sum of squared fragment lengths / words of the answer; words and fragments as in summarization_coverage, a word
    outside of fragments counts 0. The length of the answer where all of it is copied in one piece; 0 for an answer
    without words.

    Source: Grusky et al. 2018, "Newsroom"; words not by spaCy as there.
    """
    size, _, fragments = _fragments(sample)
    return sum(n * n for n in fragments) / size if size else 0.0


def summarization_compression(sample: Sample) -> float:
    """Words of the source, `specific["text"]`, for each word of the answer, 0 to infinity.

    Words as in summarization_coverage. 0 for an answer without words.

    Source: Grusky et al. 2018, "Newsroom"; words not by spaCy as there.
    """
    size, source, _ = _fragments(sample)
    return source / size if size else 0.0


def word_edits(predicted: list[str], wanted: list[str]) -> int:
    """The edits of TER: words inserted, deleted or replaced, and runs of words moved, that make one text of the other.

    Moves are searched for as Tercom and sacrebleu do: always the one that saves most, until none saves any or 1000
    were tried. Where the numbers of words multiply to more than 4 million, none are.
    """
    from rapidfuzz.distance import Levenshtein

    numbers: dict[str, int] = {}
    have, need = ([numbers.setdefault(word, len(numbers)) for word in words] for words in (predicted, wanted))
    if not have or not need or len(have) * len(need) > _CELLS:
        return Levenshtein.distance(have, need)
    shifts = tried = 0
    while True:
        edits, path = _beam(have, need)
        shifted, tried = _best_shift(have, need, edits, path, tried)
        if tried >= _SHIFTS_TRIED or not shifted:
            return shifts + edits
        have = shifted
        shifts += 1


def _best_shift(
    have: list[int], need: list[int], edits: int, path: list[int], tried: int
) -> tuple[list[int] | None, int]:
    """The shift that saves most edits, if one saves any, and how many were tried so far."""
    from rapidfuzz.distance import Levenshtein

    aligned: list[int] = []
    wrong_have: list[bool] = []
    wrong_need: list[bool] = []
    for step in path:
        at = len(wrong_have)
        wrong = step != _BOTH or have[at] != need[len(aligned)]
        if step != _ADD:
            wrong_have.append(wrong)
        if step != _DROP:
            wrong_need.append(wrong)
            aligned.append(len(wrong_have) - 1)
    best: tuple[int, ...] = (0,)
    found: list[int] | None = None
    for start, target, size in _common_runs(have, need):
        end = start + size
        if not any(wrong_have[start:end]) or not any(wrong_need[target : target + size]):
            continue
        if start <= aligned[target] < end:
            continue
        places = dict.fromkeys(aligned[at] + 1 if at >= 0 else 0 for at in range(target - 1, target + size))
        for place in places:
            rest = have[:start] + have[end:]
            at = place - size if place > end else place
            shifted = [*rest[:at], *have[start:end], *rest[at:]]
            tried += 1
            # What the beam finds is never below the true distance, and equal to it where no path leaves the beam.
            distance = Levenshtein.distance(shifted, need, score_cutoff=edits - max(1, best[0]))
            rank = (edits - distance, size, -start, -place)
            if rank[0] > 0 and rank > best and distance + abs(len(have) - len(need)) > 2 * (_BEAM - 3):
                rank = (edits - _beam(shifted, need)[0], *rank[1:])
            if rank[0] > 0 and rank > best:
                best, found = rank, shifted
        if tried >= _SHIFTS_TRIED:
            break
    return found, tried


def _common_runs(have: list[int], need: list[int]) -> Iterator[tuple[int, int, int]]:
    """Start in one text, start in the other and length of each run of words that both have."""
    places: dict[int, list[int]] = {}
    for at, word in enumerate(need):
        places.setdefault(word, []).append(at)
    for start, word in enumerate(have):
        near = places.get(word, [])
        for target in near[bisect.bisect_left(near, start - _SHIFT_DISTANCE) :]:
            if target > start + _SHIFT_DISTANCE:
                break
            most = min(_SHIFT_WORDS, len(have) - start, len(need) - target)
            for size in range(1, most + 1):
                if have[start + size - 1] != need[target + size - 1]:
                    break
                yield start, target, size


def _beam(have: list[int], need: list[int]) -> tuple[int, list[int]]:
    """Edit distance and the steps of one of its paths, found near the diagonal only."""
    count = len(need)
    ratio = count / len(have)
    width = math.ceil(ratio / 2 + _BEAM) if ratio / 2 > _BEAM else _BEAM
    above = list(range(count + 1))
    rows: list[tuple[int, bytearray]] = []
    for i, word in enumerate(have, 1):
        middle = math.floor(i * ratio)
        low, high = max(0, middle - width), min(count + 1, middle + width) if i < len(have) else count + 1
        row = [_FAR] * (count + 1)
        steps = bytearray()
        left = _FAR
        for j in range(low, high):
            cost, step = (above[j - 1] + (word != need[j - 1]), _BOTH) if j else (_FAR, _BOTH)
            if above[j] + 1 < cost:
                cost, step = above[j] + 1, _DROP
            if left + 1 < cost:
                cost, step = left + 1, _ADD
            row[j] = left = cost
            steps.append(step)
        rows.append((low, steps))
        above = row
    path: list[int] = []
    i, j = len(have), count
    while i or j:
        step = rows[i - 1][1][j - rows[i - 1][0]] if i else _ADD
        path.append(step)
        i -= step != _ADD
        j -= step != _DROP
    path.reverse()
    return above[-1], path


def _fragments(sample: Sample) -> tuple[int, int, tuple[int, ...]]:
    """Words of the answer, words of the source, and the lengths of the fragments."""
    source = sample.specific.get("text")
    if not isinstance(source, str):
        raise ValueError('specific["text"], the text that is summarised, is missing')
    return _copied(sample.prediction, source)


@functools.lru_cache(maxsize=1)
def _copied(summary: str, source: str) -> tuple[int, int, tuple[int, ...]]:
    have, text = ([word.lower() for word in _WORD.findall(part)] for part in (summary, source))
    single = set(text)
    places: dict[tuple[str, ...], list[int]] = {pair: [] for pair in itertools.pairwise(have)}
    for at, pair in enumerate(itertools.pairwise(text)):
        if pair in places:
            places[pair].append(at)
    seen: dict[tuple[str, ...], list[str]] = {}
    lengths: list[int] = []
    at = 0
    while at < len(have):
        pair = tuple(have[at : at + 2])
        run = seen.get(pair)
        if pair not in places or not places[pair]:
            size = int(have[at] in single)
        elif run and have[at : at + len(run)] == run:
            size = len(run) - 1
        else:
            size = _longest_run(have, at, text, places[pair])
            if at + size < len(have):
                seen[pair] = have[at : at + size + 1]
        if size:
            lengths.append(size)
        at += size or 1
    return len(have), len(text), tuple(lengths)


def _longest_run(have: list[str], at: int, text: list[str], places: list[int]) -> int:
    """Words from `at` on that the text has at one of the places, where the first two match; none inside another run.

    A run of one word can't hide another, so places of two equal words suffice.
    """
    longest, behind = 0, 0
    for start in places:
        if start < behind:
            continue
        size, most = 2, min(len(have) - at, len(text) - start)
        while size < most and have[at + size] == text[start + size]:
            size += 1
        longest, behind = max(longest, size), start + size
    return longest
