"""Fitting a prompt into the model's context by tokens, never inside a character, never to nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal, NamedTuple

from tinyeval.endpoints.protocol import Encoding, Endpoint
from tinyeval.errors import SampleError

Wrap = Callable[[str], Awaitable[str]]
"""A text to the whole prompt: the chat template, or nothing."""


class Fitted(NamedTuple):
    """A prompt that fits.

    Attributes:
        prompt: as it is sent.
        tokens: of the prompt; None where its bytes alone show that it fits, so that nothing was counted.
        removed: tokens taken out of the text.
    """

    prompt: str
    tokens: int | None
    removed: int


async def fit(
    text: str,
    wrap: Wrap,
    endpoint: Endpoint,
    budget: int,
    strategy: Literal["middle", "error"],
    *,
    count: bool = False,
) -> Fitted:
    """Wraps a text into a prompt of at most `budget` tokens, counted again after every cut.

    Args:
        text: what may be cut.
        wrap: text to prompt; what it adds is never cut.
        endpoint: whose tokens count.
        budget: tokens at most.
        strategy: `middle` takes tokens out of the middle of the text, `error` refuses.
        count: count even what surely fits.

    Raises:
        SampleError: it does not fit, or nothing of the text would be left.
    """
    prompt = await wrap(text)
    # A token stands for at least one byte; the margin is for what the server adds by itself.
    if not count and len(prompt.encode()) + 8 <= budget:
        return Fitted(prompt, None, 0)
    tokens = len((await endpoint.encode_prompt(prompt)).ids)
    if tokens <= budget:
        return Fitted(prompt, tokens, 0)
    if strategy == "error":
        raise SampleError(f"the prompt has {tokens} tokens, {budget} fit, and the task forbids to truncate it")
    encoding = await endpoint.tokenizer.encode(text)
    whole = keep = len(encoding.ids)
    while tokens > budget:
        keep -= tokens - budget
        kept = cut_middle(text, encoding, keep) if keep >= 2 else ""
        if not kept:
            raise SampleError(f"only {budget} tokens are left for the prompt: nothing of the question would remain")
        prompt = await wrap(kept)
        tokens = len((await endpoint.encode_prompt(prompt)).ids)
    return Fitted(prompt, tokens, whole - keep)


def cut_middle(text: str, encoding: Encoding, keep: int) -> str:
    """The text without the middle of its tokens: the first half of `keep` tokens and the last, whole characters.

    A character that is split between a kept and a dropped token goes: the text never grows by cutting.
    """
    head, tail = keep // 2, keep - keep // 2
    spans = encoding.spans
    end = spans[head - 1][1] if head else 0
    if head < len(spans) and spans[head][0] < end:
        end = spans[head][0]
    start = spans[-tail][0]
    if tail < len(spans) and spans[-tail - 1][1] > start:
        start = spans[-tail - 1][1]
    return text[:end] + text[max(start, end) :]
