"""What a metric is, and how it is found by name.

Three forms, by what is judged at once:

* one reference: `f(prediction, reference, choices) -> float`; the best reference counts;
* one sample, all its references together: `f(sample) -> float`, registered with `per="sample"`;
* the whole task: `f(sample) -> tuple` of sufficient statistics a sample, and `combine(rows, weights)`, which makes
  one value of all rows for each line of weights. Weights of one give the score, resampled ones its bootstrap.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec

from tinyeval.errors import nearest

if TYPE_CHECKING:
    import numpy as np

    Weights = np.ndarray[tuple[int, int], np.dtype[np.float64]]
    Values = np.ndarray[tuple[int], np.dtype[np.float64]]

Needs = Literal["generative", "judge", "sampling", "loglikelihood", "pmi", "target_perplexity", "perplexity"]
Statistics = tuple[Any, ...]
Combine = Callable[[Sequence[Statistics], "Weights"], "Values"]

REQUESTS: dict[Needs, str] = {
    "generative": "one GreedyUntil",
    "judge": "one GreedyUntil, and two of the judge's: with the answer before the reference and after it",
    "sampling": "one GreedyUntil with several samples",
    "loglikelihood": "one Loglikelihood a choice",
    "pmi": "two Loglikelihoods a choice: after the question, and after the unconditioned query",
    "target_perplexity": "one Loglikelihood a gold",
    "perplexity": "one LoglikelihoodRolling",
}
"""The requests behind each need."""


class Continuation(msgspec.Struct, frozen=True, kw_only=True):
    """What a log-likelihood request told of a continuation.

    Attributes:
        logprob: summed natural log-probability, in nats.
        tokens: tokens of the continuation, where the server told.
        greedy: whether it was the greedy one, where the server told.
        unconditioned: its log-probability after the unconditioned query (PMI).
    """

    logprob: float
    tokens: int | None = None
    greedy: bool | None = None
    unconditioned: float | None = None


class Sample(msgspec.Struct, frozen=True):
    """One question's answer and what it is judged by.

    Attributes:
        prediction: a text (generative), several texts (sampling, the judge's verdicts), or a Continuation a choice,
            gold or text.
        references: acceptable answers; for log-likelihoods of choices the positions of the right ones.
        choices: the choices or classes.
        specific: further fields of the Doc that a metric reads.
    """

    prediction: Any
    references: Sequence[Any]
    choices: Sequence[str] = ()
    specific: Mapping[str, Any] = {}


def _anything(reference: str, choices: Sequence[str]) -> str | None:
    return None


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """A metric by name.

    Attributes:
        name: as tasks write it.
        function: judges; its form is told by `per`.
        needs: what it judges, see REQUESTS.
        per: what it judges at once: a `reference`, a `sample` or the `corpus`.
        combine: rows of statistics (n) and weights (b, n) to values (b,); a corpus metric's only.
        check: why a reference can't be judged with these choices, in a phrase, or None when it can.
        reads: fields of `Doc.specific` that it can't do without.
        lowest: the least value.
        highest: the greatest value.
        higher_is_better: whether a greater value is a better one.
        extra: the optional dependencies it needs, `tinyeval[...]`.
        module: the module that shows whether these are installed.
    """

    name: str
    function: Callable[..., Any]
    needs: Needs = "generative"
    per: Literal["reference", "sample", "corpus"] = "reference"
    combine: Combine | None = None
    check: Callable[[str, Sequence[str]], str | None] = _anything
    reads: tuple[str, ...] = ()
    lowest: float = 0.0
    highest: float = 1.0
    higher_is_better: bool = True
    extra: str | None = None
    module: str | None = None

    @property
    def worst(self) -> float:
        """The value of an answer without anything right."""
        return self.lowest if self.higher_is_better else self.highest

    @property
    def missing(self) -> str | None:
        """What has to be installed before it can be used, in a sentence; None: nothing."""
        if self.module is None or importlib.util.find_spec(self.module):
            return None
        return f"{self.name} needs the package {self.module}: pip install 'tinyeval[{self.extra}]'."

    @property
    def description(self) -> str:
        """The definition, as the function's docstring gives it."""
        function = self.combine or self.function
        while isinstance(function, functools.partial):
            function = cast("Callable[..., Any]", function.func)
        return inspect.cleandoc(function.__doc__ or "")

    def __call__(
        self,
        prediction: Any,
        references: Any,
        choices: Sequence[str] | None = None,
        specific: Mapping[str, Any] | None = None,
    ) -> float:
        """The value of one prediction; a corpus metric takes it for the whole corpus.

        Args:
            prediction: a text, several texts (sampling), or log-probabilities in nats (floats or Continuations).
            references: acceptable answers (the best one counts; none gives the worst value), or gold positions.
            choices: the choices or classes, where the metric reads them.
            specific: further fields, where the metric reads them.

        Raises:
            TypeError: the prediction is not what the metric judges. None is no empty answer: count it as failed.
            ImportError: an optional dependency is not installed.
        """
        if self.missing:
            raise ImportError(self.missing)
        return self.value(Sample(self._judged(prediction), self._golds(references), choices or (), specific or {}))

    def value(self, sample: Sample) -> float:
        """The value of a sample whose fields are of the right types already."""
        if self.per == "corpus":
            return self.total([self.function(sample)])
        if self.per == "sample":
            return float(self.function(sample))
        best = max if self.higher_is_better else min
        values = (float(self.function(sample.prediction, gold, sample.choices)) for gold in sample.references)
        return best(values, default=self.worst)

    def total(self, rows: Sequence[Statistics]) -> float:
        """A corpus metric's value of all rows of statistics."""
        import numpy as np

        assert self.combine
        return float(self.combine(rows, np.ones((1, len(rows))))[0])

    def _judged(self, prediction: Any) -> Any:
        if self.needs == "generative":
            if isinstance(prediction, str):
                return prediction
            raise TypeError(f"{self.name} judges a text, not {_kind(prediction)}.")
        values = cast("Sequence[Any]", [prediction] if isinstance(prediction, int | float) else prediction)
        texts = self.needs in ("sampling", "judge")
        wanted = str if texts else int | float | Continuation
        listed = isinstance(values, Sequence) and not isinstance(values, str)  # pyright: ignore[reportUnnecessaryIsInstance]
        if not listed or not all(isinstance(v, wanted) for v in values):
            what = "several texts" if texts else "log-probabilities"
            raise TypeError(f"{self.name} judges {what}, not {_kind(prediction)}.")
        if texts:
            return values
        return [v if isinstance(v, Continuation) else Continuation(logprob=float(v)) for v in values]

    def _golds(self, references: Any) -> Sequence[Any]:
        values = cast("Sequence[Any]", [references] if isinstance(references, str | int | float) else references)
        return values if self.needs in ("loglikelihood", "pmi") else [str(v) for v in values]


_metrics: dict[str, Metric] = {}
_families: dict[str, tuple[re.Pattern[str], Metric]] = {}


def register(name: str, function: Callable[..., Any], **attributes: Any) -> None:
    """Makes a metric known.

    Args:
        name: its name; `{k}` in it stands for a number and `{of}` for a word, which the function gets by these names.
        function: judges; `combine` makes it a corpus metric, `per="sample"` one of whole samples.
        attributes: further ones of Metric.

    Raises:
        ValueError: the name is taken.
    """
    if name in _metrics or name in _families:
        raise ValueError(f"a metric is already named {name!r}")
    if "combine" in attributes:
        attributes["per"] = "corpus"
    metric = Metric(name=name, function=function, **attributes)
    if "{" in name:
        pattern = re.escape(name).replace(r"\{k\}", r"(?P<k>[1-9]\d*)")
        _families[name] = re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>\\w+)", pattern)), metric
    else:
        _metrics[name] = metric


def get(name: str) -> Metric:
    """The metric of that name, or of the family that the name belongs to.

    Raises:
        KeyError: there is none; the message has the nearest names.
    """
    if found := _metrics.get(name):
        return found
    for family, (pattern, metric) in _families.items():
        if name == family:
            return metric
        if match := pattern.fullmatch(name):
            given = {k: int(v) if v.isdecimal() else v for k, v in match.groupdict().items()}
            return msgspec.structs.replace(metric, name=name, function=functools.partial(metric.function, **given))
    raise KeyError(f"no metric is named {name!r}{nearest(name, names())}; `tinyeval metrics list` shows all.")


def names() -> list[str]:
    """All metric names, sorted; a family by its pattern, such as `pass@{k}`."""
    return sorted([*_metrics, *_families])


def _kind(value: Any) -> str:
    return "None: an answer that is missing counts as failed" if value is None else f"a {type(value).__name__}"
