"""Endpoint: what every dialect offers, and the records it speaks in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

import msgspec

from tinyeval.errors import SampleError
from tinyeval.records import GreedyUntil, Loglikelihood, Response

Api = Literal["tgi", "llamacpp"]


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Which model is served by what, within which limits.

    Attributes:
        api: the server's dialect.
        model_id: as the server names it.
        model_sha: the model's revision, where told.
        version: the server's, where told.
        template_and_tokenizer: fingerprint of how prompts are rendered and tokenized.
        max_total_tokens: tokens of prompt and answer together: the server's limit, or the settings' if lower.
        max_input_tokens: tokens of the prompt, where limited by itself.
        max_concurrent_requests: requests it works on at once.
        max_stop_sequences: stop strings a request; None is unlimited.
    """

    api: Api
    model_id: str
    model_sha: str | None = None
    version: str | None = None
    template_and_tokenizer: str = ""
    max_total_tokens: int
    max_input_tokens: int | None = None
    max_concurrent_requests: int
    max_stop_sequences: int | None = None


class Encoding(NamedTuple):
    """A text in tokens.

    Attributes:
        ids: the token ids.
        spans: for each token the characters of the text that it covers, (start, end); (0, 0) for a token that
            stands for none. A character split over several tokens is in the span of each.
        pieces: the bytes of each token, where the tokenizer tells; else empty.
    """

    ids: list[int]
    spans: list[tuple[int, int]]
    pieces: Sequence[bytes] = ()


class Tokenizer(Protocol):
    """The served model's tokenizer: local, or the server itself."""

    async def encode(self, text: str, *, special: bool = False) -> Encoding:
        """Tokens of a text; `special` adds what the server adds to a prompt by itself (BOS)."""
        ...


class Endpoint(Protocol):
    """One served model.

    Every method that asks the server may raise Retry (may pass), SampleError (this request only) or
    EndpointError (nothing more can be asked).
    """

    @property
    def identity(self) -> Identity:
        """What is served."""
        ...

    @property
    def tokenizer(self) -> Tokenizer:
        """Its tokenizer."""
        ...

    @property
    def has_chat_template(self) -> bool:
        """Whether `render_chat` works."""
        ...

    async def generate(self, request: GreedyUntil) -> Response:
        """The answer, cut at the first stop string."""
        ...

    async def loglikelihood(self, request: Loglikelihood) -> Response:
        """The summed log-probability of the continuation."""
        ...

    async def render_chat(self, messages: list[dict[str, str]]) -> str:
        """Messages as the prompt that the chat template makes of them, without a BOS that the server adds."""
        ...

    async def encode_prompt(self, prompt: str) -> Encoding:
        """A whole prompt in the tokens the model will see."""
        ...

    def check_alive(self) -> None:
        """Raises EndpointError with the reason if the server is known to have died."""
        ...

    async def close(self) -> None:
        """Closes connections and stops what was started."""
        ...


def continuation_start(context: Sequence[int], whole: Sequence[int]) -> int:
    """Where a continuation begins among the tokens of context and continuation together.

    A token that merges the end of the context with the beginning of the continuation belongs to the latter.

    Raises:
        SampleError: the context, or the continuation, has no token of its own.
    """
    common = min(len(context), len(whole))
    start = next((i for i, (a, b) in enumerate(zip(context, whole, strict=False)) if a != b), common)
    if start == 0:
        raise SampleError("the log-likelihood of a continuation needs a context of at least one token before it")
    if start == len(whole):
        raise SampleError("the continuation has no token of its own")
    return start


def cut_at_stop(text: str, stops: tuple[str, ...]) -> str | None:
    """The text before the first occurrence of any stop string; None if there is none."""
    places = [at for stop in stops if stop and (at := text.find(stop)) >= 0]
    return text[: min(places)] if places else None
