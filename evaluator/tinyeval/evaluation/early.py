"""Scoring while a run goes on: Docs whose answers are complete are scored by other processes meanwhile."""

from __future__ import annotations

from concurrent.futures import Future

import msgspec

from tinyeval.evaluation.docs import Item, Job, Scored
from tinyeval.evaluation.processes import Scorers
from tinyeval.evaluation.scoring import CHUNK_DOCS
from tinyeval.inference.journal import UNPREPARED, Entry
from tinyeval.inference.plan import Plan
from tinyeval.inference.scheduler import Observer
from tinyeval.records import Doc


class EarlyScorer:
    """An observer that passes everything on to another one, and scorers what is complete.

    Docs that were answered in part by an earlier sitting are left to `score_run`, which gives the others the same
    values, and so are too few to be worth a process.

    Args:
        observer: who watches the run.
        plan: what is asked.
        scorers: who scorers.
    """

    def __init__(self, observer: Observer, plan: Plan, scorers: Scorers) -> None:
        self._observer = observer
        self._scorers = scorers
        self._jobs = {
            name: Job(tuple(task.config.definition.metric), task.config.definition.generation_grammar)
            for name, task in plan.tasks.items()
        }
        self._tasks = plan.tasks
        self._docs: dict[str, dict[str, Doc]] = {t: {d.id: d for d in docs} for t, docs in plan.docs.items()}
        self._answered: dict[tuple[str, str, str], dict[int, Entry]] = {}
        self._complete: dict[tuple[str, str], list[Item]] = {}
        self._futures: dict[tuple[str, str], list[Future[list[Scored]]]] = {}

    def begin(self, model: str, task: str, docs: int, done: int) -> None:
        """See Observer."""
        self._observer.begin(model, task, docs, done)

    def answered(self, model: str, task: str, entry: Entry) -> None:
        """See Observer."""
        self._observer.answered(model, task, entry)
        job, doc = self._jobs[task], self._docs[task][entry.doc]
        if self._tasks[task].judged or not job.travels:
            return
        known = self._answered.setdefault((model, task, doc.id), {})
        known[entry.index] = msgspec.structs.replace(entry, prompt="")
        if UNPREPARED in known or len(known) == len(self._tasks[task].construct_requests(doc, "")):
            del self._answered[model, task, doc.id]
            line = msgspec.json.encode(msgspec.structs.replace(doc, query="", instruction=""))
            items = self._complete.setdefault((model, task), [])
            items.append((line, [msgspec.json.encode(e) for e in known.values()]))
            if len(items) == CHUNK_DOCS:
                self._futures.setdefault((model, task), []).append(self._scorers.submit(job, items))
                self._complete[model, task] = []

    def finished(self, model: str, task: str) -> None:
        """See Observer."""
        self._observer.finished(model, task)

    def outcome(self) -> dict[tuple[str, str], dict[str, Scored]]:
        """What was scored, by model and task and by Doc; waits for what is being scored.

        Raises:
            RunError: a process has died.
        """
        return {
            place: {one.score.doc: one for future in futures for one in future.result()}
            for place, futures in self._futures.items()
        }
