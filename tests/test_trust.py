"""What would make a number wrong without a word: each case is refused, mended or counted instead."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tinyeval
from tinyeval.endpoints.chat import chat_renderer
from tinyeval.endpoints.detect import connect
from tinyeval.endpoints.retry import Patience
from tinyeval.errors import ConfigError, EndpointError, RunError, UsageError
from tinyeval.grammars import obeys
from tinyeval.inference import scheduler
from tinyeval.inference.journal import read
from tinyeval.records import Grammar

TASK = (
    'name = "t"\ndata = "t.jsonl"\nprompt = "{q}"\nreferences = "a"\nchoices = "c"\ngold = "g"\ngeneration_size = 16\n'
)


def write_task(folder: Path, more: str, rows: int = 6, question: str = "Question {i}?") -> str:
    choices = [" yes", " no and so on", " perhaps"]
    lines = [{"q": question.format(i=i), "a": "x", "c": choices, "g": i % 3} for i in range(rows)]
    (folder / "t.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (folder / "t.toml").write_text(TASK + more)
    return str(folder / "t.toml")


def model(server: Any, **settings: Any) -> dict[str, tinyeval.ModelConfig]:
    return {"m": tinyeval.ModelConfig(url=server.url, **settings)}


def generations(server: Any) -> int:
    return server.counters()["requests"].get("/generate", 0)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = Patience(tries=3, seconds=1, unreachable=0.3, pause=0.01)
    monkeypatch.setattr(scheduler, "Patience", lambda: quick)


def test_answers_of_one_kind_are_never_scored_as_another(fake_tgi: Any, tmp_path: Path) -> None:
    server = fake_tgi("--enable-prefill-logprobs")
    arguments: dict[str, Any] = {"models": model(server), "output": tmp_path / "o"}
    tinyeval.run(tasks=[write_task(tmp_path, 'metric = ["acc"]')], **arguments)
    with pytest.raises(RunError, match=r"tasks\.custom\|t\.asks was \['loglikelihood'\] and is \['generate'\] now"):
        tinyeval.run(tasks=[write_task(tmp_path, 'metric = ["qa_f1"]')], **arguments)


def test_a_metric_of_the_same_kind_is_scored_without_asking_again(fake_tgi: Any, tmp_path: Path) -> None:
    server = fake_tgi()
    arguments: dict[str, Any] = {"models": model(server), "output": tmp_path / "o"}
    tinyeval.run(tasks=[write_task(tmp_path, 'metric = ["qa_f1"]')], **arguments)
    asked = generations(server)
    run = tinyeval.run(tasks=[write_task(tmp_path, 'metric = ["qa_f1", "exact_match"]')], **arguments)
    assert set(run.results["results"]["m"]["custom|t"]) == {"qa_f1", "exact_match"}
    assert generations(server) == asked


def test_all_choices_of_a_question_are_scored_under_one_context(fake_tgi: Any, tmp_path: Path) -> None:
    server = fake_tgi("--enable-prefill-logprobs", "--max-total-tokens", "1000", "--max-input-tokens", "200")
    path = write_task(tmp_path, 'metric = ["acc"]', question="{i} " + "word " * 400)
    run = tinyeval.run(models=model(server, chat=False), tasks=[path], output=tmp_path / "o")
    assert run.failed == 0
    contexts: dict[str, set[str]] = {}
    for place, entry in read(tmp_path / "o/m/custom.t.jsonl").items():
        contexts.setdefault(place.doc, set()).add(entry.prompt)
        assert entry.removed > 100
    assert [len(c) for c in contexts.values()] == [1] * 6


def test_a_chat_template_that_changes_under_a_run_stops_it(fake_tgi: Any, tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"tasks": [write_task(tmp_path, 'metric = ["qa_f1"]')], "output": tmp_path / "o"}
    server = fake_tgi()
    server.fail_next(413)
    assert tinyeval.run(models=model(server), **arguments).failed == 1
    other = fake_tgi("--no-template")
    with pytest.raises(RunError, match="begun with another server for m: template_and_tokenizer was"):
        tinyeval.run(models=model(other), **arguments, retry_failed=True)
    assert generations(other) == 0


def test_another_url_is_looked_at_even_when_nothing_is_left_to_ask(fake_tgi: Any, tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"tasks": [write_task(tmp_path, 'metric = ["qa_f1"]')], "output": tmp_path / "o"}
    whole = tinyeval.run(models=model(fake_tgi()), **arguments)
    other = fake_tgi("--model-id", "fake/other")
    for _ in range(2):
        with pytest.raises(RunError, match="model_id was 'fake/tgi' and is 'fake/other' now"):
            tinyeval.run(models=model(other), **arguments)
    moved = fake_tgi()
    assert tinyeval.run(models=model(moved), **arguments) == whole
    assert generations(moved) == 0


def test_another_model_behind_the_same_url_is_noticed_and_a_server_that_is_gone_is_said(
    fake_tgi: Any, tmp_path: Path
) -> None:
    server = fake_tgi()
    port = server.url.rpartition(":")[2]
    arguments: dict[str, Any] = {"tasks": [write_task(tmp_path, 'metric = ["qa_f1"]')], "output": tmp_path / "o"}
    whole = tinyeval.run(models=model(server), **arguments)
    server.kill()
    said: list[str] = []
    assert tinyeval.run(models=model(server), **arguments, say=said.append) == whole
    assert "m was not looked at again" in said[-1]
    fake_tgi("--port", port, "--model-id", "fake/other")
    with pytest.raises(RunError, match="model_id was 'fake/tgi' and is 'fake/other' now"):
        tinyeval.run(models=model(server), **arguments)


def test_a_run_without_an_answer_is_bound_to_nothing(fake_tgi: Any, tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"tasks": [write_task(tmp_path, 'metric = ["qa_f1"]')], "output": tmp_path / "o"}
    with pytest.raises(EndpointError):
        tinyeval.run(models={"m": tinyeval.ModelConfig(url="http://127.0.0.1:9", max_length=20)}, **arguments)
    assert tinyeval.run(models=model(fake_tgi(), max_length=500), **arguments).failed == 0


def test_a_name_too_long_for_files_is_refused_before_anything_is_asked(fake_tgi: Any, tmp_path: Path) -> None:
    server = fake_tgi()
    rows = tmp_path / f"{'长' * 80}.json"
    rows.write_text('[{"instruction": "x", "output": "y"}]')
    with pytest.raises(RunError, match="too long to name files with"):
        tinyeval.run(models=model(server), tasks=[f"custom_zh={rows}"], output=tmp_path / "o")
    rows = rows.rename(tmp_path / f"{'长' * 70}.json")
    assert tinyeval.run(models=model(server), tasks=[f"custom_zh={rows}"], output=tmp_path / "o").failed == 0


@pytest.mark.usefixtures("impatient")
def test_a_server_in_trouble_while_it_is_probed_is_not_said_to_lack_anything(fake_tgi: Any, tmp_path: Path) -> None:
    server = fake_tgi()
    server.fail_next(*[500] * 5)
    with pytest.raises(EndpointError, match="while its capabilities were proved"):
        tinyeval.run(models=model(server), tasks=["extract_json"], limit=1, output=tmp_path / "o")


def test_a_template_that_prints_the_date_prints_the_runs_own(fake_tgi: Any, tmp_path: Path) -> None:
    render = chat_renderer("{{ strftime_now('%d %b %Y') }}|{{ messages[0].content }}", date=datetime.date(2024, 7, 26))
    assert render([{"role": "user", "content": "x"}]) == "26 Jul 2024|x"
    tinyeval.run(models=model(fake_tgi()), tasks=[write_task(tmp_path, 'metric = ["qa_f1"]')], output=tmp_path / "o")
    record = json.loads((tmp_path / "o/run.json").read_text())
    assert record["date"] == datetime.date.today().isoformat()
    assert record["date"] not in (tmp_path / "o/results.json").read_text()


@pytest.mark.usefixtures("impatient")
def test_a_failed_preparation_is_mended_by_asking_again(fake_tgi: Any, tmp_path: Path) -> None:
    server = fake_tgi("--max-total-tokens", "300")
    path = write_task(tmp_path, 'metric = ["qa_f1"]', rows=2, question="{i} " + "word " * 400)
    arguments: dict[str, Any] = {"models": model(server, concurrency=1, chat=False), "tasks": [path]}
    tinyeval.run(**arguments, output=tmp_path / "whole")

    class Saboteur:
        def begin(self, model: str, task: str, docs: int, done: int) -> None:
            server.fail_next(500, 500, 500, route="/tokenize")

        def answered(self, model: str, task: str, entry: Any) -> None: ...

        def finished(self, model: str, task: str) -> None: ...

    arguments["output"] = tmp_path / "o"
    assert tinyeval.run(**arguments, observer=Saboteur()).failed == 1
    assert tinyeval.run(**arguments).failed == 1
    mended = tinyeval.run(**arguments, retry_failed=True)
    assert mended.failed == 0
    assert mended.results["results"] == tinyeval.load(tmp_path / "whole").results["results"]
    usage = json.loads((tmp_path / "o/usage.json").read_text())["usage"]["m"]["custom|t"]
    assert usage["attempts"] == 3 + 1 + 1, "all tries of all sittings"


@pytest.mark.usefixtures("impatient")
def test_a_server_that_is_down_behind_a_proxy_fails_no_sample(fake_tgi: Any, tmp_path: Path) -> None:
    server = fake_tgi()
    arguments: dict[str, Any] = {"tasks": [write_task(tmp_path, 'metric = ["qa_f1"]')], "output": tmp_path / "o"}
    server.fail_next(*[502] * 200)
    with pytest.raises(EndpointError, match=r"502.*nothing else is answered"):
        tinyeval.run(models=model(server), **arguments)
    assert all(e.error is None for e in read(tmp_path / "o/m/custom.t.jsonl").values())
    assert tinyeval.run(models=model(fake_tgi()), **arguments).failed == 0


def test_only_one_process_is_at_a_run(fake_tgi: Any, tmp_path: Path) -> None:
    server = fake_tgi("--latency", "0.3")
    write_task(tmp_path, 'metric = ["qa_f1"]')
    command = [sys.executable, "-m", "tinyeval", "run", "-m", f"m={server.url}", "-t", "t.toml", "-o", "o"]
    processes = [
        subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [p.communicate(timeout=60)[1] for p in processes]
    assert sorted(p.returncode for p in processes) == [0, 2]
    assert any("another process is at the run in o" in s for s in said)
    assert generations(server) == 6


def test_a_run_that_was_killed_at_its_very_beginning_is_found_again(fake_tgi: Any, tmp_path: Path) -> None:
    server = fake_tgi()
    arguments: dict[str, Any] = {"models": model(server), "tasks": [write_task(tmp_path, 'metric = ["qa_f1"]')]}
    whole = tinyeval.run(**arguments, output=tmp_path / "whole")
    cut = tmp_path / "cut"
    cut.mkdir()
    (cut / ".run.json.1234").write_text("{")
    record = json.loads((tmp_path / "whole/run.json").read_text())
    assert tinyeval.run(**arguments, output=cut).results == whole.results
    (tmp_path / "early").mkdir()
    (tmp_path / "early/run.json").write_text(json.dumps(record | {"models": {}}))
    assert tinyeval.run(**arguments, output=tmp_path / "early").results == whole.results


def test_settings_made_in_a_program_are_checked_like_those_of_a_file(tmp_path: Path) -> None:
    path = write_task(tmp_path, 'metric = ["qa_f1"]')
    for limit in (0, -1):
        with pytest.raises(ConfigError, match=f"limit = {limit}"):
            tinyeval.run(models={"m": tinyeval.ModelConfig(url="http://127.0.0.1:9")}, tasks=[path], limit=limit)
    strange: list[dict[str, Any]] = [{"timeout": float("inf")}, {"timeout": float("nan")}, {"concurrency": 1 << 40}]
    for setting in strange:
        with pytest.raises(ConfigError, match=next(iter(setting))):
            tinyeval.run(models={"m": tinyeval.ModelConfig(url="http://127.0.0.1:9", **setting)}, tasks=[path])
    with pytest.raises(ConfigError, match="line break"):
        tinyeval.run(models={"m": tinyeval.ModelConfig(url="http://127.0.0.1:9", api_key="a\nb")}, tasks=[path])
    with pytest.raises(ConfigError, match="'docs' is taken"):
        tinyeval.run(models={"docs": tinyeval.ModelConfig(url="http://127.0.0.1:9")}, tasks=[path])
    with pytest.raises(ConfigError, match="api_key does not go with"):
        tinyeval.run(models={"m": tinyeval.ModelConfig(api="local", api_key="x")}, tasks=[path])


async def test_inside_an_event_loop_the_sentence_says_what_to_await(fake_tgi: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"await tinyeval\.run_async"):
        tinyeval.run(
            models=model(fake_tgi()), tasks=[write_task(tmp_path, 'metric = ["qa_f1"]')], output=tmp_path / "o"
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    "grammar", ['type = "regex"\nvalue = "(?=x)xyz"', 'type = "json"\nvalue = {properties = {a = {not = {}}}}']
)
def test_a_grammar_that_the_server_drops_without_a_word_is_found_out(
    embedded: Any, tmp_path: Path, grammar: str
) -> None:
    path = write_task(tmp_path, f'metric = ["qa_f1"]\n[generation_grammar]\n{grammar}\n')
    said: list[str] = []
    models = {"m": tinyeval.ModelConfig(url=embedded.url, api_key=embedded.key)}
    with pytest.raises(EndpointError, match="can do none of the tasks"):
        tinyeval.run(models=models, tasks=[path], limit=1, output=tmp_path / "o", say=said.append)
    assert "does not obey its grammar" in said[0]


@pytest.mark.slow
async def test_a_slash_in_a_regex_is_a_slash_escaped_or_not(embedded: Any) -> None:
    endpoint = await connect("m", tinyeval.ModelConfig(url=embedded.url, api_key=embedded.key), 0)
    for pattern in ("[a-b]/[0-9]", r"[a-b]\/[0-9]", r"[a-b]\\/[0-9]"):
        grammar = Grammar(type="regex", value=pattern)
        answer = await endpoint.generate(tinyeval.GreedyUntil(context="A:", generation_size=8, grammar=grammar))
        assert obeys(answer.text, grammar), (pattern, answer.text)
    await endpoint.close()
