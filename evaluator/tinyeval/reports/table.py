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

from tinyeval.metrics import get

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
                row += [_number(metric, result["value"]), _number(metric, result["stderr"]), str(result["n"])]
                cells = [*map(Text, row), _failed(result["failed"]), Text(_share(answers["cut_by_length"]))]
                table.add_row(*cells)
    _print(table, console)
    for model, tasks in results.get("groups", {}).items():
        if tasks:
            _print(_groups(model if several else None, tasks), console)
    for model, averages in results.get("averages", {}).items():
        worth = {k: v for k, v in averages.items() if sum(c["value"] is not None for c in v.values()) > 1}
        if worth:
            _print(_averages(model if several else None, worth), console)
    for line in notes(results):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _print(table: Table, console: Console) -> None:
    if not console.is_terminal:  # a file, or another program: nothing is folded
        table.width = Measurement.get(console, console.options.update(max_width=1 << 20), table).maximum
    elif console.width < _NARROWEST:
        table.width = _NARROWEST
    console.print(table, soft_wrap=True)
    console.print()


def _groups(model: str | None, tasks: dict[str, Any]) -> Table:
    """Values and numbers of rows by length."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column(f"by length{f', {model}' if model else ''}", overflow="fold")
    table.add_column("metric", overflow="fold")
    for group in next(iter(tasks.values())):
        table.add_column(group, justify="right", no_wrap=True)
        table.add_column("n", justify="right", no_wrap=True)
    for task, groups in tasks.items():
        for metric in next(iter(groups.values())):
            found = [g[metric] for g in groups.values()]
            cells = [c for r in found for c in (_number(metric, r["value"]), str(r["n"]))]
            table.add_row(*map(Text, [task, metric, *cells]))
    return table


def _averages(model: str | None, languages: dict[str, Any]) -> Table:
    """LongBench's averages, a column a category."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column(f"averages{f', {model}' if model else ''}", overflow="fold")
    for category in next(iter(languages.values())):
        table.add_column(category.replace("_", " "), justify="right")
    for language, categories in languages.items():
        cells = [
            f"{100 * c['value']:.2f}" if c["value"] is not None else f"{c['tasks']} of {c['of']}"
            for c in categories.values()
        ]
        table.add_row(*map(Text, [language, *cells]))
    return table


def notes(results: dict[str, Any]) -> list[str]:
    """What must be read beside the numbers: refused tasks, how log-likelihoods were got, many cut answers."""
    lines: list[str] = []
    tasks = results["run"]["tasks"]
    for model, answers in results["answers"].items():
        for task, a in answers.items():
            lines += [f"! {model}, {task}: {note}." for note in results.get("notes", {}).get(model, {}).get(task, [])]
            if a["refused"]:
                lines.append(f"! {model}, {task}: refused: {a['refused']}")
            elif (a["cut_by_length"] or 0) > LENGTH_WARNING:
                lines.append(f"! {model}, {task}: {a['cut_by_length']:.0%} of the answers were cut by length.")
            if a["violations"]:
                lines.append(f"! {model}, {task}: {a['violations']} answers break the task's grammar.")
            for metric, result in results["results"][model][task].items():
                if found := result.get("agreement"):
                    kappa = "–" if found["kappa"] is None else f"{found['kappa']:.2f}"
                    agreed = f"in {found['share']:.0%} of the Docs (Cohen's kappa {kappa})"
                    lines.append(f"  {model}, {task}, {metric}: the two orders agree {agreed}.")
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
    names = {task: task.rpartition("|")[2] for task in tasks}
    counts = Counter(names.values())
    return {task: name if counts[name] == 1 else task for task, name in names.items()}


def _number(metric: str, value: float | None) -> str:
    """Percent where the metric's range is 0..1, else the value itself."""
    if value is None:
        return "–"
    try:
        known = get(metric)
    except KeyError:  # of the program that wrote these results
        return f"{value:.4f}"
    return f"{100 * value:.2f}" if (known.lowest, known.highest) == (0, 1) else f"{value:.4f}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"


def _failed(count: int) -> Text:
    return Text(str(count), style="bold red" if count else "")
