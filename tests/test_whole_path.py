"""The whole path on the real embedded model: run, kill, resume, score, dry run, interrupt, crash."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tinyeval
from tinyeval.inference.journal import read

pytestmark = pytest.mark.slow

TASKS = ["-t", "qa_en", "-t", "choice_en", "-t", "extract_json", "-t", "classify_en"]


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "tinyeval", *map(str, arguments)]


def tinyeval_run(
    *arguments: str | Path, cwd: Path, status: int = 0, **environment: str
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command("run", *arguments),
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    return done


class Proxy:
    """The embedded server behind a counting proxy, and a configuration that names it."""

    def __init__(self, url: str, config: Path, environment: dict[str, str]) -> None:
        self.url, self.config, self.environment = url, config, environment

    def completions(self) -> Counter[str]:
        with urllib.request.urlopen(f"{self.url}/counted") as reply:
            return Counter(json.load(reply).get("/completion", []))


@pytest.fixture
def proxy(embedded: Any, tmp_path: Path) -> Iterator[Proxy]:
    script = Path(__file__).parent / "counting_proxy.py"
    process = subprocess.Popen(
        [sys.executable, str(script), embedded.url], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin and process.stdout
    url = process.stdout.readline().decode().strip()
    config = tmp_path / "proxied.toml"
    config.write_text(f'[models.small]\nurl = "{url}"\napi_key = "${{SMALL_KEY}}"\n')
    yield Proxy(url, config, {"SMALL_KEY": embedded.key})
    process.stdin.close()
    process.stdout.close()
    process.wait(10)


def journal_lines(folder: Path) -> int:
    files = [p for p in folder.glob("small/*.jsonl") if not p.name.endswith(".scores.jsonl")]
    return sum(p.read_bytes().count(b"\n") for p in files)


def test_a_killed_run_goes_on_where_it_stopped_and_ends_in_the_same_bytes(proxy: Proxy, tmp_path: Path) -> None:
    arguments = [str(proxy.config), *TASKS, "--limit", "6"]
    tinyeval_run(*arguments, "-o", "whole", cwd=tmp_path, **proxy.environment)
    whole = proxy.completions()
    samples = whole.total()

    process = subprocess.Popen(
        command("run", *arguments, "-o", "killed"),
        cwd=tmp_path,
        env={**os.environ, **proxy.environment},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    stop_at = random.randrange(1, journal_lines(tmp_path / "whole"))
    while journal_lines(tmp_path / "killed") < stop_at and process.poll() is None:
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    kept = journal_lines(tmp_path / "killed")
    time.sleep(1)  # what was in flight reaches the proxy
    before = proxy.completions() - whole

    tinyeval_run(*arguments, "-o", "killed", cwd=tmp_path, **proxy.environment)
    after = proxy.completions() - whole
    asked_twice = after.total() - samples
    in_flight = before.total() - kept
    assert (tmp_path / "killed/results.json").read_bytes() == (tmp_path / "whole/results.json").read_bytes()
    probes = 3  # proofs of capabilities are asked at every start: two of a grammar, one of log-likelihoods
    assert 0 <= asked_twice <= 4 + probes, (samples, kept, in_flight)
    assert sum(n - 1 for n in after.values()) == asked_twice


def test_the_same_command_again_asks_nothing_and_prints_the_same_table(proxy: Proxy, tmp_path: Path) -> None:
    arguments = [str(proxy.config), "-t", "qa_en", "--limit", "3"]
    first = tinyeval_run(*arguments, cwd=tmp_path, **proxy.environment)
    asked = proxy.completions().total()
    second = tinyeval_run(*arguments, cwd=tmp_path, **proxy.environment)
    assert second.stdout == first.stdout
    assert proxy.completions().total() == asked
    assert "not sent again" in second.stderr
    assert len(list((tmp_path / "runs").iterdir())) == 1


def test_scoring_again_needs_no_server_and_writes_the_same_bytes(tmp_path: Path) -> None:
    tinyeval_run("-t", "demo", "--limit", "2", "-o", "a", cwd=tmp_path)
    results = tmp_path / "a/results.json"
    before = results.read_bytes()
    results.unlink()
    done = subprocess.run(command("score", "a", "--json"), cwd=tmp_path, capture_output=True, text=True, check=True)
    assert results.read_bytes() == before
    found = json.loads(done.stdout)
    assert len(found["results"]["smollm2-135m"]) == 7
    assert all(a["failed"] == 0 for a in found["answers"]["smollm2-135m"].values())
    assert tinyeval.load(tmp_path / "a").results == found


def test_two_runs_have_the_same_scores_whatever_is_in_flight(embedded: Any, tmp_path: Path) -> None:
    outcomes: list[Any] = []
    for concurrency in (1, 4):
        model = tinyeval.ModelConfig(url=embedded.url, api_key=embedded.key, concurrency=concurrency)
        run = tinyeval.run(
            models={"small": model}, tasks=["qa_zh", "choice_en"], limit=5, output=tmp_path / str(concurrency)
        )
        outcomes.append(run.results["results"])
        entries = read(run.path / "small/demo.choice_en.jsonl")
        outcomes.append([e.response and e.response.logprob for _, e in sorted(entries.items())])
    assert outcomes[0] == outcomes[2]
    assert outcomes[1] == pytest.approx(outcomes[3], abs=1e-4)


def test_an_interrupt_leaves_a_run_that_the_printed_command_finishes(proxy: Proxy, tmp_path: Path) -> None:
    process = subprocess.Popen(
        command("run", proxy.config, "-t", "choice_en", "-o", "stopped"),
        cwd=tmp_path,
        env={**os.environ, **proxy.environment},
        stderr=subprocess.PIPE,
        text=True,
    )
    while journal_lines(tmp_path / "stopped") < 3 and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "tinyeval run --resume stopped" in stderr
    assert "Traceback" not in stderr
    kept = journal_lines(tmp_path / "stopped")
    assert 3 <= kept < 160
    done = tinyeval_run("--resume", "stopped", "--json", cwd=tmp_path, **proxy.environment)
    assert json.loads(done.stdout)["answers"]["small"]["demo|choice_en"]["failed"] == 0
    assert journal_lines(tmp_path / "stopped") == 160


def test_a_crash_of_the_embedded_server_is_reported_with_its_log_and_the_run_goes_on_later(tmp_path: Path) -> None:
    arguments = ["-t", "choice_en", "--limit", "8", "-o", "crashed"]
    process = subprocess.Popen(command("run", *arguments), cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    journal = tmp_path / "crashed/smollm2-135m/demo.choice_en.jsonl"
    while not (journal.exists() and journal.read_bytes().count(b"\n") >= 2) and process.poll() is None:
        time.sleep(0.01)
    children = subprocess.run(["pgrep", "-P", str(process.pid), "-f", "tinyserve"], capture_output=True, text=True)
    os.kill(int(children.stdout.split()[0]), signal.SIGKILL)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "the embedded server ended (killed by SIGKILL)" in stderr
    assert "server.log" in stderr and "--resume crashed" in stderr
    assert "Traceback" not in stderr
    tinyeval_run(*arguments, cwd=tmp_path)
    assert journal.read_bytes().count(b"\n") == 32


def test_no_embedded_server_outlives_a_killed_run(tmp_path: Path) -> None:
    process = subprocess.Popen(
        command("run", "-t", "choice_en", "-o", "k"), cwd=tmp_path, stderr=subprocess.DEVNULL, start_new_session=True
    )
    journal = tmp_path / "k/smollm2-135m/demo.choice_en.jsonl"
    while not (journal.exists() and journal.stat().st_size) and process.poll() is None:
        time.sleep(0.01)
    children = subprocess.run(["pgrep", "-P", str(process.pid), "-f", "tinyserve"], capture_output=True, text=True)
    server = int(children.stdout.split()[0])
    process.kill()
    process.wait()
    deadline = time.monotonic() + 20
    while Path(f"/proc/{server}").exists() and time.monotonic() < deadline:
        if "State:\tZ" in Path(f"/proc/{server}/status").read_text():
            break
        time.sleep(0.05)
    else:
        assert not Path(f"/proc/{server}").exists()


def test_a_dry_run_shows_prompts_and_counts_and_generates_nothing(proxy: Proxy, tmp_path: Path) -> None:
    done = tinyeval_run(proxy.config, "-t", "qa_zh", "-t", "choice_en", "--dry-run", cwd=tmp_path, **proxy.environment)
    assert proxy.completions().total() == 0
    assert not (tmp_path / "runs").exists()
    assert "<|im_start|>user\n阅读下面的短文" in done.stdout
    assert "42 Docs" in done.stdout and "prompt tokens" in done.stdout
    assert "Question: " in done.stdout


def test_a_users_own_file_needs_no_task_file(proxy: Proxy, tmp_path: Path) -> None:
    rows = [
        {"instruction": "Say one word.", "input": "", "output": "word"},
        {"instruction": "Name the color.", "input": "The sky is blue.", "output": "blue"},
    ]
    (tmp_path / "mine.json").write_text("\n".join(json.dumps(r, indent=1) for r in rows))
    done = tinyeval_run(
        proxy.config, "-t", "custom_en=mine.json", "--json", "-o", "o", cwd=tmp_path, **proxy.environment
    )
    metrics = json.loads(done.stdout)["results"]["small"]["custom|custom_en:mine"]
    assert metrics["rouge"]["n"] == metrics["qa_f1"]["n"] == 2
    prompts = [e.prompt for e in read(tmp_path / "o/small/custom.custom_en_mine.jsonl").values()]
    assert any("Name the color.\nThe sky is blue." in prompt for prompt in prompts)


def test_a_long_document_loses_its_middle_and_the_cut_is_counted(proxy: Proxy, tmp_path: Path) -> None:
    document = "开头。" + "很长的中文文章，" * 1500 + "结尾？"
    (tmp_path / "long.jsonl").write_text(json.dumps({"instruction": document, "output": "好"}, ensure_ascii=False))
    done = tinyeval_run(
        proxy.config, "-t", "custom_zh=long.jsonl", "--json", "-o", "o", cwd=tmp_path, **proxy.environment
    )
    answers = json.loads(done.stdout)["answers"]["small"]["custom|custom_zh:long"]
    assert (answers["failed"], answers["truncated"]) == (0, 1)
    (entry,) = read(tmp_path / "o/small/custom.custom_zh_long.jsonl").values()
    assert entry.response and entry.response.prompt_tokens
    assert 2048 - 256 - 8 <= entry.response.prompt_tokens <= 2048 - 256
    assert "user\n开头。" in entry.prompt and "结尾？<|im_end|>" in entry.prompt
    assert entry.removed > 1000


def test_secrets_stay_out_of_everything_written_and_printed(proxy: Proxy, tmp_path: Path) -> None:
    key = proxy.environment["SMALL_KEY"]
    done = tinyeval_run(proxy.config, "-t", "classify_en", "--limit", "2", "-o", "o", cwd=tmp_path, **proxy.environment)
    assert key not in done.stdout + done.stderr
    for file in (tmp_path / "o").rglob("*"):
        assert file.is_dir() or key.encode() not in file.read_bytes(), file
