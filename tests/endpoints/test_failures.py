"""The table of error statuses, row by row: first the classification, then what it leads to."""

from __future__ import annotations

import json
from typing import Any

import pytest
from multidict import CIMultiDict

from tinyeval.endpoints.failures import failure, object_of, objects_of
from tinyeval.endpoints.retry import Limiter, Patience, persist
from tinyeval.endpoints.transport import Reply
from tinyeval.errors import EndpointError, Retry, SampleError, TooLong
from tinyeval.records import GreedyUntil

URL = "http://server/generate"
QUICK = Patience(pause=0.001)
HTML = "<!DOCTYPE html><html><head><title>Sign in</title></head></html>"


def reply(status: int, body: str = "", **headers: str) -> Reply:
    return Reply(status, CIMultiDict({k.replace("_", "-"): v for k, v in headers.items()}), body.encode())


def tgi(kind: str, message: str = "some reason") -> str:
    return json.dumps({"error": message, "error_type": kind})


def test_every_status_that_no_repetition_mends_aborts_the_run() -> None:
    for status, body in (
        (400, "Failed to parse the request body as JSON"),
        (401, ""),
        (403, ""),
        (404, ""),
        (405, ""),
        (415, "Expected request with `Content-Type: application/json`"),
        (422, "Failed to deserialize the JSON body into the target type: missing field `inputs`"),
        (422, tgi("template_error")),
        (422, tgi("tool_error")),
        (422, tgi("missing_template_variable")),
        (418, "teapot"),
        (501, "not implemented"),
    ):
        found = failure(reply(status, body), URL)
        assert type(found) is EndpointError, (status, found)
        assert f"{URL} answered {status}" in str(found)


def test_a_payload_over_the_limit_fails_the_sample_and_names_the_flag() -> None:
    found = failure(reply(413, "Failed to buffer the request body: length limit exceeded"), URL)
    assert type(found) is SampleError
    assert "--payload-limit" in str(found)


def test_a_validation_error_fails_the_sample_alone() -> None:
    for message in (
        "Input validation error: `temperature` must be strictly positive",
        "Input validation error: `stop` supports up to 4 stop sequences. Given: 6",
        "Input validation error: `truncate` must be strictly positive and less than 100. Given: 200",
        "Input validation error: `best_of` must be > 0 and <= 2. Given: 3",
        "Input validation error: cannot compile regex from schema: 'not' is not supported",
    ):
        assert type(failure(reply(422, tgi("validation", message)), URL)) is SampleError, message


@pytest.mark.parametrize(
    ("message", "excess"),
    [
        ("`inputs` tokens + `max_new_tokens` must be <= 2048. Given: 2030 `inputs` tokens and 64 `max_new_tokens`", 46),
        ("`inputs` must have less than 1000 tokens. Given: 1234", 234),
        ("`inputs` tokens + `max_new_tokens` must be <= 9. Given: 1 `inputs` tokens and 9 `max_new_tokens`", 1),
    ],
)
def test_a_prompt_over_the_limit_tells_by_how_many_tokens(message: str, excess: int) -> None:
    found = failure(reply(422, tgi("validation", f"Input validation error: {message}")), URL)
    assert isinstance(found, TooLong)
    assert found.excess == excess


def test_llamacpp_tells_the_excess_in_numbers() -> None:
    body = {"error": {"code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": 2100, "n_ctx": 2048}}
    found = failure(reply(400, json.dumps(body)), URL)
    assert isinstance(found, TooLong)
    assert found.excess == 52


def test_a_broken_batch_is_asked_again_three_times_at_most_under_less_load() -> None:
    found = failure(reply(424, tgi("generation", "Request failed during generation: CANCELLED")), URL)
    assert isinstance(found, Retry)
    assert (found.tries, found.shrink, found.overloaded, found.unreachable) == (3, True, False, False)


def test_overload_is_asked_again_under_less_load_and_is_not_counted() -> None:
    for status, body in ((429, tgi("overloaded", "Model is overloaded")), (503, tgi("healthcheck", "unhealthy"))):
        found = failure(reply(status, body), URL)
        assert isinstance(found, Retry)
        assert (found.overloaded, found.shrink, found.after, found.tries) == (True, True, None, None)


@pytest.mark.parametrize(
    ("header", "after"),
    [("7", 7.0), ("0.5", 0.5), ("-3", 0.0), ("", None), ("Wed, 21 Oct 2026 07:28:00 GMT", None), ("soon", None)],
)
def test_the_pause_that_a_server_asks_for_is_read(header: str, after: float | None) -> None:
    found = failure(reply(429, "", Retry_After=header), URL)
    assert isinstance(found, Retry)
    assert found.after == after


def test_a_server_error_is_asked_again_under_the_same_load() -> None:
    for status in (500, 502, 504):
        found = failure(reply(status, tgi("incomplete_generation")), URL)
        assert isinstance(found, Retry)
        assert (found.overloaded, found.shrink, found.unreachable, found.tries) == (False, False, False, None)


def test_a_refused_key_names_the_setting_that_sends_one() -> None:
    for status in (401, 403):
        assert 'set api_key = "${NAME}"' in str(failure(reply(status), URL))


def test_a_redirection_aborts_and_tells_where_it_leads() -> None:
    for status in (301, 302, 303, 307, 308):
        found = failure(reply(status, Location="https://elsewhere.example/generate"), URL)
        assert type(found) is EndpointError
        assert "'https://elsewhere.example/generate'" in str(found)


def test_a_web_page_is_named_instead_of_quoted() -> None:
    for status in (404, 500, 502):
        said = str(failure(reply(status, HTML), URL))
        assert "a web page (HTML)" in said
        assert "Sign in" not in said


def test_a_message_is_one_line_of_bounded_length() -> None:
    said = str(failure(reply(400, "line\n\n  and line\t" + "x" * 9000), URL))
    assert "line and line x" in said
    assert "\n" not in said
    assert len(said) < 400


def test_a_failure_body_of_any_shape_is_read_without_trouble() -> None:
    for body in (
        "[]",
        "null",
        '"text"',
        "7",
        '{"error": null}',
        '{"error": {"message": 7}}',
        '{"error": []}',
        "{",
        "\xff",
    ):
        for status in (400, 413, 422, 424, 429, 500):
            assert isinstance(failure(reply(status, body), URL), EndpointError)


@pytest.mark.parametrize(
    "body",
    ["", "{", '{"generated_text": "half', "[]", "null", HTML, tgi("generation"), '{"generated_tex": "a"}'],
)
def test_a_success_whose_body_is_cut_or_not_the_answer_is_asked_again(body: str) -> None:
    with pytest.raises(Retry, match="answered 200 with a body that can't be read") as caught:
        object_of(reply(200, body), URL, "generated_text")
    assert (caught.value.shrink, caught.value.unreachable) == (False, False)


def test_a_success_that_is_no_list_is_asked_again_where_a_list_is_due() -> None:
    assert objects_of(reply(200, '[{"id": 1}]'), URL) == [{"id": 1}]
    with pytest.raises(Retry):
        objects_of(reply(200, '{"id": 1}'), URL)
    with pytest.raises(EndpointError, match="401"):
        objects_of(reply(401), URL)


# --- through a server: what each row leads to ----------------------------------------------------------------


async def ask(endpoint: Any, *, patience: Patience = QUICK, limiter: Limiter | None = None) -> tuple[str, int]:
    request = GreedyUntil(context="Where is Xiamen?", generation_size=8)
    response, attempts = await persist(lambda: endpoint.generate(request), limiter or Limiter(4), patience)
    return response.text, attempts


CUT = b'{"generated_text": "hal'


@pytest.mark.parametrize(
    "faults",
    [
        [424, 424],
        [429] * 9,
        [503] * 9,
        [500, 502, 504],
        ["drop"],
        ["cut", "cut"],
        [CUT, b"", HTML.encode()],
        [424, 429, 500],
    ],
    ids=str,
)
async def test_what_may_pass_is_asked_again_until_the_same_answer_comes(
    serve: Any, open_model: Any, faults: list[Any]
) -> None:
    server = await serve()
    endpoint = await open_model(server)
    expected, _ = await ask(endpoint)
    server.faults["/generate"].extend(faults)
    assert await ask(endpoint) == (expected, len(faults) + 1)


@pytest.mark.parametrize(
    "fault",
    [(400, "bad JSON", {}), 401, 404, 415, (422, "Failed to deserialize", {}), (307, "", {"location": "/x"})],
    ids=str,
)
async def test_what_no_repetition_mends_is_asked_once(serve: Any, open_model: Any, fault: Any) -> None:
    server = await serve()
    endpoint = await open_model(server)
    server.faults["/generate"].append(fault)
    with pytest.raises(EndpointError) as caught:
        await ask(endpoint)
    assert not isinstance(caught.value, SampleError | Retry)
    assert server.requests["/generate"] == 1


async def test_a_sample_that_breaks_its_batch_three_times_fails_and_the_server_remains(
    serve: Any, open_model: Any
) -> None:
    server = await serve()
    endpoint = await open_model(server)
    server.faults["/generate"].extend([424] * 3)
    with pytest.raises(SampleError, match=r"answered 424: Request failed during generation.*\(3 times\)"):
        await ask(endpoint)
    assert (await ask(endpoint))[1] == 1


async def test_a_payload_over_the_limit_fails_once_and_alone(serve: Any, open_model: Any) -> None:
    server = await serve(payload_limit=2000)
    endpoint = await open_model(server)
    with pytest.raises(SampleError, match="--payload-limit"):
        await endpoint.generate(GreedyUntil(context="x" * 3000, generation_size=8))
    assert (await ask(endpoint))[1] == 1


async def test_a_prompt_over_the_servers_limit_tells_the_excess(serve: Any, open_model: Any, fake: Any) -> None:
    endpoint = await open_model(await serve(max_total_tokens=100))
    prompt = "好" * 120
    with pytest.raises(TooLong) as caught:
        await endpoint.generate(GreedyUntil(context=prompt, generation_size=8))
    assert caught.value.excess == len(fake.tokenize(prompt)) + 8 - 100
    endpoint = await open_model(await serve(max_total_tokens=100, max_input_tokens=50))
    with pytest.raises(TooLong) as caught:
        await endpoint.generate(GreedyUntil(context="好" * 70, generation_size=8))
    assert caught.value.excess == 71 - 50
