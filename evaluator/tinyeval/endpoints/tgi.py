"""Text Generation Inference: native `/generate`, log-likelihood by prefill log-probabilities."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from typing import Any, cast

from tinyeval.config import Generation
from tinyeval.endpoints.chat import chat_renderer
from tinyeval.endpoints.failures import object_of, objects_of
from tinyeval.endpoints.protocol import Encoding, Identity, Tokenizer, continuation_start, cut_at_stop
from tinyeval.endpoints.tokenizer import Files
from tinyeval.endpoints.transport import Transport
from tinyeval.errors import EndpointError, SampleError, Unsupported
from tinyeval.records import FinishReason, Grammar, GreedyUntil, Loglikelihood, Response

_FINISH: dict[str, FinishReason] = {"eos_token": "stop", "length": "length", "stop_sequence": "stop_string"}
_LEG = 1024
"""Tokens that TGI schedules at a time; a longer answer is continued as a new request with the same parameters."""


class Tgi:
    """One TGI server; made by `connect`."""

    def __init__(self, transport: Transport, info: dict[str, Any], seed: int) -> None:
        self._transport = transport
        self._seed = seed
        self.generation = Generation()
        total: int = info.get("max_total_tokens") or 0
        self._server_limit = total
        self.identity = Identity(
            api="tgi",
            model_id=info.get("model_id") or "unknown",
            model_sha=info.get("model_sha"),
            version=info.get("docker_label") or info.get("sha") or info.get("version"),
            max_total_tokens=total,
            max_input_tokens=info.get("max_input_tokens") or info.get("max_input_length") or total - 1,
            max_concurrent_requests=info.get("max_concurrent_requests") or 128,
            max_stop_sequences=info.get("max_stop_sequences") or 4,
        )
        self.server_tokenizer = ServerTokenizer(transport)
        self.tokenizer: Tokenizer = self.server_tokenizer
        self._render: Callable[[list[dict[str, str]]], str] | None = None
        self._server_renders = False
        self._bos = ""

    @classmethod
    async def connect(
        cls,
        transport: Transport,
        info: dict[str, Any],
        seed: int,
        files: Files | None,
        date: datetime.date | None = None,
    ) -> Tgi:
        """Completes what `/info` tells.

        Args:
            transport: to the server.
            info: its `/info`.
            seed: of sampled answers.
            files: the model's tokenizer, if named.
            date: for templates that print it; today when None.

        Raises:
            EndpointError: the server tells no limit.
        """
        self = cls(transport, info, seed)
        if not self.identity.max_total_tokens:
            raise EndpointError(f"{transport.url}/info tells no max_total_tokens; is it TGI 1.0 or newer?")
        if files and files.chat_template:
            self._render = chat_renderer(
                files.chat_template, bos_token=files.bos_token, eos_token=files.eos_token, date=date
            )
        else:
            reply = await transport.post("/chat_tokenize", {"messages": [{"role": "user", "content": "1"}]})
            if reply.status not in (404, 405, 422):  # no template, or no such route
                object_of(reply, f"{transport.url}/chat_tokenize", "templated_text")
                self._server_renders = True
        if self.has_chat_template:
            await self._find_bos()
        return self

    @property
    def has_chat_template(self) -> bool:
        """See Endpoint."""
        return self._render is not None or self._server_renders

    async def encode_prompt(self, prompt: str) -> Encoding:
        """See Endpoint; `/generate` always adds special tokens."""
        return await self.tokenizer.encode(prompt, special=True)

    async def render_chat(self, messages: list[dict[str, str]]) -> str:
        """See Endpoint; a BOS that the template writes is cut off, since `/generate` adds one itself."""
        return (await self._rendered(messages)).removeprefix(self._bos)

    async def generate(self, request: GreedyUntil) -> Response:
        """See Endpoint."""
        asked = await self._new_tokens(request)
        size = request.generation_size or asked
        parameters = self._sampling(self.generation) | {
            "max_new_tokens": asked,
            "stop": self._stops(request),
            "details": True,
        }
        if request.grammar:
            parameters["grammar"] = _grammar(request.grammar)
        reply, prompt_tokens = await self._post(request.context, parameters)
        details: dict[str, Any] = reply.get("details") or {}
        text, finish = str(reply["generated_text"]), _FINISH.get(details.get("finish_reason", ""), "stop")
        generated: int | None = details.get("generated_tokens")
        if size and generated and generated > size:  # legs of 1,024 tokens overshoot
            kept = cast("list[dict[str, Any]]", details.get("tokens") or [])[:size]
            text, finish, generated = "".join(t["text"] for t in kept if not t.get("special")), "length", size
        cut = cut_at_stop(text, request.stop_sequence)
        return Response(
            text=text if cut is None else cut,
            finish_reason=finish if cut is None else "stop_string",
            prompt_tokens=prompt_tokens,
            completion_tokens=generated,
        )

    async def loglikelihood(self, request: Loglikelihood) -> Response:
        """See Endpoint: the prefill log-probabilities of the continuation's tokens are summed.

        TGI does not tell the most probable token of a prompt position, so `greedy` is unknown.
        """
        text = request.context + request.continuation
        whole, context = (await self.encode_prompt(text)).ids, (await self.encode_prompt(request.context)).ids
        start = continuation_start(context, whole)
        parameters = self._sampling(Generation()) | {
            "max_new_tokens": 1,
            "decoder_input_details": True,
            "details": True,
        }
        reply, _ = await self._post(text, parameters)
        details: dict[str, Any] = reply.get("details") or {}
        prefill: list[dict[str, Any]] = details.get("prefill") or []
        if not prefill:
            raise Unsupported(
                "the server returns no prompt log-probabilities: start TGI with --enable-prefill-logprobs"
            )
        if [t["id"] for t in prefill] != whole:
            raise EndpointError(
                f"{self._transport.url}: the prompt's {len(prefill)} tokens are not the {len(whole)} of the tokenizer; "
                "name the served model's own tokenizer, or none."
            )
        logprobs: list[float] = [t["logprob"] for t in prefill[start:] if t["logprob"] is not None]
        if len(logprobs) < len(whole) - start:
            raise Unsupported("the server leaves out prompt log-probabilities after the first token")
        return Response(logprob=math.fsum(logprobs), prompt_tokens=start, completion_tokens=len(whole) - start)

    def check_alive(self) -> None:
        """See Endpoint; only its silence tells."""

    async def close(self) -> None:
        """See Endpoint."""
        await self._transport.close()

    async def _new_tokens(self, request: GreedyUntil) -> int | None:
        """What to ask for; None fills the context.

        Of a stated number TGI plans whole legs and ends early when the last has no room; of None it shortens it.
        """
        size = request.generation_size
        if request.grammar and size and size > _LEG:
            raise SampleError(f"TGI restarts a grammar after {_LEG} tokens: ask for a generation_size of at most that")
        limited = self.identity.max_total_tokens < self._server_limit
        if (size and size <= _LEG) or (size is None and not request.grammar and not limited):
            return size
        room = self.identity.max_total_tokens - len((await self.encode_prompt(request.context)).ids)
        if size is None:
            return max(1, min(_LEG, room) if request.grammar else room)
        return size if math.ceil(size / _LEG) * _LEG <= room else None

    def _sampling(self, g: Generation) -> dict[str, Any]:
        """Greedy is `do_sample` false without temperature, top_k and top_p: any of those turns sampling on."""
        common = {"repetition_penalty": g.repetition_penalty, "frequency_penalty": 0.0, "return_full_text": False}
        if g.temperature == 0:
            return {**common, "do_sample": False}
        optional = {"top_p": g.top_p if g.top_p < 1 else None, "top_k": g.top_k or None}
        drawn = {k: v for k, v in optional.items() if v is not None}
        return {**common, "do_sample": True, "temperature": g.temperature, "seed": self._seed, **drawn}

    def _stops(self, request: GreedyUntil) -> list[str]:
        """As many as the server takes; the rest are cut locally. An empty one would match everywhere."""
        return [stop for stop in request.stop_sequence if stop][: self.identity.max_stop_sequences]

    async def _rendered(self, messages: list[dict[str, str]]) -> str:
        if self._render:
            return self._render(messages)
        reply = await self._transport.post("/chat_tokenize", {"messages": messages})
        return str(object_of(reply, f"{self._transport.url}/chat_tokenize", "templated_text")["templated_text"])

    async def _find_bos(self) -> None:
        """The BOS text of the template, if tokenizing the rendered text would give two of them."""
        text = await self._rendered([{"role": "user", "content": "1"}])
        ids, spans, _ = await self.encode_prompt(text)
        if len(ids) > 1 and ids[0] == ids[1] and spans[0][0] == spans[0][1]:
            self._bos = text[: spans[1][1]]

    async def _post(self, inputs: str, parameters: dict[str, Any]) -> tuple[dict[str, Any], int | None]:
        reply = await self._transport.post("/generate", {"inputs": inputs, "parameters": parameters})
        body = object_of(reply, f"{self._transport.url}/generate", "generated_text")
        counted = reply.headers.get("x-prompt-tokens", "")
        return body, int(counted) if counted.isdigit() else None


class ServerTokenizer:
    """The server's `/tokenize`, which always adds special tokens.

    Args:
        transport: to the server.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def encode(self, text: str, *, special: bool = False) -> Encoding:
        """See Tokenizer. Offsets count UTF-8 bytes, or characters before 3.3.0: what covers the text decides."""
        reply = await self._transport.post("/tokenize", {"inputs": text, "parameters": {}})
        tokens = objects_of(reply, f"{self._transport.url}/tokenize")
        spans = [(int(t["start"]), int(t["stop"])) for t in tokens]
        if max((stop for _, stop in spans), default=0) > len(text):
            places = [i for i, c in enumerate(text) for _ in c.encode()] + [len(text)]
            spans = [(places[a], places[b - 1] + 1 if b > a else places[a]) for a, b in spans]
        pairs = [(t["id"], span) for t, span in zip(tokens, spans, strict=True)]
        if not special:
            pairs = [(i, (a, b)) for i, (a, b) in pairs if a != b]
            if text and not pairs:
                raise SampleError(
                    "the server's tokenizer does not tell where its tokens stand, so no prompt can be truncated by it: "
                    'name the served model\'s tokenizer: tokenizer = "org/repo"'
                )
        return Encoding([i for i, _ in pairs], [span for _, span in pairs])


def _grammar(grammar: Grammar) -> dict[str, Any]:
    return {"type": grammar.type, "value": grammar.value}
