"""The judge's sitting: after the models have answered, it compares their answers with the references."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from contextlib import ExitStack

from tinyeval.endpoints.capabilities import prove_grammar
from tinyeval.endpoints.protocol import Endpoint
from tinyeval.errors import Unsupported
from tinyeval.inference.folder import ModelRecord, RunFolder
from tinyeval.inference.journal import Journal, Place, read
from tinyeval.inference.plan import Plan
from tinyeval.inference.scheduler import Observer, Scheduler, Work, is_done
from tinyeval.records import Doc
from tinyeval.tasks import Task
from tinyeval.tasks.verdict import GRAMMAR, verdict_docs, verdict_task


async def prove_judge(folder: RunFolder, plan: Plan) -> None:
    """Looks whether the judge can give verdicts, before anything is asked for it to judge.

    Raises:
        EndpointError: it can't be reached, or can't answer within the grammar.
        RunError: it is another model than the one that judged before.
    """
    if any(task.judged for task in plan.tasks.values()):
        endpoint = await _connect(folder, plan)
        await endpoint.close()


async def ask_judge(
    folder: RunFolder, plan: Plan, observer: Observer, say: Callable[[str], None], *, retry_failed: bool = False
) -> None:
    """Asks the judge for every verdict that its journals do not hold yet; without any it is left alone.

    Raises:
        EndpointError: it can't be used any more; its verdicts so far are kept.
    """
    judged = {name: task for name, task in plan.tasks.items() if task.judged}
    waiting: dict[str, dict[str, list[Doc]]] = {}
    for model in plan.config.models:
        for name, task in judged.items():
            docs = list(_docs(folder, plan, model, task))
            done = {
                p for p, e in read(folder.judge_journal(model, name)).items() if e.error is None or not retry_failed
            }
            if not all(is_done(done, verdict_task(task), doc) for doc in docs):
                waiting.setdefault(model, {})[name] = docs
    if not waiting:
        return
    endpoint = await _connect(folder, plan)
    assert plan.config.judge
    try:
        for model, tasks in waiting.items():
            say(f"The judge compares the answers of {model} with the references.")
            with ExitStack() as stack:
                work: list[Work] = []
                for name, docs in tasks.items():
                    journal = Journal(folder.judge_journal(model, name), retry_failed=retry_failed)
                    stack.callback(journal.close)
                    work.append(Work(verdict_task(judged[name]), docs, journal))
                await Scheduler(f"{model} (judge)", endpoint, plan.config.judge, observer).run(work)
    finally:
        await endpoint.close()


def _docs(folder: RunFolder, plan: Plan, model: str, task: Task) -> Iterator[Doc]:
    """The questions about all answers of a model to a task."""
    entries = read(folder.journal(model, task.name))
    for doc in plan.docs[task.name]:
        entry = entries.get(Place(doc.id, 0))
        if entry and entry.response:
            yield from verdict_docs(task, doc, entry.response.text)


async def _connect(folder: RunFolder, plan: Plan) -> Endpoint:
    from tinyeval.endpoints.detect import connect

    judge = plan.config.judge
    assert judge
    log = None
    if judge.api == "local":
        log = folder.path / "judge"
        log.mkdir(parents=True, exist_ok=True)
    date = datetime.date.fromisoformat(folder.record.date)
    endpoint: Endpoint = await connect("judge", judge, plan.config.seed, log, date)
    try:
        proved = await prove_grammar(endpoint, GRAMMAR)
        if not proved.ok:
            raise Unsupported(f"the judge can't give verdicts: {proved.remedy}.")
        folder.judged_by(ModelRecord(identity=endpoint.identity, url=judge.url, capabilities={"grammar:json": proved}))
    except BaseException:
        await endpoint.close()
        raise
    return endpoint
