"""The judge: asked after the models, in both orders, within a grammar, into journals of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import tinyeval
from tinyeval.config import Config, ModelConfig, load
from tinyeval.endpoints.retry import Patience
from tinyeval.errors import ConfigError, EndpointError, RunError, Unsupported
from tinyeval.evaluation.statistics import agreement
from tinyeval.inference import scheduler
from tinyeval.inference.journal import Place, read
from tinyeval.records import Agreement
from tinyeval.tasks import Registry
from tinyeval.tasks.verdict import verdict_docs

TASK = """
name = "qa"
data = "qa.jsonl"
prompt = "{q}"
references = "a"
metric = ["exact_match", "judge"]
generation_size = 8
"""


def task(folder: Path, rows: int = 3, more: str = "") -> str:
    lines = [{"id": f"r{i}", "q": f"Question {i}?", "a": ["x", "y"]} for i in range(rows)]
    (folder / "qa.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    (folder / "qa.toml").write_text(TASK + more)
    return str(folder / "qa.toml")


def settings(folder: Path, model: Any, judge: Any, **more: Any) -> Config:
    return Config(
        models={"m": ModelConfig(url=model.url)}, tasks=[task(folder)], judge=ModelConfig(url=judge.url, **more)
    )


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = Patience(tries=2, seconds=1, unreachable=0.5, pause=0.01)
    monkeypatch.setattr(scheduler, "Patience", lambda: quick)


def journal(run: Path) -> dict[Place, Any]:
    return read(run / "m" / "custom.qa.judge.jsonl")


def test_each_answer_is_judged_in_both_orders_and_once_only(fake_tgi: Any, tmp_path: Path) -> None:
    model, judge = fake_tgi(), fake_tgi()
    config = settings(tmp_path, model, judge)
    run = tinyeval.run(config, output=tmp_path / "o")
    found = run.results["results"]["m"]["custom|qa"]
    assert found["judge"]["value"] == 1.0  # the server gives the smallest answer of the grammar: same
    assert found["judge"]["agreement"] == {"share": 1.0, "kappa": None}
    assert found["exact_match"]["value"] == 0.0
    entries = journal(run.path)
    assert set(entries) == {Place(f"r{i}#{k}", 0) for i in range(3) for k in range(2)}
    answers = read(run.path / "m" / "custom.qa.jsonl")
    for i in range(3):
        said = answers[Place(f"r{i}", 0)].response.text
        first, second = (entries[Place(f"r{i}#{k}", 0)].prompt for k in range(2))
        assert f"Question {i}?" in first and f"Question {i}?" in second
        assert f"Answer A:\nx\n(or: y)\n\nAnswer B:\n{said}" in first
        assert f"Answer A:\n{said}\n\nAnswer B:\nx\n(or: y)" in second
    assert run.results["run"]["judge"]["identity"]["api"] == "tgi"
    asked = judge.counters()["requests"]["/generate"]
    again = tinyeval.run(config, output=tmp_path / "o")
    assert judge.counters()["requests"]["/generate"] == asked, "a finished run leaves the judge alone"
    assert (tmp_path / "o" / "results.json").read_bytes()
    assert again.results == run.results == tinyeval.score(run.path).results


def test_a_judge_that_disappears_is_asked_on_when_it_is_back(fake_tgi: Any, tmp_path: Path) -> None:
    model, judge = fake_tgi(), fake_tgi()
    config = settings(tmp_path, model, judge)
    run = tinyeval.run(config, output=tmp_path / "o")
    path = run.path / "m" / "custom.qa.judge.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    rescored = tinyeval.score(run.path)
    assert 1 <= rescored.failed <= 3
    scores = [json.loads(x) for x in (run.path / "m" / "custom.qa.scores.jsonl").read_text().splitlines()]
    assert {s["error"] for s in scores if s["error"]} == {"the judge: not answered yet: run the same command again"}
    before = judge.counters()["requests"]["/generate"]
    assert tinyeval.run(config, output=tmp_path / "o").results == run.results
    assert judge.counters()["requests"]["/generate"] == before + 4 + 1, "four verdicts and the proof of the grammar"


@pytest.mark.usefixtures("impatient")
def test_a_verdict_that_fails_is_a_failure_and_can_be_asked_again(fake_tgi: Any, tmp_path: Path) -> None:
    model, judge = fake_tgi(), fake_tgi()
    config = settings(tmp_path, model, judge, concurrency=1)
    path = tmp_path / "o"

    def fail_one(text: str) -> None:  # said when the judge is connected
        if text.startswith("The judge"):
            judge.fail_next(413)

    run = tinyeval.run(config, output=path, say=fail_one)
    assert run.failed == 1
    assert run.results["results"]["m"]["custom|qa"]["judge"]["n"] == 2
    scores = [json.loads(x) for x in (path / "m" / "custom.qa.scores.jsonl").read_text().splitlines()]
    (error,) = [s["error"] for s in scores if s["error"]]
    assert error.startswith("the judge: ")
    assert tinyeval.run(config, output=path, retry_failed=True).failed == 0


def test_a_task_with_a_judge_needs_one_in_the_settings(tmp_path: Path) -> None:
    config = Config(models={"m": ModelConfig(url="http://127.0.0.1:9")}, tasks=[task(tmp_path)])
    with pytest.raises(ConfigError, match=r"custom\|qa has the metric judge, but no judge is named: write \[judge\]"):
        tinyeval.run(config, output=tmp_path / "o")


def test_a_judge_without_grammars_is_refused_before_anything_is_asked(fake_tgi: Any, tmp_path: Path) -> None:
    model, judge = fake_tgi(), fake_tgi("--grammar", "ignored")
    with pytest.raises(Unsupported, match=r"the judge can't give verdicts: .*does not obey its grammar"):
        tinyeval.run(settings(tmp_path, model, judge), output=tmp_path / "o")
    assert "/generate" not in model.counters()["requests"]


def test_a_judge_that_cannot_be_reached_is_told_before_anything_is_asked(fake_tgi: Any, tmp_path: Path) -> None:
    model, judge = fake_tgi(), fake_tgi()
    judge.kill()
    with pytest.raises(EndpointError, match="does not answer"):
        tinyeval.run(settings(tmp_path, model, judge), output=tmp_path / "o")
    assert "/generate" not in model.counters()["requests"]


def test_verdicts_of_two_judges_are_not_mixed(fake_tgi: Any, tmp_path: Path) -> None:
    model, judge, other = fake_tgi(), fake_tgi(), fake_tgi("--model-id", "org/other")
    run = tinyeval.run(settings(tmp_path, model, judge), output=tmp_path / "o")
    (run.path / "m" / "custom.qa.judge.jsonl").unlink()
    with pytest.raises(RunError, match="another server for the judge: model_id was"):
        tinyeval.run(settings(tmp_path, model, other), output=tmp_path / "o")


def test_the_judges_key_is_written_nowhere(fake_tgi: Any, tmp_path: Path) -> None:
    model, judge = fake_tgi(), fake_tgi()
    run = tinyeval.run(settings(tmp_path, model, judge, api_key="hf_secret"), output=tmp_path / "o")
    for path in run.path.rglob("*"):
        assert path.is_dir() or b"hf_secret" not in path.read_bytes(), path


def test_the_judge_is_a_table_of_the_settings_like_a_model(tmp_path: Path) -> None:
    path = tmp_path / "tinyeval.toml"
    path.write_text('[models.m]\nurl = "http://h"\n[judge]\nurl = "http://j"\nchat = true\n')
    assert load(path).judge == ModelConfig(url="http://j", chat=True)
    path.write_text('[judge]\nurll = "http://j"\n')
    with pytest.raises(ConfigError, match=r"unknown key 'judge.urll' \(did you mean 'url'"):
        load(path)
    path.write_text("[judge]\nchat = true\n")
    with pytest.raises(ConfigError, match="judge: url is missing"):
        load(path)


def test_a_chinese_task_is_judged_in_chinese(tmp_path: Path) -> None:
    chinese = Registry().get_task_instance(task(tmp_path, more='language = "zh"\n'))
    (doc, *_) = chinese.eval_docs()
    first, second = verdict_docs(chinese, doc, "厦门大学{")
    assert "回答A：\nx\n（或：y）\n\n回答B：\n厦门大学{" in first.query
    assert "回答A：\n厦门大学{\n\n回答B：\nx\n（或：y）" in second.query
    assert first.id != second.id


@pytest.mark.parametrize(
    ("pairs", "share", "kappa"),
    [
        ([(1.0, 1.0), (0.0, 0.0)], 1.0, 1.0),
        ([(1.0, 0.0), (0.0, 1.0)], 0.0, -1.0),
        ([(1.0, 1.0), (1.0, 1.0)], 1.0, None),
        # 20 yes-yes, 5 and 10 mixed, 15 no-no: chance is ½, kappa (0.7 - 0.5) / 0.5
        ([(1.0, 1.0)] * 20 + [(1.0, 0.0)] * 5 + [(0.0, 1.0)] * 10 + [(0.0, 0.0)] * 15, 0.7, 0.4),
    ],
)
def test_cohens_kappa_by_hand(pairs: list[tuple[float, float]], share: float, kappa: float | None) -> None:
    found = agreement(pairs)
    assert found is not None
    assert found.share == pytest.approx(share)
    assert found.kappa == (pytest.approx(kappa) if kappa is not None else None)
    assert agreement([]) is None
    assert isinstance(msgspec.json.decode(msgspec.json.encode(found), type=Agreement), Agreement)


@pytest.mark.slow
def test_a_real_model_judges_real_answers(embedded: Any, tmp_path: Path) -> None:
    served = ModelConfig(url=embedded.url, api_key=embedded.key)
    config = Config(models={"m": served}, tasks=[task(tmp_path)], judge=served)
    run = tinyeval.run(config, output=tmp_path / "o")
    found = run.results["results"]["m"]["custom|qa"]["judge"]
    assert (found["n"], found["failed"]) == (3, 0)
    said = [json.loads(e.response.text)["verdict"] for e in journal(run.path).values()]
    assert len(said) == 6
    assert found["value"] == pytest.approx(said.count("same") / 6)
