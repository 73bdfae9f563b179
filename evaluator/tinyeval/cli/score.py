"""`tinyeval score`: score journals again, or prediction files that others wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tinyeval.cli.render import failures_status, print_json, print_run


def score(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Folders of runs, or prediction files and folders of them.")
    ],
    metric: Annotated[
        list[str] | None, typer.Option("--metric", help="For prediction files: instead of the task's own. Repeatable.")
    ] = None,
    processes: Annotated[int | None, typer.Option(min=1, help="At most so many; one a core when left out.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print results.json instead of the table.")] = False,
    allow_failures: Annotated[bool, typer.Option("--allow-failures", help="Failed samples are no error.")] = False,
) -> None:
    """Score the answers of a run again, or prediction files in LongBench's layout; needs no server.

    Prediction files are `<model>/<task>.jsonl` with rows of pred, answers, all_classes and length.
    """
    from tinyeval import api

    scored = [api.score(path, metric=metric or (), processes=processes) for path in paths]
    if json:
        print_json(scored[0].results if len(scored) == 1 else [run.results for run in scored])
    else:
        for run in scored:
            print_run(run)
    raise typer.Exit(max(failures_status(run, allow_failures) for run in scored))
