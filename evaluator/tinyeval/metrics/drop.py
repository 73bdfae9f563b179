"""DROP: answers of one or several spans, aligned one to one.

A reference or prediction of several spans is a JSON array of strings (`["3", "Tom Brady"]`); any other text is one
span.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence

import msgspec

_PUNCTUATION = str.maketrans("", "", string.punctuation)


def drop_em(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """1 if prediction and reference have the same spans after DROP's normalisation, in any order.

    Several spans are written as a JSON array of strings, on both sides. Normalisation: lower case, split at spaces
    and hyphens, ASCII punctuation deleted from words that are no numbers, numbers compared as floats, "a", "an",
    "the" dropped. As in the official script the hyphen of -5 is lost, and so is the point of $3.50.

    Unlike the script, a span that normalises to nothing ("A", "!") is compared as it is, in lower case, so it equals
    no empty answer.

    Source: DROP (Dua et al. 2019), `drop_eval.py` of allennlp-reading-comprehension.
    """
    predicted, wanted = (_normalised(text) for text in (prediction, reference))
    return float(len(predicted) == len(wanted) and set(predicted) == set(wanted))


def drop_f1(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """The mean word F1 of DROP's best one-to-one alignment of spans.

    Spans as in drop_em. Each span is a set of words, as in the official script (the paper says bag). A reference
    span with numbers scores only against a predicted one that has one of them. Spans left over on either side count
    as 0. Not rounded, where the official script rounds each answer to two decimals.

    Source: DROP (Dua et al. 2019), `drop_eval.py` of allennlp-reading-comprehension.
    """
    predicted, wanted = ([frozenset(s.split(" ")) - {""} for s in _normalised(t)] for t in (prediction, reference))
    scores = [[_f1(gold, found) if _numbers_agree(gold, found) else 0.0 for found in predicted] for gold in wanted]
    return best_total(scores) / max(len(predicted), len(wanted))


def best_total(scores: Sequence[Sequence[float]]) -> float:
    """The largest sum of scores when each row is given a column of its own, or each column a row of its own.

    The Hungarian method with potentials (Kuhn 1955, Munkres 1957): time grows with rows² · columns, rows being the
    shorter side.
    """
    if len(scores) > len(scores[0]):
        scores = list(zip(*scores, strict=True))
    rows, columns = len(scores), len(scores[0])
    row_price, column_price = [0.0] * (rows + 1), [0.0] * (columns + 1)
    owner, came_from = [0] * (columns + 1), [0] * (columns + 1)
    for row in range(1, rows + 1):
        owner[0], column = row, 0
        slack, seen = [float("inf")] * (columns + 1), [False] * (columns + 1)
        while owner[column]:
            seen[column] = True
            i, step, nearest = owner[column], float("inf"), 0
            for j in range(1, columns + 1):
                if seen[j]:
                    continue
                gap = -scores[i - 1][j - 1] - row_price[i] - column_price[j]
                if gap < slack[j]:
                    slack[j], came_from[j] = gap, column
                if slack[j] < step:
                    step, nearest = slack[j], j
            for j in range(columns + 1):
                if seen[j]:
                    row_price[owner[j]] += step
                    column_price[j] -= step
                else:
                    slack[j] -= step
            column = nearest
        while column:
            owner[column] = owner[came_from[column]]
            column = came_from[column]
    return sum(scores[owner[j] - 1][j - 1] for j in range(1, columns + 1) if owner[j])


def _normalised(text: str) -> list[str]:
    return [_normalise(span) for span in _spans(text)]


def _spans(text: str) -> list[str]:
    if not text.lstrip().startswith("["):
        return [text]
    try:
        return msgspec.json.decode(text, type=list[str]) or [""]
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return [text]


def _normalise(span: str) -> str:
    words = (_word(word) for word in re.split("[ -]", span.lower()))
    return " ".join(w for w in words if w) or span.strip().lower()


def _word(text: str) -> str:
    if not _is_number(text):
        text = text.translate(_PUNCTUATION)
    if _is_number(text):
        return str(float(text))
    return " ".join(re.sub(r"\b(?:a|an|the)\b", " ", text).split())


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numbers_agree(gold: frozenset[str], found: frozenset[str]) -> bool:
    numbers = {w for w in gold if _is_number(w)}
    return not numbers or not numbers.isdisjoint(found)


def _f1(gold: frozenset[str], found: frozenset[str]) -> float:
    if not gold or not found:
        return float(gold == found)
    return 2 * len(gold & found) / (len(gold) + len(found))
