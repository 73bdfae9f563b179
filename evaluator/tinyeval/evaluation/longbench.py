"""LongBench's and TinyEval's tasks as far as scoring needs to know them.

Facts of THUDM/LongBench at commit 2e00731f (`eval.py`, `config/`) and of TinyEval's `eval.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from tinyeval.records import Result


class Known(NamedTuple):
    """How a task's predictions are scored.

    Attributes:
        metrics: by name; the official one first.
        language: `en`, `zh` or `code`.
        category: of the six that LongBench averages; None: it is none of LongBench's tasks.
        first_line: only the first line of a prediction counts.
        classes: whether the official scorer reads `all_classes`.
    """

    metrics: tuple[str, ...]
    language: str
    category: str | None
    first_line: bool = False
    classes: bool = False


TASKS: dict[str, Known] = {
    "narrativeqa": Known(("qa_f1",), "en", "single_doc_qa"),
    "qasper": Known(("qa_f1",), "en", "single_doc_qa"),
    "multifieldqa_en": Known(("qa_f1",), "en", "single_doc_qa"),
    "multifieldqa_zh": Known(("qa_f1_zh",), "zh", "single_doc_qa"),
    "hotpotqa": Known(("qa_f1",), "en", "multi_doc_qa"),
    "2wikimqa": Known(("qa_f1",), "en", "multi_doc_qa"),
    "musique": Known(("qa_f1",), "en", "multi_doc_qa"),
    "dureader": Known(("rouge_zh",), "zh", "multi_doc_qa"),
    "gov_report": Known(("rouge",), "en", "summarization"),
    "qmsum": Known(("rouge",), "en", "summarization"),
    "multi_news": Known(("rouge",), "en", "summarization"),
    "vcsum": Known(("rouge_zh",), "zh", "summarization"),
    "trec": Known(("classification",), "en", "few_shot", first_line=True, classes=True),
    "triviaqa": Known(("qa_f1",), "en", "few_shot", first_line=True),
    "samsum": Known(("rouge",), "en", "few_shot", first_line=True),
    "lsht": Known(("classification",), "zh", "few_shot", first_line=True, classes=True),
    "passage_count": Known(("count",), "en", "synthetic"),
    "passage_retrieval_en": Known(("retrieval",), "en", "synthetic"),
    "passage_retrieval_zh": Known(("retrieval_zh",), "zh", "synthetic"),
    "lcc": Known(("code_sim",), "code", "code"),
    "repobench-p": Known(("code_sim",), "code", "code"),
    "GAOKAO_math": Known(("gaokao_math", "gaokao_math_8e6a5fe"), "zh", None),
    "custom_zh": Known(("rouge_zh",), "zh", None),
}

BUCKETS = {"0-4k": 4000, "4-8k": 8000, "8k+": float("inf")}
"""LongBench-E's groups: rows whose `length` is below the bound and not in an earlier group."""


def bucket(length: float) -> str:
    """The group that a row of this length belongs to."""
    return next(name for name, bound in BUCKETS.items() if length < bound)


def averages(results: Mapping[str, Mapping[str, Result]]) -> dict[str, dict[str, dict[str, float | int | None]]]:
    """LongBench's averages: over the tasks of a category, and over the categories.

    The tasks of a language and category count equally, and so do the six categories; code counts in both
    languages. A category without all its tasks has no value, and neither has an average without all categories.

    Args:
        results: task to metric to Result.

    Returns:
        Language to category (and `average`) to `value` and `stderr` in the metrics' own range 0..1, and how many
        `tasks` (or categories) there were `of` all; nothing for a language without any.
    """
    found: dict[str, dict[str, dict[str, float | int | None]]] = {}
    for language in ("en", "zh"):
        if not any(TASKS[t].language == language and TASKS[t].category for t in results if t in TASKS):
            continue
        lines: dict[str, dict[str, float | int | None]] = {}
        for category in dict.fromkeys(k.category for k in TASKS.values() if k.category):
            tasks = [t for t, k in TASKS.items() if k.category == category and k.language in (language, "code")]
            firsts = (next(iter(results[t].values())) for t in tasks if t in results)
            lines[category] = _mean([(r.value, r.stderr) for r in firsts], len(tasks))
        lines["average"] = _mean([(c["value"], c["stderr"]) for c in lines.values()], len(lines))
        found[language] = lines
    return found


def _mean(parts: list[tuple[float | None, float | None]], of: int) -> dict[str, float | int | None]:
    """The mean of independent values and its standard error, if all are there."""
    values = [value for value, _ in parts if value is not None]
    errors = [error for _, error in parts if error is not None]
    return {
        "value": math.fsum(values) / of if len(values) == of else None,
        "stderr": math.sqrt(math.fsum(e * e for e in errors)) / of if len(errors) == of else None,
        "tasks": len(values),
        "of": of,
    }
