"""The live display: bars in a terminal, plain lines in a log, never in the way of the run."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.console import Console

from tinyeval.inference.journal import Entry
from tinyeval.records import Response
from tinyeval.reports import live
from tinyeval.reports.live import Display

GOOD = Entry(doc="a", index=0, key="k", response=Response(text="x", prompt_tokens=90, completion_tokens=10))
BAD = Entry(doc="b", index=0, key="k", error="500")


def shown(terminal: bool, act: Any, width: int = 100) -> str:
    file = io.StringIO()
    environment = {"TERM": "xterm-256color", "COLUMNS": str(width), "LINES": "20"}
    console = Console(file=file, force_terminal=terminal, width=width, _environ=environment)
    with Display(console) as display:
        act(display)
    return file.getvalue()


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def test_a_log_gets_a_line_a_task_and_no_control_characters() -> None:
    def act(display: Display) -> None:
        display.begin("qwen", "demo|qa_zh", 42, 0)
        display.answered("qwen", "demo|qa_zh", GOOD)
        display.finished("qwen", "demo|qa_zh")
        display.begin("qwen", "custom|rows[v2]", 7, 5)

    assert shown(False, act) == "qwen  demo|qa_zh: 42 Docs\nqwen  custom|rows[v2]: 7 Docs, 5 of them done before\n"


def test_a_log_hears_now_and_then_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(live.time, "monotonic", lambda: now)

    def act(display: Display) -> None:
        nonlocal now
        display.begin("a", "t", 10, 4)
        for entry in (GOOD, BAD, GOOD):
            now += 4
            display.answered("a", "t", entry)
            display.finished("a", "t")

    assert shown(False, act).splitlines()[1:] == ["7 of 10 Docs, 0:00:12 left; 0.2 requests/s, 17 tokens/s, 1 failed"]


def test_a_terminal_gets_a_bar_a_model_and_task_and_is_left_clean() -> None:
    def act(display: Display) -> None:
        display.begin("qwen", "demo|qa_zh", 42, 12)
        display.begin("small", "custom|rows[v2][/x]", 3, 0)
        display.answered("qwen", "demo|qa_zh", GOOD)
        display.finished("qwen", "demo|qa_zh")
        for _ in range(2):
            display.answered("small", "custom|rows[v2][/x]", BAD)
            display.finished("small", "custom|rows[v2][/x]")
        display._live.refresh()  # pyright: ignore[reportPrivateUsage]

    text = shown(True, act)
    frames = plain(text)
    assert re.search(r"qwen +demo\|qa_zh .*13/42", frames)
    assert re.search(r"small +custom\|rows\[v2\]\[/x\] .*2/3 +2 failed", frames)
    assert re.search(r"requests/s, \d+ tokens/s, 2 failed", frames)
    assert text.rstrip().endswith("\x1b[2K")  # erased
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1  # the cursor is back


def test_of_many_tasks_only_those_being_asked_are_in_sight() -> None:
    def act(display: Display) -> None:
        for i in range(20):
            display.begin("m", f"task{i}", 2, 0)
        for name in ("task6", "task7", "task7"):
            display.finished("m", name)
        display._live.refresh()  # pyright: ignore[reportPrivateUsage]
        last.append(plain("\n".join(str(line.text) for line in console_lines(display))))

    last: list[str] = []

    def console_lines(display: Display) -> list[Any]:
        console = Console(width=100, file=io.StringIO())
        return [segment for line in console.render_lines(display._render()) for segment in line]  # pyright: ignore[reportPrivateUsage]

    shown(True, act)
    assert "task6" in last[0] and "1/2" in last[0]
    assert "task7" not in last[0] and "task8" not in last[0]
    assert "3 of 40 Docs" in last[0]


def test_nothing_is_drawn_when_nothing_begins() -> None:
    assert shown(False, lambda display: None) == ""
    assert plain(shown(True, lambda display: None)).strip() == ""


def test_the_cursor_comes_back_when_the_run_breaks_off() -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=80, _environ={"TERM": "xterm"})
    with pytest.raises(KeyboardInterrupt), Display(console) as display:
        display.begin("m", "t", 3, 0)
        raise KeyboardInterrupt
    assert file.getvalue().count("\x1b[?25h") == 1
