"""What the commands print: results to standard output, everything else to standard error."""

from __future__ import annotations

import functools
import math
import statistics
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from tinyeval.api import Run
    from tinyeval.inference.preview import Preview
    from tinyeval.metrics import Metric


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
    if (run.path / "run.json").exists():
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


def print_metrics(metrics: Sequence[Metric], *, as_json: bool) -> None:
    """All metrics, a line each."""
    if as_json:
        print_json([_facts(m) for m in metrics])
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for heading in ("metric", "judges", "range", "value"):
        table.add_column(heading, overflow="fold", no_wrap=heading in ("metric", "range"))
    for m in metrics:
        table.add_row(*map(Text, [m.name, m.needs, _range(m), m.description.partition("\n\n")[0].replace("\n", " ")]))
    Console().print(table)
    tell("tinyeval metrics show NAME tells more.")


def print_metric(metrics: Sequence[Metric], *, as_json: bool) -> None:
    """What metrics mean, in full."""
    if as_json:
        print_json([_facts(m) for m in metrics])
        return
    console = Console(highlight=False)
    for m in metrics:
        console.rule(m.name, align="left", characters="─")
        console.print(m.description, markup=False)
        facts = _facts(m)
        lines = {
            "judges": f"{m.needs}: {facts['requests']} a Doc",
            "value": f"{_range(m)}, {'higher' if m.higher_is_better else 'lower'} is better, {_PER[m.per]}",
            "reads": ", ".join(f"specific.{name}" for name in m.reads),
            "needs": m.missing or (f"tinyeval[{m.extra}] (installed)" if m.extra else ""),
        }
        console.print()
        for name, text in lines.items():
            if text:
                console.print(f"{name:8}{text}", markup=False)


_PER = {
    "reference": "of the best reference, averaged over Docs",
    "sample": "of a Doc with all its references, averaged over Docs",
    "corpus": "of all Docs together",
}


def _range(metric: Metric) -> str:
    return f"{metric.lowest:g}..{metric.highest:g}"


def _facts(metric: Metric) -> dict[str, Any]:
    from tinyeval.metrics.registry import REQUESTS

    return {
        "name": metric.name,
        "needs": metric.needs,
        "requests": REQUESTS[metric.needs],
        "per": metric.per,
        "range": [metric.lowest, None if math.isinf(metric.highest) else metric.highest],
        "higher_is_better": metric.higher_is_better,
        "reads": list(metric.reads),
        "extra": metric.extra,
        "description": metric.description,
    }


def failures_status(run: Run, allow_failures: bool) -> int:
    """Exit status of a finished run."""
    if not run.failed:
        return 0
    reasons = [a["refused"] for tasks in run.results["answers"].values() for a in tasks.values() if a["refused"]]
    written = (run.path / "run.json").exists() and not reasons
    where = "see the .scores.jsonl files" if written else "see above"
    tell(f"{run.failed} Docs have no score ({where}).", style="red")
    return 0 if allow_failures else 1
