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
from tinyeval.evaluation.early import EarlyScorer
from tinyeval.evaluation.predictions import known_task, prediction_files, score_file
from tinyeval.evaluation.processes import Scorers
from tinyeval.evaluation.scoring import score_run
from tinyeval.inference.folder import RunFolder
from tinyeval.inference.journal import Entry
from tinyeval.inference.plan import Plan, make_plan
from tinyeval.inference.preview import Preview, preview_plan
from tinyeval.inference.scheduler import Observer
from tinyeval.inference.session import ask_all, complete, look_again
from tinyeval.inference.verdicts import ask_judge, prove_judge
from tinyeval.reports.results import build_predictions, write_results

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


def score(path: str | Path, *, metric: Sequence[str] = (), processes: int | None = None) -> Run:
    """Scores the journals of a run again, or prediction files that others wrote; needs no server.

    Args:
        path: the folder of a run; or a prediction file `<task>.jsonl` with rows of `pred`, `answers`, `all_classes`
            and `length`, a folder of these, or a folder of such folders. Nothing is written into the latter.
        metric: for prediction files, instead of the metrics that LongBench and TinyEval have for their tasks.
        processes: at most so many; None: one a core. The values do not depend on it.

    Raises:
        RunError: the folder is neither, or damaged.
        TaskError: a prediction file is no known task's and no metric is named.
        DataError: a prediction file can't be read.
    """
    where = Path(path)
    with Scorers(processes) as scorers:
        if (where / "run.json").exists() or not (found := prediction_files(where)):
            if metric:
                raise RunError(f"{path} holds no prediction files, and only for these metrics can be named.")
            folder = RunFolder(where)
            return Run(where, write_results(folder, score_run(folder, scorers)))
        known = {m: {t: known_task(t, metric, f) for t, f in files.items()} for m, files in found.items()}
        scored = {m: {t: score_file(f, known[m][t], scorers) for t, f in files.items()} for m, files in found.items()}
        return Run(where, build_predictions(scored))


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
        with Scorers() as scorers:
            early = EarlyScorer(observer, plan, scorers)
            if complete(folder, plan, before, retry_failed=retry_failed):
                await look_again(folder, plan, say)
            else:
                await prove_judge(folder, plan)
                await ask_all(folder, plan, early, say, retry_failed=retry_failed)
            await ask_judge(folder, plan, observer, say, retry_failed=retry_failed)
            return Run(plan.path, write_results(folder, score_run(folder, scorers, early.outcome())))


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
