"""The public functions: run, score, load. Everything the command line does, a notebook can do with these."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tinyeval.config import Config, ModelConfig, decode
from tinyeval.config import load as load_config
from tinyeval.endpoints.protocol import Endpoint
from tinyeval.errors import EndpointError, RunError, SampleError, TaskError, Unsupported
from tinyeval.evaluation.scoring import score_run
from tinyeval.inference.folder import ModelRecord, RunFolder, default_path
from tinyeval.inference.journal import Entry, Journal, read
from tinyeval.inference.prepare import Preparer
from tinyeval.inference.scheduler import Observer, Scheduler, Work, is_done
from tinyeval.records import Doc
from tinyeval.reports.results import build_results, write_results
from tinyeval.tasks import Registry, Task


class Run(NamedTuple):
    """A finished run.

    Attributes:
        path: its folder.
        results: the content of results.json: `results[model][task][metric]` and more.
    """

    path: Path
    results: dict[str, Any]

    @property
    def failed(self) -> int:
        """Docs without a score, over all models and tasks."""
        return sum(a["failed"] for tasks in self.results["answers"].values() for a in tasks.values())


class Preview(NamedTuple):
    """What a dry run shows of a task for a model.

    Attributes:
        model: the model's name.
        task: the task's.
        docs: how many would be asked.
        prompt: the first one's prompt, as it would be sent.
        tokens: the prompts' token counts.
        truncated: how many would be cut.
        problem: why it would be refused or fail.
    """

    model: str
    task: str
    docs: int
    prompt: str
    tokens: list[int]
    truncated: int
    problem: str | None


class Silent:
    """An observer that shows nothing."""

    def begin(self, model: str, task: str, docs: int, done: int) -> None:
        """See Observer."""

    def answered(self, model: str, task: str, entry: Entry) -> None:
        """See Observer."""

    def finished(self, model: str, task: str) -> None:
        """See Observer."""


class _Plan(NamedTuple):
    config: Config
    tasks: dict[str, Task]
    docs: dict[str, list[Doc]]
    path: Path


def run(
    config: Config | str | Path | None = None,
    *,
    models: Mapping[str, ModelConfig] | None = None,
    tasks: Sequence[str] | None = None,
    limit: int | None = None,
    seed: int | None = None,
    output: str | Path | None = None,
    retry_failed: bool = False,
    observer: Observer | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Run:
    """Evaluates served models; goes on where an interrupted run of the same settings has stopped.

    Args:
        config: settings, or the file with them; None: `tinyeval.toml` here, else the embedded demo.
        models: instead of the configuration's.
        tasks: instead of the configuration's.
        limit: at most so many Docs a task.
        seed: of everything drawn.
        output: the run's folder; None: one under the configuration's `output`, the same for the same settings.
        retry_failed: ask recorded failures again.
        observer: watches the run.
        say: is told what a user should know, a sentence at a time.

    Raises:
        UsageError: a mistake in settings, tasks, data or folders; nothing was sent.
        EndpointError: a server can't be used; what was answered is kept, and the same call goes on.
    """
    coroutine = run_async(
        config, models=models, tasks=tasks, limit=limit, seed=seed, output=output,
        retry_failed=retry_failed, observer=observer, say=say,
    )  # fmt: skip
    return _loop(coroutine)


async def run_async(
    config: Config | str | Path | None = None,
    *,
    models: Mapping[str, ModelConfig] | None = None,
    tasks: Sequence[str] | None = None,
    limit: int | None = None,
    seed: int | None = None,
    output: str | Path | None = None,
    retry_failed: bool = False,
    observer: Observer | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Run:
    """`run` as a coroutine."""
    plan = make_plan(config, models=models, tasks=tasks, limit=limit, seed=seed, output=output)
    folder = RunFolder(plan.path)
    if folder.begin(plan.config, plan.tasks, plan.docs):
        say(f"Going on with the run in {plan.path}; finished requests are not sent again.")
    if not _complete(folder, plan, retry_failed):
        await _ask_all(folder, plan, observer or Silent(), say, retry_failed)
    return Run(plan.path, write_results(folder, score_run(folder)))


def preview(
    config: Config | str | Path | None = None,
    *,
    models: Mapping[str, ModelConfig] | None = None,
    tasks: Sequence[str] | None = None,
    limit: int | None = None,
    seed: int | None = None,
) -> list[Preview]:
    """Builds, renders and counts all prompts; generates nothing and writes nothing.

    Raises:
        UsageError: as `run`.
        EndpointError: as `run`.
    """
    return _loop(_preview(make_plan(config, models=models, tasks=tasks, limit=limit, seed=seed, output=None)))


def score(path: str | Path) -> Run:
    """Scores the journals of a run again; needs no server.

    Raises:
        RunError: the folder is no run, or damaged.
    """
    folder = RunFolder(Path(path))
    return Run(folder.path, write_results(folder, score_run(folder)))


def load(path: str | Path) -> Run:
    """A run as it was scored last.

    Raises:
        RunError: it has no results.
    """
    file = Path(path) / "results.json"
    try:
        return Run(Path(path), msgspec.json.decode(file.read_bytes(), type=dict[str, Any]))
    except (OSError, msgspec.DecodeError) as e:
        reason = e.strerror if isinstance(e, OSError) else e
        raise RunError(f"{file} can't be read: {reason}; score the run first: tinyeval score {path}.") from e


def resumed_config(path: Path) -> Config:
    """The configuration of an existing run, to go on with it.

    Raises:
        RunError: the folder is no run.
    """
    return decode(RunFolder(path).record.config, Config, str(path / "run.json"), error=RunError)


def make_plan(
    config: Config | str | Path | None,
    *,
    models: Mapping[str, ModelConfig] | None,
    tasks: Sequence[str] | None,
    limit: int | None,
    seed: int | None,
    output: str | Path | None,
) -> _Plan:
    """Everything that can be known, and can be wrong, before a server is asked."""
    settings = config if isinstance(config, Config) else load_config(Path(config) if config else None)
    changes = {"models": dict(models or {}), "tasks": list(tasks or []), "limit": limit, "seed": seed}
    settings = msgspec.structs.replace(settings, **{k: v for k, v in changes.items() if v not in (None, [], {})})
    chosen = Registry().get_task_dict(settings.tasks)
    if not chosen:
        raise TaskError("no task is named: set tasks in the configuration, or use -t.")
    docs = {name: task.eval_docs(settings.limit) for name, task in chosen.items()}
    path = Path(output) if output else default_path(settings, chosen, docs)
    return _Plan(settings, chosen, docs, path)


def _loop(coroutine: Any) -> Any:
    if sys.platform == "win32":
        return asyncio.run(coroutine)
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(coroutine)


def _complete(folder: RunFolder, plan: _Plan, retry_failed: bool) -> bool:
    """Whether nothing is left to ask, so that no server is needed."""
    models = folder.record.models
    if set(models) != set(plan.config.models) or any(m.refused for m in models.values()):
        return False
    for model in models:
        for name, task in plan.tasks.items():
            ended = {p for p, e in read(folder.journal(model, name)).items() if e.error is None or not retry_failed}
            if not all(is_done(ended, task, doc) for doc in plan.docs[name]):
                return False
    return True


async def _ask_all(
    folder: RunFolder, plan: _Plan, observer: Observer, say: Callable[[str], None], retry_failed: bool
) -> None:
    async with AsyncExitStack() as stack:
        endpoints = await _connect(plan, folder, stack)
        jobs: list[Any] = []
        for name, endpoint in endpoints.items():
            refused = await _prove(folder, plan, name, endpoint)
            for task, remedy in refused.items():
                say(f"{name}: {task} is refused: {remedy}")
            if len(refused) == len(plan.tasks):
                raise Unsupported(f"{name} can do none of the tasks.")
            work: list[Work] = []
            for task in plan.tasks:
                if task not in refused:
                    journal = Journal(folder.journal(name, task), retry_failed=retry_failed)
                    stack.callback(journal.close)
                    work.append(Work(plan.tasks[task], plan.docs[task], journal))
            jobs.append(Scheduler(name, endpoint, plan.config.models[name], observer).run(work))
        ended = await asyncio.gather(*jobs, return_exceptions=True)
    errors = [(name, e) for name, e in zip(endpoints, ended, strict=True) if e is not None]
    for name, error in errors:
        if not isinstance(error, EndpointError) or len(errors) == 1 == len(endpoints):
            raise error
        say(f"{name}: {error}")
    if errors:
        names = ", ".join(name for name, _ in errors)
        raise EndpointError(f"{names} could not be finished; the answers so far are kept.")


async def _connect(plan: _Plan, folder: RunFolder | None, stack: AsyncExitStack) -> dict[str, Endpoint]:
    """Opens all models at once; the first that fails ends the run before anything is sent."""
    from tinyeval.endpoints.detect import connect

    async def one(name: str, model: ModelConfig) -> Endpoint:
        log = folder.path / name if folder else None
        if log:
            log.mkdir(parents=True, exist_ok=True)
        endpoint: Endpoint = await connect(name, model, plan.config.seed, log)
        stack.push_async_callback(endpoint.close)
        return endpoint

    items = plan.config.models.items()
    found = await asyncio.gather(*(one(n, m) for n, m in items), return_exceptions=True)
    for result in found:
        if isinstance(result, BaseException):
            raise result
    return {n: e for (n, _), e in zip(items, found, strict=True) if not isinstance(e, BaseException)}


async def _prove(folder: RunFolder, plan: _Plan, name: str, endpoint: Endpoint) -> dict[str, str]:
    """Proves what the tasks need; returns the refused tasks with the remedy."""
    from tinyeval.endpoints.capabilities import prove

    needs = {need for task in plan.tasks.values() for need in task.needs}
    proved = await prove(endpoint, needs)
    refused: dict[str, str] = {}
    for task in plan.tasks.values():
        lacking = [f"it needs {n}: {proved[n].remedy}" for n in sorted(task.needs) if not proved[n].ok]
        size, limit = task.config.definition.generation_size or 1, endpoint.identity.max_total_tokens
        if size >= limit:
            lacking.append(f"its generation_size of {size} tokens does not fit into the model's {limit}")
        if plan.config.models[name].chat and not endpoint.has_chat_template:
            lacking.append("chat = true, but the server has no chat template: leave chat out or set tokenizer")
        if lacking:
            refused[task.name] = "; ".join(lacking)
    folder.connected(name, ModelRecord(identity=endpoint.identity, capabilities=proved, refused=refused))
    return refused


async def _preview(plan: _Plan) -> list[Preview]:
    async with AsyncExitStack() as stack:
        endpoints = await _connect(plan, None, stack)
        return [
            await _preview_task(name, endpoint, plan.config.models[name], task, plan.docs[task.name])
            for name, endpoint in endpoints.items()
            for task in plan.tasks.values()
        ]


async def _preview_task(name: str, endpoint: Endpoint, model: ModelConfig, task: Task, docs: list[Doc]) -> Preview:
    preparer = Preparer(endpoint, model, task)
    prompt, counts, truncated, problem = "", list[int](), 0, None
    for doc in docs:
        try:
            prepared = await preparer.prepare(doc, count=True)
        except SampleError as e:
            problem = problem or f"Doc {doc.id}: {e}"
            continue
        prompt = prompt or next((r.context for r in prepared.requests if hasattr(r, "context")), "")  # type: ignore[union-attr]
        counts.append(prepared.tokens or 0)
        truncated += prepared.removed > 0
    return Preview(name, task.name, len(docs), prompt, counts, truncated, problem)


__all__ = [
    "Preview",
    "Run",
    "Silent",
    "build_results",
    "load",
    "preview",
    "resumed_config",
    "run",
    "run_async",
    "score",
]
