"""The fake TGI behaves as TGI's source says, or the tests that stand on it show nothing."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from tinyeval.errors import Retry


def parameters(**given: Any) -> dict[str, Any]:
    return {"inputs": "Where is Xiamen?", "parameters": {"details": True, **given}}


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (parameters(temperature=0), "`temperature` must be strictly positive"),
        (parameters(top_p=1.0), "`top_p` must be > 0.0 and < 1.0"),
        (parameters(top_k=0), "`top_k` must be strictly positive"),
        (parameters(max_new_tokens=0), "`max_new_tokens` must be strictly positive"),
        (parameters(repetition_penalty=0), "`repetition_penalty` must be strictly positive"),
        (parameters(frequency_penalty=3), "`frequency_penalty` must be >= -2.0 and <= 2.0"),
        (parameters(stop=list("abcde")), "`stop` supports up to 4 stop sequences. Given: 5"),
        ({"inputs": "", "parameters": {}}, "`inputs` cannot be empty"),
        (parameters(grammar={"type": "json", "value": {"type": "object"}}), "Grammar must have a 'properties' field"),
        (
            parameters(max_new_tokens=100),
            "`inputs` tokens + `max_new_tokens` must be <= 100. Given: 5 `inputs` tokens and 100 `max_new_tokens`",
        ),
        (
            {"inputs": "x" + " x" * 120, "parameters": {"max_new_tokens": 1}},
            "must be <= 100. Given: 122 `inputs` tokens and 1",
        ),
        ({"inputs": "x" + " x" * 60, "parameters": {"max_new_tokens": 1}}, "must have less than 50 tokens. Given: 62"),
    ],
)
async def test_the_fake_refuses_values_as_json(serve: Any, transport_to: Any, body: dict[str, Any], says: str) -> None:
    server = await serve(max_total_tokens=100, max_input_tokens=50)
    reply = await transport_to(server.url).post("/generate", body)
    assert (reply.status, reply.json["error_type"]) == (422, "validation")
    assert reply.json["error"].startswith("Input validation error: ")
    assert says in reply.json["error"]


@pytest.mark.parametrize(
    "body",
    [
        {"parameters": {}},
        {"inputs": ["a batch"]},
        {"inputs": "x", "parameters": []},
        parameters(temperature="hot"),
        parameters(max_new_tokens=-1),
        parameters(stop="\n"),
        parameters(do_sample=1),
        parameters(grammar={"type": "json_object"}),
        parameters(grammar={"type": "json_schema", "json_schema": {}}),
        parameters(grammar={"type": "ebnf", "value": "x"}),
    ],
)
async def test_the_fake_refuses_types_as_text(serve: Any, transport_to: Any, body: dict[str, Any]) -> None:
    reply = await transport_to((await serve()).url).post("/generate", body)
    assert (reply.status, reply.json) == (422, None)
    assert reply.text.startswith("Failed to deserialize the JSON body")


async def test_the_fake_samples_without_parameters_and_drops_unknown_fields(serve: Any, transport_to: Any) -> None:
    transport = transport_to((await serve()).url)

    async def answers(body: dict[str, Any]) -> int:
        return len({(await transport.post("/generate", body)).json["generated_text"] for _ in range(8)})

    assert await answers({"inputs": "x"}) > 1
    assert await answers({"inputs": "x", "parameters": {"top_k": 50}}) > 1
    assert await answers({"inputs": "x", "parameters": {}}) == 1
    assert await answers({"inputs": "x", "parameters": {"temperature": 1.0, "guided_json": {}, "tempreature": 2}}) == 1


async def test_the_fake_keeps_the_stop_text_and_misses_one_inside_a_token(serve: Any, transport_to: Any) -> None:
    server = await serve()
    server.answer = lambda _: "one Paris\n\ntwo"
    transport = transport_to(server.url)
    for stop, text, reason in (
        ("\n", "one Paris\n", "stop_sequence"),
        (" Paris", "one Paris", "stop_sequence"),
        ("Pari", "one Paris\n\ntwo", "eos_token"),
        ("\nt", "one Paris\n\ntwo", "eos_token"),
    ):
        reply = (await transport.post("/generate", parameters(stop=[stop], max_new_tokens=16))).json
        assert (reply["generated_text"], reply["details"]["finish_reason"]) == (text, reason)


async def test_the_fake_is_overloaded_at_once_over_its_places(serve: Any, transport_to: Any) -> None:
    server = await serve(max_concurrent_requests=2, latency=0.2)
    transport = transport_to(server.url)
    replies = await asyncio.gather(*(transport.post("/generate", parameters()) for _ in range(6)))
    refused = [reply for reply in replies if reply.status == 429]
    assert (len(refused), server.peak) == (4, 2)
    assert refused[0].json == {"error": "Model is overloaded", "error_type": "overloaded"}
    assert "retry-after" not in refused[0].headers


@pytest.mark.slow
async def test_the_fake_runs_as_a_process_that_is_told_what_fails_next(fake: Any, transport_to: Any) -> None:
    arguments = [fake.__file__, "--port", "0", "--max-stop-sequences", "9", "--no-template", "--latency", "0.01"]
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=asyncio.subprocess.PIPE)
    assert process.stdout
    try:
        transport = transport_to((await process.stdout.readline()).decode().strip())
        assert (await transport.get("/info")).json["max_stop_sequences"] == 9
        assert (await transport.post("/chat_tokenize", {"messages": []})).json["error_type"] == "template_error"
        await transport.post("/faults", {"/generate": [424, "drop"]})
        assert (await transport.post("/generate", parameters())).status == 424
        with pytest.raises(Retry):
            await transport.post("/generate", parameters())
        assert (await transport.post("/generate", parameters())).status == 200
        counted = (await transport.get("/counters")).json
        assert (counted["requests"]["/generate"], counted["prompts"]) == (3, {"Where is Xiamen?": 1})
    finally:
        process.terminate()
        await process.wait()
        process._transport.close()  # type: ignore[attr-defined]


async def test_the_fake_asks_for_its_key_on_the_routes_behind_it(serve: Any, transport_to: Any) -> None:
    url = (await serve(api_key="Right")).url
    assert (await transport_to(url, "right").post("/generate", parameters())).status == 200
    for transport in (transport_to(url), transport_to(url, "wrong")):
        for path in ("/generate", "/tokenize"):
            reply = await transport.post(path, parameters())
            assert (reply.status, reply.body) == (401, b"")
        assert (await transport.get("/info")).status == (await transport.get("/health")).status == 200
