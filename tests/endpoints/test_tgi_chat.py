"""TGI's chat template and tokenizer, as its routes tell them."""

from __future__ import annotations

from typing import Any

import pytest

from tinyeval.errors import EndpointError, Retry, SampleError
from tinyeval.records import GreedyUntil

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
    response = await endpoint.generate(GreedyUntil(context=prompt, generation_size=16))
    assert response.prompt_tokens == len(ids)


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
