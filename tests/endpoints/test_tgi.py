"""TGI's dialect on the fake server: what is sent, and what is made of the answer."""

from __future__ import annotations

from typing import Any

import pytest

from tinyeval.errors import SampleError
from tinyeval.records import Grammar, GreedyUntil

GREEDY = {
    "do_sample": False,
    "repetition_penalty": 1.0,
    "frequency_penalty": 0.0,
    "return_full_text": False,
    "max_new_tokens": 16,
    "stop": [],
    "details": True,
}
SAMPLING = {**GREEDY, "do_sample": True, "temperature": 0.7, "seed": 7}


def bodies(server: Any) -> list[dict[str, Any]]:
    return server.bodies["/generate"]


async def ask(
    endpoint: Any, context: str = "Where is Xiamen?", size: int | None = 16, *stops: str, grammar: Any = None
) -> Any:
    request = GreedyUntil(context=context, generation_size=size, stop_sequence=stops, grammar=grammar)
    return await endpoint.generate(request)


def words(n: int) -> str:
    return " ".join(f"w{i}" for i in range(n))


# --- identity ------------------------------------------------------------------------------------------------


async def test_the_limits_are_those_that_the_server_tells(serve: Any, open_model: Any) -> None:
    server = await serve(max_total_tokens=777, max_input_tokens=700, max_concurrent_requests=9, max_stop_sequences=2)
    identity = (await open_model(server)).identity
    assert (identity.api, identity.model_id, identity.model_sha) == ("tgi", "fake/tgi", None)
    assert (identity.max_total_tokens, identity.max_input_tokens) == (777, 700)
    assert (identity.max_concurrent_requests, identity.max_stop_sequences) == (9, 2)


async def test_the_build_is_told_by_its_commit_since_its_version_is_wrong(serve: Any, open_model: Any) -> None:
    assert (await open_model(await serve())).identity.version == "fa" * 20


# --- what is sent --------------------------------------------------------------------------------------------


async def test_greedy_is_no_sampling_and_none_of_the_parameters_that_turn_it_on(serve: Any, open_model: Any) -> None:
    server = await serve()
    await ask(await open_model(server))
    assert bodies(server) == [{"inputs": "Where is Xiamen?", "parameters": GREEDY}]


@pytest.mark.parametrize(
    ("generation", "expected"),
    [
        ({"temperature": 0.7}, SAMPLING),
        ({"temperature": 0.7, "top_p": 1.0, "top_k": 0}, SAMPLING),
        ({"temperature": 0.7, "top_p": 0.9, "top_k": 40}, {**SAMPLING, "top_p": 0.9, "top_k": 40}),
        ({"temperature": 1.0, "repetition_penalty": 1.2}, {**SAMPLING, "temperature": 1.0, "repetition_penalty": 1.2}),
        ({"repetition_penalty": 1.2}, {**GREEDY, "repetition_penalty": 1.2}),
        ({"top_p": 0.9, "top_k": 40}, GREEDY),
    ],
)
async def test_sampling_sends_its_seed_and_no_value_that_the_server_rejects(
    serve: Any, open_model: Any, generation: dict[str, Any], expected: dict[str, Any]
) -> None:
    server = await serve()
    await ask(await open_model(server, generation=generation))
    assert bodies(server)[0]["parameters"] == expected


async def test_an_answer_is_the_same_every_time_greedy_or_sampled(serve: Any, open_model: Any) -> None:
    server = await serve()
    for generation in ({}, {"temperature": 0.8, "top_k": 5}):
        endpoint = await open_model(server, generation=generation)
        assert len({(await ask(endpoint)).text for _ in range(3)}) == 1


async def test_more_stop_strings_than_the_server_takes_are_cut_here(serve: Any, open_model: Any) -> None:
    server = await serve(max_stop_sequences=2)
    server.answer = lambda _: "one two three four five"
    endpoint = await open_model(server)
    response = await ask(endpoint, "x", 16, "zz", "yy", "xx", " four", "five")
    assert bodies(server)[0]["parameters"]["stop"] == ["zz", "yy"]
    assert (response.text, response.finish_reason) == ("one two three", "stop_string")


async def test_an_empty_stop_string_is_not_sent_for_it_would_stop_everything(serve: Any, open_model: Any) -> None:
    server = await serve()
    server.answer = lambda _: "one two three"
    response = await ask(await open_model(server), "x", 16, "", " three")
    assert bodies(server)[0]["parameters"]["stop"] == [" three"]
    assert response.text == "one two"


async def test_a_grammar_has_the_shape_that_the_server_reads(serve: Any, open_model: Any) -> None:
    server = await serve()
    endpoint = await open_model(server)
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    assert (await ask(endpoint, grammar=Grammar(type="json", value=schema))).text == '{"n": 0}'
    assert (await ask(endpoint, grammar=Grammar(type="regex", value="[ab]/[0-9]{2}"))).text == "a/00"
    sent = [body["parameters"]["grammar"] for body in bodies(server)]
    assert sent == [{"type": "json", "value": schema}, {"type": "regex", "value": "[ab]/[0-9]{2}"}]


# --- what is made of the answer ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "stops", "size", "text", "finish"),
    [
        ("one two three", (), 16, "one two three", "stop"),
        ("one two three", (), 2, "one two", "length"),
        ("one two three", (), 3, "one two three", "length"),  # the end on the last allowed token
        ("one. two", (".",), 16, "one", "stop_string"),
        ("one two three", (" two",), 16, "one", "stop_string"),
        ("one Paris three", ("Pari",), 16, "one ", "stop_string"),  # inside a token: the server misses it
        ("a\nb\n\nc", ("\n\n",), 16, "a\nb", "stop_string"),
        ("答案是厦门。还有", ("。",), 16, "答案是厦门", "stop_string"),
        ("stop at once", ("stop",), 16, "", "stop_string"),
        ("b then a", ("a", "b"), 16, "", "stop_string"),
        ("", (), 16, "", "stop"),
        ("a 😀 b", (), 16, "a 😀 b", "stop"),
    ],
)
async def test_an_answer_ends_before_its_first_stop_string_and_says_why(
    serve: Any, open_model: Any, answer: str, stops: tuple[str, ...], size: int, text: str, finish: str
) -> None:
    server = await serve()
    server.answer = lambda _: answer
    response = await ask(await open_model(server), "x", size, *stops)
    assert (response.text, response.finish_reason) == (text, finish)


async def test_the_servers_count_of_the_prompt_and_of_the_answer_is_reported(
    serve: Any, open_model: Any, fake: Any
) -> None:
    server = await serve()
    server.answer = lambda _: "one two"
    prompt = "厦门在哪里？ Where 😀"
    response = await ask(await open_model(server), prompt)
    assert response.prompt_tokens == len(fake.tokenize(prompt))
    assert response.completion_tokens == 3  # with the end of the turn


async def test_an_answer_without_counts_is_an_answer(serve: Any, open_model: Any) -> None:
    server = await serve()
    endpoint = await open_model(server)
    server.faults["/generate"].append(b'{"generated_text": "bare"}')
    response = await ask(endpoint)
    assert (response.text, response.prompt_tokens, response.completion_tokens) == ("bare", None, None)


# --- legs of 1,024 tokens ------------------------------------------------------------------------------------


async def test_what_the_server_generates_beyond_the_size_is_trimmed(serve: Any, open_model: Any, fake: Any) -> None:
    server = await serve()
    server.answer = lambda _: words(3000)
    response = await ask(await open_model(server), "x", 1500)
    assert bodies(server)[0]["parameters"]["max_new_tokens"] == 1500
    assert response.text == words(1500)
    assert (response.completion_tokens, response.finish_reason) == (1500, "length")


async def test_a_long_answer_that_ends_by_itself_is_whole(serve: Any, open_model: Any) -> None:
    server = await serve()
    server.answer = lambda _: words(1200)
    response = await ask(await open_model(server), "x", 1500)
    assert (response.text, response.finish_reason) == (words(1200), "stop")


async def test_a_stop_string_beyond_the_size_is_not_why_the_answer_ends(serve: Any, open_model: Any) -> None:
    server = await serve()
    server.answer = lambda _: words(3000)
    response = await ask(await open_model(server), "x", 1500, " w1700")
    assert (response.text, response.finish_reason) == (words(1500), "length")


async def test_a_long_answer_near_the_end_of_the_context_gets_all_its_tokens(serve: Any, open_model: Any) -> None:
    # The server would plan a whole second leg, find no room for it and end after the first.
    server = await serve(max_total_tokens=4096)
    server.answer = lambda _: words(3000)
    context = words(2500)
    response = await ask(await open_model(server), context, 1500)
    assert (response.text, response.completion_tokens) == (words(1500), 1500)
    assert bodies(server)[0]["parameters"]["max_new_tokens"] is None


async def test_no_size_is_left_to_the_server_which_fills_the_context(serve: Any, open_model: Any) -> None:
    server = await serve(max_total_tokens=3000)
    server.answer = lambda _: words(5000)
    response = await ask(await open_model(server), "x", None)
    assert bodies(server)[0]["parameters"]["max_new_tokens"] is None
    assert (response.completion_tokens, response.finish_reason) == (3000 - 2, "length")


async def test_a_grammar_is_refused_where_the_server_would_start_it_again(serve: Any, open_model: Any) -> None:
    server = await serve()
    endpoint = await open_model(server)
    grammar = Grammar(type="regex", value="a+")
    with pytest.raises(SampleError, match="generation_size of at most"):
        await ask(endpoint, "x", 1025, grammar=grammar)
    assert bodies(server) == []
    await ask(endpoint, "x", 1024, grammar=grammar)


async def test_a_grammar_without_a_size_gets_one_leg_or_what_the_context_has_room_for(
    serve: Any, open_model: Any
) -> None:
    for total, expected in ((4096, 1024), (300, 298)):
        server = await serve(max_total_tokens=total)
        await ask(await open_model(server), "x", None, grammar=Grammar(type="regex", value="a+"))
        assert bodies(server)[0]["parameters"]["max_new_tokens"] == expected
