"""A sitting of a run: connects its models, proves what the tasks need, asks what is not answered yet."""

from __future__ import annotations

import asyncio
import datetime
import shlex
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec

from tinyeval.config import ModelConfig
from tinyeval.endpoints.capabilities import Capability, prove, prove_grammar
from tinyeval.endpoints.protocol import Endpoint
from tinyeval.errors import EndpointError, Unsupported
from tinyeval.inference.folder import ModelRecord, RunFolder, RunRecord
from tinyeval.inference.journal import Journal, read
from tinyeval.inference.plan import Plan
from tinyeval.inference.scheduler import Observer, Scheduler, Work, is_done
from tinyeval.tasks import Task


def complete(folder: RunFolder, plan: Plan, before: RunRecord | None, *, retry_failed: bool = False) -> bool:
    """Whether nothing is left to ask, so that no server is needed.

    Args:
        folder: the run's.
        plan: what is asked.
        before: the record of the last sitting. Another URL may be another model: it must be looked at.
        retry_failed: whether recorded failures are to be asked again.
    """
    models = before.models if before else {}
    if set(models) != set(plan.config.models) or any(m.refused for m in models.values()):
        return False
    if any(models[name].url != model.url for name, model in plan.config.models.items()):
        return False
    for model in models:
        for name, task in plan.tasks.items():
            ended = {p for p, e in read(folder.journal(model, name)).items() if e.error is None or not retry_failed}
            if not all(is_done(ended, task, doc) for doc in plan.docs[name]):
                return False
    return True


async def look_again(folder: RunFolder, plan: Plan, say: Callable[[str], None]) -> None:
    """Looks whether the servers of a finished run still serve what it asked, as far as they can be reached.

    Raises:
        RunError: one serves another model now.
    """
    from tinyeval.endpoints.detect import connect

    record = folder.record
    for name, model in plan.config.models.items():
        if model.api == "local":  # its weights are named in the settings
            continue
        try:
            endpoint = await connect(name, model, plan.config.seed, None, datetime.date.fromisoformat(record.date))
        except EndpointError as e:
            say(f"These are the answers of the last sitting; {name} was not looked at again: {e}")
            continue
        try:
            known = record.models[name]
            folder.connected(name, msgspec.structs.replace(known, identity=endpoint.identity))
        finally:
            await endpoint.close()


async def ask_all(
    folder: RunFolder, plan: Plan, observer: Observer, say: Callable[[str], None], *, retry_failed: bool = False
) -> None:
    """Asks all models in parallel until everything is journalled.

    All servers must answer at the start; after that a model that can do none of the tasks, or whose server fails,
    does not hold back the others.

    Raises:
        Unsupported: no model can do any of the tasks.
        EndpointError: a server can't be used any more; what was answered is kept.
    """
    async with AsyncExitStack() as stack:
        endpoints = await connect_all(plan, folder, stack)
        jobs: dict[str, tuple[Scheduler, list[Work]]] = {}
        for name, endpoint in endpoints.items():
            model = plan.config.models[name]
            proved = await prove(endpoint, {need for task in plan.tasks.values() for need in task.needs})
            refused = await _refusals(plan, endpoint, model, proved)
            found = ModelRecord(identity=endpoint.identity, url=model.url, capabilities=proved, refused=refused)
            folder.connected(name, found)
            for task, remedy in refused.items():
                say(f"{name}: {task} is refused: {remedy}")
            work: list[Work] = []
            for task in plan.tasks:
                if task not in refused:
                    journal = Journal(folder.journal(name, task), retry_failed=retry_failed)
                    stack.callback(journal.close)
                    work.append(Work(plan.tasks[task], plan.docs[task], journal))
            if work:
                jobs[name] = Scheduler(name, endpoint, model, observer), work
        if not jobs:
            raise Unsupported(f"{', '.join(endpoints)} can do none of the tasks.")
        ended = await asyncio.gather(*(s.run(work) for s, work in jobs.values()), return_exceptions=True)
    errors = {name: e for name, e in zip(jobs, ended, strict=True) if e is not None}
    for name, error in errors.items():
        if not isinstance(error, EndpointError) or len(endpoints) == 1:
            raise error
        say(f"{name}: {error}")
    if errors:
        raise EndpointError(
            f"{', '.join(errors)} could not be finished; all answers so far are kept, and "
            f"`tinyeval score {shlex.quote(str(folder.path))}` shows their scores."
        )


async def connect_all(plan: Plan, folder: RunFolder | None, stack: AsyncExitStack) -> dict[str, Endpoint]:
    """Opens all models at once; `stack` closes them. The first that fails ends it before anything is asked."""
    from tinyeval.endpoints.detect import connect

    date = datetime.date.fromisoformat(folder.record.date) if folder else None

    async def one(name: str, model: ModelConfig) -> Endpoint:
        log: Path | None = None
        if folder and model.api == "local":
            log = folder.path / name
            log.mkdir(parents=True, exist_ok=True)
        endpoint: Endpoint = await connect(name, model, plan.config.seed, log, date)
        stack.push_async_callback(endpoint.close)
        return endpoint

    items = plan.config.models.items()
    found = await asyncio.gather(*(one(n, m) for n, m in items), return_exceptions=True)
    for result in found:
        if isinstance(result, BaseException):
            raise result
    return {n: e for (n, _), e in zip(items, found, strict=True) if not isinstance(e, BaseException)}


def misfits(task: Task, endpoint: Endpoint, model: ModelConfig) -> list[str]:
    """What keeps a task from being asked, as far as it shows without asking anything."""
    found: list[str] = []
    size, limit = task.config.definition.generation_size or 1, endpoint.identity.max_total_tokens
    if "generate" in task.needs and size >= limit:
        found.append(f"its generation_size of {size} tokens does not fit into the model's {limit}")
    if model.chat and not endpoint.has_chat_template:
        other = ", or name a tokenizer that has one" if endpoint.identity.api == "tgi" else ""
        found.append(f"chat = true, but the server has no chat template: leave chat out{other}")
    return found


async def _refusals(
    plan: Plan, endpoint: Endpoint, model: ModelConfig, proved: dict[str, Capability]
) -> dict[str, str]:
    """The tasks that can't be asked, each with the reason and the remedy."""
    refused: dict[str, str] = {}
    for name, task in plan.tasks.items():
        lacking = [f"it needs {n}: {proved[n].remedy}" for n in sorted(task.needs) if not proved[n].ok]
        lacking += misfits(task, endpoint, model)
        definition = task.config.definition
        if definition.generation_grammar and not lacking:
            own = await prove_grammar(endpoint, definition.generation_grammar)
            lacking += [] if own.ok else [own.remedy]
        if lacking:
            refused[name] = "; ".join(lacking)
    return refused
