"""What the commands print: results to standard output, everything else to standard error."""

from __future__ import annotations

import functools
import statistics
import sys
from typing import TYPE_CHECKING, Any

from rich.console import Console

if TYPE_CHECKING:
    from tinyeval.api import Run
    from tinyeval.inference.preview import Preview


@functools.cache
def stderr() -> Console:
    """Standard error."""
    return Console(stderr=True)


def tell(text: str, style: str | None = None) -> None:
    """A sentence for the user, on standard error."""
    stderr().print(text, highlight=False, markup=False, soft_wrap=True, style=style)


def print_json(value: Any) -> None:
    """Valid JSON, nothing else."""
    from tinyeval.inference.folder import pretty

    sys.stdout.write(pretty(value).decode())


def print_run(run: Run) -> None:
    """The table of a run and where its files are."""
    from tinyeval.reports.table import print_table

    console = Console()
    print_table(run.results, console)
    tell(f"Answers, scores and results.json are in {run.path}")


def print_previews(previews: list[Preview], *, as_json: bool) -> None:
    """What a dry run found: first prompts and token counts."""
    if as_json:
        print_json([p._asdict() for p in previews])
        return
    console = Console(highlight=False)
    for p in previews:
        counts = ""
        if p.tokens:
            lowest, median, highest = min(p.tokens), statistics.median(p.tokens), max(p.tokens)
            counts = f", {lowest} to {highest} prompt tokens (median {median:.0f}, {sum(p.tokens)} in all)"
        cut = f", {p.truncated} truncated" if p.truncated else ""
        console.rule(f"{p.model}  {p.task}", align="left", characters="─")
        console.print(f"{p.docs} Docs{counts}{cut}", markup=False)
        if p.problem:
            console.print(f"! {p.problem}", markup=False)
        console.print(p.prompt, markup=False, soft_wrap=True)


def failures_status(run: Run, allow_failures: bool) -> int:
    """Exit status of a finished run."""
    if not run.failed:
        return 0
    reasons = [a["refused"] for tasks in run.results["answers"].values() for a in tasks.values() if a["refused"]]
    where = "see the .scores.jsonl files" if not reasons else "see above"
    tell(f"{run.failed} Docs have no score ({where}).", style="red")
    return 0 if allow_failures else 1
