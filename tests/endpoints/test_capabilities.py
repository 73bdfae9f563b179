"""Capabilities by proof: a server that drops a field silently is found out before a task relies on it."""

from __future__ import annotations

from typing import Any

import pytest

from tinyeval.endpoints.capabilities import prove
from tinyeval.errors import EndpointError, SampleError

ALL = {"generate", "loglikelihood", "grammar:json", "grammar:regex"}


async def test_what_works_is_proved_with_one_request_each(serve: Any, open_model: Any) -> None:
    server = await serve(enable_prefill_logprobs=True)
    proved = await prove(await open_model(server), ALL)
    assert set(proved) == ALL
    assert all(c.ok and not c.remedy for c in proved.values())
    assert proved["loglikelihood"].how == "prefill log-probabilities"
    assert server.requests["/generate"] == 3


async def test_only_what_is_needed_is_asked_for(serve: Any, open_model: Any) -> None:
    server = await serve()
    endpoint = await open_model(server)
    assert await prove(endpoint, set()) == {}
    assert (await prove(endpoint, {"generate"}))["generate"].ok
    assert server.requests["/generate"] == 0
    assert set(await prove(endpoint, {"grammar:regex"})) == {"grammar:regex"}
    assert server.requests["/generate"] == 1


async def test_a_grammar_that_is_silently_ignored_is_found_out(serve: Any, open_model: Any) -> None:
    server = await serve(grammar="ignored")
    endpoint = await open_model(server)
    for answer in ("Paris, of course", '{"zq": "other"}', "zq12", "[]", ""):
        server.answer = lambda _, answer=answer: answer
        proved = await prove(endpoint, {"grammar:json", "grammar:regex"})
        for capability in proved.values():
            assert not capability.ok
            assert "asked for a pattern, the server answered" in capability.remedy
            assert "--disable-grammar-support" in capability.remedy


async def test_a_grammar_that_is_refused_names_the_flag_that_refuses_it(serve: Any, open_model: Any) -> None:
    proved = await prove(await open_model(await serve(grammar="off")), {"grammar:json", "grammar:regex"})
    for capability in proved.values():
        assert not capability.ok
        assert "grammar is not supported" in capability.remedy
        assert "--disable-grammar-support" in capability.remedy


async def test_log_likelihoods_that_are_not_returned_name_the_flag_that_returns_them(
    serve: Any, open_model: Any
) -> None:
    proved = await prove(await open_model(await serve(enable_prefill_logprobs=False)), {"loglikelihood", "generate"})
    assert not proved["loglikelihood"].ok
    assert "--enable-prefill-logprobs" in proved["loglikelihood"].remedy
    assert proved["generate"].ok


async def test_a_log_likelihood_that_can_be_none_is_no_proof(serve: Any, open_model: Any, fake: Any) -> None:
    server = await serve()
    endpoint = await open_model(server)
    ids = [t.id for t in fake.tokenize("The capital of France is Paris")]
    prefill = ", ".join(f'{{"id": {i}, "text": "", "logprob": 0.5}}' for i in ids)
    server.faults["/generate"].append(f'{{"generated_text": "", "details": {{"prefill": [{prefill}]}}}}'.encode())
    proved = await prove(endpoint, {"loglikelihood"})
    assert not proved["loglikelihood"].ok
    assert "0.5" in proved["loglikelihood"].remedy


async def test_a_busy_server_is_asked_again_and_not_taken_for_incapable(serve: Any, open_model: Any) -> None:
    server = await serve(enable_prefill_logprobs=True)
    endpoint = await open_model(server)
    server.faults["/generate"].extend([429, 503, 429])
    assert all(c.ok for c in (await prove(endpoint, ALL)).values())


async def test_a_key_that_is_refused_ends_the_run_instead_of_a_capability(serve: Any, open_model: Any) -> None:
    server = await serve()
    endpoint = await open_model(server)
    server.faults["/generate"].append(401)
    with pytest.raises(EndpointError, match="api_key") as caught:
        await prove(endpoint, ALL)
    assert not isinstance(caught.value, SampleError)
