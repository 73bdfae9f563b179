"""The command line: parses, calls one library function, renders. Errors become one sentence here."""

from __future__ import annotations

import sys

import typer

from tinyeval.cli import metrics as metrics_command
from tinyeval.cli import run as run_command
from tinyeval.cli import score as score_command
from tinyeval.cli import serve as serve_command
from tinyeval.errors import TinyEvalError
from tinyeval.version import VERSION

app = typer.Typer(
    name="tinyeval",
    help="Evaluate language models that are served over HTTP.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(run_command.run)
app.command("score")(score_command.score)
app.add_typer(metrics_command.app, name="metrics")
app.command(
    "serve",
    add_help_option=False,  # the server has a help of its own
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
)(serve_command.serve)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"tinyeval {VERSION}")
        raise typer.Exit


@app.callback()
def _options(  # pyright: ignore[reportUnusedFunction]
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Evaluate language models that are served over HTTP."""


def main() -> None:
    """The console script.

    Exit status: 0 done, 1 finished with failed samples, 2 the user's mistake, 3 an endpoint's fault, 130 interrupted.
    """
    try:
        app()
    except TinyEvalError as e:
        typer.echo(f"tinyeval: {e}", err=True)
        sys.exit(e.exit_status)
