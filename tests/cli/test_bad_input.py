"""Bad input gets a sentence: what was found, where, what was expected, what to do; never a traceback.

Exit status 2 for the user's mistake, 3 for an endpoint's fault; whatever stood in the folder stays as it was.
"""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tinyeval.cli import main
from tinyeval.endpoints.protocol import Identity
from tinyeval.inference.folder import ModelRecord, RunFolder
from tinyeval.inference.journal import Entry, Journal, Place, read
from tinyeval.records import Response

TASK = 'name = "qa"\ndata = "qa.jsonl"\nprompt = "{q}"\nreferences = "a"\nmetric = ["exact_match"]\n'
ROWS = "".join(json.dumps({"id": i, "q": f"Question {i}?", "a": str(i)}) + "\n" for i in range(3))
MODEL = '[models.qwen]\nurl = "http://127.0.0.1:1"\n'


class Outcome(NamedTuple):
    """How a command ended."""

    status: int
    stdout: str
    stderr: str


Command = Callable[..., Outcome]


@pytest.fixture
def tinyeval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str | Path) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["tinyeval", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as e:
            main()
        out, err = capsys.readouterr()
        return Outcome(int(e.value.code or 0), out, err)

    return run


def write(folder: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def closed_port() -> int:
    with closing(socket.socket()) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def gb(text: str) -> bytes:
    return text.encode("gb18030")


WITH_TASK: dict[str, str | bytes] = {"qa.toml": TASK, "qa.jsonl": ROWS}
NOTHING: dict[str, str | bytes] = {}


@pytest.mark.parametrize(
    ("files", "arguments", "expected"),
    [
        # Names
        (NOTHING, "-t demo|qa_zn", "no task is named 'demo|qa_zn' (did you mean 'demo|qa_zh' or 'demo|qa_en'"),
        (NOTHING, "-t mine.toml", "mine.toml can't be read: No such file or directory; name a file that exists."),
        (NOTHING, "-t custom_zh=mine.json", "custom_zh=mine.json: the file mine.json does not exist."),
        (NOTHING, "-m qwen", "-m qwen: expected NAME=URL, for example -m qwen=http://127.0.0.1:8080."),
        (NOTHING, "-m http://127.0.0.1:8080", "-m http://127.0.0.1:8080: expected NAME=URL"),
        (NOTHING, "-m q=127.0.0.1:8080", "-m q=127.0.0.1:8080: url = '127.0.0.1:8080': expected http://HOST:PORT"),
        # The configuration
        (NOTHING, "nowhere.toml", "nowhere.toml can't be read: No such file or directory; name a file that exists."),
        ({"tinyeval.toml": "tasks = [\n"}, "", "tinyeval.toml is not valid TOML: Invalid value (at "),
        (
            {"c.toml": "a\n"},
            "c.toml",
            "c.toml is not valid TOML: Expected '=' after a key in a key/value pair (at line 1,",
        ),
        (
            {"c.toml": 'taks = ["demo"]'},
            "c.toml",
            "c.toml: unknown key 'taks' (did you mean 'tasks'?). Known here: tasks,",
        ),
        ({"c.toml": 'limit = "all"'}, "c.toml", "c.toml: limit = 'all': expected int, got str."),
        (
            {"c.toml": MODEL + '[models.qwen.generation]\ntemperature = "low"'},
            "c.toml",
            "c.toml: models.qwen.generation.temperature = 'low': expected float, got str.",
        ),
        (
            {"c.toml": MODEL + "[models.qwen.generation]\ntemperatur = 0.5"},
            "c.toml",
            "c.toml: unknown key 'models.qwen.generation.temperatur' (did you mean 'temperature'?).",
        ),
        ({"c.toml": MODEL + 'api = "http"'}, "c.toml", "c.toml: models.qwen.api = 'http': expected 'tgi' or"),
        (
            {"c.toml": b"limit = 1\n# " + gb("配置")},
            "c.toml",
            "c.toml, line 2: not UTF-8 (byte 0xc5 at offset 12); convert it",
        ),
        ({"c.toml": "tasks = []"}, "c.toml", "no task is named: set tasks in the configuration, or use -t."),
        # Task files
        (
            {"qa.toml": b'name = "qa"\n# ' + gb("任务")},
            "-t qa.toml",
            "qa.toml, line 2: not UTF-8 (byte 0xc8 at offset 14)",
        ),
        ({"qa.toml": "name ="}, "-t qa.toml", "qa.toml is not valid TOML: Invalid value (at "),
        (
            {"qa.toml": TASK + 'metrics = ["acc"]'},
            "-t qa.toml",
            "qa.toml: unknown key 'metrics' (did you mean 'metric'",
        ),
        (
            {"qa.toml": TASK.replace("exact", "exakt")},
            "-t qa.toml",
            "no metric is named 'exakt_match' (did you mean 'exact_",
        ),
        (
            {"qa.toml": TASK + '[generation_grammar]\ntype = "json"\nvalue = { type = "objekt", properties = {} }'},
            "-t qa.toml",
            'not a valid JSON schema: "objekt" is not valid under any of the schemas',
        ),
        # Data files
        (
            {"qa.toml": TASK},
            "-t qa.toml",
            "qa.jsonl can't be read: No such file or directory; name a file that exists.",
        ),
        ({"qa.toml": TASK, "qa.jsonl": ""}, "-t qa.toml", "qa.jsonl has no rows; at least one is needed."),
        (
            {"qa.toml": TASK, "qa.jsonl": ROWS + '{"question": "?", "a": "x"}\n'},
            "-t qa.toml",
            "qa.jsonl, row 4: the prompt names the field 'q', but the row has only: question, a.",
        ),
        (
            {"qa.toml": TASK, "qa.jsonl": ROWS + ROWS},
            "-t qa.toml",
            "qa.jsonl, row 4: the id '0' is already that of row 1; give each row its own.",
        ),
        (
            {"qa.toml": TASK, "qa.jsonl": ROWS.encode() + gb('{"q": "问题", "a": "x"}')},
            "-t qa.toml",
            "qa.jsonl, line 4: not UTF-8 (byte 0xce at offset",
        ),
        (
            {"qa.toml": TASK, "qa.jsonl": ROWS + '{"q": "?" "a": "x"}\n'},
            "-t qa.toml",
            "qa.jsonl, line 4: row 4 is not valid JSON: Expecting ',' delimiter.",
        ),
        (
            {"qa.toml": TASK, "qa.jsonl": ROWS + '["?", "x"]\n'},
            "-t qa.toml",
            "qa.jsonl, row 4: expected an object with named fields, found a list.",
        ),
        (
            {"mine.json": '[{"instruction": "i"\n'},
            "-t custom_zh=mine.json",
            "mine.json, line 2: row 1 is not valid JSON",
        ),
        (
            {"mine.json": '[{"instruction": "i", "answer": "o"}]'},
            "-t custom_zh=mine.json",
            "mine.json, row 1: the field 'output' is missing; the row has only: instruction, answer.",
        ),
        # Folders
        (WITH_TASK, "-t qa.toml -o qa.jsonl", "can't be written: Not a directory; choose another folder with -o."),
        (WITH_TASK, "-t qa.toml -o qa.jsonl/run", "can't be written: Not a directory; choose another folder with -o."),
        (WITH_TASK, f"-t qa.toml -o {'x' * 300}", "File name too long; choose another with -o."),
        (WITH_TASK, "-t qa.toml -o .", ". exists and is not the folder of a run; choose another with -o."),
        (WITH_TASK, "--resume .", ". is not the folder of a run: run.json can't be read (No such file or directory)."),
        (
            NOTHING,
            "--resume . --limit 3",
            "--resume takes the settings of the run it names; leave the other settings out.",
        ),
    ],
)
def test_a_mistake_is_one_sentence_with_status_2_and_changes_nothing(
    tinyeval: Command, tmp_path: Path, files: dict[str, str | bytes], arguments: str, expected: str
) -> None:
    write(tmp_path, files)
    before = contents(tmp_path)
    outcome = tinyeval("run", *arguments.split())
    assert expected in outcome.stderr
    assert outcome.stderr.startswith("tinyeval: ")
    assert outcome.stderr.count("\n") == 1
    assert (outcome.status, outcome.stdout) == (2, "")
    assert contents(tmp_path) == before
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(files)


@pytest.mark.parametrize("arguments", ["rnu", "run --limit 0", "run --limit many", "run --no-such-option", "score"])
def test_a_mistyped_command_line_is_the_users_mistake(tinyeval: Command, arguments: str) -> None:
    outcome = tinyeval(*arguments.split())
    assert outcome.status == 2
    assert outcome.stderr.startswith("Usage: ")
    assert "Traceback" not in outcome.stderr


def test_an_unset_environment_variable_is_told_with_key_and_name(
    tinyeval: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    write(tmp_path, WITH_TASK | {"c.toml": MODEL + 'api_key = "${NO_SUCH_KEY}"'})
    outcome = tinyeval("run", "c.toml", "-t", "qa.toml")
    sentence = "tinyeval: models.qwen.api_key: the environment variable NO_SUCH_KEY is not set; export it first.\n"
    assert outcome == (2, "", sentence)


# An existing run


@pytest.fixture
def begun(tinyeval: Command, tmp_path: Path) -> Path:
    """A run whose server can't be reached any more, with two answers from before."""
    write(tmp_path, WITH_TASK | {"c.toml": f'[models.qwen]\nurl = "http://127.0.0.1:{closed_port()}"\n'})
    outcome = tinyeval("run", "c.toml", "-t", "qa.toml", "-o", "run")
    assert outcome.status == 3, outcome.stderr
    identity = Identity(api="tgi", model_id="m", max_total_tokens=2048, max_concurrent_requests=4)
    RunFolder(tmp_path / "run").connected("qwen", ModelRecord(identity=identity))
    with closing(Journal(tmp_path / "run" / "qwen" / "custom.qa.jsonl")) as journal:
        for i in range(2):
            journal.append(Entry(doc=str(i), index=0, key="k", response=Response(text=str(i), finish_reason="stop")))
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("arguments", "config", "expected"),
    [
        ("--limit 2", "", "limit was None and is 2 now"),
        ("--seed 5", "", "seed was 0 and is 5 now"),
        ("-t demo|qa_en", "", "tasks.custom|qa was there and is not now; tasks.demo|qa_en was not there and is now"),
        ("-t qa.toml", "chat = false", "models.qwen.chat was None and is False now"),
        (
            "-t qa.toml",
            "[models.qwen.generation]\ntemperature = 1",
            "models.qwen.generation.temperature was 0.0 and is 1.0 now",
        ),
    ],
)
def test_a_run_with_other_settings_is_told_what_changed_and_stays_as_it_is(
    tinyeval: Command, begun: Path, tmp_path: Path, arguments: str, config: str, expected: str
) -> None:
    (tmp_path / "c.toml").write_text((tmp_path / "c.toml").read_text() + config)
    before = contents(begun)
    task = [] if "-t" in arguments else ["-t", "qa.toml"]
    outcome = tinyeval("run", "c.toml", *task, *arguments.split(), "-o", "run")
    assert outcome.status == 2
    assert outcome.stderr.startswith("tinyeval: run is a run with other settings: ")
    assert expected in outcome.stderr
    assert outcome.stderr.endswith("Choose another folder with -o, or go back to those settings.\n")
    assert contents(begun) == before


def test_a_changed_question_is_another_run(tinyeval: Command, begun: Path, tmp_path: Path) -> None:
    (tmp_path / "qa.jsonl").write_text(ROWS.replace("Question 1", "Query 1"))
    before = contents(begun)
    outcome = tinyeval("run", "c.toml", "-t", "qa.toml", "-o", "run")
    assert outcome.status == 2
    assert re.search(r"other settings: tasks\.custom\|qa\.docs was '\w+' and is '\w+' now\.", outcome.stderr)
    assert contents(begun) == before


COMMANDS = [["run", "c.toml", "-t", "qa.toml", "-o", "run"], ["run", "--resume", "run"], ["score", "run"]]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize(
    ("file", "damage", "expected"),
    [
        ("qwen/custom.qa.jsonl", lambda d: b"?" + d, "qwen/custom.qa.jsonl, line 1 is damaged ("),
        ("qwen/custom.qa.jsonl", lambda d: d[:9] + b"\n" + d[9:], "qwen/custom.qa.jsonl, line 1 is damaged ("),
        ("run.json", lambda d: d[:99], "run.json is damaged: "),
        ("run.json", lambda d: b"\xff" + d, "run.json is damaged: "),
        ("run.json", lambda d: b"[]", "run.json is damaged: Expected `object`, got `array`."),
    ],
)
def test_a_damaged_run_is_told_by_every_command_and_left_as_it_is(
    tinyeval: Command, begun: Path, command: list[str], file: str, damage: Any, expected: str
) -> None:
    path = begun / file
    path.write_bytes(damage(path.read_bytes()))
    before = contents(begun)
    outcome = tinyeval(*command)
    assert outcome.stderr.splitlines()[-1].startswith(f"tinyeval: run/{expected}")
    assert (outcome.status, outcome.stdout) == (2, "")
    assert contents(begun) == before


def test_a_damaged_configuration_in_a_run_is_told_on_resuming(tinyeval: Command, begun: Path) -> None:
    record = json.loads((begun / "run.json").read_text())
    record["config"]["models"]["qwen"]["url"] = 5
    (begun / "run.json").write_text(json.dumps(record))
    outcome = tinyeval("run", "--resume", "run")
    assert outcome.status == 2
    assert outcome.stderr.startswith("tinyeval: run/run.json: models.*.url = {'qwen': {'url': 5")
    assert outcome.stderr.endswith(": expected str | array, got int.\n")


def test_scoring_what_is_no_run_is_told(tinyeval: Command, tmp_path: Path) -> None:
    outcome = tinyeval("score", "nowhere")
    reason = "nowhere/run.json can't be read (No such file or directory)."
    assert outcome == (2, "", f"tinyeval: nowhere is not the folder of a run: {reason}\n")
    write(tmp_path, {"preds.jsonl": "{}"})
    assert "can't be read (Not a directory)" in tinyeval("score", "preds.jsonl").stderr


def test_an_unfinished_run_is_scored_with_its_gaps_counted(tinyeval: Command, begun: Path) -> None:
    outcome = tinyeval("score", "run", "--json")
    assert outcome.status == 1
    result = json.loads(outcome.stdout)["results"]["qwen"]["custom|qa"]["exact_match"]
    assert (result["value"], result["n"], result["failed"]) == (1.0, 2, 1)
    assert "1 Docs have no score" in outcome.stderr


# Endpoints


@contextmanager
def serving(answer: Callable[[str], tuple[int, str, str] | None]) -> Iterator[str]:
    """A server that answers (status, content type, body) by path; None breaks the connection off."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            found = answer(self.path)
            if found is None:
                self.close_connection = True
                return
            status, kind, body = found
            self.send_response(status)
            self.send_header("content-type", kind)
            if 300 <= status < 400:
                self.send_header("location", "https://elsewhere.example/login")
            self.send_header("content-length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

        do_POST = do_GET  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


PAGE = "<!DOCTYPE html><html><head><title>Sign in</title></head><body>…</body></html>"
TGI_INFO = json.dumps({"model_id": "m", "model_sha": "s", "max_total_tokens": 2048, "version": "3.3.5"})


def only_tgi(path: str) -> tuple[int, str, str]:
    return (200, "application/json", TGI_INFO) if path == "/info" else (404, "text/plain", "")


@pytest.mark.parametrize(
    ("answer", "settings", "expected"),
    [
        (
            lambda p: (200, "text/html", PAGE),
            "",
            "answers with a web page (HTML), not with JSON; is it the URL of the server",
        ),
        (lambda p: (404, "text/html", PAGE), "", "answers with a web page (HTML), not with JSON"),
        (
            lambda p: (401, "application/json", '{"error": "Invalid token"}'),
            "",
            '/info answered 401: Invalid token. The server wants an API key: set api_key = "${NAME}" for this model.',
        ),
        (lambda p: (403, "text/html", PAGE), "", "/info answered 403: a web page (HTML). The server wants an API key"),
        (only_tgi, 'api = "llamacpp"', 'speaks tgi; say api = "tgi" or leave it out.'),
        (
            lambda p: (200, "application/json", '{"object": "list", "data": []}'),
            "",
            "is neither TGI (/info answered 200) nor llama.cpp (/props answered 200), the two dialects spoken here;",
        ),
        (lambda p: (404, "application/json", '{"detail": "Not Found"}'), "", "is neither TGI (/info answered 404)"),
        (lambda p: (302, "text/plain", ""), "", "is neither TGI (/info answered 302)"),
        (lambda p: (200, "application/json", '{"model_id": "m", "max_'), "", "is neither TGI (/info answered 200)"),
        (lambda p: None, "", "the connection to "),
    ],
)
def test_a_wrong_server_is_told_with_status_3_and_the_run_stays_resumable(
    tinyeval: Command, tmp_path: Path, answer: Any, settings: str, expected: str
) -> None:
    with serving(answer) as url:
        write(tmp_path, WITH_TASK | {"c.toml": f'[models.qwen]\nurl = "{url}"\n{settings}'})
        outcome = tinyeval("run", "c.toml", "-t", "qa.toml", "-o", "run")
    said, *more = outcome.stderr.splitlines()
    assert expected in said
    assert said.startswith("tinyeval: ")
    assert url in said
    assert more == ["Go on with: tinyeval run --resume run"]
    assert (outcome.status, outcome.stdout) == (3, "")
    assert not (tmp_path / "run" / "results.json").exists()


def test_nobody_at_the_port_is_told_at_once_and_what_was_answered_is_kept(
    tinyeval: Command, begun: Path, tmp_path: Path
) -> None:
    before = read(begun / "qwen" / "custom.qa.jsonl")
    outcome = tinyeval("run", "--resume", "run")
    assert outcome.status == 3
    assert re.search(r"tinyeval: http://127\.0\.0\.1:\d+ does not answer: Connect", outcome.stderr)
    assert "Go on with: tinyeval run --resume run" in outcome.stderr
    assert list(before) == [Place("0", 0), Place("1", 0)]
    assert read(begun / "qwen" / "custom.qa.jsonl") == before


def test_a_silent_server_is_given_up_after_the_timeout_of_the_settings(tinyeval: Command, tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        write(tmp_path, WITH_TASK | {"c.toml": f'[models.qwen]\nurl = "{url}"\ntimeout = 0.2'})
        outcome = tinyeval("run", "c.toml", "-t", "qa.toml")
    assert outcome.status == 3
    assert f"tinyeval: {url}/info was silent for too long" in outcome.stderr


def test_https_where_http_is_spoken_is_told(tinyeval: Command, tmp_path: Path) -> None:
    write(tmp_path, WITH_TASK)
    with serving(only_tgi) as url:
        outcome = tinyeval("run", "-m", f"q={url.replace('http', 'https')}", "-t", "qa.toml")
    assert outcome.status == 3
    assert outcome.stderr.startswith(f"tinyeval: {url.replace('http', 'https')} does not answer: ")


def test_a_dry_run_tells_a_wrong_server_without_a_folder(tinyeval: Command, tmp_path: Path) -> None:
    write(tmp_path, WITH_TASK)
    outcome = tinyeval("run", "-m", f"q=http://127.0.0.1:{closed_port()}", "-t", "qa.toml", "--dry-run")
    assert outcome.status == 3
    assert outcome.stderr.count("\n") == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["qa.jsonl", "qa.toml"]


def test_a_literal_key_is_in_no_message_and_no_file(tinyeval: Command, tmp_path: Path) -> None:
    def echo(path: str) -> tuple[int, str, str]:
        return 403, "application/json", '{"error": "key sk-secret-1 is not allowed"}'

    with serving(echo) as url:
        write(tmp_path, WITH_TASK | {"c.toml": f'[models.qwen]\nurl = "{url}"\napi_key = "sk-secret-1"'})
        outcome = tinyeval("run", "c.toml", "-t", "qa.toml", "-o", "run")
    assert outcome.status == 3
    assert "/info answered 403: key *** is not allowed" in outcome.stderr
    assert "sk-secret-1" not in outcome.stderr
    assert b"sk-secret-1" not in b"".join(contents(tmp_path / "run").values())


# The real command, a process of its own


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tinyeval", *arguments], cwd=folder, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize(
    ("arguments", "status", "expected"),
    [
        (["run", "-t", "demo|qa_zn"], 2, "tinyeval: no task is named 'demo|qa_zn' (did you mean 'demo|qa_zh'"),
        (["run", "gb.toml"], 2, "tinyeval: gb.toml, line 1: not UTF-8 (byte 0xc5 at offset 2)"),
        (
            ["run", "-t", "qa.toml", "-m", "q=http://127.0.0.1:{port}"],
            3,
            "tinyeval: http://127.0.0.1:{port} does not answer",
        ),
        (["score", "begun"], 2, "tinyeval: begun/qwen/custom.qa.jsonl, line 1 is damaged ("),
    ],
)
def test_the_real_command_says_the_same(
    tinyeval: Command, begun: Path, tmp_path: Path, arguments: list[str], status: int, expected: str
) -> None:
    folder = tmp_path / "elsewhere"
    shutil.copytree(begun, folder / "begun")
    journal = folder / "begun" / "qwen" / "custom.qa.jsonl"
    journal.write_bytes(b"?" + journal.read_bytes())
    write(folder, WITH_TASK | {"gb.toml": b"# " + gb("配置")})
    port = str(closed_port())
    done = command(folder, *(a.replace("{port}", port) for a in arguments))
    assert done.returncode == status, done.stderr
    assert done.stderr.startswith(expected.replace("{port}", port))
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
