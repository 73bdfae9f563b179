"""llama.cpp's server: native `/completion` with token ids, log-likelihood by forced decoding."""

from __future__ import annotations

import contextlib
import datetime
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from tinyeval.config import Generation
from tinyeval.endpoints.chat import chat_renderer
from tinyeval.endpoints.failures import object_of
from tinyeval.endpoints.forced import Forced, combine, read_forced
from tinyeval.endpoints.local import LocalServer
from tinyeval.endpoints.protocol import Encoding, Identity, Tokenizer, continuation_start, cut_at_stop
from tinyeval.endpoints.transport import Transport
from tinyeval.errors import EndpointError, SampleError
from tinyeval.records import FinishReason, GreedyUntil, Loglikelihood, Response

_FINISH: dict[str, FinishReason] = {"eos": "stop", "limit": "length", "word": "stop_string", "none": "stop"}
_NEUTRAL = {
    "min_p": 0.0,
    "typical_p": 1.0,
    "top_n_sigma": -1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "dynatemp_range": 0.0,
    "xtc_probability": 0.0,
    "dry_multiplier": 0.0,
    "mirostat": 0,
}
"""Every sampler the server would otherwise bring into play by a default of its own."""


class LlamaCpp:
    """One llama.cpp server; made by `connect`."""

    def __init__(
        self, transport: Transport, props: dict[str, Any], model: dict[str, Any], seed: int, date: datetime.date | None
    ) -> None:
        self._transport = transport
        self._seed = seed
        self._embedded: LocalServer | None = None
        meta: dict[str, Any] = model.get("meta") or {}
        self._vocabulary: int = meta.get("n_vocab") or 1 << 18
        self.identity = Identity(
            api="llamacpp",
            model_id=Path(props.get("model_alias") or props.get("model_path") or "unknown").name,
            version=props.get("build_info"),
            max_total_tokens=props["default_generation_settings"]["n_ctx"],
            max_concurrent_requests=props.get("total_slots", 1),
        )
        self.generation = Generation()
        self.server_tokenizer = ServerTokenizer(transport)
        self.tokenizer: Tokenizer = self.server_tokenizer
        self._bos: str = props.get("bos_token") or ""
        self._template: str | None = props.get("chat_template")
        self._eos: str = props.get("eos_token") or ""
        self._date = date
        self._render: Callable[[list[dict[str, str]]], str] | None = None
        self._whole_token = 0

    @classmethod
    async def connect(
        cls, transport: Transport, props: dict[str, Any], seed: int, date: datetime.date | None = None
    ) -> LlamaCpp:
        """Completes what `/props` tells; checks the local rendering of the chat template once.

        Args:
            transport: to the server.
            props: its `/props`.
            seed: of sampled answers.
            date: for templates that print it; today when None.
        """
        models = await transport.get("/v1/models")
        listed: list[dict[str, Any]] = object_of(models, f"{transport.url}/v1/models").get("data") or [{}]
        self = cls(transport, props, listed[0], seed, date)
        self._whole_token = (await self.server_tokenizer.encode("a")).ids[-1]
        if self._template:
            probe = [{"role": "user", "content": "What is 1 + 1? 你好"}]
            theirs = (await self._post("/apply-template", {"messages": probe}, "prompt"))["prompt"]
            with contextlib.suppress(EndpointError):  # a template for the server's own renderer only
                if self._renderer(None)(probe) == theirs:  # the server prints today's date
                    self._render = self._renderer(self._date)
        return self

    @property
    def has_chat_template(self) -> bool:
        """See Endpoint."""
        return self._template is not None

    def _renderer(self, date: datetime.date | None) -> Callable[[list[dict[str, str]]], str]:
        return chat_renderer(self._template or "", bos_token=self._bos, eos_token=self._eos, date=date)

    def owns(self, server: LocalServer) -> None:
        """Makes the embedded server's life this endpoint's."""
        self._embedded = server
        self.identity = msgspec.structs.replace(self.identity, model_id=server.model_id, model_sha=server.model_sha256)

    def check_alive(self) -> None:
        """See Endpoint."""
        if self._embedded:
            self._embedded.check_alive()

    async def encode_prompt(self, prompt: str) -> Encoding:
        """See Endpoint; a BOS that the chat template has written is not added again."""
        return await self.tokenizer.encode(prompt, special=not (self._bos and prompt.startswith(self._bos)))

    async def render_chat(self, messages: list[dict[str, str]]) -> str:
        """See Endpoint."""
        if self._render is None:
            return (await self._post("/apply-template", {"messages": messages}, "prompt"))["prompt"]
        return self._render(messages)

    async def generate(self, request: GreedyUntil) -> Response:
        """See Endpoint."""
        prompt = (await self.encode_prompt(request.context)).ids
        size = request.generation_size or self.identity.max_total_tokens - len(prompt)
        g = self.generation
        body: dict[str, Any] = {
            **_NEUTRAL,
            "prompt": prompt,
            "n_predict": size,
            "temperature": g.temperature,
            "top_k": g.top_k,
            "top_p": g.top_p,
            "repeat_penalty": g.repetition_penalty,
            "seed": self._seed,
            "stop": list(request.stop_sequence),
            "stream": False,
            "cache_prompt": True,
            "n_probs": 0,
        }
        if request.grammar and request.grammar.type == "json":
            body["json_schema"] = request.grammar.value
        elif request.grammar:
            pattern = re.sub(r"(?<!\\)((?:\\\\)*)/", r"\1\/", str(request.grammar.value))  # "/" ends it, "\/" does not
            body["grammar"] = f"%llguidance {{}}\nstart: /{pattern}/"
        reply = await self._post("/completion", body, "content")
        text, finish = str(reply["content"]), _FINISH.get(reply.get("stop_type", ""), "stop")
        cut = cut_at_stop(text, request.stop_sequence)
        return Response(
            text=text if cut is None else cut,
            finish_reason=finish if cut is None else "stop_string",
            prompt_tokens=reply.get("tokens_evaluated"),
            completion_tokens=reply.get("tokens_predicted"),
        )

    async def loglikelihood(self, request: Loglikelihood) -> Response:
        """See Endpoint: the continuation is forced token by token and its probabilities read.

        The server has no prompt log-probabilities. A grammar that admits exactly the continuation's token ids
        makes it generate them, and what it reports are the model's own probabilities before the grammar. The
        context is shared between the choices of a question through the server's prompt cache.
        """
        ids, start, pieces = await self._split(request)
        forced: list[Forced] = []
        position = start
        while position < len(ids):  # more than once only when an end-of-generation id stands inside
            rest = ids[position:]
            part = await self._force(ids[:position], rest, probabilities=1)
            read = read_forced(part, rest, pieces[position:])
            if not read:
                raise EndpointError(
                    f"{self._transport.url} does not force tokens: {rest[:4]} gave {part.get('tokens')}"
                )
            for offset, token in enumerate(read):
                forced.append(token or await self._look_up(ids[: position + offset], rest[offset]))
            position += len(read)
        logprob, greedy = combine(forced)
        return Response(logprob=logprob, greedy=greedy, prompt_tokens=start, completion_tokens=len(ids) - start)

    async def close(self) -> None:
        """See Endpoint."""
        await self._transport.close()
        if self._embedded:
            self._embedded.stop()

    async def _split(self, request: Loglikelihood) -> tuple[list[int], int, Sequence[bytes]]:
        """The tokens of context and continuation together, where the continuation begins, and the tokens' bytes."""
        whole = await self.encode_prompt(request.context + request.continuation)
        start = continuation_start((await self.encode_prompt(request.context)).ids, whole.ids)
        if len(whole.ids) > self.identity.max_total_tokens:
            raise SampleError(f"context and continuation have {len(whole.ids)} tokens, more than the server's limit")
        return whole.ids, start, whole.pieces

    async def _look_up(self, prefix: list[int], wanted: int) -> Forced:
        """The probability of a token that the reply leaves out because it ends inside a character.

        Some whole token is forced in its place and the wanted id read from the list of the most probable.
        """
        for probabilities in (256, self._vocabulary):
            reply = await self._force(prefix, [self._whole_token], probabilities)
            top = cast("list[dict[str, Any]]", reply["completion_probabilities"][0]["top_logprobs"])
            for candidate in top:
                if candidate["id"] == wanted:
                    return Forced(candidate["logprob"], top[0]["id"] == wanted)
        raise EndpointError(f"{self._transport.url} does not list the token {wanted} among all of its vocabulary")

    async def _force(self, prefix: list[int], ids: list[int], probabilities: int) -> dict[str, Any]:
        return await self._post(
            "/completion",
            {
                **_NEUTRAL,
                "prompt": prefix,
                "n_predict": len(ids),
                "temperature": 0.0,
                "top_k": 0,
                "top_p": 1.0,
                "repeat_penalty": 1.0,
                "n_probs": probabilities,
                "return_tokens": True,
                "grammar": "%llguidance {}\nstart: " + " ".join(f"<[{i}]>" for i in ids),
                "cache_prompt": True,
                "stream": False,
            },
            "completion_probabilities",
        )

    async def _post(self, path: str, body: dict[str, Any], *needed: str) -> dict[str, Any]:
        return object_of(await self._transport.post(path, body), self._transport.url + path, *needed)


class ServerTokenizer:
    """The server's `/tokenize`.

    Args:
        transport: to the server.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def encode(self, text: str, *, special: bool = False) -> Encoding:
        """See Tokenizer."""
        body = {"content": text, "add_special": special, "parse_special": True, "with_pieces": True}
        reply = await self._transport.post("/tokenize", body)
        tokens: list[dict[str, Any]] = object_of(reply, f"{self._transport.url}/tokenize", "tokens")["tokens"]
        pieces = [p.encode() if isinstance(p := t["piece"], str) else bytes(p) for t in tokens]
        return Encoding([t["id"] for t in tokens], _spans(text, pieces), pieces)


def _spans(text: str, pieces: list[bytes]) -> list[tuple[int, int]]:
    """The characters that each piece covers; a piece that is no part of the text (BOS) covers none."""
    data = text.encode()
    at, spans = 0, list[tuple[int, int]]()
    starts: list[int] = [i for i, c in enumerate(text) for _ in c.encode()]
    for piece in pieces:
        if piece and data.startswith(piece, at):
            spans.append((starts[at], starts[at + len(piece) - 1] + 1))
            at += len(piece)
        else:
            spans.append((starts[at], starts[at]) if at < len(starts) else (len(text), len(text)))
    return spans
