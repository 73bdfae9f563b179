"""Connecting: what a server is, is found out; what it is not, is said in a sentence."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web

from tinyeval.endpoints.llamacpp import LlamaCpp
from tinyeval.endpoints.tgi import Tgi
from tinyeval.errors import ConfigError, EndpointError

LOGIN = "<!doctype html>\n<html><body>Sign in</body></html>"


def llamacpp_like(**changes: Any) -> Any:
    """As much of llama.cpp's server as connecting asks for."""

    async def answer(request: web.Request) -> web.Response:
        match request.path:
            case "/props":
                return web.json_response({"default_generation_settings": {"n_ctx": 512}, "total_slots": 2, **changes})
            case "/v1/models":
                return web.json_response({"data": [{"meta": {"n_vocab": 99}}]})
            case "/tokenize":
                return web.json_response({"tokens": [{"id": 5, "piece": "a"}]})
        return web.json_response(
            {"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}}, status=404
        )

    return answer


async def test_tgi_is_found_out(serve: Any, open_model: Any) -> None:
    server = await serve()
    assert isinstance(await open_model(server), Tgi)
    assert isinstance(await open_model(server, api="tgi"), Tgi)
    assert server.requests["/generate"] == 0, "connecting generates nothing"


async def test_llamacpp_is_found_out(listen: Any, open_model: Any) -> None:
    url = await listen(llamacpp_like())
    endpoint = await open_model(url)
    assert isinstance(endpoint, LlamaCpp)
    assert (endpoint.identity.max_total_tokens, endpoint.identity.max_concurrent_requests) == (512, 2)
    assert isinstance(await open_model(url, api="llamacpp"), LlamaCpp)


async def test_a_stated_api_that_the_server_does_not_speak_is_told_with_the_right_one(
    serve: Any, listen: Any, open_model: Any
) -> None:
    tgi, llamacpp = (await serve()).url, await listen(llamacpp_like())
    for url, stated, found in ((tgi, "llamacpp", "tgi"), (llamacpp, "tgi", "llamacpp")):
        with pytest.raises(
            EndpointError, match=f'models.m: api = "{stated}", but {url} speaks {found}; say api = "{found}"'
        ):
            await open_model(url, api=stated)


async def test_a_web_page_is_told_as_one(listen: Any, open_model: Any) -> None:
    for status in (200, 404):

        async def page(_: web.Request, status: int = status) -> web.Response:
            return web.Response(status=status, text=LOGIN, content_type="text/html")

        with pytest.raises(EndpointError, match=r"models.m: http://.* answers with a web page \(HTML\), not with JSON"):
            await open_model(await listen(page))


async def test_a_server_of_another_kind_is_told_with_what_it_answered(listen: Any, open_model: Any) -> None:
    async def openai_like(request: web.Request) -> web.Response:
        if request.path == "/v1/models":
            return web.json_response({"object": "list", "data": [{"id": "m", "max_model_len": 4096}]})
        return web.json_response({"detail": "Not Found"}, status=404)

    url = await listen(openai_like)
    for given in (url, f"{url}/v1"):
        with pytest.raises(EndpointError) as caught:
            await open_model(given)
        assert f"models.m: {given} is neither TGI (/info answered 404) nor llama.cpp (/props answered 404)" in str(
            caught.value
        )
        assert "root URL, without /v1" in str(caught.value)


@pytest.mark.parametrize("body", ["[]", '"text"', "{}", "null", "", '{"model_id": "x"}', "{"])
async def test_a_success_that_says_nothing_known_is_of_another_kind(listen: Any, open_model: Any, body: str) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=body, content_type="application/json")

    with pytest.raises(EndpointError, match="is neither TGI"):
        await open_model(await listen(answer))


async def test_nobody_at_the_url_is_told_after_one_try(closed_url: str, open_model: Any, monkeypatch: Any) -> None:
    async def pause(seconds: float) -> None:
        raise AssertionError(f"paused for {seconds} s")

    monkeypatch.setattr("tinyeval.endpoints.retry.asyncio.sleep", pause)
    with monkeypatch.context() as patch:
        patch.setattr("tinyeval.endpoints.transport.Transport.close", close_at_once)
        with pytest.raises(EndpointError, match=f"{closed_url} does not answer"):
            await open_model(closed_url)


async def close_at_once(transport: Any) -> None:
    await transport._session.close()


async def test_a_refused_key_is_told_with_the_setting(listen: Any, open_model: Any) -> None:
    async def refuse(request: web.Request) -> web.Response:
        return web.Response(status=200 if request.headers.get("authorization") == "Bearer right" else 401)

    url = await listen(refuse)
    for settings in ({}, {"api_key": "wrong"}):
        with pytest.raises(EndpointError, match=r"/(info|props) answered 401\. .*set api_key"):
            await open_model(url, **settings)


async def test_tgi_tells_a_refused_key_before_anything_is_generated(serve: Any, open_model: Any) -> None:
    server = await serve(api_key="right")
    with pytest.raises(EndpointError, match=r"/tokenize answered 401\. .*set api_key"):
        await open_model(server, api_key="wrong")
    assert isinstance(await open_model(server, api_key="right"), Tgi)


async def test_a_key_comes_from_the_environment_without_its_last_newline(
    serve: Any, open_model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await serve(api_key="from-a-file")
    monkeypatch.setenv("SOME_KEY", "from-a-file\n")
    assert isinstance(await open_model(server, api_key="${SOME_KEY}"), Tgi)
    monkeypatch.delenv("SOME_KEY")
    with pytest.raises(ConfigError, match=r"models.m.api_key: the environment variable SOME_KEY is not set"):
        await open_model(server, api_key="${SOME_KEY}")


async def test_a_server_that_is_still_loading_is_waited_for(serve: Any, open_model: Any) -> None:
    server = await serve()
    server.faults["/info"].extend([503, 502, 429])
    assert isinstance(await open_model(server), Tgi)


async def test_a_server_that_tells_no_limit_is_refused(listen: Any, open_model: Any) -> None:
    async def answer(request: web.Request) -> web.Response:
        if request.path == "/info":
            return web.json_response({"model_id": "x", "max_total_tokens": 0})
        return web.Response(status=404)

    with pytest.raises(EndpointError, match="tells no max_total_tokens"):
        await open_model(await listen(answer))
