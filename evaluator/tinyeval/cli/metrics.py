"""`tinyeval metrics`: what can be measured, and what each number means."""

from __future__ import annotations

from typing import Annotated

import typer

from tinyeval.cli.render import print_metric, print_metrics

app = typer.Typer(help="What can be measured: all metrics, and what each of them means.", no_args_is_help=True)


@app.command("list")
def list_metrics(
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    """All metrics by name, with what they need and their range."""
    from tinyeval import metrics

    print_metrics([metrics.get(name) for name in metrics.names()], as_json=json)


@app.command("show")
def show(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Metrics, as tasks write them.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """The definition of a metric: what it judges, its range, its direction, its source."""
    from tinyeval import metrics
    from tinyeval.errors import TaskError

    try:
        found = [metrics.get(name) for name in names]
    except KeyError as e:
        raise TaskError(e.args[0]) from e
    print_metric(found, as_json=json)
