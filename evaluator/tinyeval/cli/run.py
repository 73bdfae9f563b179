"""`tinyeval run`: evaluate, or go on with an interrupted evaluation."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tinyeval.cli.render import failures_status, print_json, print_previews, print_run, stderr, tell
from tinyeval.errors import EndpointError, UsageError

if TYPE_CHECKING:
    from tinyeval.inference.plan import Plan


def run(
    config: Annotated[
        Path | None, typer.Argument(help="A configuration file; else ./tinyeval.toml; else the embedded demo.")
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option("--model", "-m", metavar="NAME=URL", help="A served model.")
    ] = None,
    task: Annotated[
        list[str] | None, typer.Option("--task", "-t", metavar="TASK", help="A task's name or file, custom_zh=FILE.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many Docs a task.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of everything drawn.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The run's folder.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on with the run in this folder.")] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Ask recorded failures again.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show first prompts and token counts only.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print results.json instead of the table.")] = False,
    allow_failures: Annotated[bool, typer.Option("--allow-failures", help="Failed samples are no error.")] = False,
) -> None:
    """Evaluate served models on tasks.

    The same command finds an interrupted run again and goes on with it. With no configuration and no server named,
    the embedded server is started, used and stopped.
    """
    from tinyeval import api
    from tinyeval.config import Config, named_models
    from tinyeval.inference.folder import RunFolder
    from tinyeval.inference.plan import make_plan, resumed_config
    from tinyeval.inference.preview import preview_plan
    from tinyeval.reports.live import Display

    if resume and (config or model or task or output or limit is not None or seed is not None):
        raise UsageError("--resume takes the settings of the run it names; leave the other settings out.")
    source: Config | Path | None = resumed_config(resume) if resume else config
    models = named_models(model) if model else None
    plan = make_plan(source, models=models, tasks=task, limit=limit, seed=seed, output=resume or output)
    if dry_run:
        found = asyncio.run(preview_plan(plan))
        print_previews(found, as_json=json)
        raise typer.Exit(1 if any(p.problem for p in found) else 0)
    try:
        with Display(stderr()) as display:
            finished = api.run_plan(plan, retry_failed=retry_failed, observer=display, say=tell)
    except KeyboardInterrupt:
        tell(f"Interrupted; every answer so far is kept. {_again(plan)}")
        raise typer.Exit(130) from None
    except EndpointError as e:
        raise type(e)(f"{e}\n{_again(plan)}" if RunFolder(plan.path).has_answers() else str(e)) from e
    if json:
        print_json(finished.results)
    else:
        print_run(finished)
    raise typer.Exit(failures_status(finished, allow_failures))


def _again(plan: Plan) -> str:
    """How to go on with a run that has stopped."""
    from tinyeval.config import public

    if any(m.api_key and "api_key" not in public(m) for m in plan.config.models.values()):
        return "Go on with the same command."  # a literal key is not kept
    return f"Go on with: tinyeval run --resume {shlex.quote(str(plan.path))}"
