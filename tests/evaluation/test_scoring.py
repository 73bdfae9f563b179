"""Journals to scores: failures counted beside the value, arrival order without influence."""

from __future__ import annotations

import json
import random
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyeval.config import Config, ModelConfig
from tinyeval.endpoints.capabilities import Capability
from tinyeval.endpoints.protocol import Identity
from tinyeval.errors import RunError, TaskError
from tinyeval.evaluation.docs import UNASKED, Job, score_docs
from tinyeval.evaluation.scoring import Answers, Tally, score_run
from tinyeval.inference.folder import ModelRecord, RunFolder
from tinyeval.inference.journal import Entry, Journal
from tinyeval.records import Doc, Response, Result, Score
from tinyeval.reports.results import build_results, build_usage, write_results
from tinyeval.tasks import Definition, Task, TaskConfig


class Scored(NamedTuple):
    results: dict[str, Result]
    answers: Answers
    scores: list[Score]


def question(name: str, *references: str) -> Doc:
    return Doc(id=name, query="?", references=references or ("yes",))


def choice(name: str, gold: int = 0) -> Doc:
    return Doc(id=name, query="?", choices=("a", "b"), gold_index=(gold,), references=("a",))


def answer(doc: str, text: str = "yes", index: int = 0, **more: Any) -> Entry:
    finish = more.pop("finish_reason", "stop")
    return Entry(doc=doc, index=index, key="k", response=Response(text=text, finish_reason=finish), **more)


def chosen(doc: str, index: int, logprob: float | None) -> Entry:
    return Entry(doc=doc, index=index, key="k", response=Response(logprob=logprob))


def failure(doc: str, index: int = 0, error: str = "500 (8 times)") -> Entry:
    return Entry(doc=doc, index=index, key="k", error=error)


def scored(wanted: list[str], docs: list[Doc], entries: list[Entry], refused: str | None = None) -> Scored:
    job = Job(tuple(wanted), refused=refused)
    of = {d.id: [msgspec.json.encode(e) for e in entries if e.doc == d.id] for d in docs}
    tally = Tally(job)
    scored = score_docs(job, [(msgspec.json.encode(d), of[d.id]) for d in docs])
    for one in scored:
        tally.add(one)
    return Scored(tally.results(), tally.answers, [one.score for one in scored])


def test_each_doc_ends_scored_or_failed_with_its_reason() -> None:
    docs = [question(n) for n in ("right", "wrong", "failed", "unasked", "too long", "empty")]
    entries = [
        answer("right"),
        answer("wrong", "no"),
        failure("failed"),
        failure("too long", -1, "an answer of 9 tokens leaves no room"),
        answer("empty", ""),
    ]
    found = scored(["qa_f1", "exact_match"], docs, entries)
    assert [(s.doc, s.values.get("qa_f1"), s.error) for s in found.scores] == [
        ("right", 1.0, None),
        ("wrong", 0.0, None),
        ("failed", None, "500 (8 times)"),
        ("unasked", None, UNASKED),
        ("too long", None, "an answer of 9 tokens leaves no room"),
        ("empty", 0.0, None),  # an empty answer is an answer
    ]
    assert (found.answers.docs, found.answers.failed) == (6, 3)
    for name in ("qa_f1", "exact_match"):
        result = found.results[name]
        assert (result.value, result.n, result.failed) == (pytest.approx(1 / 3), 3, 3)


def test_a_failed_doc_is_no_empty_answer() -> None:
    docs = [question("a"), question("b")]
    result = scored(["qa_f1"], docs, [answer("a"), failure("b")]).results["qa_f1"]
    assert (result.value, result.n, result.failed) == (1.0, 1, 1)


def test_when_all_fail_there_is_no_value_rather_than_zero() -> None:
    found = scored(["qa_f1"], [question("a")], [failure("a")])
    assert (found.results["qa_f1"].value, found.results["qa_f1"].failed) == (None, 1)
    assert found.answers.cut_by_length is None


def test_a_refused_task_fails_with_the_remedy() -> None:
    found = scored(["qa_f1"], [question("a"), question("b")], [], "start TGI with --enable-prefill-logprobs")
    assert [s.error for s in found.scores] == ["refused: start TGI with --enable-prefill-logprobs"] * 2
    assert (found.answers.refused, found.answers.failed) == ("start TGI with --enable-prefill-logprobs", 2)


def test_choices_are_judged_when_all_of_them_have_a_log_probability() -> None:
    docs = [choice("right"), choice("wrong", 1), choice("half"), choice("failed"), choice("none")]
    entries = [
        chosen("right", 0, -1.0), chosen("right", 1, -2.0), chosen("wrong", 0, -1.0), chosen("wrong", 1, -2.0),
        chosen("half", 0, -1.0), chosen("failed", 0, -1.0), failure("failed", 1, "the continuation has no token"),
        chosen("none", 0, -1.0), chosen("none", 1, None),
    ]  # fmt: skip
    found = scored(["acc"], docs, entries)
    assert [(s.values.get("acc"), s.error) for s in found.scores] == [
        (1.0, None),
        (0.0, None),
        (None, UNASKED),
        (None, "the continuation has no token"),
        (None, "a choice has no log-probability"),
    ]


def test_a_task_of_both_kinds_reads_the_answer_first_and_the_choices_after_it() -> None:
    entries = [answer("a", "the a"), chosen("a", 1, -5.0), chosen("a", 2, -1.0)]
    (score,) = scored(["accuracy", "acc"], [choice("a")], entries).scores
    assert score.values == {"accuracy": 1.0, "acc": 0.0}
    entries = [answer("a", "b"), chosen("a", 1, -1.0), chosen("a", 2, -5.0)]
    (score,) = scored(["accuracy", "acc"], [choice("a")], entries).scores
    assert score.values == {"accuracy": 0.0, "acc": 1.0}


def test_the_share_of_answers_cut_by_length_and_of_cut_prompts_is_counted() -> None:
    docs = [question(n) for n in "abcd"]
    entries = [answer("a", finish_reason="length", removed=7), answer("b", removed=1), answer("c"), failure("d")]
    answers = scored(["qa_f1"], docs, entries).answers
    assert answers.cut_by_length == pytest.approx(1 / 3)
    assert answers.truncated == 2


def test_a_log_likelihood_is_never_cut_by_length() -> None:
    found = scored(["acc"], [choice("a")], [chosen("a", 0, -1.0), chosen("a", 1, -2.0)])
    assert found.answers.cut_by_length is None


@given(
    st.lists(st.sampled_from(["yes", "no", "yes no", "", None, "unasked"]), max_size=12),
    st.randoms(use_true_random=False),
)
@settings(deadline=None)
def test_the_order_in_which_answers_arrive_changes_not_a_byte(texts: list[str | None], order: random.Random) -> None:
    docs = [question(str(i)) for i in range(len(texts))]
    entries = [
        failure(str(i)) if text is None else answer(str(i), text) for i, text in enumerate(texts) if text != "unasked"
    ]
    shuffled = order.sample(entries, len(entries))
    assert msgspec.json.encode(scored(["qa_f1", "exact_match"], docs, shuffled)) == msgspec.json.encode(
        scored(["qa_f1", "exact_match"], docs, entries)
    )


# Whole runs


def begun(path: Path, order: list[int]) -> RunFolder:
    """A run of one task for two models, its answers journalled in this order."""

    def build(row: dict[str, Any], task_name: str) -> Doc:
        return question(str(row["n"]), "yes", "ja")

    config = TaskConfig(definition=Definition(name="t", metric=["qa_f1"]), prompt_function=build, path=Path("x"))
    task = Task(config)
    task._rows = [{"n": n} for n in range(len(order))]  # pyright: ignore[reportPrivateUsage]
    folder = RunFolder(path)
    models = {"zwei": ModelConfig(url="http://h"), "eins": ModelConfig(url="http://i")}
    folder.begin(Config(models=models), {"custom|t": task}, {"custom|t": task.eval_docs()})
    identity = Identity(api="tgi", model_id="m", max_total_tokens=9, max_concurrent_requests=1)
    for model in models:
        folder.connected(model, ModelRecord(identity=identity))
        with closing(Journal(folder.journal(model, "custom|t"))) as journal:
            for n in order:
                journal.append(answer(str(n), "yes" if n % 2 else "no", attempts=order[0] + 1, seconds=n / 7))
    return folder


def test_equal_runs_write_equal_results_whatever_the_order_attempts_and_times(tmp_path: Path) -> None:
    written: list[bytes] = []
    for name, order in (("one", [0, 1, 2, 3, 4]), ("other", [3, 1, 4, 0, 2])):
        folder = begun(tmp_path / name, order)
        results = write_results(folder, score_run(folder))
        assert results == build_results(folder, score_run(folder))
        written.append((folder.path / "results.json").read_bytes())
        written.append((folder.path / "eins" / "custom.t.scores.jsonl").read_bytes())
    assert written[:2] == written[2:]
    found = msgspec.json.decode(written[0])
    assert list(found) == ["schema_version", "results", "answers", "run"]
    assert list(found["results"]) == ["zwei", "eins"]
    assert found["results"]["eins"]["custom|t"]["qa_f1"]["value"] == 0.4
    assert not {"seconds", "attempts", "time"} & set(str(found).replace("'", " ").split())


def test_scoring_twice_writes_the_same_bytes_and_leaves_the_answers_alone(tmp_path: Path) -> None:
    folder = begun(tmp_path, [0, 1, 2])
    write_results(folder, score_run(folder))
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    write_results(folder, score_run(folder))
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


def test_usage_is_totalled_from_the_journal(tmp_path: Path) -> None:
    usage = build_usage(begun(tmp_path, [2, 0, 1]))["usage"]["zwei"]["custom|t"]
    assert usage == {"requests": 3, "attempts": 9, "prompt_tokens": 0, "completion_tokens": 0, "seconds": 0.429}


def test_what_was_refused_is_in_the_results(tmp_path: Path) -> None:
    folder = begun(tmp_path, [0, 1])
    record = folder.record.models["eins"]
    lacking = {"generate": Capability(False, remedy="do this")}
    folder.connected("eins", msgspec.structs.replace(record, capabilities=lacking, refused={"custom|t": "do this"}))
    results = build_results(folder, score_run(folder))
    assert results["answers"]["eins"]["custom|t"] == {
        "docs": 2, "failed": 0, "cut_by_length": 0.0, "truncated": 0, "violations": None, "refused": "do this",
    }  # fmt: skip
    folder.journal("eins", "custom|t").unlink()
    assert score_run(folder)["eins"]["custom|t"].answers.failed == 2, "what was answered before stays answered"
    lines = (folder.path / "eins" / "custom.t.scores.jsonl").read_text().splitlines()
    assert [json.loads(x)["error"] for x in lines] == ["refused: do this"] * 2
    assert results["answers"]["zwei"]["custom|t"]["failed"] == 0


def test_a_metric_that_this_version_does_not_know_is_told(tmp_path: Path) -> None:
    folder = begun(tmp_path, [0, 1])
    run_json = tmp_path / "run.json"
    run_json.write_text(run_json.read_text("utf-8").replace('"qa_f1"', '"qa_f2"'), "utf-8")
    with pytest.raises(TaskError, match=r"custom\|t: no metric is named 'qa_f2' \(did you mean 'qa_f1'"):
        score_run(folder)


def test_a_damaged_journal_is_told_and_no_result_is_written(tmp_path: Path) -> None:
    folder = begun(tmp_path, [0, 1, 2])
    path = folder.journal("eins", "custom|t")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"?" + b"".join(lines[1:]))
    with pytest.raises(RunError, match=r"custom\.t\.jsonl, line 2 is damaged"):
        write_results(folder, score_run(folder))
    assert not (tmp_path / "results.json").exists()
