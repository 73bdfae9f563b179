"""Scoring: the Docs and the journal of a task to a Score each and a Result a metric.

Docs and answers are read a chunk at a time; only their values are kept.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from tinyeval import metrics
from tinyeval.errors import TaskError
from tinyeval.evaluation.judging import Item, Job, Judged
from tinyeval.evaluation.processes import Judges
from tinyeval.evaluation.statistics import resample, summarize
from tinyeval.inference.folder import RunFolder, models_of
from tinyeval.inference.journal import Spots
from tinyeval.metrics import Metric
from tinyeval.records import Grammar, Result, Score

CHUNK_DOCS = 64
CHUNK_BYTES = 8 << 20

Early = Mapping[tuple[str, str], Mapping[str, Judged]]
"""(model, task) to Doc id to what was judged while the run went on."""


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to the Docs of a task.

    Attributes:
        docs: how many there are.
        failed: without a score.
        cut_by_length: share of the generated answers that ended at the token limit; None if none was generated.
        truncated: Docs whose prompt was cut.
        violations: answers that break the task's grammar, though they were not cut; None without a grammar.
        refused: why the task was not asked at all.
    """

    docs: int
    failed: int
    cut_by_length: float | None
    truncated: int
    violations: int | None = None
    refused: str | None = None


class TaskScores(msgspec.Struct, frozen=True, kw_only=True):
    """A task's outcome for one model."""

    results: dict[str, Result]
    answers: Answers


class Tally:
    """Adds up what Docs are worth.

    Args:
        job: what they are judged by.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._metrics: list[Metric] = [metrics.get(name) for name in job.metrics]
        self._values = {m.name: array("d") for m in self._metrics if m.per != "corpus"}
        self._rows: dict[str, list[tuple[Any, ...]]] = {m.name: [] for m in self._metrics if m.per == "corpus"}
        self._owners: list[tuple[str, str | None, str | None]] = []
        self._docs = self._failed = self._finished = self._cut = self._violations = self._truncated = 0

    def add(self, judged: Judged) -> None:
        """Adds a Doc."""
        score = judged.score
        self._docs += 1
        self._finished += judged.finished
        self._cut += judged.cut
        self._violations += judged.violations
        self._truncated += judged.truncated
        if score.error is not None:
            self._failed += 1
            return
        for name, values in self._values.items():
            values.append(score.values[name])
        for name, rows in self._rows.items():
            rows.append(score.statistics[name])
        self._owners.append((score.doc, score.cluster, score.question))

    @property
    def answers(self) -> Answers:
        """What happened to the Docs so far."""
        return Answers(
            docs=self._docs,
            failed=self._failed,
            cut_by_length=self._cut / self._finished if self._finished else None,
            truncated=self._truncated,
            violations=self._violations if self._job.grammar else None,
            refused=self._job.refused,
        )

    def results(self) -> dict[str, Result]:
        """A Result a metric."""
        repeats = any(question is not None for _, _, question in self._owners)
        shared = repeats or any(cluster is not None for _, cluster, _ in self._owners)
        questions = [question or doc for doc, _, question in self._owners] if repeats else None
        clusters = [cluster or question or doc for doc, cluster, question in self._owners] if shared else None
        found: dict[str, Result] = {}
        for m in self._metrics:
            if m.per == "corpus":
                found[m.name] = resample(m, self._rows[m.name], self._failed, clusters)
            else:
                bounds = (m.lowest, m.highest)
                found[m.name] = summarize(self._values[m.name], self._failed, clusters, questions, bounds)
        return found


def score_run(
    folder: RunFolder, judges: Judges | None = None, early: Early | None = None
) -> dict[str, dict[str, TaskScores]]:
    """Scores every journal of a run, in the order of its models and tasks, and writes the values of each Doc.

    Args:
        folder: the run's.
        judges: who judges; None: as many processes as there are cores.
        early: what was judged already.

    Raises:
        RunError: the folder is damaged or can't be written.
        TaskError: a metric is unknown to this version.
    """
    if judges is None:
        with Judges() as own:
            return score_run(folder, own, early)
    record = folder.record
    outcome: dict[str, dict[str, TaskScores]] = {}
    for model in models_of(record):
        found = record.models.get(model)
        refused = found.refused if found else {}
        outcome[model] = {}
        for task, known in record.tasks.items():
            grammar = msgspec.convert(record.settings["tasks"][task]["generation_grammar"], Grammar | None)
            job = Job(tuple(known.metric), grammar, refused.get(task))
            try:
                tally = Tally(job)
            except KeyError as e:
                raise TaskError(f"{task}: {e.args[0]}") from e
            with Spots(folder.journal(model, task)) as spots:
                docs = folder.docs(task, known.effective_num_docs)
                judged = _judged(job, docs, spots, judges, (early or {}).get((model, task), {}))
                folder.write_lines(model, task, _tallied(tally, judged))
            outcome[model][task] = TaskScores(results=tally.results(), answers=tally.answers)
    return outcome


def _tallied(tally: Tally, judged: Iterable[Judged]) -> Iterator[Score]:
    for one in judged:
        tally.add(one)
        yield one.score


def _judged(
    job: Job, docs: Iterable[tuple[str, bytes]], spots: Spots, judges: Judges, early: Mapping[str, Judged]
) -> Iterator[Judged]:
    """Every Doc judged, in their order."""
    order: deque[Judged | None] = deque()

    def unknown() -> Iterator[Item]:
        for name, line in docs:
            known = early.get(name)
            order.append(known)
            if known is None:
                yield line, spots.entries(name)

    for chunk in judges.judge_all(job, chunked(unknown())):
        for one in chunk:
            while (known := order.popleft()) is not None:
                yield known
            yield one
    yield from filter(None, order)


def chunked(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Items in lists of bounded length and size."""
    chunk: list[Item] = []
    size = 0
    for item in items:
        chunk.append(item)
        size += len(item[0]) + sum(map(len, item[1]))
        if len(chunk) == CHUNK_DOCS or size > CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
