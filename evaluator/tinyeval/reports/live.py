"""The live display of a run: a bar a model and task in a terminal, plain lines elsewhere; on standard error."""

from __future__ import annotations

import datetime
import time
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from tinyeval.inference.journal import Entry

_ROWS = 16
"""Bars up to which all tasks are in sight; beyond, only those being asked."""
_EVERY = 10.0
"""Seconds between plain lines."""


class Display:
    """Watches a run (see `inference.scheduler.Observer`).

    Args:
        console: standard error.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars: dict[tuple[str, str], TaskID] = {}
        self._progress = Progress(
            TextColumn("{task.fields[model]}", style="cyan", markup=False),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[failed]}", style="red"),
            TimeRemainingColumn(compact=True),
            console=console,
        )
        self._total = self._done = self._before = 0
        self._requests = self._tokens = self._failures = 0
        self._began = self._printed = time.monotonic()
        self._live = Live(get_renderable=self._render, console=console, refresh_per_second=4, transient=True)
        self._fancy = console.is_terminal

    def __enter__(self) -> Self:
        """Draws from the first `begin` on."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Takes the drawing away."""
        if self._fancy:
            self._live.stop()

    def begin(self, model: str, task: str, docs: int, done: int) -> None:
        """See Observer."""
        if self._fancy:
            self._live.start()
        self._bars[model, task] = self._progress.add_task(task, total=docs, completed=done, model=model, failed="")
        self._total += docs
        self._done += done
        self._before += done
        if not self._fancy:
            rest = f", {done} of them done before" if done else ""
            self._line(f"{model}  {task}: {docs} Docs{rest}")

    def answered(self, model: str, task: str, entry: Entry) -> None:
        """See Observer."""
        self._requests += 1
        if entry.response:
            self._tokens += (entry.response.prompt_tokens or 0) + (entry.response.completion_tokens or 0)
        else:
            self._failures += 1
            bar = self._bars[model, task]
            failed = int(str(self._progress.tasks[bar].fields["failed"]).partition(" ")[0] or 0) + 1
            self._progress.update(bar, failed=f"{failed} failed")

    def finished(self, model: str, task: str) -> None:
        """See Observer."""
        bar = self._bars[model, task]
        self._progress.advance(bar)
        self._done += 1
        if not self._fancy and time.monotonic() - self._printed > _EVERY:
            self._printed = time.monotonic()
            self._line(self._state())

    def _render(self) -> Group:
        if len(self._bars) > _ROWS:
            for bar in self._progress.tasks:
                self._progress.update(bar.id, visible=0 < bar.completed < (bar.total or 0))
        return Group(self._progress, Text(self._state(), style="dim"))

    def _state(self) -> str:
        """All tasks together; the time left by the pace of this sitting."""
        seconds = max(time.monotonic() - self._began, 1e-9)
        asked = self._done - self._before
        left = (self._total - self._done) / asked * seconds if asked else None
        time_left = "" if left is None else f", {datetime.timedelta(seconds=round(left))} left"
        rates = f"{self._requests / seconds:.1f} requests/s, {self._tokens / seconds:.0f} tokens/s"
        return f"{self._done} of {self._total} Docs{time_left}; {rates}, {self._failures} failed"

    def _line(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)
