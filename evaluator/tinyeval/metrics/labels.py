"""Labels over the whole task: F1 and Matthews correlation, from each class's gold, predicted and right answers.

A row is a sample's gold label and its predicted one. A label of a generated answer is the text without white space
at its ends, casefolded; of a choice, its position. Where a sample has several golds, its gold label is the predicted
one if that is among them, else the first. A sample without a gold is a wrong answer: its gold label is None, a class
that nothing is predicted as.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from tinyeval.metrics.registry import Continuation, Sample, Statistics

if TYPE_CHECKING:
    import numpy as np

    from tinyeval.metrics.registry import Values, Weights

    _Floats = np.ndarray[tuple[Any, ...], np.dtype[np.float64]]
    _Ids = np.ndarray[tuple[int], np.dtype[np.intp]]
    _Table = np.ndarray[tuple[int, int], np.dtype[np.float64]]

_LONGEST_LABEL = 200
"""Characters of the longest label that a row keeps; a digest stands for a longer one."""

_CELLS = 1 << 22
"""Weights that are added up at once: 32 MiB."""


def labels(sample: Sample) -> tuple[str | None, str]:
    """Gold and predicted label of a generated answer."""
    predicted = _label(sample.prediction)
    golds = [_label(reference) for reference in sample.references]
    return predicted if predicted in golds else next(iter(golds), None), predicted


def positions(sample: Sample) -> tuple[int | None, int | None, int]:
    """Gold and predicted choice by position, and how many choices there are.

    Predicted is the choice of the highest summed log-probability; the first of equals.
    """
    values = [c.logprob for c in cast("Sequence[Continuation]", sample.prediction)]
    for i, value in enumerate(values, 1):
        if math.isnan(value) or value == math.inf:
            raise ValueError(f"choice {i} has a log-probability of {value}, which is none")
    for i in sample.references:
        if not 0 <= i < len(values):
            raise ValueError(f"the gold position {i} is none of the {len(values)} choices'")
    predicted = values.index(max(values)) if values else None
    golds = cast("Sequence[int]", sample.references)
    return predicted if predicted in golds else next(iter(golds), None), predicted, len(values)


def f1_macro(rows: Sequence[Statistics], weights: Weights) -> Values:
    """Macro F1 over the whole task: the mean of each class's F1, of an answer's text as its label.

    Labels are compared without white space at their ends and without letter case. Of several references the one that
    the answer equals is the gold label, else the first. The mean is over the classes that occur as gold; scikit-learn
    takes predicted ones too. An answer that is none of these classes is a wrong one of its gold class and no class of
    its own. 0 without a gold.

    Source: Pedregosa et al. 2011, scikit-learn 1.5 `f1_score(average="macro", labels=<gold classes>)`.
    """
    return _joined(rows, weights, _macro_f1)


def f1_micro(rows: Sequence[Statistics], weights: Weights) -> Values:
    """Micro F1 over the whole task: F1 of all classes' answers counted together, of an answer's text as its label.

    An answer has one label, so this is the share of right answers. Labels as in f1_macro.

    Source: Pedregosa et al. 2011, scikit-learn 1.5 `f1_score(average="micro")`.
    """
    return _joined(rows, weights, _micro_f1)


def generative_mcc(rows: Sequence[Statistics], weights: Weights) -> Values:
    """Matthews correlation over the whole task, -1 to 1, of an answer's text as its label.

    Labels as in f1_macro, but every predicted label is a class. 0 is chance; 0 too where all golds or all answers
    are of one class.

    Source: Gorodkin 2004, "Comparing two K-category assignments by a K-category correlation coefficient";
    scikit-learn 1.5 `matthews_corrcoef`.
    """
    return _joined(rows, weights, _matthews)


def mcc(rows: Sequence[Statistics], weights: Weights) -> Values:
    """Matthews correlation over the whole task, -1 to 1, of the likeliest choice and the gold one.

    A choice's class is its position; the likeliest has the highest summed log-probability, the first of equals. Of
    several golds the predicted one counts, else the first. 0 is chance; 0 too where all golds or all predictions are
    of one class.

    Source: Gorodkin 2004, "Comparing two K-category assignments by a K-category correlation coefficient";
    scikit-learn 1.5 `matthews_corrcoef`.
    """
    return _joined(rows, weights, _matthews)


def loglikelihood_f1(rows: Sequence[Statistics], weights: Weights) -> Values:
    """Macro F1 over the whole task, of the likeliest choice and the gold one: the mean of each class's F1.

    A choice's class is its position, as in mcc. The mean is over the classes that occur as gold, for two choices as
    for more; lighteval takes the best class's F1 instead. 0 without a gold.

    Source: Pedregosa et al. 2011, scikit-learn 1.5 `f1_score(average="macro", labels=<gold classes>)`.
    """
    return _joined(rows, weights, _macro_f1)


def multi_f1_numeric(rows: Sequence[Statistics], weights: Weights) -> Values:
    """The mean of each choice's F1 against all others over the whole task, as SuperGLUE judges CB.

    As loglikelihood_f1, but the mean is over all positions of choices: one that is neither gold nor predicted has an
    F1 of 0. The number of positions is that of the sample with most choices.

    Source: Wang et al. 2019, "SuperGLUE" (CommitmentBank); lm-evaluation-harness `cb_multi_fi`.
    """
    count = max((row[2] for row in rows), default=0)
    return _joined(rows, weights, lambda counts: _f1(counts).sum(axis=1) / max(count, 1))


class _Counts(NamedTuple):
    """Weights summed by class: lines of weights down, classes across."""

    gold: _Table
    predicted: _Table
    right: _Table
    missing: _Table


def _label(text: str) -> str:
    label = text.strip().casefold()
    if len(label) <= _LONGEST_LABEL and not any("\ud800" <= c <= "\udfff" for c in label):
        return label
    return "sha256:" + hashlib.sha256(label.encode("utf-8", "surrogatepass")).hexdigest()


def _joined(rows: Sequence[Statistics], weights: Weights, value: Callable[[_Counts], Values]) -> Values:
    import numpy as np

    return np.concatenate([np.zeros(0), *map(value, _counts(rows, weights))])


def _counts(rows: Sequence[Statistics], weights: Weights) -> Iterator[_Counts]:
    """The counts of some lines of weights at a time."""
    import numpy as np

    classes: dict[str | int, int] = {}
    ids = np.array(
        [[-1 if label is None else classes.setdefault(label, len(classes)) for label in row[:2]] for row in rows],
        dtype=np.intp,
    ).reshape(-1, 2)
    gold, predicted = ids.T
    right = np.where(gold == predicted, gold, -1)
    size = max(1, _CELLS // max(1, len(rows), len(classes)))
    for start in range(0, len(weights), size):
        part = weights[start : start + size]
        yield _Counts(
            _summed(part, gold, len(classes)),
            _summed(part, predicted, len(classes)),
            _summed(part, right, len(classes)),
            _summed(part, np.where(gold < 0, 0, -1), 1),
        )


def _summed(weights: Weights, ids: _Ids, classes: int) -> _Table:
    """Sums of the weights of each class; an id of -1 is none."""
    import numpy as np

    table = np.zeros((len(weights), classes))
    order = np.argsort(ids, kind="stable")
    order = order[ids[order] >= 0]
    if len(order):
        present, starts = np.unique(ids[order], return_index=True)
        table[:, present] = np.add.reduceat(weights[:, order], starts, axis=1)
    return table


def _ratio(a: _Floats, b: _Floats) -> _Floats:
    import numpy as np

    return np.where(b > 0, a / np.where(b > 0, b, 1.0), 0.0)


def _f1(counts: _Counts) -> _Floats:
    return _ratio(2 * counts.right, counts.gold + counts.predicted)


def _macro_f1(counts: _Counts) -> Values:
    gold = counts.gold > 0
    return _ratio((_f1(counts) * gold).sum(axis=1), gold.sum(axis=1))


def _total(counts: _Counts) -> Values:
    return counts.gold.sum(axis=1) + counts.missing[:, 0]


def _micro_f1(counts: _Counts) -> Values:
    return _ratio(counts.right.sum(axis=1), _total(counts))


def _matthews(counts: _Counts) -> Values:
    import numpy as np

    total = _total(counts)
    right = counts.right.sum(axis=1) * total - (counts.gold * counts.predicted).sum(axis=1)
    gold = _spread(total, counts.gold, counts.missing[:, 0])
    predicted = _spread(total, counts.predicted, total - counts.predicted.sum(axis=1))
    return np.clip(_ratio(right, np.sqrt(gold * predicted)), -1.0, 1.0)


def _spread(total: Values, counts: _Table, others: Values) -> Values:
    """Pairs of samples of different classes; 0 where only rounding makes it differ from 0."""
    import numpy as np

    pairs = total**2 - (counts**2).sum(axis=1) - others**2
    return np.where(pairs > 1e-12 * total**2, pairs, 0.0)
