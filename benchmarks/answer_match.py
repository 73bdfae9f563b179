"""How well metrics tell answers that mean the same: precision and recall against labelled pairs.

    python benchmarks/answer_match.py                      qa_f1 >= 0.5 and answer_match
    python benchmarks/answer_match.py --judge local        and the embedded model as a judge
    python benchmarks/answer_match.py --judge http://...   and a served one

The pairs are tests/data/answer_pairs.jsonl: half Chinese, half meaning the same. answer_match was written with the
odd ids ("dev") in sight, so only the even ones ("held") tell how it does on pairs it has not seen.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import json
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tinyeval import metrics
from tinyeval.api import Silent
from tinyeval.config import ModelConfig
from tinyeval.endpoints.detect import connect
from tinyeval.evaluation.statistics import agreement, wilson
from tinyeval.inference.journal import Journal, Place, read
from tinyeval.inference.scheduler import Scheduler, Work
from tinyeval.metrics.verdict import verdicts
from tinyeval.records import Doc
from tinyeval.tasks import Definition, Task, TaskConfig
from tinyeval.tasks.verdict import verdict_docs, verdict_ids, verdict_task

PAIRS = Path(__file__).resolve().parents[1] / "tests" / "data" / "answer_pairs.jsonl"
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judge", help="URL of a served model, or `local`")
    judge = parser.parse_args().judge
    rows = [json.loads(line) for line in PAIRS.read_text("utf-8").splitlines()]
    told: dict[str, Callable[[Row], bool]] = {"qa_f1 >= 0.5": by_f1, "answer_match": by_match}
    if judge:
        found = asyncio.run(judged(rows, judge))
        pairs = list(found.values())
        told["judge (both orders say same)"] = lambda r: sum(found[r["id"]]) == 2
        share = agreement(pairs)
        assert share
        kappa = "–" if share.kappa is None else f"{share.kappa:.2f}"
        print(f"judge: {judge}; its two orders agree on {share.share:.0%} of the pairs, kappa {kappa}\n")
    print("| metric | pairs | n | precision | recall | accuracy | 95 % interval |")
    print("|---|---|---|---|---|---|---|")
    for name, says in told.items():
        for part, chosen in parts(rows):
            print(f"| {name} | {part} | {line(chosen, says)} |")


def parts(rows: list[Row]) -> Iterable[tuple[str, list[Row]]]:
    yield "all", rows
    for language in ("en", "zh"):
        yield language, [r for r in rows if r["language"] == language]
    for name, odd in (("dev", 1), ("held", 0)):
        yield name, [r for r in rows if r["id"] % 2 == odd]


def line(rows: list[Row], says: Callable[[Row], bool]) -> str:
    answers = [(says(r), r["same"]) for r in rows]
    both = sum(a and b for a, b in answers)
    said, true = sum(a for a, _ in answers), sum(b for _, b in answers)
    accuracy = sum(a == b for a, b in answers) / len(rows)
    low, high = wilson(accuracy, len(rows))
    precision = f"{both / said:.3f}" if said else "–"
    return f"{len(rows)} | {precision} | {both / true:.3f} | {accuracy:.3f} | {low:.3f} to {high:.3f}"


def by_f1(row: Row) -> bool:
    name = "qa_f1_zh" if row["language"] == "zh" else "qa_f1"
    return metrics.get(name)(row["prediction"], [row["gold"]]) >= 0.5


def by_match(row: Row) -> bool:
    return metrics.get("answer_match")(row["prediction"], [row["gold"]], specific={"aliases": row.get("aliases", [])}) == 1


async def judged(rows: list[Row], judge: str) -> dict[int, tuple[float, ...]]:
    """Each pair's two verdicts, asked as a run asks them."""
    model = ModelConfig(api="local") if judge == "local" else ModelConfig(url=judge)
    with tempfile.TemporaryDirectory() as folder:
        endpoint = await connect("judge", model, 0, Path(folder), datetime.date.today())
        try:
            work: list[Work] = []
            for language in ("en", "zh"):
                definition = Definition(name=language, metric=["judge"], language=language)
                task = Task(TaskConfig(definition=definition, prompt_function=lambda row, name: None, path=PAIRS))
                docs = [
                    doc
                    for r in rows
                    if r["language"] == language
                    for doc in verdict_docs(
                        task,
                        Doc(id=str(r["id"]), query=r["question"], references=(r["gold"], *r.get("aliases", []))),
                        r["prediction"],
                    )
                ]
                work.append(Work(verdict_task(task), docs, Journal(Path(folder) / f"{language}.jsonl")))
            await Scheduler("judge", endpoint, model, Silent()).run(work)
        finally:
            await endpoint.close()
        entries = {p: e for w in ("en", "zh") for p, e in read(Path(folder) / f"{w}.jsonl").items()}
        return {r["id"]: verdicts([entries[Place(i, 0)].response.text for i in verdict_ids(str(r["id"]))]) for r in rows}


if __name__ == "__main__":
    main()
