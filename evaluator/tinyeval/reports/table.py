"""The final table, for terminals of any width and for pipes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

LENGTH_WARNING = 0.05
"""Share of answers cut by length above which a warning stands below the table."""

_NARROWEST = 72
"""Columns below which the terminal has to wrap the lines itself: names would be folded to nothing."""


def print_table(results: dict[str, Any], console: Console) -> None:
    """Prints the content of results.json: a line a model, task and metric, failures and warnings below.

    Args:
        results: as `build_results` returns it.
        console: where to.
    """
    several = len(results["results"]) > 1
    short = _short_names(results["run"]["tasks"])
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    if several:
        table.add_column("model", overflow="fold")
    table.add_column("task", overflow="fold")
    table.add_column("metric", overflow="fold")
    for heading in ("value", "± stderr", "n", "failed", "cut"):
        table.add_column(heading, justify="right", no_wrap=True)
    for model, tasks in results["results"].items():
        for task, metrics in tasks.items():
            answers = results["answers"][model][task]
            for first, (metric, result) in zip([True] + [False] * len(metrics), metrics.items(), strict=False):
                row = [model if first else ""] if several else []
                row += [short[task] if first else "", metric]
                row += [_number(result["value"]), _number(result["stderr"]), str(result["n"])]
                cells = [*map(Text, row), _failed(result["failed"]), Text(_share(answers["cut_by_length"]))]
                table.add_row(*cells)
    if not console.is_terminal:  # a file, or another program: nothing is folded
        table.width = Measurement.get(console, console.options.update(max_width=1 << 20), table).maximum
    elif console.width < _NARROWEST:
        table.width = _NARROWEST
    console.print(table, soft_wrap=True)
    for line in notes(results):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def notes(results: dict[str, Any]) -> list[str]:
    """What must be read beside the numbers: refused tasks, how log-likelihoods were got, many cut answers."""
    lines: list[str] = []
    tasks = results["run"]["tasks"]
    for model, answers in results["answers"].items():
        for task, a in answers.items():
            if a["refused"]:
                lines.append(f"! {model}, {task}: refused: {a['refused']}")
            elif (a["cut_by_length"] or 0) > LENGTH_WARNING:
                lines.append(f"! {model}, {task}: {a['cut_by_length']:.0%} of the answers were cut by length.")
            if a["violations"]:
                lines.append(f"! {model}, {task}: {a['violations']} answers break the task's grammar.")
            if a["truncated"]:
                lines.append(f"  {model}, {task}: {a['truncated']} of {a['docs']} prompts were truncated.")
        found: dict[str, Any] = results["run"]["models"].get(model, {}).get("capabilities", {})
        how = found.get("loglikelihood", {}).get("how")
        if how:
            lines.append(f"  {model}: log-likelihoods by {how}.")
    limited = [t for t, record in tasks.items() if record["effective_num_docs"] < record["original_num_docs"]]
    if limited:
        lines.append(f"  A limit was set: {len(limited)} of {len(tasks)} tasks were asked only in part.")
    return lines


def _short_names(tasks: Iterable[str]) -> dict[str, str]:
    """Task names without their suite, where that leaves them distinct."""
    names = {task: task.partition("|")[2] for task in tasks}
    counts = Counter(names.values())
    return {task: name if counts[name] == 1 else task for task, name in names.items()}


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"


def _failed(count: int) -> Text:
    return Text(str(count), style="bold red" if count else "")
