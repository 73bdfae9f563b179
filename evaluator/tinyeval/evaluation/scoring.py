"""Scoring: the Docs and the journal of a task to a Score each and a Result a metric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tinyeval import metrics
from tinyeval.errors import TaskError
from tinyeval.evaluation.statistics import summarize
from tinyeval.grammars import obeys
from tinyeval.inference.folder import RunFolder, models_of
from tinyeval.inference.journal import UNPREPARED, Entry, Place, read
from tinyeval.metrics import Metric
from tinyeval.records import Doc, Grammar, Result, Score

UNASKED = "not answered yet: run the same command again"


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
    scores: list[Score]


def score_run(folder: RunFolder) -> dict[str, dict[str, TaskScores]]:
    """Scores every journal of a run, in the order of its models and tasks.

    Raises:
        RunError: the folder is damaged.
        TaskError: a metric is unknown to this version.
    """
    record = folder.record
    outcome: dict[str, dict[str, TaskScores]] = {}
    for model in models_of(record):
        found = record.models.get(model)
        refused = found.refused if found else {}
        outcome[model] = {}
        for task, known in record.tasks.items():
            try:
                wanted = [metrics.get(name) for name in known.metric]
            except KeyError as e:
                raise TaskError(f"{task}: {e.args[0]}") from e
            entries = read(folder.journal(model, task))
            grammar = msgspec.convert(record.settings["tasks"][task]["generation_grammar"], Grammar | None)
            docs = folder.docs(task, known.effective_num_docs)
            outcome[model][task] = score_task(wanted, docs, entries, refused.get(task), grammar)
    return outcome


def score_task(
    wanted: Sequence[Metric],
    docs: Sequence[Doc],
    entries: dict[Place, Entry],
    refused: str | None = None,
    grammar: Grammar | None = None,
) -> TaskScores:
    """Scores one journal.

    Args:
        wanted: the task's metrics.
        docs: the task's Docs.
        entries: the journal.
        refused: why the task was not asked, if it was not.
        grammar: what the answers had to look like.
    """
    scores = [_score(wanted, doc, entries, refused) for doc in docs]
    failed = sum(s.error is not None for s in scores)
    results = {
        metric.name: summarize([s.values[metric.name] for s in scores if s.error is None], failed) for metric in wanted
    }
    used = [e for e in entries.values() if e.response is not None]
    finished = [r for e in used if (r := e.response) is not None and r.finish_reason is not None]
    cut = sum(r.finish_reason == "length" for r in finished)
    violations = None
    if grammar:  # an answer that was cut by length can't be whole
        whole = [r for r in finished if r.finish_reason != "length"]
        violations = sum(not obeys(r.text, grammar) for r in whole)
    answers = Answers(
        docs=len(docs),
        failed=failed,
        cut_by_length=cut / len(finished) if finished else None,
        truncated=len({e.doc for e in used if e.removed}),
        violations=violations,
        refused=refused,
    )
    return TaskScores(results=results, answers=answers, scores=scores)


def _score(wanted: Sequence[Metric], doc: Doc, entries: dict[Place, Entry], refused: str | None) -> Score:
    unprepared = entries.get(Place(doc.id, UNPREPARED))
    if unprepared:
        return Score(doc=doc.id, error=unprepared.error)
    generates = any(m.needs == "generative" for m in wanted)
    chooses = any(m.needs == "loglikelihood" for m in wanted)
    count = generates + (len(doc.choices) if chooses else 0)
    found = [entries.get(Place(doc.id, i)) for i in range(count)]
    for entry in found:
        if entry is None:
            return Score(doc=doc.id, error=f"refused: {refused}" if refused else UNASKED)
        if entry.response is None:
            return Score(doc=doc.id, error=entry.error)
    responses = [e.response for e in found if e and e.response]
    if generates and responses[0].finish_reason is None:
        return Score(doc=doc.id, error="the journal's answer is no generation: the task asked for something else then")
    values: dict[str, float] = {}
    for metric in wanted:
        if metric.needs == "generative":
            arguments: tuple[Any, Any] = (responses[0].text, doc.references)
        else:
            logprobs = [r.logprob for r in responses[generates:]]
            if any(p is None for p in logprobs):
                return Score(doc=doc.id, error="a choice has no log-probability")
            arguments = (logprobs, doc.gold_index)
        values[metric.name] = metric(*arguments, doc.choices)
    return Score(doc=doc.id, values=values)
