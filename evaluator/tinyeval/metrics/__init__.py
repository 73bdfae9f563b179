"""What an answer is worth: pure functions behind one registry.

    from tinyeval import metrics
    metrics.get("qa_f1_zh")("厦门大学。", ["厦门大学"])     # 1.0

Adding a metric is one function and one line: `register("name", function, needs=..., ...)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from tinyeval.errors import nearest

Needs = Literal["generative", "loglikelihood"]


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """A metric by name.

    Attributes:
        name: as tasks write it.
        needs: `generative`: judges a text against references; `loglikelihood`: judges the log-probabilities
            of all choices against the gold positions.
        function: (prediction, one reference, choices) for a generative metric,
            (log-probabilities, gold positions, choices) for a log-likelihood one.
        check: why a reference can't be judged with these choices, in a phrase, or None when it can.
        lowest: the worst value.
        highest: the best value.
    """

    name: str
    needs: Needs
    function: Callable[[Any, Any, Sequence[str]], float]
    check: Callable[[str, Sequence[str]], str | None] = lambda reference, choices: None
    lowest: float = 0.0
    highest: float = 1.0

    def __call__(self, prediction: Any, references: Any, choices: Sequence[str] | None = None) -> float:
        """The value of one prediction.

        Args:
            prediction: a text, or the log-probabilities of the choices in nats.
            references: acceptable answers (the best one counts; none gives the lowest value), or gold positions.
            choices: the choices or classes, where the metric reads them.
        """
        if self.needs == "loglikelihood":
            return float(self.function(prediction, references, choices or ()))
        golds = [references] if isinstance(references, str) else references
        return max((float(self.function(prediction, gold, choices or ())) for gold in golds), default=self.lowest)


_metrics: dict[str, Metric] = {}


def register(
    name: str,
    function: Callable[[Any, Any, Sequence[str]], float],
    needs: Needs = "generative",
    check: Callable[[str, Sequence[str]], str | None] = lambda reference, choices: None,
) -> None:
    """Makes a metric known by name; see Metric for the arguments.

    Raises:
        ValueError: the name is taken.
    """
    if name in _metrics:
        raise ValueError(f"a metric is already named {name!r}")
    _metrics[name] = Metric(name=name, needs=needs, function=function, check=check)


def get(name: str) -> Metric:
    """The metric of that name.

    Raises:
        KeyError: there is none; the message has the nearest names.
    """
    if name not in _metrics:
        raise KeyError(f"no metric is named {name!r}{nearest(name, _metrics)}; known: {', '.join(names())}.")
    return _metrics[name]


def names() -> list[str]:
    """All metric names, sorted."""
    return sorted(_metrics)


from tinyeval.metrics import answers, choice, overlap, rouge  # noqa: E402

register("exact_match", answers.exact_match)
register("accuracy", answers.class_accuracy, check=answers.no_class)
register("classification", answers.classification, check=answers.no_classes)
register("json_exact", answers.json_exact, check=answers.no_fields)
register("json_fields", answers.json_fields, check=answers.no_fields)
register("qa_f1", overlap.qa_f1)
register("qa_f1_zh", overlap.qa_f1_zh)
register("rouge", rouge.rouge)
register("rouge_zh", rouge.rouge_zh)
register("acc", choice.acc, needs="loglikelihood")
register("acc_norm", choice.acc_norm, needs="loglikelihood")
