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
from tinyeval.evaluation.docs import Item, Job, Scored
from tinyeval.evaluation.processes import Scorers
from tinyeval.evaluation.statistics import agreement, resample, summarize
from tinyeval.inference.folder import RunFolder, models_of
from tinyeval.inference.journal import VERDICTS, Entry, Spots
from tinyeval.metrics import Metric
from tinyeval.records import Grammar, Result, Score
from tinyeval.tasks.verdict import verdict_ids

CHUNK_DOCS = 64
CHUNK_BYTES = 8 << 20

Early = Mapping[tuple[str, str], Mapping[str, Scored]]
"""(model, task) to Doc id to what was scored while the run went on."""


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
        job: what they are scored by.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._metrics: list[Metric] = [metrics.get(name) for name in job.metrics]
        self._values = {m.name: array("d") for m in self._metrics if m.per != "corpus"}
        rows = [m.name for m in self._metrics if m.per == "corpus" or m.needs == "judge"]
        self._rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in rows}
        self._owners: list[tuple[str, str | None, str | None]] = []
        self._docs = self._failed = self._finished = self._cut = self._violations = self._truncated = 0

    def add(self, scored: Scored) -> None:
        """Adds a Doc."""
        score = scored.score
        self._docs += 1
        self._finished += scored.finished
        self._cut += scored.cut
        self._violations += scored.violations
        self._truncated += scored.truncated
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
            if m.needs == "judge":
                found[m.name] = msgspec.structs.replace(found[m.name], agreement=agreement(self._rows[m.name]))
        return found


def score_run(
    folder: RunFolder, scorers: Scorers | None = None, early: Early | None = None
) -> dict[str, dict[str, TaskScores]]:
    """Scores every journal of a run, in the order of its models and tasks, and writes the values of each Doc.

    Args:
        folder: the run's.
        scorers: who scorers; None: as many processes as there are cores.
        early: what was scored already.

    Raises:
        RunError: the folder is damaged or can't be written.
        TaskError: a metric is unknown to this version.
    """
    if scorers is None:
        with Scorers() as own:
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
            with Spots(folder.journal(model, task)) as spots, Spots(folder.judge_journal(model, task)) as verdicts:
                docs = folder.docs(task, known.effective_num_docs)
                items = ((name, line, spots.entries(name) + _verdicts(name, verdicts)) for name, line in docs)
                scored = _scored(job, items, scorers, (early or {}).get((model, task), {}))
                folder.write_lines(model, task, _tallied(tally, scored))
            outcome[model][task] = TaskScores(results=tally.results(), answers=tally.answers)
    return outcome


def _tallied(tally: Tally, scored: Iterable[Scored]) -> Iterator[Score]:
    for one in scored:
        tally.add(one)
        yield one.score


def _verdicts(doc: str, spots: Spots) -> list[bytes]:
    """The judge's entries about a Doc, as entries of that Doc."""
    found: list[bytes] = []
    for index, name in zip(VERDICTS, verdict_ids(doc), strict=True):
        for line in spots.entries(name):
            entry = msgspec.json.decode(line, type=Entry)
            found.append(msgspec.json.encode(msgspec.structs.replace(entry, doc=doc, index=index, prompt="")))
    return found


def _scored(
    job: Job, docs: Iterable[tuple[str, bytes, list[bytes]]], scorers: Scorers, early: Mapping[str, Scored]
) -> Iterator[Scored]:
    """Every Doc scored, in their order."""
    order: deque[Scored | None] = deque()

    def unknown() -> Iterator[Item]:
        for name, line, entries in docs:
            known = early.get(name)
            order.append(known)
            if known is None:
                yield line, entries

    for chunk in scorers.score_all(job, chunked(unknown())):
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
