"""Scoring in several real processes: the values do not depend on them, and their deaths are told."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import msgspec
import pytest

from tinyeval import metrics
from tinyeval.errors import RunError
from tinyeval.evaluation import processes
from tinyeval.evaluation.docs import Item, Job, score_docs
from tinyeval.evaluation.processes import Scorers
from tinyeval.inference.journal import Entry
from tinyeval.metrics import registry
from tinyeval.records import Doc, Response

JOB = Job(("qa_f1", "qa_f1_zh", "rouge"))


def items(count: int) -> list[Item]:
    docs = [Doc(id=str(i), query="?", references=(f"the answer {i} 厦门大学",)) for i in range(count)]
    answers = [Response(text=f"answer {i // 2} 在厦门", finish_reason="stop") for i in range(count)]
    entries = [Entry(doc=d.id, index=0, key="k", response=r) for d, r in zip(docs, answers, strict=True)]
    return [(msgspec.json.encode(d), [msgspec.json.encode(e)]) for d, e in zip(docs, entries, strict=True)]


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "ALONE", 0.0)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.usefixtures("at_once")
def test_values_and_their_order_do_not_depend_on_the_number_of_processes(count: int) -> None:
    chunks = [items(40)[i : i + 3] for i in range(0, 40, 3)]
    with Scorers(count) as scorers:
        found = [one for chunk in scorers.score_all(JOB, chunks) for one in chunk]
    assert found == score_docs(JOB, items(40))


@pytest.mark.usefixtures("at_once")
def test_few_chunks_are_read_ahead() -> None:
    read = 0

    def chunks() -> Iterator[list[Item]]:
        nonlocal read
        for item in items(60):
            read += 1
            yield [item]

    with Scorers(2) as scorers:
        for done, _ in enumerate(scorers.score_all(JOB, chunks())):
            assert read - done <= 6


def test_little_work_starts_no_process() -> None:
    with Scorers(4) as scorers:
        assert len(list(scorers.score_all(JOB, [items(3), items(2)]))) == 2
        assert not scorers._workers  # pyright: ignore[reportPrivateUsage]


@pytest.mark.usefixtures("at_once")
def test_a_metric_of_the_program_itself_is_scored_there() -> None:
    metrics.register("own_length", lambda prediction, reference, choices: len(prediction) / 100)
    try:
        with Scorers(2) as scorers:
            ((scored,),) = scorers.score_all(Job(("own_length",)), [items(1)])
            assert not scorers._workers  # pyright: ignore[reportPrivateUsage]
        assert scored.score.values == {"own_length": 0.12}
    finally:
        del registry._metrics["own_length"]  # pyright: ignore[reportPrivateUsage]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs POSIX signals")
@pytest.mark.usefixtures("at_once")
def test_a_process_that_is_killed_is_told_with_the_remedy() -> None:
    with Scorers(2) as scorers:
        list(scorers.score_all(JOB, [items(1)] * 4))
        for worker in scorers._workers:  # pyright: ignore[reportPrivateUsage]
            os.kill(worker._process.pid, signal.SIGKILL)  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(RunError, match=r"a scoring process died .*; score with --processes 1"):
            list(scorers.score_all(JOB, [items(1)] * 4))


@pytest.mark.usefixtures("at_once")
def test_a_fault_in_a_metric_is_no_value_but_an_error() -> None:
    broken = [(b"{", [b""])]
    with Scorers(2) as scorers, pytest.raises(RuntimeError, match="scoring failed in another process"):
        list(scorers.score_all(JOB, [broken]))
