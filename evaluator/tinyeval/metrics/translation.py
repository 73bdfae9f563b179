"""Machine translation: BLEU, chrF and TER, equal to sacrebleu's values, on a scale of 0 to 1.

All references of a sample are its own, and samples may have different numbers of them. Rows of sufficient statistics
add up, so a corpus value is a formula over weighted sums of rows:

* BLEU: words of the prediction, words of the reference nearest in length, right n-grams and all n-grams, n = 1..4;
* chrF: for each order the n-grams of the prediction, of the reference, and of both;
* TER: edits to the nearest reference, and the mean number of words of the references.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tinyeval.metrics.distance import word_edits
from tinyeval.metrics.registry import Sample, Statistics

if TYPE_CHECKING:
    import numpy as np

    from tinyeval.metrics.registry import Values, Weights

    _Table = np.ndarray[tuple[int, int], np.dtype[np.float64]]

_ORDER = 4
_CHARACTERS = 6
_WORDS = 2
_BETA2 = 4

_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))
_MARKS = (
    (re.compile(r"([!-&(-+/:-@\[-`{-~])"), r" \1 "),
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])-"), r"\1 - "),
)
_CHINESE = re.compile(
    "([\u2001-\u2a6d\u2e80-\u2fdf\u2ff0-\u303f\u3100-\u312f\u31a0-\u31ef\u3200-\u4db5\u4e00-\u9fbb\uf900-\ufa2d"
    "\ufa30-\ufa6a\ufa70-\ufad9\ufe10-\ufe1f\ufe30-\ufe4f\uff00-\uffef])"
)


def bleu_counts(sample: Sample) -> tuple[int, ...]:
    """The row of BLEU over mteval-v13a words."""
    return _bleu_row(sample, _words_13a)


def bleu_zh_counts(sample: Sample) -> tuple[int, ...]:
    """The row of BLEU over Chinese characters."""
    return _bleu_row(sample, _words_zh)


def bleu(rows: Sequence[Statistics], weights: Weights) -> Values:
    """Corpus BLEU-4 on a scale of 0 to 1 (sacrebleu's value / 100).

    Words are cut as mteval-v13a does, case counts, and an order without a right n-gram is smoothed exponentially
    (`exp`). An n-gram is right as often as any one reference has it; the brevity penalty takes each sample's
    reference nearest in length. A sample without references has only wrong n-grams and is as long as it should be.
    Text without spaces, such as Chinese, is hardly cut into words: take bleu_zh for it.

    Source: Papineni et al. 2002, "BLEU"; sacrebleu 2.6.0, BLEU().
    """
    return _bleu(rows, weights, 4)


def bleu_1(rows: Sequence[Statistics], weights: Weights) -> Values:
    """Corpus BLEU over single words: precision with the brevity penalty; else as bleu.

    lighteval's `bleu_1` is the mean of unsmoothed sentence values instead.

    Source: sacrebleu 2.6.0, BLEU(max_ngram_order=1).
    """
    return _bleu(rows, weights, 1)


def bleu_2(rows: Sequence[Statistics], weights: Weights) -> Values:
    """Corpus BLEU over n-grams of 1 and 2 words (cumulative); else as bleu.

    Source: sacrebleu 2.6.0, BLEU(max_ngram_order=2).
    """
    return _bleu(rows, weights, 2)


def bleu_3(rows: Sequence[Statistics], weights: Weights) -> Values:
    """Corpus BLEU over n-grams of 1 to 3 words (cumulative); else as bleu.

    Source: sacrebleu 2.6.0, BLEU(max_ngram_order=3).
    """
    return _bleu(rows, weights, 3)


def bleu_zh(rows: Sequence[Statistics], weights: Weights) -> Values:
    """Corpus BLEU-4 over Chinese characters; what is not Chinese is cut into words as in bleu.

    Characters beyond U+FFFF are not cut, as in sacrebleu.

    Source: sacrebleu 2.6.0, BLEU(tokenize="zh").
    """
    return _bleu(rows, weights, 4)


def sentence_bleu(sample: Sample) -> float:
    """BLEU-4 of one answer against all its references; words and smoothing as in bleu.

    An answer of fewer than 4 words is judged by the n-grams that it has (effective order). 0 without a right word.

    Source: sacrebleu 2.6.0, BLEU(effective_order=True).sentence_score.
    """
    return _sentence_bleu(bleu_counts(sample), 4)


def sentence_bleu_1(sample: Sample) -> float:
    """BLEU of one answer over single words; else as sentence_bleu.

    Source: sacrebleu 2.6.0, BLEU(max_ngram_order=1, effective_order=True).sentence_score.
    """
    return _sentence_bleu(bleu_counts(sample), 1)


def sentence_bleu_2(sample: Sample) -> float:
    """BLEU of one answer over n-grams of 1 and 2 words (cumulative); else as sentence_bleu.

    Source: sacrebleu 2.6.0, BLEU(max_ngram_order=2, effective_order=True).sentence_score.
    """
    return _sentence_bleu(bleu_counts(sample), 2)


def sentence_bleu_3(sample: Sample) -> float:
    """BLEU of one answer over n-grams of 1 to 3 words (cumulative); else as sentence_bleu.

    Source: sacrebleu 2.6.0, BLEU(max_ngram_order=3, effective_order=True).sentence_score.
    """
    return _sentence_bleu(bleu_counts(sample), 3)


def sentence_bleu_zh(sample: Sample) -> float:
    """BLEU-4 of one answer over Chinese characters, cut as in bleu_zh; else as sentence_bleu.

    Source: sacrebleu 2.6.0, BLEU(tokenize="zh", effective_order=True).sentence_score.
    """
    return _sentence_bleu(bleu_zh_counts(sample), 4)


def chrf_counts(sample: Sample) -> tuple[int, ...]:
    """The row of chrF."""
    return _chrf_row(sample, 0)


def chrf_plus_plus_counts(sample: Sample) -> tuple[int, ...]:
    """The row of chrF++."""
    return _chrf_row(sample, _WORDS)


def chrf(rows: Sequence[Statistics], weights: Weights) -> Values:
    """Corpus chrF2 on a scale of 0 to 1 (sacrebleu's value / 100): F over n-grams of 1 to 6 characters.

    Recall weighs twice as much as precision. White space is left out, case counts. Of several references the one
    that gives the sample's highest value counts; a sample without references has only wrong n-grams.

    Source: Popović 2015, "chrF: character n-gram F-score for automatic MT evaluation"; sacrebleu 2.6.0, CHRF().
    """
    return _chrf(_sums(rows, weights, 3 * _CHARACTERS)) / 100


def chrf_plus_plus(rows: Sequence[Statistics], weights: Weights) -> Values:
    """Corpus chrF++ on a scale of 0 to 1: chrf with n-grams of 1 and 2 words besides those of characters.

    Words are what is between white space, an ASCII punctuation mark at their end (or else at their beginning) a word
    of its own.

    Source: Popović 2017, "chrF++: words helping character n-grams"; sacrebleu 2.6.0, CHRF(word_order=2).
    """
    return _chrf(_sums(rows, weights, 3 * (_CHARACTERS + _WORDS))) / 100


def ter_counts(sample: Sample) -> tuple[float, float]:
    """The row of TER."""
    predicted = sample.prediction.lower().split()
    if not sample.references:
        size = max(1, len(predicted))
        return size, size
    wanted = [reference.lower().split() for reference in sample.references]
    return min(word_edits(predicted, words) for words in wanted), sum(map(len, wanted)) / len(wanted)


def ter(rows: Sequence[Statistics], weights: Weights) -> Values:
    """Translation edit rate, 0 to infinity (sacrebleu's value / 100); lower is better.

    Edits a word of the references: words inserted, deleted or replaced, and runs of words moved. Words are what is
    between white space, lower-cased; Chinese text has hardly any, so that an answer is right or wrong as a whole. Of
    several references the nearest one's edits count, and the mean of their lengths. A sample without references has
    each word wrong (1 in all). Where the words of both texts multiply to more than 4 million, no runs are moved.

    Source: Snover et al. 2006, "A Study of Translation Edit Rate with Targeted Human Annotation"; sacrebleu 2.6.0,
    TER().
    """
    import numpy as np

    edits, words = _sums(rows, weights, 2).T
    return np.where(words > 0, edits / np.where(words > 0, words, 1.0), (edits > 0).astype(np.float64))


def _sums(rows: Sequence[Statistics], weights: Weights, size: int) -> _Table:
    import numpy as np

    return weights @ np.asarray(rows, dtype=np.float64).reshape(-1, size)


def _words_13a(text: str) -> list[str]:
    text = text.rstrip().replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    for entity, mark in _ENTITIES:
        text = text.replace(entity, mark)
    return _marks_apart(f" {text} ")


def _words_zh(text: str) -> list[str]:
    return _marks_apart(_CHINESE.sub(r" \1 ", text.strip()))


def _marks_apart(text: str) -> list[str]:
    for pattern, spaced in _MARKS:
        text = pattern.sub(spaced, text)
    return text.split()


def _ngrams(words: Sequence[str], order: int) -> Counter[Any]:
    return Counter(zip(*(words[at:] for at in range(order)), strict=False))


def _shared(a: Counter[Any], b: Counter[Any]) -> int:
    fewer, more = sorted((a, b), key=len)
    return sum(min(n, more[gram]) for gram, n in fewer.items() if gram in more)


def _bleu_row(sample: Sample, cut: Callable[[str], list[str]]) -> tuple[int, ...]:
    predicted = cut(sample.prediction)
    wanted = [cut(reference) for reference in sample.references]
    size = len(predicted)
    nearest = min((len(words) for words in wanted), key=lambda n: (abs(n - size), n), default=size)
    right: list[int] = []
    for order in range(1, _ORDER + 1):
        most: Counter[Any] = Counter()
        for words in wanted:
            most |= _ngrams(words, order)
        right.append(_shared(_ngrams(predicted, order), most))
    return size, nearest, *right, *(max(0, size - order) for order in range(_ORDER))


def _bleu(rows: Sequence[Statistics], weights: Weights, order: int, effective: bool = False) -> Values:
    import numpy as np

    sums = _sums(rows, weights, 2 + 2 * _ORDER)
    size, wanted = sums[:, 0], sums[:, 1]
    right, total = sums[:, 2 : 2 + order], sums[:, 2 + _ORDER : 2 + _ORDER + order]
    there = total > 0
    halvings = np.cumsum(there & (right == 0), axis=1)
    precision = np.where(right > 0, right, 0.5**halvings) / np.where(there, total, 1.0)
    orders = np.maximum(there.sum(axis=1), 1) if effective else order
    mean = np.exp(np.where(there, np.log(precision), 0.0).sum(axis=1) / orders)
    brevity = np.exp(np.minimum(0.0, 1 - wanted / np.maximum(size, 1e-300)))
    counts = (right[:, 0] > 0) & (effective | there.all(axis=1))
    return np.where(counts, np.minimum(1.0, brevity * mean), 0.0)


def _sentence_bleu(row: tuple[int, ...], order: int) -> float:
    import numpy as np

    return float(_bleu([row], np.ones((1, 1)), order, effective=True)[0])


def _chrf_row(sample: Sample, word_order: int) -> tuple[int, ...]:
    import numpy as np

    counts: list[list[int]] = [[] for _ in sample.references or "-"]
    texts = ["".join(text.split()) for text in (sample.prediction, *sample.references)]
    for order in range(1, _CHARACTERS + 1):
        _count(counts, (Counter(t[i : i + order] for i in range(len(t) - order + 1)) for t in texts))
    words = [_chrf_words(text) for text in (sample.prediction, *sample.references)] if word_order else []
    for order in range(1, word_order + 1):
        _count(counts, (_ngrams(part, order) for part in words))
    return tuple(counts[int(np.argmax(_chrf(np.asarray(counts, dtype=np.float64))))])


def _count(counts: list[list[int]], ngrams: Iterator[Counter[Any]]) -> None:
    """Adds one order's n-grams: those of the prediction come first, then those of each reference."""
    predicted = next(ngrams)
    total = predicted.total()
    for row in counts:
        wanted = next(ngrams, None)
        if wanted is None:
            row += total, 0, 0
        else:
            row += total if wanted else 0, wanted.total(), _shared(predicted, wanted)


def _chrf_words(text: str) -> list[str]:
    words: list[str] = []
    for word in text.split():
        if len(word) > 1 and word[-1] in string.punctuation:
            words += word[:-1], word[-1]
        elif len(word) > 1 and word[0] in string.punctuation:
            words += word[0], word[1:]
        else:
            words.append(word)
    return words


def _chrf(sums: _Table) -> Values:
    """0 to 100; added up order by order as in sacrebleu, so that equal references are told apart as there."""
    import numpy as np

    precision, recall, orders = np.zeros((3, len(sums)))
    for predicted, wanted, both in sums.T.reshape(-1, 3, len(sums)):
        there = (predicted > 0) & (wanted > 0)
        precision += np.where(there, both / np.where(there, predicted, 1.0), 0.0)
        recall += np.where(there, both / np.where(there, wanted, 1.0), 0.0)
        orders += there
    precision /= np.maximum(orders, 1.0)
    recall /= np.maximum(orders, 1.0)
    some = precision + recall > 0
    return 100 * np.where(some, (1 + _BETA2) * precision * recall / np.where(some, _BETA2 * precision + recall, 1), 0)
