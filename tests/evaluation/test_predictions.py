"""Prediction files that others wrote: official scores, and whatever is wrong with a file is told in words."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import tinyeval
from tinyeval.errors import DataError, RunError, TaskError
from tinyeval.evaluation.longbench import TASKS, bucket
from tinyeval.evaluation.predictions import FileScores, known_task, prediction_files, score_file
from tinyeval.evaluation.processes import Scorers

LONGBENCH = Path(__file__).resolve().parents[3] / "shared" / "longbench"
needs_shared = pytest.mark.skipif(
    not LONGBENCH.is_dir(), reason="the official scores and prediction files are not beside this checkout"
)


def row(pred: Any = "Paris", answers: Any = ("Paris",), length: Any = 100, classes: Any = None) -> dict[str, Any]:
    return {"pred": pred, "answers": answers, "all_classes": classes, "length": length}


def file(folder: Path, task: str, rows: list[Any]) -> Path:
    path = folder / f"{task}.jsonl"
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows), "utf-8")
    return path


def scored(path: Path, *metrics: str) -> FileScores:
    with Scorers(1) as scorers:
        return score_file(path, known_task(path.stem, metrics, path), scorers)


# The official scores


def _manifests() -> list[Path]:
    return sorted((LONGBENCH / "preds").rglob("manifest.json")) if LONGBENCH.is_dir() else []


@needs_shared
@pytest.mark.parametrize("manifest", _manifests(), ids=lambda p: "/".join(p.parts[-4:-1]))
def test_every_file_has_its_official_score_and_every_row_its_value(manifest: Path) -> None:
    per_row_file = manifest.with_name("per_row_official.json")
    per_row = json.loads(per_row_file.read_text("utf-8")) if per_row_file.exists() else {}
    per_row = per_row.get("tasks", per_row)
    rows = 0
    for entry in json.loads(manifest.read_text("utf-8"))["tasks"]:
        task, path = entry["task"], manifest.with_name(entry["file"])
        metric = TASKS[task].metrics[0]
        found = scored(path)
        wanted = next(entry[k] for k in ("official_full", "longbench_full", "tinyeval_head_full") if k in entry)
        if isinstance(wanted, dict):
            assert {k: _percent(v[metric].value) for k, v in found.groups.items()} == pytest.approx(wanted, abs=1e-9)
        else:
            assert _percent(found.results[metric].value) == pytest.approx(wanted, abs=1e-9)
        official = per_row.get(task, {}).get("per_row") or entry.get("per_row_head")
        if official:
            assert len(official) == len(found.scores) == entry["rows"]
            for value, scores in zip(official, found.scores, strict=True):
                assert scores is not None
                assert scores[metric] == pytest.approx(value, abs=1e-12)
            rows += len(official)
        if levenshtein := per_row.get(task, {}).get("per_row_levenshtein"):
            values = [s["code_sim_levenshtein"] for s in scored(path, "code_sim_levenshtein").scores if s]
            assert values == pytest.approx(levenshtein, abs=1e-12)
    assert rows or not per_row


def _percent(value: float | None) -> float:
    assert value is not None
    return 100 * value


@needs_shared
def test_the_published_numbers_of_tinyeval_come_with_the_warning_about_repeated_rows() -> None:
    folder = LONGBENCH / "preds" / "tinyeval"
    found = tinyeval.score(folder / "internlm")
    published = json.loads((folder / "internlm" / "result.json").read_text("utf-8"))
    for task, value in published.items():
        (result,) = found.results["results"]["internlm"][task].values()
        assert round(100 * result["value"], 2) == value
        assert "repeat the answers and length of an earlier one" in found.results["notes"]["internlm"][task][0]
        assert result["clusters"] < result["n"]
    published = json.loads((folder / "Qwen2" / "result.json").read_text("utf-8"))
    results = tinyeval.score(folder / "Qwen2").results["results"]["Qwen2"]["GAOKAO_math"]
    assert 100 * results["gaokao_math_8e6a5fe"]["value"] == pytest.approx(published["GAOKAO_math"])
    assert 100 * results["gaokao_math"]["value"] == pytest.approx(15.0)


def _task_level() -> list[dict[str, Any]]:
    path = LONGBENCH / "golden" / "task_level.jsonl"
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


@needs_shared
@pytest.mark.parametrize("case", _task_level(), ids=lambda c: c["id"])
def test_the_official_scorers_on_whole_files(case: dict[str, Any], tmp_path: Path) -> None:
    lengths = [*case["lengths"], *[None] * len(case["predictions"])]
    # A gold that is a text is walked by letters there; here it is one answer, so its letters are named.
    answers = [list(a) if isinstance(a, str) else a for a in case["answers"]]
    rows = [row(p, a, n, case["all_classes"]) for p, a, n in zip(case["predictions"], answers, lengths, strict=False)]
    path = file(tmp_path, case["dataset"], rows)
    if case["scorer_exception"] == "KeyError":
        with pytest.raises(TaskError, match=f"no task of LongBench or TinyEval is named '{case['dataset']}'"):
            scored(path)
        return
    found = scored(path)
    (result,) = found.results.values()
    if case["scorer_exception"]:
        assert result.value is None
        assert found.notes
        return
    assert _percent(result.value) == pytest.approx(case["scorer_full"], abs=1e-9)
    if None in [r["length"] for r in rows]:
        assert found.groups == {}
        assert any("no usable length" in n for n in found.notes)
        return
    for name, wanted in case["scorer_e_full"].items():
        (group,) = found.groups[name].values()
        assert (group.value is None) == (wanted == "NaN")
        assert group.value is None or _percent(group.value) == pytest.approx(wanted, abs=1e-9)


# The same on rows of our own


def test_a_task_is_scored_as_officially(tmp_path: Path) -> None:
    found = scored(
        file(
            tmp_path,
            "hotpotqa",
            [row(), row("in Paris", length=101), row("", length=4000), row("Rome", ["Rome", "x"], 8000)],
        )
    )
    result = found.results["qa_f1"]
    assert result.value == pytest.approx((1 + 2 / 3 + 0 + 1) / 4)
    assert {k: g["qa_f1"].value for k, g in found.groups.items()} == pytest.approx(
        {"0-4k": 5 / 6, "4-8k": 0.0, "8k+": 1.0}
    )
    assert found.notes == ["1 of 4 rows have an empty prediction, which counts as an answer"]


@pytest.mark.parametrize(
    ("length", "name"), [(0, "0-4k"), (3999, "0-4k"), (4000, "4-8k"), (7999, "4-8k"), (8000, "8k+")]
)
def test_bounds_of_the_length_groups(length: int, name: str) -> None:
    assert bucket(length) == name


def test_the_first_line_alone_counts_where_officially_it_does(tmp_path: Path) -> None:
    rows = [row("\n\nParis\nQuestion: where?", ["Paris"])]
    assert scored(file(tmp_path, "triviaqa", rows)).results["qa_f1"].value == 1.0
    assert scored(file(tmp_path, "hotpotqa", rows)).results["qa_f1"].value == pytest.approx(0.5)


def test_the_last_rows_classes_count_for_all_and_a_difference_is_told(tmp_path: Path) -> None:
    rows = [row("Date", ["Date"], classes=["Date", "Dates"]), row("Food", ["Food"], 200, classes=["Date", "Food"])]
    found = scored(file(tmp_path, "trec", rows))
    assert found.results["classification"].value == 1.0
    assert found.notes == ["all_classes differs between rows; the last row's count for all, as officially"]


def test_rows_without_classes_fail_and_say_why(tmp_path: Path) -> None:
    found = scored(file(tmp_path, "trec", [row("Date", ["Date"])]))
    assert (found.results["classification"].value, found.answers.failed) == (None, 1)
    assert found.notes == ["1 of 1 rows failed: classification: it needs choices: the classes"]


def test_repeated_rows_are_told_and_do_not_shrink_the_error(tmp_path: Path) -> None:
    rows = [row(p, [a], n) for n, (p, a) in enumerate([("a1", "a1"), ("b", "c"), ("d", "d"), ("e", "f")])]
    once = scored(file(tmp_path, "hotpotqa", rows)).results["qa_f1"]
    found = scored(file(tmp_path, "qasper", rows * 3))
    twice = found.results["qa_f1"]
    assert found.notes[0].startswith("8 of 12 rows repeat the answers and length of an earlier one (4 are distinct)")
    assert (twice.value, twice.n, twice.clusters) == (once.value, 12, 4)
    assert twice.stderr == pytest.approx(once.stderr)


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (row(None), "pred is null, not a text"),
        (row(7), "pred is a int, not a text"),
        (row(["Paris"]), "pred is a list, not a text"),
        (row(math.nan), "pred is NaN, not a text"),
        ({"answers": ["Paris"], "length": 1}, "pred is missing, not a text"),
        (row(answers=None), "answers is null, not a list of texts"),
        (row(answers=[None]), "answers is a list, not a list of texts"),
        (row(answers={"text": "Paris"}), "answers is a dict, not a list of texts"),
        ({"pred": "Paris", "length": 1}, "answers is missing, not a list of texts"),
        ('{"pred": "Par', "the line is no JSON"),
        ("[1]", "the line is no JSON object"),
        ("[" * 100_000, "the line is no JSON"),
    ],
)
def test_a_row_that_cannot_be_scored_is_a_failure_and_never_an_empty_answer(bad: Any, why: str, tmp_path: Path) -> None:
    found = scored(file(tmp_path, "hotpotqa", [row(), bad, row("no")]))
    result = found.results["qa_f1"]
    assert (result.value, result.n, result.failed) == (0.5, 2, 1)
    assert f"1 of 3 rows failed: {why}" in found.notes
    assert found.scores[1] is None


@pytest.mark.parametrize("length", [None, math.nan, math.inf, "4000", True, "gone"])
def test_one_row_without_a_usable_length_leaves_no_groups_rather_than_wrong_ones(length: Any, tmp_path: Path) -> None:
    bad = row(length=length)
    if length == "gone":
        del bad["length"]
    found = scored(file(tmp_path, "hotpotqa", [row(), bad]))
    assert (found.results["qa_f1"].value, found.groups) == (1.0, {})
    assert found.notes == ["1 of 2 rows have no usable length: no values by length"]


def test_an_empty_file_has_no_score_and_says_so(tmp_path: Path) -> None:
    found = scored(file(tmp_path, "hotpotqa", []))
    assert (found.results["qa_f1"].value, found.answers.docs) == (None, 0)
    assert found.notes == ["the file is empty: there is no score"]


def test_no_answers_at_all_are_told(tmp_path: Path) -> None:
    found = scored(file(tmp_path, "hotpotqa", [row(answers=[]), row()]))
    assert found.results["qa_f1"].value == 0.5
    assert found.notes == ["1 of 2 rows have no answers: whatever was predicted counts 0"]


def test_a_text_as_answers_is_one_answer_and_numbers_are_texts(tmp_path: Path) -> None:
    assert scored(file(tmp_path, "hotpotqa", [row(answers="Paris")])).results["qa_f1"].value == 1.0
    assert scored(file(tmp_path, "passage_count", [row("7 passages", [7])])).results["count"].value == 1.0
    assert scored(file(tmp_path, "custom_zh", [row("厦门大学。", "厦门大学。")])).results["rouge_zh"].value > 0.99  # type: ignore[operator]


def test_lone_surrogates_empty_lines_and_a_byte_order_mark_do_no_harm(tmp_path: Path) -> None:
    path = file(
        tmp_path,
        "hotpotqa",
        ["\ufeff" + json.dumps(row()), "", '{"pred": "\\ud800 Paris", "answers": ["Paris"], "length": 2}'],
    )
    found = scored(path)
    assert found.results["qa_f1"].value == pytest.approx((1 + 2 / 3) / 2)
    assert found.notes == ["1 of 2 rows: characters that are halves of a pair (lone surrogates) are read as U+FFFD"]


def test_a_line_that_is_not_utf8_is_a_failure(tmp_path: Path) -> None:
    path = file(tmp_path, "hotpotqa", [row()])
    path.write_bytes(path.read_bytes() + '{"pred": "é"}'.encode("latin-1"))
    assert scored(path).notes == [
        "1 of 2 rows have no usable length: no values by length",
        "1 of 2 rows failed: the line is no JSON",
    ]


def test_a_prediction_of_a_megabyte_is_scored(tmp_path: Path) -> None:
    long = ("the cat sat. " * 80_000).strip()
    found = scored(file(tmp_path, "gov_report", [row(long, ["the cat sat."])]))
    assert found.results["rouge"].value == pytest.approx(1.0, abs=1e-6)


# Folders


def test_files_are_found_in_a_file_a_model_folder_and_a_folder_of_models(tmp_path: Path) -> None:
    (tmp_path / "pred" / "llama").mkdir(parents=True)
    path = file(tmp_path / "pred" / "llama", "hotpotqa", [row()])
    for where in (path, path.parent, path.parent.parent):
        assert prediction_files(where) == {"llama": {"hotpotqa": path}}
    assert prediction_files(tmp_path / "nowhere") == {}


def test_a_folder_is_scored_with_averages_and_without_writing_anything(tmp_path: Path) -> None:
    for task, known in TASKS.items():
        if known.category:
            answers = ["Paragraph 1"] if task.endswith("_en") else ["段落1"] if "retrieval" in task else ["1"]
            file(tmp_path, task, [row(answers[0], answers, n, ["1", "2"]) for n in range(2)])
    before = sorted(tmp_path.rglob("*"))
    run = tinyeval.score(tmp_path)
    assert sorted(tmp_path.rglob("*")) == before
    averages = run.results["averages"][tmp_path.name]
    for language in ("en", "zh"):
        assert list(averages[language])[-2:] == ["code", "average"]
        assert averages[language]["average"]["value"] == pytest.approx(1.0, abs=1e-8)
        assert (averages[language]["average"]["tasks"], averages[language]["average"]["of"]) == (6, 6)
    (tmp_path / "lcc.jsonl").unlink()
    averages = tinyeval.score(tmp_path).results["averages"][tmp_path.name]
    assert averages["zh"]["code"] == {"value": None, "stderr": None, "tasks": 1, "of": 2}
    assert averages["zh"]["average"]["value"] is None, "an average of what happens to be there is no LongBench average"


def test_other_files_are_scored_by_the_metrics_that_are_named(tmp_path: Path) -> None:
    path = file(tmp_path, "mine", [row("the Paris", ["Paris"])])
    with pytest.raises(
        TaskError, match=r"mine\.jsonl: no task of LongBench .* name the metrics of such a file with --metric"
    ):
        tinyeval.score(path)
    results = tinyeval.score(path, metric=["qa_f1", "exact_match"]).results["results"][tmp_path.name]["mine"]
    assert {k: v["value"] for k, v in results.items()} == {"qa_f1": 1.0, "exact_match": 0.0}


def test_a_misspelt_task_is_told_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"is named 'hotpot_qa'.*did you mean 'hotpotqa'"):
        tinyeval.score(file(tmp_path, "hotpot_qa", [row()]))


def test_a_metric_that_judges_no_texts_is_refused(tmp_path: Path) -> None:
    path = file(tmp_path, "mine", [row()])
    with pytest.raises(TaskError, match="acc scorers log-probabilities"):
        tinyeval.score(path, metric=["acc"])
    with pytest.raises(TaskError, match=r"no metric is named 'qa_f2'.*did you mean"):
        tinyeval.score(path, metric=["qa_f2"])


def test_metrics_cannot_be_named_for_what_holds_no_predictions(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="holds no prediction files"):
        tinyeval.score(tmp_path, metric=["qa_f1"])


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "hotpotqa.jsonl").symlink_to(tmp_path / "hotpotqa.jsonl")
    with Scorers(1) as scorers, pytest.raises(DataError, match=r"hotpotqa\.jsonl can't be read"):
        score_file(tmp_path / "hotpotqa.jsonl", TASKS["hotpotqa"], scorers)
