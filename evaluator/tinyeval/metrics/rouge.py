"""ROUGE-L as LongBench and the package `rouge` 1.0.1 define it: summary level, over sets of words.

Sentences end at every ".", the words of a text form a set, and each reference sentence contributes the new
words of its longest common subsequences with the predicted sentences. f = 2pr / (p + r + 1e-8), so a perfect
match is 0.999999995. On ties the walk through the table moves on the prediction's side first. Unlike the
package, nothing here recurses, so long texts have their true value instead of 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinyeval.metrics.words import cut


def rouge(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """ROUGE-L f-measure over the words between spaces (`rouge_score`); 0 if either text has no sentence."""
    return _rouge_l(prediction, reference)


def rouge_zh(prediction: str, reference: str, choices: Sequence[str] = ()) -> float:
    """ROUGE-L f-measure over jieba words (`rouge_zh_score`)."""
    return _rouge_l(" ".join(cut(prediction)), " ".join(cut(reference)))


def _rouge_l(prediction: str, reference: str) -> float:
    predicted, wanted = _sentences(prediction), _sentences(reference)
    if not predicted or not wanted:
        return 0.0
    union: set[str] = set()
    for sentence in wanted:
        for candidate in predicted:
            union |= _common(sentence, candidate)
    precision = len(union) / len({w for s in predicted for w in s})
    recall = len(union) / len({w for s in wanted for w in s})
    return 2.0 * ((precision * recall) / (precision + recall + 1e-8))


def _sentences(text: str) -> list[list[str]]:
    return [" ".join(part.split()).split(" ") for part in text.split(".") if part]


def _common(x: list[str], y: list[str]) -> set[str]:
    """The words of one longest common subsequence of x (reference) and y (prediction)."""
    rows = [[0] * (len(y) + 1)]
    for a in x:
        above, row = rows[-1], [0]
        for j, b in enumerate(y):
            row.append(above[j] + 1 if a == b else max(above[j + 1], row[j]))
        rows.append(row)
    found: set[str] = set()
    i, j = len(x), len(y)
    while i and j:
        if x[i - 1] == y[j - 1]:
            i, j = i - 1, j - 1
            found.add(x[i])
        elif rows[i - 1][j] > rows[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return found
