"""The final table: complete and in line at any width, in a terminal and in a pipe."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from tinyeval.reports.table import notes, print_table

LONG = "custom|custom_zh:厦门鼓浪屿导游小林的人设与口吻问答集"


def result(value: float | None = 0.5, stderr: float | None = 0.05, n: int = 40, failed: int = 0) -> dict[str, Any]:
    return {"value": value, "stderr": stderr, "ci95": None, "n": n, "failed": failed}


def answers(**more: Any) -> dict[str, Any]:
    return {"docs": 40, "failed": 0, "cut_by_length": 0.0, "truncated": 0, "violations": None, "refused": None} | more


def results_of(
    models: dict[str, dict[str, tuple[dict[str, Any], dict[str, Any]]]], capabilities: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The content of results.json for model → task → (metrics, answers)."""
    tasks = {t: None for found in models.values() for t in found}
    return {
        "results": {m: {t: r for t, (r, _) in found.items()} for m, found in models.items()},
        "answers": {m: {t: a for t, (_, a) in found.items()} for m, found in models.items()},
        "run": {
            "tasks": {t: {"effective_num_docs": 40, "original_num_docs": 40} for t in tasks},
            "models": {m: {"capabilities": capabilities or {}} for m in models},
        },
    }


def printed(results: dict[str, Any], width: int = 80, terminal: bool = True) -> str:
    file = io.StringIO()
    print_table(results, Console(file=file, width=width, force_terminal=terminal, _environ={"TERM": "xterm"}))
    return file.getvalue()


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


TWO = results_of(
    {
        "qwen2.5-7b-instruct": {
            "demo|qa_zh": ({"qa_f1_zh": result(0.61234)}, answers(cut_by_length=0.25, truncated=3)),
            LONG: ({"rouge_zh": result(0.1), "qa_f1_zh": result(None, None, 0, 40)}, answers(failed=40)),
        },
        "smollm2-135m": {
            "demo|qa_zh": ({"qa_f1_zh": result(0.0, None, 1, 39)}, answers(failed=39, cut_by_length=None)),
            LONG: ({"rouge_zh": result(), "qa_f1_zh": result()}, answers(refused="it needs grammar:json: restart")),
        },
    }
)


@pytest.mark.parametrize("width", [72, 80, 160])
def test_every_number_is_there_and_no_line_is_wider_than_the_terminal(width: int) -> None:
    table = plain(printed(TWO, width)).partition("\n!")[0]
    assert all(cell_len(line) <= width for line in table.splitlines())
    for heading in ("model", "task", "metric", "value", "± stderr", "n", "failed", "cut"):
        assert heading in table.splitlines()[0]
    for number in ("61.23", "5.00", "10.00", "25%"):
        assert number in table
    assert "…" not in table  # nothing is cut off


@pytest.mark.parametrize(("width", "terminal"), [(160, True), (80, False), (20, False)])
def test_a_wide_terminal_and_a_pipe_get_a_line_a_metric(width: int, terminal: bool) -> None:
    lines = [line.split() for line in plain(printed(TWO, width, terminal)).splitlines()]
    name = "custom_zh:厦门鼓浪屿导游小林的人设与口吻问答集"
    assert ["qwen2.5-7b-instruct", "qa_zh", "qa_f1_zh", "61.23", "5.00", "40", "0", "25%"] in lines
    assert ["qwen2.5-7b-instruct", name, "rouge_zh", "10.00", "5.00", "40", "0", "0%"] in lines
    assert ["qa_f1_zh", "–", "–", "0", "40", "0%"] in lines
    assert ["smollm2-135m", "qa_zh", "qa_f1_zh", "0.00", "–", "1", "39", "–"] in lines


@pytest.mark.parametrize("width", [30, 50, 72, 80])
def test_a_narrow_terminal_folds_a_chinese_name_without_losing_a_character(width: int) -> None:
    table = plain(printed(TWO, width)).partition("\n!")[0]
    assert "".join(re.findall(r"[\u4e00-\u9fff]", table)).count("厦门鼓浪屿导游小林的人设与口吻问答集") == 2


def test_columns_stay_in_line_beside_wide_characters() -> None:
    lines = [x for x in plain(printed(TWO, 160)).splitlines() if re.search(r"\d\.\d\d|–", x)]
    assert len({cell_len(line) for line in lines}) == 1
    assert len({cell_len(line[: re.search(r"\.\d\d|–", line).start()]) for line in lines if "–" not in line}) == 1  # type: ignore[union-attr]


def test_percent_is_for_what_ranges_from_nothing_to_all() -> None:
    """A distance is shown as it is, and so is the value of a metric that is unknown here."""
    found = results_of({"m": {"a|b": ({"qa_f1": result(0.5, None), "own_metric": result(3.25, None)}, answers())}})
    lines = [line.split() for line in plain(printed(found)).splitlines()]
    assert ["b", "qa_f1", "50.00", "–", "40", "0", "0%"] in lines
    assert ["own_metric", "3.2500", "–", "40", "0", "0%"] in lines


def test_one_model_needs_no_column() -> None:
    text = printed(results_of({"qwen": {"demo|qa_zh": ({"qa_f1_zh": result()}, answers())}}))
    assert "model" not in text
    assert "qwen" not in text


def test_a_suite_is_shown_where_two_tasks_share_a_name() -> None:
    found = results_of({"m": {t: ({"acc": result()}, answers()) for t in ("a|law", "b|law", "b|art")}})
    assert re.findall(r"^(\S+) +acc", plain(printed(found)), re.MULTILINE) == ["a|law", "b|law", "art"]


def test_a_pipe_gets_plain_text_and_a_terminal_red_failures() -> None:
    assert "\x1b" not in printed(TWO, terminal=False)
    coloured = printed(TWO, 160)
    assert re.search(r"\x1b\[1;31m *39\x1b\[0m", coloured)
    assert plain(coloured) == printed(TWO, 160, terminal=False)


def test_brackets_in_names_and_reasons_are_text_not_markup() -> None:
    task = "custom|custom_zh:rows[v2]"
    said = "asked for a pattern, the server answered '[/INST] [bold]'"
    found = results_of({"m": {task: ({"acc[norm]": result()}, answers(refused=said))}})
    text = plain(printed(found))
    assert re.search(r"custom_zh:rows\[v2\] +acc\[norm\] ", text)
    assert f"! m, {task}: refused: {said}\n" in text


def test_what_must_be_read_beside_the_numbers() -> None:
    assert notes(TWO) == [
        "! qwen2.5-7b-instruct, demo|qa_zh: 25% of the answers were cut by length.",
        "  qwen2.5-7b-instruct, demo|qa_zh: 3 of 40 prompts were truncated.",
        f"! smollm2-135m, {LONG}: refused: it needs grammar:json: restart",
    ]


def test_few_cut_answers_are_no_warning() -> None:
    def found(share: float | None) -> list[str]:
        return notes(results_of({"m": {"a|b": ({"acc": result()}, answers(cut_by_length=share))}}))

    assert found(0.05) == found(None) == []
    assert found(0.0501) != []


def test_how_log_likelihoods_were_got_is_said_once_a_model() -> None:
    tasks = {t: ({"acc": result()}, answers(cut_by_length=None)) for t in ("a|b", "a|c")}
    found = results_of({"m": tasks}, {"loglikelihood": {"ok": True, "how": "forced decoding", "remedy": ""}})
    assert notes(found) == ["  m: log-likelihoods by forced decoding."]


def test_a_limit_is_said() -> None:
    tasks = {t: ({"acc": result()}, answers()) for t in ("a|b", "a|c")}
    found = results_of({"m": tasks})
    found["run"]["tasks"]["a|c"]["original_num_docs"] = 900
    assert notes(found) == ["  A limit was set: 1 of 2 tasks were asked only in part."]


def test_a_long_note_is_one_line_for_the_terminal_to_wrap() -> None:
    found = results_of({"m": {"a|b": ({"acc": result()}, answers(refused="because " * 30))}})
    assert f"refused: {'because ' * 30}\n" in printed(found)
