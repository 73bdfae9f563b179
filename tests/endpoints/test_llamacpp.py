"""llama.cpp's dialect on the real embedded server: tokens, greedy answers, forced decoding, grammars."""

from __future__ import annotations

import json
import math
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tinyeval.config import ModelConfig
from tinyeval.endpoints.detect import connect
from tinyeval.endpoints.llamacpp import LlamaCpp
from tinyeval.endpoints.tokenizer import LocalTokenizer
from tinyeval.errors import EndpointError, SampleError, TooLong
from tinyeval.records import Grammar, GreedyUntil, Loglikelihood

pytestmark = pytest.mark.slow

ENGLISH = "Question: What is the capital of France?\nAnswer:"
CHINESE = "问题：中国的首都是哪里？\n答案："


@pytest.fixture
async def endpoint(embedded: Any) -> AsyncIterator[LlamaCpp]:
    found = await connect("small", ModelConfig(url=embedded.url, api_key=embedded.key), seed=0)
    assert isinstance(found, LlamaCpp)
    yield found
    await found.close()


async def free(endpoint: LlamaCpp, prompt: str, tokens: int) -> list[dict[str, Any]]:
    """Greedy free generation with the log-probability of each token, straight from the server."""
    ids = (await endpoint.encode_prompt(prompt)).ids
    body = {"prompt": ids, "n_predict": tokens, "temperature": 0, "n_probs": 1, "return_tokens": True}
    reply = await endpoint._post("/completion", body)
    return reply["completion_probabilities"]


async def test_the_dialect_and_the_limits_are_found_out(endpoint: LlamaCpp) -> None:
    assert endpoint.identity.api == "llamacpp"
    assert endpoint.identity.model_id == "SmolLM2-135M-Instruct.Q4_1.gguf"
    assert endpoint.identity.max_total_tokens == 2048
    assert endpoint.identity.max_concurrent_requests == 4
    assert endpoint.has_chat_template


async def test_forced_decoding_of_the_greedy_continuation_has_the_log_probs_of_free_generation(
    endpoint: LlamaCpp,
) -> None:
    for prompt in ("The capital of France is", "The three primary colors are", "def add(a, b):\n    return"):
        tokens = await free(endpoint, prompt, 8)
        continuation = "".join(t["token"] for t in tokens)
        response = await endpoint.loglikelihood(Loglikelihood(context=prompt, continuation=continuation))
        assert response.completion_tokens == len(tokens)
        assert response.logprob == pytest.approx(sum(t["logprob"] for t in tokens), abs=1e-4 * len(tokens))
        assert response.greedy is True


async def score_token_by_token(endpoint: LlamaCpp, context: list[int], continuation: list[int]) -> tuple[float, bool]:
    """Each token's probability read from a full list at its own position, without a grammar on it."""
    total, greedy = 0.0, True
    for i, token in enumerate(continuation):
        found = await endpoint._look_up([*context, *continuation[:i]], token)
        total, greedy = total + found.logprob, greedy and found.greedy
    return total, greedy


@pytest.mark.parametrize(
    ("context", "continuation"),
    [
        (ENGLISH, " Paris, the city of light."),
        (ENGLISH, " Berlin"),
        (CHINESE, "北京"),
        (CHINESE, "上海是中国最大的城市。"),
        ("Emoji:", " 👍🏽 and 👩‍👩‍👧"),
        ("价格：", "57081.86元"),
        ("A line", "\n\n  and another"),
    ],
)
async def test_the_sum_over_a_path_agrees_with_scoring_token_by_token(
    endpoint: LlamaCpp, context: str, continuation: str
) -> None:
    response = await endpoint.loglikelihood(Loglikelihood(context=context, continuation=continuation))
    ids = (await endpoint.encode_prompt(context + continuation)).ids
    start = response.prompt_tokens
    assert start is not None
    logprob, greedy = await score_token_by_token(endpoint, ids[:start], ids[start:])
    assert response.logprob == pytest.approx(logprob, abs=1e-3)
    assert response.greedy is greedy


async def test_an_end_of_turn_inside_a_continuation_does_not_end_its_scoring(endpoint: LlamaCpp) -> None:
    continuation = " Paris.<|im_end|>\n<|im_start|>user\nThanks"
    response = await endpoint.loglikelihood(Loglikelihood(context=ENGLISH, continuation=continuation))
    ids = (await endpoint.encode_prompt(ENGLISH + continuation)).ids
    assert response.prompt_tokens is not None
    logprob, _ = await score_token_by_token(endpoint, ids[: response.prompt_tokens], ids[response.prompt_tokens :])
    assert response.logprob == pytest.approx(logprob, abs=1e-3)


async def test_choices_of_one_context_are_ordered_as_by_the_model(endpoint: LlamaCpp) -> None:
    values = [
        (await endpoint.loglikelihood(Loglikelihood(context=ENGLISH, continuation=c))).logprob
        for c in (" Paris", " Banana", " zqzqzq")
    ]
    assert all(v is not None and math.isfinite(v) and v < 0 for v in values)
    assert values == sorted(values, key=lambda v: v or 0.0, reverse=True)


async def test_a_continuation_needs_a_context_and_a_token_of_its_own(endpoint: LlamaCpp) -> None:
    for context, continuation in (("", "Paris"), (ENGLISH, "")):
        with pytest.raises(SampleError):
            await endpoint.loglikelihood(Loglikelihood(context=context, continuation=continuation))


async def test_a_greedy_answer_is_the_same_every_time(endpoint: LlamaCpp) -> None:
    prompt = await endpoint.render_chat([{"role": "user", "content": "Name three colors."}])
    answers = {(await endpoint.generate(GreedyUntil(context=prompt, generation_size=24))).text for _ in range(3)}
    assert len(answers) == 1


async def test_an_answer_is_cut_at_its_stop_string_and_says_why_it_ended(endpoint: LlamaCpp) -> None:
    whole = await endpoint.generate(GreedyUntil(context="1, 2, 3, 4,", generation_size=12))
    assert (whole.finish_reason, whole.completion_tokens) == ("length", 12)
    cut = await endpoint.generate(GreedyUntil(context="1, 2, 3, 4,", generation_size=12, stop_sequence=(" 7",)))
    assert cut.finish_reason == "stop_string"
    assert whole.text.startswith(cut.text) and " 7" not in cut.text


async def test_a_json_schema_and_a_regex_are_obeyed(endpoint: LlamaCpp) -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    grammar = Grammar(type="json", value=schema)
    answer = await endpoint.generate(GreedyUntil(context="A number:", generation_size=40, grammar=grammar))
    assert isinstance(json.loads(answer.text)["n"], int)
    grammar = Grammar(type="regex", value="[a-c]{2}/[0-9]{2}")
    answer = await endpoint.generate(GreedyUntil(context="A code:", generation_size=40, grammar=grammar))
    assert re.fullmatch("[a-c]{2}/[0-9]{2}", answer.text)


async def test_a_prompt_over_the_limit_says_by_how_much(endpoint: LlamaCpp) -> None:
    with pytest.raises(TooLong) as caught:
        await endpoint.generate(GreedyUntil(context="word " * 3000, generation_size=4))
    assert caught.value.excess > 900


async def test_the_local_rendering_of_the_chat_template_is_the_servers(endpoint: LlamaCpp) -> None:
    messages = [{"role": "user", "content": "你好 <b>“quotes”</b>\n\n  and spaces "}]
    theirs = (await endpoint._post("/apply-template", {"messages": messages}))["prompt"]
    assert await endpoint.render_chat(messages) == theirs
    assert endpoint._render is not None


async def test_a_wrong_key_is_refused_in_words(embedded: Any) -> None:
    with pytest.raises(EndpointError, match=r"answered 401.*api_key"):
        await connect("small", ModelConfig(url=embedded.url, api_key="wrong"), seed=0)


async def test_the_server_tokenizer_tells_the_characters_of_each_token(endpoint: LlamaCpp) -> None:
    for text in ("The cat sat.", "人民币57081.86元，厦门大学", "👍🏽 mixed 文字\n\ttabs"):
        encoding = await endpoint.server_tokenizer.encode(text)
        assert b"".join(encoding.pieces) == text.encode()
        covered = {i for a, b in encoding.spans for i in range(a, b)}
        assert covered == set(range(len(text)))
        assert encoding.spans == sorted(encoding.spans)


async def test_a_tokenizer_of_another_model_stops_the_run(embedded: Any, tmp_path: Any) -> None:
    import tokenizers

    other = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
    other.save(str(tmp_path / "tokenizer.json"))
    model = ModelConfig(url=embedded.url, api_key=embedded.key, tokenizer=str(tmp_path))
    with pytest.raises(EndpointError, match="not that of the served model"):
        await connect("small", model, seed=0)


async def test_the_tokenizer_inside_the_model_file_has_the_servers_spans_and_pieces(
    endpoint: LlamaCpp, embedded: Any
) -> None:
    from tinyeval.endpoints.detect import _from_gguf

    local = _from_gguf(embedded.model_path)
    assert isinstance(local, LocalTokenizer)
    for text in ("The cat sat.", "人民币57081.86元，厦门大学", "👍🏽 mixed 文字\n\ttabs <|im_end|>"):
        ours, theirs = await local.encode(text), await endpoint.server_tokenizer.encode(text)
        assert (ours.ids, ours.spans, list(ours.pieces)) == (theirs.ids, theirs.spans, list(theirs.pieces))


async def test_a_template_that_only_the_server_can_render_is_rendered_by_the_server(endpoint: LlamaCpp) -> None:
    messages = [{"role": "user", "content": "你好"}]
    props = (await endpoint._transport.get("/props")).json | {"chat_template": "{% of another renderer %}"}
    other = await LlamaCpp.connect(endpoint._transport, props, 0)
    assert other.has_chat_template
    assert await other.render_chat(messages) == await endpoint.render_chat(messages)
