"""Task: rows to Docs, Docs to the requests that its metrics need."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from tinyeval.errors import DataError, TaskError
from tinyeval.metrics import Metric
from tinyeval.metrics import get as get_metric
from tinyeval.metrics.registry import REQUESTS
from tinyeval.records import Doc, GreedyUntil, Loglikelihood, Request
from tinyeval.tasks.config import TaskConfig
from tinyeval.tasks.rows import Row, read_rows

_ASKED = {"generative": "generate", "judge": "generate", "loglikelihood": "loglikelihood"}
"""What a metric needs to what an endpoint must be able to do."""


class Task:
    """A named, versioned set of questions.

    Args:
        config: what defines it.

    Raises:
        TaskError: a metric is unknown, or lacks what it needs.
    """

    def __init__(self, config: TaskConfig) -> None:
        self.config = config
        self.name = config.identity
        try:
            self.metrics: list[Metric] = [get_metric(name) for name in config.definition.metric]
        except KeyError as e:
            raise TaskError(f"{self.name}: {e.args[0]}") from e
        for metric in self.metrics:
            if metric.missing:
                raise TaskError(f"{self.name}: {metric.missing}")
            if metric.needs not in _ASKED:
                raise TaskError(
                    f"{self.name}: the metric {metric.name} needs {REQUESTS[metric.needs]}, which a run does not ask "
                    f"yet; from Python it judges what you have: metrics.get({metric.name!r})(...)."
                )
        self._rows: list[Row] | None = None

    def docs(self, rows: Iterable[Row]) -> list[Doc]:
        """Formats rows; a Doc's id is its row's `id` or `_id`, else the row's number from 0.

        Raises:
            DataError: names the row and what is wrong with it.
        """
        out: list[Doc] = []
        seen: dict[str, int] = {}
        for number, row in enumerate(rows):
            where = f"{self.config.path}, row {number + 1}"
            try:
                built = self.config.prompt_function(row, self.name)
            except DataError as e:
                raise DataError(f"{where}: {e}") from e
            several = built if isinstance(built, list) else [built] if built else []
            for part, doc in enumerate(several):
                identity = doc.id or str(row.get("id", row.get("_id", number)))
                identity = f"{identity}.{part}" if len(several) > 1 else identity
                if identity in seen:
                    raise DataError(
                        f"{where}: the id {identity!r} is already that of row {seen[identity]}; give each row its own."
                    )
                seen[identity] = number + 1
                self._check(doc, where)
                out.append(msgspec.structs.replace(doc, id=identity))
        return out

    def eval_docs(self, limit: int | None = None) -> list[Doc]:
        """The Docs to evaluate: the first `limit` of the task's data, in its order."""
        if self._rows is None:
            self._rows = read_rows(self.config.path)
        return self.docs(self._rows[:limit])

    @property
    def original_num_docs(self) -> int:
        """Rows of the data file."""
        if self._rows is None:
            self._rows = read_rows(self.config.path)
        return len(self._rows)

    @property
    def needs(self) -> set[str]:
        """What an endpoint must be able to do: `generate`, `loglikelihood`, `grammar:json`, `grammar:regex`."""
        found = {_ASKED[m.needs] for m in self.metrics}
        grammar = self.config.definition.generation_grammar
        return found | ({f"grammar:{grammar.type}"} if grammar else set())

    @property
    def judged(self) -> bool:
        """Whether a judge has to compare its answers with the references."""
        return any(m.needs == "judge" for m in self.metrics)

    def construct_requests(self, doc: Doc, context: str) -> list[Request]:
        """The requests that the metrics need for one Doc; what several metrics need is asked once.

        Args:
            doc: the question.
            context: its prompt as the model will see it.

        Returns:
            One GreedyUntil if any metric is generative, then one Loglikelihood a choice if any needs them.
        """
        d = self.config.definition
        requests: list[Request] = []
        if "generate" in self.needs:
            requests.append(
                GreedyUntil(
                    context=context,
                    stop_sequence=tuple(d.stop_sequence),
                    generation_size=d.generation_size,
                    grammar=d.generation_grammar,
                )
            )
        if "loglikelihood" in self.needs:
            requests += [Loglikelihood(context=context, continuation=f" {choice}") for choice in doc.choices]
        return requests

    def _check(self, doc: Doc, where: str) -> None:
        if not doc.query.strip():
            raise DataError(f"{where}: the prompt is empty.")
        for metric in self.metrics:
            chooses = metric.needs == "loglikelihood"
            if not chooses and not doc.references:
                raise DataError(f"{where}: the metric {metric.name} needs references; the task names none.")
            if chooses and (len(doc.choices) < 2 or not doc.gold_index):
                raise DataError(f"{where}: the metric {metric.name} needs at least two choices and a gold one.")
            reasons = (metric.check(r, doc.choices) for r in ([""] if chooses else doc.references))
            if reason := next(filter(None, reasons), None):
                raise DataError(f"{where}: the metric {metric.name}: {reason}.")
            if lacking := [field for field in metric.reads if field not in doc.specific]:
                raise DataError(
                    f"{where}: the metric {metric.name} reads {lacking[0]!r}: name the row's field in the task's "
                    f'specific, such as specific = {{{lacking[0]} = "FIELD"}}.'
                )


def digest(docs: Iterable[Doc]) -> str:
    """A short fingerprint of Docs: changes when any of their content or their order does."""
    h = hashlib.sha256()
    for doc in docs:
        h.update(msgspec.json.encode(doc) + b"\n")
    return h.hexdigest()[:16]
