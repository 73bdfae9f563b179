"""The official values, where the golden vectors are at hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from tinyeval import metrics

GOLDEN = Path(__file__).resolve().parents[3] / "shared" / "longbench" / "golden"

pytestmark = pytest.mark.skipif(
    not GOLDEN.is_dir(), reason="the golden vectors of LongBench are not beside the project"
)

METRICS = {
    "qa_f1_score": "qa_f1",
    "qa_f1_zh_score": "qa_f1_zh",
    "rouge_score": "rouge",
    "rouge_zh_score": "rouge_zh",
    "classification_score": "classification",
}


def rows_of(file: str) -> list[dict[str, Any]]:
    return [json.loads(x) for x in (GOLDEN / f"{file}.jsonl").read_text("utf-8").split("\n") if x]


@pytest.mark.parametrize("file", METRICS)
def test_a_metric_under_its_official_name_has_the_official_value(file: str) -> None:
    rows = rows_of(file)
    assert len(rows) > 40
    for row in rows:
        value = row.get("value_no_recursion_limit", row["value"])
        if value is None:
            continue
        got = metrics.get(METRICS[file])(row["prediction"], [row["ground_truth"]], row.get("all_classes"))
        assert got == pytest.approx(value, abs=1e-12), row["id"]


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
        metric = metrics.get(row["metric"].removesuffix("_score"))
        value = zh_value if row["metric"] == "rouge_zh_score" else row["value_no_recursion_limit"]
        assert row["value"] in (value, 0.0), row["id"]
        assert metric(long_prediction(row), [row["ground_truth"]]) == pytest.approx(value, abs=1e-12), row["id"]
