"""TGI's log-likelihood: the sum over the prompt's tokens that a continuation owns, or why there is none."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tinyeval.endpoints.protocol import Encoding
from tinyeval.errors import EndpointError, Retry, SampleError, Unsupported
from tinyeval.records import Loglikelihood

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
    sent = server.bodies["/generate"][0]
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
    assert server.bodies["/generate"][0] == server.bodies["/generate"][1]


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
        ids = {"a#": [1, 2, 3], "a#b": [1, 2]}[text]
        return Encoding(ids, [(0, 1)] * len(ids))


async def test_a_continuation_whose_tokens_vanish_is_not_worth_nothing(serve: Any, open_model: Any) -> None:
    endpoint = await open_model(await serve(enable_prefill_logprobs=True))
    endpoint.tokenizer = Odd()
    with pytest.raises(SampleError, match="no token of its own"):
        await endpoint.loglikelihood(Loglikelihood(context="a#", continuation="b"))
