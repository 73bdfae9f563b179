"""Capabilities by proof: servers drop unknown fields silently, so one tiny request each shows what works."""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable

import msgspec

from tinyeval.endpoints.protocol import Endpoint
from tinyeval.endpoints.retry import Limiter, Patience, persist
from tinyeval.errors import EndpointError, Retry, SampleError, Unsupported
from tinyeval.grammars import may_obey, obeys
from tinyeval.records import Grammar, GreedyUntil, Loglikelihood

_UNLIKELY = "zq[0-9]{3}"
_SCHEMA = {
    "type": "object",
    "properties": {"zq": {"type": "string", "enum": ["zq7"]}},
    "required": ["zq"],
    "additionalProperties": False,
}
_PROMPT = "The capital of France is"
_GRAMMAR_HINT = {"tgi": "start TGI without --disable-grammar-support", "llamacpp": "use a build with llguidance"}


class Capability(msgspec.Struct, frozen=True):
    """Whether an endpoint can do something.

    Attributes:
        ok: it was proved.
        how: the method used, where there are several.
        remedy: what would help, when it was not.
    """

    ok: bool
    how: str = ""
    remedy: str = ""


async def prove(endpoint: Endpoint, needs: set[str]) -> dict[str, Capability]:
    """Proves what a task list needs.

    Args:
        endpoint: connected.
        needs: of `generate`, `loglikelihood`, `grammar:json`, `grammar:regex`.

    Returns:
        Each need's Capability.
    """
    proofs: dict[str, Callable[[Endpoint], Awaitable[Capability]]] = {
        "loglikelihood": _loglikelihood,
        "grammar:json": _grammar_json,
        "grammar:regex": _grammar_regex,
    }
    limiter = Limiter(1)
    found: dict[str, Capability] = {"generate": Capability(True)}
    for need in sorted(needs - {"generate"}):
        try:
            found[need], _ = await persist(lambda p=proofs[need]: p(endpoint), limiter, Patience(tries=5, seconds=60))
        except Unsupported as e:
            found[need] = Capability(False, remedy=str(e))
        except SampleError as e:
            hint = f"; {_GRAMMAR_HINT[endpoint.identity.api]}" if need.startswith("grammar:") else ""
            found[need] = Capability(False, remedy=f"{_refusal(e)}{hint}")
    return {need: found[need] for need in sorted(needs)}


async def prove_grammar(endpoint: Endpoint, grammar: Grammar) -> Capability:
    """Proves that a server obeys this very grammar: one that it can't compile is dropped without a word.

    Of an answer that ends at the token limit only the beginning is judged; all answers are checked again when scored.
    """
    request = GreedyUntil(context=_PROMPT, generation_size=64, grammar=grammar)
    try:
        answer, _ = await persist(lambda: endpoint.generate(request), Limiter(1), Patience(tries=5, seconds=60))
    except SampleError as e:
        return Capability(False, remedy=f"the server refuses its grammar: {_refusal(e)}")
    judge = may_obey if answer.finish_reason == "length" else obeys
    if judge(answer.text, grammar):
        return Capability(True)
    return Capability(False, remedy=f"the server does not obey its grammar: it answered {answer.text[:40]!r}")


def _refusal(error: SampleError) -> str:
    """What a server said against a request, without where it is: equal servers must say the same.

    Raises:
        EndpointError: it said nothing against it, it was only in trouble: that proves nothing.
    """
    if isinstance(error.__cause__, Retry):
        raise EndpointError(f"{error}, while its capabilities were proved.") from error
    return re.sub(r"https?://[^/\s]+", "", str(error))


async def _loglikelihood(endpoint: Endpoint) -> Capability:
    response = await endpoint.loglikelihood(Loglikelihood(context=_PROMPT, continuation=" Paris"))
    if response.logprob is None or not math.isfinite(response.logprob) or response.logprob > 0:
        return Capability(False, remedy=f"a log-probability of {response.logprob} came back")
    how = {"llamacpp": "forced decoding", "tgi": "prefill log-probabilities"}
    return Capability(True, how=how[endpoint.identity.api])


async def _grammar_regex(endpoint: Endpoint) -> Capability:
    return await _obeyed(endpoint, Grammar(type="regex", value=_UNLIKELY))


async def _grammar_json(endpoint: Endpoint) -> Capability:
    return await _obeyed(endpoint, Grammar(type="json", value=_SCHEMA))


async def _obeyed(endpoint: Endpoint, grammar: Grammar) -> Capability:
    text = (await endpoint.generate(GreedyUntil(context=_PROMPT, generation_size=48, grammar=grammar))).text
    if obeys(text.strip(), grammar):
        return Capability(True)
    said = f"asked for a pattern, the server answered {text[:40]!r}"
    return Capability(False, remedy=f"{said}; {_GRAMMAR_HINT[endpoint.identity.api]}")
