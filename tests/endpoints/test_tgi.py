"""TGI's dialect on a fake built from the server contract: what is sent, and what is made of the answer."""

from __future__ import annotations

import asyncio
import math
import sys
from typing import Any

import pytest

from tinyeval.errors import EndpointError, Retry, SampleError, Unsupported
from tinyeval.records import Grammar, GreedyUntil, Loglikelihood

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


# --- the fake keeps to the contract, or the rest shows nothing ------------------------------------------------


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


# --- log-likelihood ------------------------------------------------------------------------------------------

ENGLISH, CHINESE = "Question: What is the capital of France?\nAnswer:", "问题：厦门大学在哪里？\n答案："


@pytest.mark.parametrize(
    ("context", "continuation", "own"),
    [
        (ENGLISH, " Paris", 1),
        (ENGLISH, " Paris, the city of light", 6),
        (CHINESE, "福建省厦门市。", 7),
        (CHINESE, "在 Xiamen 👍🏽", 7),  # each half of an emoji is a token
        ("The answer is yel", "low", 1),  # one word: the token that joins both is the continuation's
        ("", "Paris", 1),  # after the token that begins every prompt
    ],
)
async def test_a_log_likelihood_is_the_sum_over_the_tokens_of_the_continuation(
    serve: Any, open_model: Any, fake: Any, context: str, continuation: str, own: int
) -> None:
    server = await serve(enable_prefill_logprobs=True)
    response = await (await open_model(server)).loglikelihood(Loglikelihood(context=context, continuation=continuation))
    values = fake.logprobs(fake.tokenize(context + continuation))
    assert response.logprob == math.fsum(values[-own:])
    assert (response.completion_tokens, response.prompt_tokens) == (own, len(values) - own)
    assert response.greedy is None
    sent = bodies(server)[0]
    assert sent["inputs"] == context + continuation
    assert sent["parameters"] == {
        "do_sample": False,
        "repetition_penalty": 1.0,
        "frequency_penalty": 0.0,
        "return_full_text": False,
        "max_new_tokens": 1,
        "details": True,
        "decoder_input_details": True,
    }


async def test_a_log_likelihood_does_not_depend_on_how_answers_are_sampled(serve: Any, open_model: Any) -> None:
    server = await serve(enable_prefill_logprobs=True)
    request = Loglikelihood(context=ENGLISH, continuation=" Paris")
    for generation in ({}, {"temperature": 0.7, "top_p": 0.5, "repetition_penalty": 1.3}):
        await (await open_model(server, generation=generation)).loglikelihood(request)
    assert bodies(server)[0] == bodies(server)[1]


async def test_a_server_without_prompt_log_probs_names_the_flag(serve: Any, open_model: Any) -> None:
    endpoint = await open_model(await serve(enable_prefill_logprobs=False))
    with pytest.raises(Unsupported, match="--enable-prefill-logprobs"):
        await endpoint.loglikelihood(Loglikelihood(context=ENGLISH, continuation=" Paris"))


async def test_a_continuation_needs_a_token_of_its_own(serve: Any, open_model: Any) -> None:
    endpoint = await open_model(await serve(enable_prefill_logprobs=True))
    with pytest.raises(SampleError, match="no token of its own"):
        await endpoint.loglikelihood(Loglikelihood(context=ENGLISH, continuation=""))


async def test_prompt_log_probs_of_other_tokens_stop_the_run(serve: Any, open_model: Any) -> None:
    server = await serve()
    endpoint = await open_model(server)
    body = b'{"generated_text": "", "details": {"prefill": [{"id": 1, "text": "", "logprob": null}, %s]}}'
    other = body % b'{"id": 99, "text": "x", "logprob": -1.0}'
    server.faults["/generate"].append(other)
    with pytest.raises(EndpointError, match="not the 3 of the tokenizer; name the served model's own") as caught:
        await endpoint.loglikelihood(Loglikelihood(context="a", continuation=" b"))
    assert not isinstance(caught.value, SampleError | Retry)


async def test_a_missing_value_inside_the_continuation_is_not_a_zero(serve: Any, open_model: Any, fake: Any) -> None:
    server = await serve()
    endpoint = await open_model(server)
    ids = [t.id for t in fake.tokenize("a b")]
    prefill = ", ".join(f'{{"id": {i}, "text": "", "logprob": null}}' for i in ids)
    server.faults["/generate"].append(f'{{"generated_text": "", "details": {{"prefill": [{prefill}]}}}}'.encode())
    with pytest.raises(Unsupported, match="leaves out"):
        await endpoint.loglikelihood(Loglikelihood(context="a", continuation=" b"))


class Odd:
    """A tokenizer that takes the end of the context back: `a#` has a token more than `a#b`."""

    async def encode(self, text: str, *, special: bool = False) -> Any:
        from tinyeval.endpoints.protocol import Encoding

        ids = {"a#": [1, 2, 3], "a#b": [1, 2]}[text]
        return Encoding(ids, [(0, 1)] * len(ids))


async def test_a_continuation_whose_tokens_vanish_is_not_worth_nothing(serve: Any, open_model: Any) -> None:
    endpoint = await open_model(await serve(enable_prefill_logprobs=True))
    endpoint.tokenizer = Odd()
    with pytest.raises(SampleError, match="no token of its own"):
        await endpoint.loglikelihood(Loglikelihood(context="a#", continuation="b"))


# --- chat ----------------------------------------------------------------------------------------------------

MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "厦门在哪里？"}]


async def test_the_servers_template_is_rendered_without_a_second_beginning(
    serve: Any, open_model: Any, fake: Any
) -> None:
    server = await serve()
    endpoint = await open_model(server)
    assert endpoint.has_chat_template
    prompt = await endpoint.render_chat(MESSAGES)
    assert prompt == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n厦门在哪里？<|im_end|>\n<|im_start|>assistant\n"
    )
    ids = (await endpoint.encode_prompt(prompt)).ids
    assert ids.count(fake.BOS.id) == 1
    assert (await ask(endpoint, prompt)).prompt_tokens == len(ids)


async def test_a_beginning_that_the_user_wrote_is_left_alone(serve: Any, open_model: Any) -> None:
    endpoint = await open_model(await serve())
    prompt = await endpoint.render_chat([{"role": "user", "content": "<s> is a tag"}])
    assert prompt.startswith("<|im_start|>user\n<s> is a tag")


async def test_a_server_without_a_template_has_none_and_a_conversation_aborts(serve: Any, open_model: Any) -> None:
    endpoint = await open_model(await serve(template=False))
    assert not endpoint.has_chat_template
    with pytest.raises(EndpointError, match="template not found") as caught:
        await endpoint.render_chat(MESSAGES)
    assert not isinstance(caught.value, SampleError | Retry)


@pytest.mark.parametrize("fault", [429, 500, 503, "cut", b"<html>"], ids=str)
async def test_a_server_that_stumbles_at_the_start_is_not_taken_for_one_without_a_template(
    serve: Any, open_model: Any, fault: Any
) -> None:
    server = await serve()
    server.faults["/chat_tokenize"].append(fault)
    assert (await open_model(server)).has_chat_template
    assert server.requests["/chat_tokenize"] > 2


async def test_a_server_too_old_to_render_has_no_template(serve: Any, open_model: Any) -> None:
    for status in (404, 405):
        server = await serve()
        server.faults["/chat_tokenize"].append(status)
        assert not (await open_model(server)).has_chat_template


# --- the server's tokenizer ----------------------------------------------------------------------------------


@pytest.mark.parametrize("char_offsets", [False, True], ids=["bytes", "characters, before 3.3.0"])
async def test_the_server_tokenizer_tells_the_characters_of_each_token(
    serve: Any, open_model: Any, fake: Any, char_offsets: bool
) -> None:
    endpoint = await open_model(await serve(char_offsets=char_offsets))
    for text in ("The cat sat.", "人民币57081.86元，厦门大学", "👍🏽 mixed 文字\n\ttabs", "é", "😀"):
        found = await endpoint.tokenizer.encode(text)
        assert found.ids == [t.id for t in fake.tokenize(text, special=False)]
        assert {c for a, b in found.spans for c in range(a, b)} == set(range(len(text)))
        assert found.spans == sorted(found.spans)
        whole = await endpoint.tokenizer.encode(text, special=True)
        assert (whole.ids, whole.spans) == ([fake.BOS.id, *found.ids], [(0, 0), *found.spans])
