"""The official values, where the golden vectors are at hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from tinyeval.metrics import answers, longbench, overlap, rouge
from tinyeval.metrics.registry import Metric

GOLDEN = Path(__file__).resolve().parents[3] / "shared" / "longbench" / "golden"

pytestmark = pytest.mark.skipif(
    not GOLDEN.is_dir(), reason="the golden vectors of LongBench are not beside the project"
)

# File, its rows, our function, the field of the official value.
METRICS: list[tuple[str, int, Any, str]] = [
    ("qa_f1_score", 117, overlap.qa_f1, "value"),
    ("qa_f1_zh_score", 117, overlap.qa_f1_zh, "value"),
    ("rouge_score", 241, rouge.rouge, "value_no_recursion_limit"),
    ("rouge_zh_score", 111, rouge.rouge_zh, "value_no_recursion_limit"),
    ("classification_score", 136, answers.classification, "value"),
    ("count_score", 30, longbench.count, "value"),
    ("retrieval_score", 30, longbench.retrieval, "value"),
    ("retrieval_zh_score", 33, longbench.retrieval_zh, "value"),
    ("code_sim_score", 188, longbench.code_sim, "value"),
    ("code_sim_score", 188, longbench.code_sim, "value_difflib"),
    ("code_sim_score", 188, longbench.code_sim_levenshtein, "value_levenshtein"),
    ("gaokao_math", 35, longbench.gaokao_math, "value"),
    ("gaokao_math", 35, longbench.gaokao_math_8e6a5fe, "old_metric_8e6a5fe"),
]
REFUSALS = {
    "classification_score": answers.no_classes,
    "retrieval_score": longbench.no_paragraph,
    "retrieval_zh_score": longbench.no_paragraph_zh,
}
FIRST_LINE = {"trec", "triviaqa", "samsum", "lsht"}
TASKS = {
    "trec lsht": answers.classification,
    "triviaqa hotpotqa 2wikimqa musique narrativeqa qasper multifieldqa_en": overlap.qa_f1,
    "multifieldqa_zh": overlap.qa_f1_zh,
    "samsum gov_report qmsum multi_news": rouge.rouge,
    "dureader vcsum": rouge.rouge_zh,
    "passage_count": longbench.count,
    "passage_retrieval_en": longbench.retrieval,
    "passage_retrieval_zh": longbench.retrieval_zh,
    "lcc repobench-p": longbench.code_sim,
}


def rows_of(file: str) -> list[dict[str, Any]]:
    return [json.loads(x) for x in (GOLDEN / f"{file}.jsonl").read_text("utf-8").split("\n") if x]


@pytest.mark.parametrize(
    ("file", "count", "function", "field"),
    METRICS,
    ids=lambda x: x if isinstance(x, str) else getattr(x, "__name__", str(x)),
)
def test_a_metric_has_the_official_value(file: str, count: int, function: Any, field: str) -> None:
    metric = Metric(name=file, function=function)
    rows = rows_of(file)
    assert len(rows) >= count
    for row in rows:
        got = metric(row["prediction"], row["ground_truth"], row["all_classes"])
        if row["exception"] is not None:  # What the official code can't judge is worth nothing, and refused.
            assert row[field] is None
            assert REFUSALS[file](row["ground_truth"], row["all_classes"] or ())
            assert got == 0.0
        elif isinstance(row["ground_truth"], list):  # TinyEval's scorer hands over all golds as one; here each counts.
            assert (row["id"], row[field], got) == ("gold_list_single", 0.0, 1.0)
        else:
            assert got == pytest.approx(row[field], rel=0, abs=1e-12), row["id"]


def test_the_normalised_texts_are_the_official_ones() -> None:
    for file, function in (("normalize_en", overlap.normalize_en), ("normalize_zh", overlap.normalize_zh)):
        rows = rows_of(file)
        assert len(rows) >= 51
        assert [function(row["text"]) for row in rows] == [row["normalized"] for row in rows]


@pytest.mark.parametrize("row", rows_of("sample_level") if GOLDEN.is_dir() else [], ids=lambda row: row["id"])
def test_a_row_of_a_task_has_the_official_value(row: dict[str, Any]) -> None:
    function = next(f for names, f in TASKS.items() if row["dataset"] in names.split())
    text = row["prediction"]
    judged = longbench.first_line(text) if row["dataset"] in FIRST_LINE else text
    golds = list(row["answers"])  # The official code takes a gold that is no list by its characters.
    got = Metric(name=row["dataset"], function=function)(judged, golds, row["all_classes"])
    assert row["exception"] is None
    assert got == pytest.approx(row["value"], rel=0, abs=1e-12)


def long_prediction(row: dict[str, Any]) -> str:
    """The prediction that the row's rule describes: most are too long to be written down."""
    n, rule = row["n_prediction_tokens"], row["prediction_rule"]
    words = [f"w{i}" for i in range(n)]
    if rule.startswith("w0 w1 ... w{n-1} joined"):
        return " ".join(words)
    if rule.startswith("'甲' followed by n-1 of '，'"):
        return "甲" + "，" * (n - 1)
    return row["prediction"]


def test_a_long_text_has_the_value_that_the_official_code_would_give_without_its_recursion_limit() -> None:
    rows = rows_of("rouge_depth")
    assert len(rows) == 62
    assert {r["value"] for r in rows if r["id"] in ("n999", "zh995")} == {0.0}  # where the official code gives up
    # Every zh row is one of two words right: precision 1/2, recall 1.
    zh_value = next(r["value"] for r in rows if r["metric"] == "rouge_zh_score")
    assert zh_value == pytest.approx(2 * 0.5 / (1.5 + 1e-8), abs=1e-12)
    for row in rows:
        chinese = row["metric"] == "rouge_zh_score"
        value = zh_value if chinese else row["value_no_recursion_limit"]
        function = rouge.rouge_zh if chinese else rouge.rouge
        assert row["value"] in (value, 0.0), row["id"]
        got = function(long_prediction(row), row["ground_truth"])
        assert got == pytest.approx(value, rel=0, abs=1e-12), row["id"]


def test_a_long_text_has_the_official_value_with_its_recursion_limit() -> None:
    for row in rows_of("rouge_depth"):
        chinese = row["metric"] == "rouge_zh_score"
        function = rouge.rouge_zh_depth_limited if chinese else rouge.rouge_depth_limited
        got = function(long_prediction(row), row["ground_truth"])
        assert got == pytest.approx(row["value"], rel=0, abs=1e-12), row["id"]
