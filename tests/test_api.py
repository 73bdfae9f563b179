"""run, score and load on the fake TGI server: failures counted, refusals, resumption, several models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tinyeval
from tinyeval.endpoints.retry import Patience
from tinyeval.errors import EndpointError, RunError, Unsupported
from tinyeval.inference import scheduler
from tinyeval.inference.journal import read

QA = (
    'name = "qa"\ndata = "qa.jsonl"\nprompt = "{q}"\nreferences = "a"\nmetric = ["exact_match"]\ngeneration_size = 32\n'
)


def task(folder: Path, rows: int = 12, more: str = "", question: str = "Question {i}?") -> str:
    lines = [{"id": f"r{i}", "q": question.format(i=i), "a": "x"} for i in range(rows)]
    (folder / "qa.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    (folder / "qa.toml").write_text(QA + more)
    return str(folder / "qa.toml")


def models(*servers: Any, **settings: Any) -> dict[str, tinyeval.ModelConfig]:
    return {f"m{i}": tinyeval.ModelConfig(url=s.url, **settings) for i, s in enumerate(servers)}


def answers(run: tinyeval.Run, model: str = "m0") -> dict[str, Any]:
    return run.results["answers"][model]["custom|qa"]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rules with shorter times."""
    quick = Patience(tries=4, seconds=2, unreachable=0.5, pause=0.01)
    monkeypatch.setattr(scheduler, "Patience", lambda: quick)


def test_every_doc_is_asked_once_with_at_most_the_named_requests_in_flight(fake_tgi: Any, tmp_path: Path) -> None:
    server = fake_tgi("--latency", "0.02")
    run = tinyeval.run(models=models(server, concurrency=3), tasks=[task(tmp_path, 20)], output=tmp_path / "o")
    assert (run.failed, answers(run)["docs"]) == (0, 20)
    counted = server.counters()
    assert counted["requests"]["/generate"] == 20
    assert counted["peak"] == 3


@pytest.mark.usefixtures("impatient")
def test_a_failed_sample_is_counted_and_never_scored_as_an_empty_answer(fake_tgi: Any, tmp_path: Path) -> None:
    server = fake_tgi()
    server.fail_next(413)
    arguments: dict[str, Any] = {"models": models(server, concurrency=1), "tasks": [task(tmp_path)]}
    run = tinyeval.run(**arguments, output=tmp_path / "o")
    result = run.results["results"]["m0"]["custom|qa"]["exact_match"]
    assert (run.failed, result["n"], result["failed"]) == (1, 11, 1)
    lines = [json.loads(x) for x in (tmp_path / "o/m0/custom.qa.scores.jsonl").read_text().splitlines()]
    assert len(lines) == 12
    (failed,) = [line for line in lines if line["error"]]
    assert "payload limit" in failed["error"] and failed["values"] == {}

    asked = server.counters()["requests"]["/generate"]
    assert tinyeval.run(**arguments, output=tmp_path / "o").failed == 1
    assert server.counters()["requests"]["/generate"] == asked, "a recorded failure is not asked again by itself"
    assert tinyeval.run(**arguments, output=tmp_path / "o", retry_failed=True).failed == 0
    assert server.counters()["requests"]["/generate"] == asked + 1


@pytest.mark.usefixtures("impatient")
def test_faults_that_pass_change_neither_scores_nor_failures(fake_tgi: Any, tmp_path: Path) -> None:
    calm, troubled = fake_tgi(), fake_tgi()
    path = task(tmp_path, 30)
    whole = tinyeval.run(models=models(calm), tasks=[path], output=tmp_path / "calm")
    troubled.fail_next(*[429, 503, 500, "drop", "cut", 424, 502, 429, "drop", 504] * 2)
    run = tinyeval.run(models=models(troubled), tasks=[path], output=tmp_path / "troubled")
    assert run.results["results"] == whole.results["results"]
    assert run.failed == 0
    usage = json.loads((tmp_path / "troubled/usage.json").read_text())["usage"]["m0"]["custom|qa"]
    assert (usage["requests"], usage["attempts"]) == (30, 50)


def test_a_task_that_needs_what_the_server_lacks_is_refused_and_the_others_go_on(fake_tgi: Any, tmp_path: Path) -> None:
    server = fake_tgi("--grammar", "ignored")
    said: list[str] = []
    run = tinyeval.run(
        models=models(server),
        tasks=["qa_en", "extract_json", "choice_en"],
        limit=3,
        output=tmp_path / "o",
        say=said.append,
    )
    found = run.results["answers"]["m0"]
    assert found["demo|qa_en"]["failed"] == 0
    assert found["demo|extract_json"]["failed"] == found["demo|choice_en"]["failed"] == 3
    assert "--disable-grammar-support" in found["demo|extract_json"]["refused"]
    assert "--enable-prefill-logprobs" in found["demo|choice_en"]["refused"]
    assert len(said) == 2
    assert server.counters()["requests"]["/generate"] <= 3 + 2, "three Docs and two proofs"


def test_an_endpoint_that_can_do_nothing_of_it_ends_the_run(fake_tgi: Any, tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="can do none of the tasks"):
        tinyeval.run(models=models(fake_tgi()), tasks=["choice_en"], limit=2, output=tmp_path / "o")


def test_a_server_with_the_missing_flag_finishes_the_refused_task(fake_tgi: Any, tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"tasks": ["qa_en", "choice_en"], "limit": 2, "output": tmp_path / "o"}
    assert tinyeval.run(models=models(fake_tgi()), **arguments).failed == 2
    server = fake_tgi("--enable-prefill-logprobs")
    assert tinyeval.run(models=models(server), **arguments).failed == 0
    assert server.counters()["requests"]["/generate"] == 1 + 2 * 4, "a proof and the choices; qa_en is not asked again"


@pytest.mark.usefixtures("impatient")
def test_a_dead_server_never_holds_back_another_and_its_model_is_finished_later(fake_tgi: Any, tmp_path: Path) -> None:
    path = task(tmp_path, 40)
    good, dying = fake_tgi("--latency", "0.01"), fake_tgi("--latency", "0.05")

    class Killer:
        def begin(self, model: str, task: str, docs: int, done: int) -> None: ...

        def finished(self, model: str, task: str) -> None: ...

        def answered(self, model: str, task: str, entry: Any) -> None:
            if model == "m1" and len(read(tmp_path / "o/m1/custom.qa.jsonl")) == 5:
                dying.kill()

    arguments: dict[str, Any] = {"tasks": [path], "output": tmp_path / "o"}
    said: list[str] = []
    two = models(good, dying, concurrency=2)
    with pytest.raises(EndpointError, match="m1 could not be finished"):
        tinyeval.run(models=two, **arguments, observer=Killer(), say=said.append)
    assert "does not answer" in said[-1]
    assert len(read(tmp_path / "o/m0/custom.qa.jsonl")) == 40
    kept = len(read(tmp_path / "o/m1/custom.qa.jsonl"))
    assert 5 <= kept < 40
    partly = tinyeval.score(tmp_path / "o")
    assert (answers(partly)["failed"], answers(partly, "m1")["failed"]) == (0, 40 - kept)

    back = fake_tgi()
    run = tinyeval.run(models=models(good, back, concurrency=2), **arguments)
    assert run.failed == 0
    assert back.counters()["requests"]["/generate"] == 40 - kept


def test_another_model_under_the_same_name_is_refused(fake_tgi: Any, tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"tasks": [task(tmp_path)], "output": tmp_path / "o"}
    server = fake_tgi()
    server.fail_next(413)
    tinyeval.run(models=models(server), **arguments)
    other = fake_tgi("--model-id", "fake/other")
    with pytest.raises(
        RunError, match=r"begun with another server for m0: model_id was 'fake/tgi' and is 'fake/other'"
    ):
        tinyeval.run(models=models(other), **arguments, retry_failed=True)
    assert "/generate" not in other.counters()["requests"]


def test_a_prompt_that_the_server_counts_longer_is_cut_once_more(fake_tgi: Any, tmp_path: Path) -> None:
    server = fake_tgi("--max-total-tokens", "200")
    path = task(tmp_path, 1, question="word " * 400)
    server.fail_next(
        [422, '{"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 200. '
         'Given: 180 `inputs` tokens and 32 `max_new_tokens`", "error_type": "validation"}', {}]
    )  # fmt: skip
    run = tinyeval.run(models=models(server, chat=False), tasks=[path], output=tmp_path / "o")
    assert run.failed == 0
    (entry,) = read(tmp_path / "o/m0/custom.qa.jsonl").values()
    assert entry.attempts == 2
    assert entry.response and entry.response.prompt_tokens
    assert 200 - 32 - 12 - 16 - 8 <= entry.response.prompt_tokens <= 200 - 32 - 12 - 16


def test_an_answer_that_does_not_fit_is_refused_before_anything_is_asked(fake_tgi: Any, tmp_path: Path) -> None:
    server = fake_tgi("--max-total-tokens", "32")
    with pytest.raises(Unsupported):
        tinyeval.run(models=models(server), tasks=[task(tmp_path)], output=tmp_path / "o")
    assert "/generate" not in server.counters()["requests"]


def test_chat_true_without_a_template_is_refused_with_the_remedy(fake_tgi: Any, tmp_path: Path) -> None:
    server = fake_tgi("--no-template")
    said: list[str] = []
    with pytest.raises(Unsupported):
        tinyeval.run(models=models(server, chat=True), tasks=[task(tmp_path)], output=tmp_path / "o", say=said.append)
    assert "no chat template" in said[0]


def test_a_run_is_loaded_as_it_was_scored_last(fake_tgi: Any, tmp_path: Path) -> None:
    run = tinyeval.run(models=models(fake_tgi()), tasks=[task(tmp_path)], output=tmp_path / "o")
    assert tinyeval.load(tmp_path / "o") == run == tinyeval.score(tmp_path / "o")
    with pytest.raises(RunError, match=r"results\.json can't be read"):
        tinyeval.load(tmp_path)


async def test_a_run_can_be_awaited_inside_a_program_of_its_own(fake_tgi: Any, tmp_path: Path) -> None:
    run = await tinyeval.run_async(models=models(fake_tgi()), tasks=[task(tmp_path)], output=tmp_path / "o")
    assert run.failed == 0
