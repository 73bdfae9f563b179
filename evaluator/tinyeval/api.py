"""The public functions: run, preview, score, load. What the command line does, a program can do with these."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from tinyeval.config import Config, ModelConfig
from tinyeval.errors import RunError, UsageError
from tinyeval.evaluation.scoring import score_run
from tinyeval.inference.folder import RunFolder
from tinyeval.inference.journal import Entry
from tinyeval.inference.plan import Plan, make_plan
from tinyeval.inference.preview import Preview, preview_plan
from tinyeval.inference.scheduler import Observer
from tinyeval.inference.session import ask_all, complete, look_again
from tinyeval.reports.results import write_results

T = TypeVar("T")


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


class Silent:
    """An observer that shows nothing."""

    def begin(self, model: str, task: str, docs: int, done: int) -> None:
        """See Observer."""

    def answered(self, model: str, task: str, entry: Entry) -> None:
        """See Observer."""

    def finished(self, model: str, task: str) -> None:
        """See Observer."""


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
    plan = make_plan(config, models=models, tasks=tasks, limit=limit, seed=seed, output=output)
    return run_plan(plan, retry_failed=retry_failed, observer=observer, say=say)


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
    """`run` for a program that has an event loop of its own, such as a notebook."""
    plan = make_plan(config, models=models, tasks=tasks, limit=limit, seed=seed, output=output)
    return await _run(plan, retry_failed, observer or Silent(), say)


def run_plan(
    plan: Plan,
    *,
    retry_failed: bool = False,
    observer: Observer | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Run:
    """`run` of a plan that is made already."""
    return _loop(_run(plan, retry_failed, observer or Silent(), say))


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
    return _loop(preview_plan(make_plan(config, models=models, tasks=tasks, limit=limit, seed=seed)))


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
        raise RunError(
            f"{file} can't be read: {reason}; score the run first: tinyeval score {shlex.quote(str(path))}."
        ) from e


async def _run(plan: Plan, retry_failed: bool, observer: Observer, say: Callable[[str], None]) -> Run:
    folder = RunFolder(plan.path)
    with folder.locked():
        before = folder.begin(plan.config, plan.tasks, plan.docs)
        if before:
            say(f"Going on with the run in {plan.path}; finished requests are not sent again.")
        if complete(folder, plan, before, retry_failed=retry_failed):
            await look_again(folder, plan, say)
        else:
            await ask_all(folder, plan, observer, say, retry_failed=retry_failed)
        return Run(plan.path, write_results(folder, score_run(folder)))


def _loop(coroutine: Coroutine[Any, Any, T]) -> T:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        coroutine.close()
        raise UsageError(
            "an event loop is running here already (a notebook?): to evaluate, await tinyeval.run_async(...) instead."
        )
    if sys.platform == "win32":
        return asyncio.run(coroutine)
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(coroutine)
