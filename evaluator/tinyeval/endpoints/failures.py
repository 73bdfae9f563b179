"""What an error status means and what to do about it: the table of the server contract, written once.

400 405 415  abort: a bug, or another kind of server    413 422  the sample fails (422 template or type errors: abort)
401 403 404  abort: key, URL                            424      again up to 3 times, under less load
429 503      again, under less load, not counted        500 502 504, no JSON in a 200: again
"""

from __future__ import annotations

import re
from typing import Any, cast

from tinyeval.endpoints.transport import Reply
from tinyeval.errors import EndpointError, Retry, SampleError, TooLong

_ABORT_TYPES = ("template_error", "tool_error", "missing_template_variable")


def failure(reply: Reply, url: str) -> EndpointError:
    """The exception for a reply that is not a success."""
    status, message, kind = reply.status, _message(reply), _kind(reply.json)
    said = f"{url} answered {status}" + (f": {message}" if message else "")
    if status in (429, 503):
        return Retry(said, overloaded=True, after=_retry_after(reply))
    if status == 424:
        return Retry(said, tries=3, shrink=True)
    if status in (500, 502, 504):
        return Retry(said)
    if status in (401, 403):
        return EndpointError(f'{said}. The server wants an API key: set api_key = "${{NAME}}" for this model.')
    if 300 <= status < 400:
        return EndpointError(
            f"{said}: a redirection to {reply.redact(reply.headers.get('location', ''))!r}; "
            "give that URL if you trust it."
        )
    if status == 413:
        return SampleError(f"{said}. The prompt is larger than the server's payload limit (TGI: --payload-limit).")
    if status == 422 and kind and kind not in _ABORT_TYPES:
        return _too_long(said, message) or SampleError(said)
    if status == 400 and kind == "exceed_context_size_error":
        tokens, limit = reply.json["error"].get("n_prompt_tokens", 0), reply.json["error"].get("n_ctx", 0)
        return TooLong(said, excess=max(0, tokens - limit))
    hint = " Is the URL right?" if status in (404, 405) else ""
    return EndpointError(f"{said}.{hint}")


def object_of(reply: Reply, url: str, *needed: str) -> dict[str, Any]:
    """The JSON object of a success.

    Raises:
        EndpointError: the reply is a failure (see `failure`).
        Retry: the body is no such object, or lacks a needed key: it was cut on its way.
    """
    body = reply.json
    if reply.status != 200:
        raise failure(reply, url)
    if not isinstance(body, dict) or any(key not in body for key in needed):
        raise _malformed(reply, url)
    return cast("dict[str, Any]", body)


def objects_of(reply: Reply, url: str) -> list[dict[str, Any]]:
    """The JSON list of a success; raises like `object_of`."""
    body = reply.json
    if reply.status != 200:
        raise failure(reply, url)
    if not isinstance(body, list):
        raise _malformed(reply, url)
    return cast("list[dict[str, Any]]", body)


def _malformed(reply: Reply, url: str) -> Retry:
    return Retry(f"{url} answered 200 with a body that can't be read: {reply.redact(reply.text)[:80]!r}")


def _too_long(said: str, message: str) -> TooLong | None:
    """TGI says: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 2030 `inputs` tokens and 64 …."""
    limit = re.search(r"must (?:have less than|be <=) (\d+)", message)
    given = re.search(r"[Gg]iven:? (\d+)(?: `inputs` tokens and (\d+))?", message)
    if not limit or not given:
        return None
    return TooLong(said, excess=max(0, int(given[1]) + int(given[2] or 0) - int(limit[1])))


def _message(reply: Reply) -> str:
    body = _fields(reply.json)
    error = body.get("error", body.get("message"))
    error = _fields(error).get("message", error)
    text = error if isinstance(error, str) else reply.text
    if "<html" in text[:500].lower():
        return "a web page (HTML)"
    return " ".join(reply.redact(text).split())[:300].rstrip(".")


def _kind(body: Any) -> str | None:
    fields = _fields(body)
    kind = _fields(fields.get("error")).get("type", fields.get("error_type"))
    return kind if isinstance(kind, str) else None


def _fields(body: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", body) if isinstance(body, dict) else {}


def _retry_after(reply: Reply) -> float | None:
    try:
        return max(0.0, float(reply.headers.get("retry-after", "")))
    except ValueError:
        return None
