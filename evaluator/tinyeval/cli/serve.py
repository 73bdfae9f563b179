"""`tinyeval serve`: the embedded server in the foreground."""

from __future__ import annotations

import os
import subprocess
import sys

import typer


def serve(context: typer.Context) -> None:
    """Start the embedded server in the foreground; options are its own (--model, --port, --slots, …)."""
    command = [sys.executable, "-m", "tinyserve", *context.args]
    if os.name == "posix":  # becomes the server, so that whoever ends this process ends the server
        os.execv(sys.executable, command)
    try:
        status = subprocess.call(command)
    except KeyboardInterrupt:
        status = 130
    raise typer.Exit(status)
