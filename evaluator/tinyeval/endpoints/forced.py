"""Reading forced decoding: which tokens a llama.cpp reply tells the probability of, and which it leaves out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tinyeval.errors import EndpointError


class Forced(NamedTuple):
    """A forced token: the model's log-probability of it in nats, and whether it was the most probable."""

    logprob: float
    greedy: bool


def read_forced(reply: dict[str, Any], wanted: Sequence[int], pieces: Sequence[bytes]) -> list[Forced | None]:
    """The tokens of a reply, as far as it went; None for one whose probability the reply leaves out.

    The server leaves out a token when the text generated so far ends inside a UTF-8 character. Which ones those
    are follows from the tokens' bytes, so a token id that occurs twice is never mistaken.

    Args:
        reply: of `/completion` with `n_probs` and `return_tokens`.
        wanted: the ids that the grammar admitted.
        pieces: their bytes; may be empty when all tokens are whole characters.

    Raises:
        EndpointError: the reply contradicts itself.
    """
    tokens: list[int] = reply.get("tokens") or []
    if tokens != list(wanted[: len(tokens)]):
        return []
    entries: list[dict[str, Any]] = reply.get("completion_probabilities") or []
    told = iter(entries)
    read: list[Forced | None] = []
    text = b""
    for i, token in enumerate(tokens):
        text += pieces[i] if pieces else b""
        if incomplete(text):
            read.append(None)
            continue
        entry = next(told, None)
        if entry is None or entry["id"] != token:
            raise EndpointError(
                f"forced decoding: the reply tells {len(entries)} probabilities for {len(tokens)} tokens"
            )
        read.append(Forced(entry["logprob"], entry["top_logprobs"][0]["id"] == token))
    return read


def incomplete(text: bytes) -> bool:
    """Whether a text ends inside a UTF-8 character."""
    for back in range(1, min(4, len(text)) + 1):
        byte = text[-back]
        length = 4 if byte >> 3 == 0b11110 else 3 if byte >> 4 == 0b1110 else 2 if byte >> 5 == 0b110 else 0
        if length:
            return back < length
    return False


def combine(tokens: Iterable[Forced]) -> tuple[float, bool]:
    """The log-probability of the whole, and whether every token was the most probable."""
    found = list(tokens)
    return math.fsum(t.logprob for t in found), all(t.greedy for t in found)
