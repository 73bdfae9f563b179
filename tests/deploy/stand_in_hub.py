"""A stand-in for huggingface.co on loopback: as much of its model API as huggingface_hub uses to fetch a file."""

import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import unquote, urlsplit

API = re.compile(r"/api/models/(?P<repo>[^/]+/[^/]+)(?:/revision/(?P<revision>[^/]+))?")
RESOLVE = re.compile(r"/(?P<repo>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<file>.+)")
RANGE = re.compile(r"bytes=(\d+)-(\d*)")


class StandInHub:
    """Serves the models that were `put` into it; use as a context manager, then `url` goes into HF_ENDPOINT."""

    def __init__(self) -> None:
        self.models: dict[str, tuple[str, dict[str, bytes]]] = {}
        self.gated: set[str] = set()
        self.cut_next_file_at: int | None = None
        """Bytes of its body after which the next file's connection breaks, once."""
        self.requests: list[str] = []
        """Method, path and range, if any, of everything asked so far."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def put(self, repo: str, files: dict[str, bytes], commit: str = "c0ffee" + "0" * 34) -> None:
        """Add a model with one commit, which is also its `main`."""
        self.models[repo] = (commit, files)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._answer(body=True)

            def do_HEAD(self) -> None:
                self._answer(body=False)

            def _answer(self, body: bool) -> None:
                hub.requests.append(f"{self.command} {self.path} {self.headers.get('Range', '')}".rstrip())
                path = unquote(urlsplit(self.path).path)
                match = API.fullmatch(path) or RESOLVE.fullmatch(path)
                if match is None or match["repo"] not in hub.models:
                    return self._refuse(404, "RepoNotFound")
                if match["repo"] in hub.gated:
                    return self._refuse(403, "GatedRepo")
                commit, files = hub.models[match["repo"]]
                if match["revision"] not in (None, "main", commit):
                    return self._refuse(404, "RevisionNotFound")
                if match.re is API:
                    return self._send_model(match["repo"], commit, files, body)
                if match["file"] not in files:
                    return self._refuse(404, "EntryNotFound")
                return self._send_file(files[match["file"]], commit, body)

            def _send_model(self, repo: str, commit: str, files: dict[str, bytes], body: bool) -> None:
                siblings = [{"rfilename": name} for name in files]
                data = json.dumps({"id": repo, "modelId": repo, "sha": commit, "siblings": siblings}).encode()
                self._send(200, data if body else b"", {"Content-Length": len(data)})

            def _send_file(self, data: bytes, commit: str, body: bool) -> None:
                etag = hashlib.sha256(data).hexdigest()
                headers: dict[str, object] = {
                    "ETag": f'"{etag}"',
                    "X-Linked-ETag": f'"{etag}"',
                    "X-Linked-Size": len(data),
                    "X-Repo-Commit": commit,
                    "Accept-Ranges": "bytes",
                }
                asked = RANGE.fullmatch(self.headers.get("Range", ""))
                status, part = 200, data
                if asked:
                    first, last = int(asked[1]), int(asked[2] or len(data) - 1)
                    status, part = 206, data[first : last + 1]
                    headers["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
                headers["Content-Length"] = len(part)
                if body and hub.cut_next_file_at is not None:
                    part, hub.cut_next_file_at = part[: hub.cut_next_file_at], None
                    self.close_connection = True
                self._send(status, part if body else b"", headers)

            def _refuse(self, status: int, code: str) -> None:
                self._send(status, b"", {"X-Error-Code": code, "X-Error-Message": code, "Content-Length": 0})

            def _send(self, status: int, data: bytes, headers: dict[str, object]) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, str(value))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        return Handler
