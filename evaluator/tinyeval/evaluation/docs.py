"""One Doc and its answers to a Score: a pure function, the same in whichever process it runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from tinyeval import metrics
from tinyeval.grammars import obeys
from tinyeval.inference.journal import UNPREPARED, VERDICTS, Entry
from tinyeval.metrics import Continuation, Metric, Sample
from tinyeval.metrics.verdict import verdicts
from tinyeval.records import Doc, Grammar, Response, Score

UNASKED = "not answered yet: run the same command again"

Item = tuple[bytes, list[bytes]]
"""A Doc and its entries, each as the line of its file."""


class Job(msgspec.Struct, frozen=True, array_like=True):
    """What all Docs of a task are scored by.

    Attributes:
        metrics: their names.
        grammar: what the answers had to look like.
        refused: why the task was not asked, if it was not.
    """

    metrics: tuple[str, ...]
    grammar: Grammar | None = None
    refused: str | None = None

    @property
    def travels(self) -> bool:
        """Whether another process knows these metrics: those that a program registered itself are known there only."""
        functions = (metrics.get(name).function for name in self.metrics)
        modules = (getattr(getattr(f, "func", f), "__module__", "") for f in functions)
        return all(module.startswith("tinyeval.") for module in modules)


class Scored(msgspec.Struct, frozen=True, array_like=True):
    """A Doc's Score, and what happened to its answers.

    Attributes:
        score: its values or the reason of its failure.
        finished: generated answers.
        cut: those of them that ended at the token limit.
        violations: those of them that break the grammar, though they were not cut.
        truncated: whether its prompt was cut.
    """

    score: Score
    finished: int
    cut: int
    violations: int
    truncated: bool


_doc_decoder = msgspec.json.Decoder(Doc)
_entry_decoder = msgspec.json.Decoder(Entry)


def score_docs(job: Job, items: Sequence[Item]) -> list[Scored]:
    """Scores Docs.

    Args:
        job: what by.
        items: the Docs with their entries; of a request that was asked again, the last one.
    """
    wanted = [metrics.get(name) for name in job.metrics]
    return [
        score_doc(wanted, job, _doc_decoder.decode(doc), [_entry_decoder.decode(line) for line in lines])
        for doc, lines in items
    ]


def score_doc(wanted: Sequence[Metric], job: Job, doc: Doc, entries: Sequence[Entry]) -> Scored:
    """Scores one Doc; see `score_docs`."""
    used = [e for e in entries if e.response is not None and e.index not in VERDICTS]
    finished = [r for e in used if (r := e.response) is not None and r.finish_reason is not None]
    whole = [r for r in finished if r.finish_reason != "length"]  # an answer that was cut by length can't be whole
    values: dict[str, float] = {}
    statistics: dict[str, tuple[Any, ...]] = {}
    error = None
    try:
        for metric in wanted:
            sample = _sample(metric, wanted, doc, entries, job.refused)
            if metric.per == "corpus":
                statistics[metric.name] = metric.function(sample)
            else:
                values[metric.name] = metric.value(sample)
            if metric.needs == "judge":
                statistics[metric.name] = verdicts(sample.prediction)
    except ValueError as e:
        values, statistics, error = {}, {}, str(e)
    score = Score(
        doc=doc.id, values=values, statistics=statistics, error=error, cluster=doc.cluster, question=doc.question
    )
    return Scored(
        score=score,
        finished=len(finished),
        cut=len(finished) - len(whole),
        violations=sum(not obeys(r.text, job.grammar) for r in whole) if job.grammar else 0,
        truncated=any(e.removed for e in used),
    )


def _sample(
    metric: Metric, wanted: Sequence[Metric], doc: Doc, entries: Sequence[Entry], refused: str | None
) -> Sample:
    """What a metric judges.

    Raises:
        ValueError: it can't; the message is the reason of the Doc's failure.
    """
    generates = any(m.needs in ("generative", "judge") for m in wanted)
    chooses = any(m.needs == "loglikelihood" for m in wanted)
    known = {e.index: e for e in entries}
    asked = range(generates + (len(doc.choices) if chooses else 0))
    responses = _responses(known, [UNPREPARED] if UNPREPARED in known else asked, refused)
    if generates and responses[0].finish_reason is None:
        raise ValueError("the journal's answer is no generation: the task asked for something else then")
    if metric.needs == "generative":
        return Sample(responses[0].text, doc.references, doc.choices, doc.specific)
    if metric.needs == "judge":
        try:
            texts = [r.text for r in _responses(known, VERDICTS, None)]
        except ValueError as e:
            raise ValueError(f"the judge: {e}") from e
        return Sample(texts, doc.references, doc.choices, doc.specific)
    continuations: list[Continuation] = []
    for r in responses[generates:]:
        if r.logprob is None:
            raise ValueError("a choice has no log-probability")
        continuations.append(Continuation(logprob=r.logprob, tokens=r.completion_tokens, greedy=r.greedy))
    return Sample(continuations, doc.gold_index, doc.choices, doc.specific)


def _responses(known: Mapping[int, Entry], indexes: Iterable[int], refused: str | None) -> list[Response]:
    responses: list[Response] = []
    for index in indexes:
        entry = known.get(index)
        if entry is None:
            raise ValueError(f"refused: {refused}" if refused else UNASKED)
        if entry.response is None:
            raise ValueError(entry.error or "failed without a reason")
        responses.append(entry.response)
    return responses
