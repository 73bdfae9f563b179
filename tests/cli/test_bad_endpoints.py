"""Servers that are wrong, silent or not there get a sentence and status 3, and the run can be resumed."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tinyeval.inference.journal import Place, read


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
def test_a_wrong_server_is_told_with_status_3_and_binds_the_folder_to_nothing(
    tinyeval: Any, write: Any, qa: Any, tmp_path: Path, answer: Any, settings: str, expected: str
) -> None:
    with serving(answer) as url:
        write(qa | {"c.toml": f'[models.qwen]\nurl = "{url}"\n{settings}'})
        outcome = tinyeval("run", "c.toml", "-t", "qa.toml", "-o", "run")
    said, *more = outcome.stderr.splitlines()
    assert expected in said
    assert said.startswith("tinyeval: ")
    assert url in said
    assert more == [], "there is nothing to go on with"
    assert (outcome.status, outcome.stdout) == (3, "")
    assert not (tmp_path / "run" / "results.json").exists()
    again = tinyeval("run", "c.toml", "-t", "qa.toml", "-o", "run", "--limit", "1")
    assert "other settings" not in again.stderr


def test_nobody_at_the_port_is_told_at_once_and_what_was_answered_is_kept(tinyeval: Any, begun: Path) -> None:
    before = read(begun / "qwen" / "custom.qa.jsonl")
    outcome = tinyeval("run", "--resume", "run")
    assert outcome.status == 3
    assert re.search(r"tinyeval: http://127\.0\.0\.1:\d+ does not answer: Connect", outcome.stderr)
    assert "Go on with: tinyeval run --resume run" in outcome.stderr
    assert list(before) == [Place("0", 0), Place("1", 0)]
    assert read(begun / "qwen" / "custom.qa.jsonl") == before


def test_a_silent_server_is_given_up_after_the_timeout_of_the_settings(tinyeval: Any, write: Any, qa: Any) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        write(qa | {"c.toml": f'[models.qwen]\nurl = "{url}"\ntimeout = 0.2'})
        outcome = tinyeval("run", "c.toml", "-t", "qa.toml")
    assert outcome.status == 3
    assert f"tinyeval: {url}/info was silent for too long" in outcome.stderr


def test_https_where_http_is_spoken_is_told(tinyeval: Any, write: Any, qa: Any) -> None:
    write(qa)
    with serving(only_tgi) as url:
        outcome = tinyeval("run", "-m", f"q={url.replace('http', 'https')}", "-t", "qa.toml")
    assert outcome.status == 3
    assert outcome.stderr.startswith(f"tinyeval: {url.replace('http', 'https')} does not answer: ")


def test_a_dry_run_tells_a_wrong_server_without_a_folder(
    tinyeval: Any, write: Any, qa: Any, closed_url: str, tmp_path: Path
) -> None:
    write(qa)
    outcome = tinyeval("run", "-m", f"q={closed_url}", "-t", "qa.toml", "--dry-run")
    assert outcome.status == 3
    assert outcome.stderr.count("\n") == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["qa.jsonl", "qa.toml"]


def test_a_literal_key_is_in_no_message_and_no_file(
    tinyeval: Any, write: Any, qa: Any, contents: Any, tmp_path: Path
) -> None:
    def echo(path: str) -> tuple[int, str, str]:
        return 403, "application/json", '{"error": "key sk-secret-1 is not allowed"}'

    with serving(echo) as url:
        write(qa | {"c.toml": f'[models.qwen]\nurl = "{url}"\napi_key = "sk-secret-1"'})
        outcome = tinyeval("run", "c.toml", "-t", "qa.toml", "-o", "run")
    assert outcome.status == 3
    assert "/info answered 403: key *** is not allowed" in outcome.stderr
    assert "sk-secret-1" not in outcome.stderr
    assert b"sk-secret-1" not in b"".join(contents(tmp_path / "run").values())
