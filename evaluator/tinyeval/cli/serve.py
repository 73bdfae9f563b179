"""`tinyeval serve`: the embedded server in the foreground."""

from __future__ import annotations

import subprocess
import sys

import typer


def serve(context: typer.Context) -> None:
    """Start the embedded server in the foreground; options are its own (--model, --port, --slots, …)."""
    try:
        status = subprocess.call([sys.executable, "-m", "tinyserve", *context.args])
    except KeyboardInterrupt:
        status = 130
    raise typer.Exit(status)
