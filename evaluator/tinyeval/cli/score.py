"""`tinyeval score`: score journals again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tinyeval.cli.render import failures_status, print_json, print_run


def score(
    path: Annotated[Path, typer.Argument(help="The folder of a run.")],
    json: Annotated[bool, typer.Option("--json", help="Print results.json instead of the table.")] = False,
    allow_failures: Annotated[bool, typer.Option("--allow-failures", help="Failed samples are no error.")] = False,
) -> None:
    """Score the answers of a run again; needs no server."""
    from tinyeval import api

    scored = api.score(path)
    if json:
        print_json(scored.results)
    else:
        print_run(scored)
    raise typer.Exit(failures_status(scored, allow_failures))
