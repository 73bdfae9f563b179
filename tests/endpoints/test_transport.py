"""HTTP to one server: what fails on the way is a Retry, and the API key goes to this server and nowhere else."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web

from tinyeval.endpoints.failures import object_of
from tinyeval.endpoints.retry import Limiter, Patience, persist
from tinyeval.errors import EndpointError, Retry, TinyEvalError
from tinyeval.records import GreedyUntil

KEY = "sk-very-secret-0123"


async def test_a_reply_of_any_status_is_returned(listen: Any, transport_to: Any) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=int(request.path[1:]), text="body")

    transport = transport_to(await listen(answer))
    for status in (200, 302, 401, 424, 429, 500, 599):
        reply = await transport.get(f"/{status}")
        assert (reply.status, reply.text) == (status, "body")


async def test_a_body_is_json_and_headers_have_no_case(listen: Any, transport_to: Any) -> None:
    async def echo(request: web.Request) -> web.Response:
        assert request.content_type == "application/json"
        return web.Response(body=await request.read(), headers={"X-Prompt-Tokens": "7"})

    reply = await transport_to(await listen(echo)).post("/x", {"inputs": "厦门 😀 \n\x00"})
    assert reply.json == {"inputs": "厦门 😀 \n\x00"}
    assert reply.headers["x-prompt-tokens"] == "7"


async def test_a_path_before_the_routes_is_kept(listen: Any, transport_to: Any) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=request.path)

    url = await listen(answer)
    for given in ("/models/a", "/models/a/", "/models/a//"):
        assert (await transport_to(url + given).get("/info")).text == "/models/a/info"


async def test_a_body_that_is_no_json_or_no_text_reads_as_none_and_never_fails(listen: Any, transport_to: Any) -> None:
    for body in (b"", b"{", b"<html>", b'{"a": "\xff"}', b"\xff\xfe\x00", b"NaN", b"{} {}", b'{"a": Infinity}'):

        async def answer(_: web.Request, body: bytes = body) -> web.Response:
            return web.Response(body=body)

        reply = await transport_to(await listen(answer)).get("/x")
        assert reply.json is None
        assert isinstance(reply.text, str)


# --- the key -------------------------------------------------------------------------------------------------


async def test_the_key_is_sent_as_a_bearer_token_and_none_when_there_is_none(listen: Any, transport_to: Any) -> None:
    seen = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(request.headers.get("authorization"))
        return web.Response()

    url = await listen(answer)
    await transport_to(url, KEY).get("/x")
    await transport_to(url, KEY).post("/x", {})
    await transport_to(url).get("/x")
    assert seen == [f"Bearer {KEY}", f"Bearer {KEY}", None]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirection_is_never_followed_and_the_other_host_gets_nothing(
    listen: Any, transport_to: Any, status: int
) -> None:
    visits = []

    async def elsewhere(request: web.Request) -> web.Response:
        visits.append(request.headers)
        return web.json_response({"generated_text": "stolen"})

    other = await listen(elsewhere)

    async def redirect(_: web.Request) -> web.Response:
        return web.Response(status=status, headers={"location": f"{other}/generate"})

    transport = transport_to(await listen(redirect), KEY)
    for reply in (await transport.get("/info"), await transport.post("/generate", {"inputs": "x"})):
        with pytest.raises(EndpointError, match=f"a redirection to '{other}/generate'"):
            object_of(reply, transport.url)
    assert visits == []


async def test_the_key_is_in_no_message_even_when_the_server_repeats_it(
    listen: Any, shout: Any, transport_to: Any, open_model: Any
) -> None:
    said: list[str] = []

    async def fail(url: str) -> None:
        transport = transport_to(url, KEY, silence=5)
        try:
            object_of(await transport.get("/info"), url, "generated_text")
        except TinyEvalError as e:
            said.append(str(e))
        with pytest.raises(TinyEvalError) as caught:
            await open_model(url, api_key=KEY)
        said.append(str(caught.value))

    for status, location in (
        (401, ""),
        (403, ""),
        (404, ""),
        (400, ""),
        (422, ""),
        (429, ""),
        (307, f"/login?key={KEY}"),
        (200, ""),
    ):
        for body in (f"Incorrect API key provided: {KEY}", f'{{"error": {{"message": "bad key {KEY}"}}}}', f'"{KEY}"'):

            async def repeat(_: web.Request, s: int = status, b: str = body, at: str = location) -> web.Response:
                # Only what never passes, so that detection does not wait.
                return web.Response(status=s if s != 429 else 418, text=b, headers={"location": at} if at else {})

            await fail(await listen(repeat))
    await fail(await shout(f"SSH-2.0-OpenSSH_9.6 {KEY}\r\n".encode()))
    assert len(said) == 2 * (8 * 3 + 1)
    assert not any(KEY in message for message in said)


async def test_the_key_is_in_no_message_of_a_refused_generation(serve: Any, open_model: Any) -> None:
    server = await serve(api_key=KEY)
    endpoint = await open_model(server, api_key=KEY)
    server.faults["/generate"].append((401, f"no such key: Bearer {KEY}", {}))
    with pytest.raises(EndpointError, match=r"no such key: Bearer \*\*\*\. .*set api_key") as caught:
        await endpoint.generate(GreedyUntil(context="x", generation_size=1))
    assert KEY not in str(caught.value)


# --- what fails on the way -----------------------------------------------------------------------------------


async def test_a_server_that_is_silent_is_given_up_and_asked_again(serve: Any, transport_to: Any) -> None:
    server = await serve()
    server.faults["/info"].append("hang")
    transport = transport_to(server.url, silence=0.5)
    with pytest.raises(Retry, match="was silent for too long") as caught:
        await transport.get("/info")
    assert (caught.value.unreachable, caught.value.tries) == (False, 3)
    server.faults["/info"].append("hang")
    reply, attempts = await persist(lambda: transport.get("/info"), Limiter(1), Patience(pause=0.001))
    assert (reply.status, attempts) == (200, 2)


async def test_a_server_that_falls_silent_inside_its_answer_is_given_up(listen: Any, transport_to: Any) -> None:
    async def stall(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"generated')
        await asyncio.sleep(30)
        return response

    with pytest.raises(Retry, match="silent"):
        await transport_to(await listen(stall), silence=0.5).post("/generate", {})


async def test_nobody_at_the_url_is_told_with_the_reason(closed_url: str, transport_to: Any) -> None:
    with pytest.raises(Retry, match=rf"{closed_url} does not answer: .*(refused|[Cc]onnect)") as caught:
        await transport_to(closed_url).get("/info")
    assert caught.value.unreachable


async def test_a_dropped_connection_is_a_retry_and_the_next_request_opens_a_new_one(
    serve: Any, transport_to: Any
) -> None:
    server = await serve()
    transport = transport_to(server.url)
    await transport.get("/health")
    server.faults["/tokenize"].append("drop")
    with pytest.raises(Retry, match="broke") as caught:
        await transport.post("/tokenize", {"inputs": "x"})
    assert (caught.value.unreachable, caught.value.tries) == (False, None)
    assert (await transport.post("/tokenize", {"inputs": "x"})).status == 200


async def test_a_cut_body_is_a_retry_that_counts(serve: Any, transport_to: Any) -> None:
    server = await serve()
    server.faults["/tokenize"].append("cut")
    with pytest.raises(Retry, match="broke off its answer") as caught:
        await transport_to(server.url).post("/tokenize", {"inputs": "x"})
    assert not caught.value.unreachable


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"",
        b"HTTP/1.1 999999 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\nabcd",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\nabcd",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 20000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}",
    ],
    ids=["other protocol", "nothing", "status", "length", "chunk", "gzip", "header", "short"],
)
async def test_what_is_no_http_is_a_retry_of_one_line(shout: Any, transport_to: Any, data: bytes) -> None:
    with pytest.raises(Retry) as caught:
        await transport_to(await shout(data)).get("/info")
    assert "\n" not in str(caught.value)


async def test_what_is_no_url_is_told_at_once(transport_to: Any) -> None:
    for url in ("http://127.0.0.1:99999", "http://127.0.0.1:abc"):
        with pytest.raises(EndpointError, match=f"{url} is not a URL") as caught:
            await transport_to(url).get("/info")
        assert not isinstance(caught.value, Retry)
