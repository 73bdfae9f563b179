"""A fake Text Generation Inference server, built from what TGI's source says of its native routes (v3.3.7).

It is no measurement of TGI: every behaviour is what was read there, message texts included.
Not modelled: streams, the OpenAI routes, `best_of`, `truncate`, top tokens, watermarks, adapters and images.

The model is a hash: a prompt always has the same answer, and a token the same log-probability after the same tokens.
Tokens are words, single characters, and the two halves of a character of four bytes.

    python tests/servers/fake_tgi.py --port 0      prints its URL; `GET /counters` tells what was asked so far,
                                                   `POST /faults` {"/generate": [429, "drop"]} makes the next fail
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import zlib
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from aiohttp import web

LEG = 1024
WORDS = ["the", "cat", "Paris", "is", "blue", "42", "人民", "厦门", "，", "。", "\n", "yes", "no", "😀", "A", "B"]
_SPLIT = re.compile(r"<s>|</s>|<\|im_start\|>|<\|im_end\|>| ?[A-Za-z0-9]+|.", re.DOTALL)
_SPECIAL = {"<s>": 1, "</s>": 2, "<|im_start|>": 3, "<|im_end|>": 4}
_SIZES, _NUMBERS = ("max_new_tokens", "seed"), ("temperature", "top_p", "typical_p", "repetition_penalty")
_FLAGS = ("do_sample", "details", "decoder_input_details", "return_full_text")


@dataclass
class Settings:
    """What a launch flag or a model decides; the names are TGI's where it has one."""

    model_id: str = "fake/tgi"
    model_sha: str = ""
    max_total_tokens: int = 4096
    max_input_tokens: int = 0  # 0 is max_total_tokens - 1
    max_concurrent_requests: int = 128
    max_stop_sequences: int = 4
    payload_limit: int = 2_000_000
    enable_prefill_logprobs: bool = False
    api_key: str = ""
    grammar: str = "on"  # off is --disable-grammar-support, ignored a server without the field
    template: bool = True
    slow_tokenizer: bool = False
    char_offsets: bool = False  # as before 3.3.0
    latency: float = 0.0


class Token(NamedTuple):
    id: int
    text: str  # as generation decodes it: a character belongs to its last token
    start: int = 0  # in the UTF-8 bytes of the text
    stop: int = 0
    special: bool = False


BOS, EOS = Token(1, "<s>", special=True), Token(2, "</s>", special=True)


def tokenize(text: str, *, special: bool = True) -> list[Token]:
    tokens, at = [BOS] if special else [], 0
    for piece in _SPLIT.findall(text):
        data = piece.encode()
        end = at + len(data)
        parts = [(data[:2], ""), (data[2:], piece)] if len(piece) == 1 and len(data) == 4 else [(data, piece)]
        ids = [_SPECIAL.get(piece) or 5 + zlib.crc32(part) % 64_000 for part, _ in parts]
        tokens += [Token(i, shown, at, end, i < 5) for i, (_, shown) in zip(ids, parts, strict=True)]
        at = end
    return tokens


def logprobs(tokens: list[Token]) -> list[float | None]:
    """Of each token after those before it; the first has none."""
    state, found = 0, list[float | None]()
    for token in tokens:
        state = zlib.crc32(str(token.id).encode(), state)
        found.append(-(1 + state % 4000) / 512 if found else None)
    return found


def answer_of(prompt: str, salt: str = "") -> str:
    draw = random.Random(zlib.crc32((salt + prompt).encode()))
    return " ".join(draw.choice(WORDS) for _ in range(draw.randint(3, 14)))


class Refused(web.HTTPException):
    def __init__(self, status: int, message: str, kind: str | None = None) -> None:
        self.status_code = status
        as_json = json.dumps({"error": message, "error_type": kind})
        super().__init__(text=as_json if kind else message, content_type="application/json" if kind else "text/plain")


def invalid(message: str) -> Refused:
    return Refused(422, f"Input validation error: {message}", "validation")


def wrong_type(message: str) -> Refused:
    return Refused(422, f"Failed to deserialize the JSON body into the target type: {message} at line 1 column 2")


FAULTS = {
    424: ("Request failed during generation: Server error: CANCELLED", "generation"),
    429: ("Model is overloaded", "overloaded"),
    500: ("Incomplete generation", "incomplete_generation"),
    503: ("unhealthy", "healthcheck"),
}


class FakeTgi:
    """One server; `await start()` tells its URL. A test may set `answer`, and read the counters and `bodies`.

    `faults[route]` are served before anything else, one a request: a status, (status, text, headers), the bytes of
    a body of a 200, "drop" (no reply), "cut" (half a reply) or "hang" (silence).
    """

    def __init__(self, **settings: Any) -> None:
        self.settings = Settings(**settings)
        self.answer: Callable[[str], str] | None = None
        self.requests: Counter[str] = Counter()
        self.prompts: Counter[str] = Counter()
        self.bodies: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        self.faults: defaultdict[str, deque[Any]] = defaultdict(deque)
        self.in_flight = self.peak = 0
        self.broken: list[int] = []  # sizes of the batches that a bad grammar broke
        self._stopping = asyncio.Event()

    async def start(self, port: int = 0) -> str:
        self._batch: asyncio.Future[None] = asyncio.Future()  # done when a bad grammar breaks it
        app = web.Application(middlewares=[self._serve], client_max_size=1 << 30)
        app.add_routes([web.get("/info", self._info), web.get("/health", self._health)])
        app.add_routes([web.post("/generate", self._generate), web.post("/tokenize", self._tokenize)])
        app.add_routes([web.post("/chat_tokenize", self._chat_tokenize), web.post("/faults", self._control)])
        app.add_routes([web.get("/counters", self._control)])
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", port).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self.url

    async def stop(self) -> None:
        self._stopping.set()
        await self._runner.cleanup()

    @web.middleware
    async def _serve(self, request: web.Request, handler: Any) -> web.StreamResponse:
        path, key = request.path, self.settings.api_key
        self.requests[path] += 1
        if self.faults[path]:
            return await self._fail(request, self.faults[path].popleft())
        given = request.headers.get("authorization", "")
        if key and path in ("/generate", "/tokenize") and given.lower() != f"bearer {key}".lower():
            return web.Response(status=401)
        return await handler(request)

    async def _fail(self, request: web.Request, fault: Any) -> web.StreamResponse:
        assert request.transport
        match fault:
            case int():
                raise Refused(fault, *FAULTS.get(fault, ("",)))
            case bytes():
                return web.Response(body=fault, content_type="application/json")
            case (status, text, headers):
                return web.Response(status=status, text=text, headers=headers)
            case "hang":
                await self._stopping.wait()
            case "cut":
                response = web.StreamResponse(headers={"content-length": "1000"})
                await response.prepare(request)
                await response.write(b'{"generated_text": "half')
        request.transport.close()
        return web.Response()

    async def _body(self, request: web.Request, field: str, kind: type) -> dict[str, Any]:
        data = await request.read()
        if request.content_type != "application/json":
            raise Refused(415, "Expected request with `Content-Type: application/json`")
        if len(data) > self.settings.payload_limit:
            raise Refused(413, "Failed to buffer the request body: length limit exceeded")
        try:
            body = json.loads(data)
        except ValueError as e:
            raise Refused(400, f"Failed to parse the request body as JSON: {e}") from e
        if not isinstance(body, dict) or field not in body:
            raise wrong_type(f"missing field `{field}`")
        if not isinstance(body[field], kind):
            raise wrong_type(f"{field}: invalid type")
        self.bodies[request.path].append(body)
        return body

    async def _health(self, request: web.Request) -> web.Response:
        return web.Response()

    async def _info(self, request: web.Request) -> web.Response:
        s = self.settings
        limits = {n: getattr(s, n) for n in ("max_concurrent_requests", "max_stop_sequences", "max_total_tokens")}
        limits |= {"max_input_tokens": s.max_input_tokens or s.max_total_tokens - 1, "max_best_of": 2}
        model = {"model_id": s.model_id, "model_sha": s.model_sha or None, "model_pipeline_tag": "text-generation"}
        return web.json_response(model | limits | {"version": "3.3.6-dev0", "sha": "fa" * 20, "docker_label": None})

    async def _tokenize(self, request: web.Request) -> web.Response:
        text = (await self._body(request, "inputs", str))["inputs"]
        return web.json_response([self._listed(t, text.encode()) for t in tokenize(text)])

    def _listed(self, token: Token, data: bytes) -> dict[str, Any]:
        if self.settings.slow_tokenizer:
            return {"id": token.id, "text": "", "start": 0, "stop": 0}
        text, start, stop = data[token.start : token.stop].decode(), token.start, token.stop
        if self.settings.char_offsets:
            start, stop = len(data[:start].decode()), len(data[:stop].decode())
        return {"id": token.id, "text": text, "start": start, "stop": stop}

    async def _chat_tokenize(self, request: web.Request) -> web.Response:
        messages = (await self._body(request, "messages", list))["messages"]
        if not self.settings.template:
            raise Refused(422, "Template error: template not found", "template_error")
        turns = "".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in messages)
        text = f"<s>{turns}<|im_start|>assistant\n"
        tokens = [self._listed(t, text.encode()) for t in tokenize(text, special=False)]
        return web.json_response({"tokenize_response": tokens, "templated_text": text})

    async def _control(self, request: web.Request) -> web.Response:
        if request.method == "POST":
            for route, faults in (await request.json()).items():
                self.faults[route].extend(faults)
        return web.json_response({"requests": self.requests, "prompts": self.prompts, "peak": self.peak})

    async def _generate(self, request: web.Request) -> web.Response:
        body = await self._body(request, "inputs", str)
        inputs, given = body["inputs"], body.get("parameters")
        parameters = checked({"do_sample": True} if given is None else given)
        if self.in_flight >= self.settings.max_concurrent_requests:
            raise Refused(429, *FAULTS[429])
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            prompt = self._validate(inputs, parameters)
            self.prompts[inputs] += 1
            await self._compute(parameters.get("grammar"))
            return self._answered(inputs, prompt, parameters)
        finally:
            self.in_flight -= 1

    def _validate(self, inputs: str, p: dict[str, Any]) -> list[Token]:
        s, size, stops, grammar = self.settings, p.get("max_new_tokens"), p.get("stop", []), p.get("grammar")
        for name in ("temperature", "repetition_penalty", "top_k", "max_new_tokens"):
            if name in p and p[name] <= 0:
                raise invalid(f"`{name}` must be strictly positive")
        if not -2 <= p.get("frequency_penalty", 0) <= 2:
            raise invalid("`frequency_penalty` must be >= -2.0 and <= 2.0")
        for name in ("top_p", "typical_p"):
            if name in p and not 0 < p[name] < 1:
                raise invalid(f"`{name}` must be > 0.0 and < 1.0")
        if len(stops) > s.max_stop_sequences:
            raise invalid(f"`stop` supports up to {s.max_stop_sequences} stop sequences. Given: {len(stops)}")
        if not inputs:
            raise invalid("`inputs` cannot be empty")
        prompt, most = tokenize(inputs), s.max_input_tokens or s.max_total_tokens - 1
        leg = min(LEG, max(0, s.max_total_tokens - len(prompt)) if size is None else size)
        if len(prompt) + leg > s.max_total_tokens:
            told = f"Given: {len(prompt)} `inputs` tokens and {leg} `max_new_tokens`"
            raise invalid(f"`inputs` tokens + `max_new_tokens` must be <= {s.max_total_tokens}. {told}")
        if len(prompt) > most:
            raise invalid(f"`inputs` must have less than {most} tokens. Given: {len(prompt)}")
        if grammar and s.grammar == "off":
            raise invalid("grammar is not supported")
        if grammar and grammar["type"] != "regex" and "properties" not in schema_of(grammar):
            raise invalid("grammar is not valid: Grammar must have a 'properties' field")
        return prompt

    async def _compute(self, grammar: dict[str, Any] | None) -> None:
        """Waits in a batch; a regular expression that does not compile breaks the whole batch."""
        batch = self._batch
        if grammar and grammar["type"] == "regex" and self.settings.grammar == "on":
            try:
                re.compile(grammar["value"])
            except re.error:
                self.broken.append(self.in_flight)
                self._batch = asyncio.Future()
                batch.set_result(None)
        await asyncio.wait({batch}, timeout=self.settings.latency)
        if batch.done():
            raise Refused(424, *FAULTS[424])

    def _answered(self, inputs: str, prompt: list[Token], p: dict[str, Any]) -> web.Response:
        warm = p.get("temperature", 1.0) != 1.0 or {"top_k", "top_p", "typical_p"} & set(p)
        seed = p.get("seed", random.getrandbits(63)) if p.get("do_sample") or warm else None
        if p.get("grammar") and self.settings.grammar == "on":
            text = conforming(p["grammar"])
        else:
            text = self.answer(inputs) if self.answer else answer_of(inputs, "" if seed is None else str(seed))
        tokens, finish = self._run(len(prompt), tokenize(text, special=False), p)
        reply: dict[str, Any] = {"generated_text": "".join(t.text for t in tokens if not t.special)}
        if p.get("details") or p.get("decoder_input_details"):
            told = [
                {"id": t.id, "text": t.text, "logprob": v, "special": t.special}
                for t, v in zip(prompt + tokens, logprobs(prompt + tokens), strict=True)
            ]
            asked = p.get("decoder_input_details") and self.settings.enable_prefill_logprobs
            reply["details"] = {"finish_reason": finish, "generated_tokens": len(tokens), "seed": seed}
            reply["details"] |= {"prefill": told[: len(prompt)] if asked else [], "tokens": told[len(prompt) :]}
        headers = {"x-prompt-tokens": str(len(prompt)), "x-generated-tokens": str(len(tokens)), "x-queue-time": "0"}
        return web.json_response(reply, headers=headers)

    def _run(self, prompt: int, answer: list[Token], p: dict[str, Any]) -> tuple[list[Token], str]:
        """Legs of 1,024 tokens; each is stopped by itself: first by length, then by EOS, then by a stop string."""
        size, out = p.get("max_new_tokens"), list[Token]()
        while True:
            room = self.settings.max_total_tokens - prompt - len(out)
            leg, tail = min(LEG, room if size is None else size), ""
            if leg > room or leg <= 0:
                return out, "length"
            for left in reversed(range(leg)):
                out.append(answer[len(out)] if len(out) < len(answer) else EOS)
                tail = (tail + out[-1].text)[-300:]
                if left and out[-1].id == EOS.id:
                    return out, "eos_token"
                if left and any(re.search(f"{re.escape(s)}$", tail) for s in p.get("stop", [])):
                    return out, "stop_sequence"
            if size is not None and len(out) >= size:
                return out, "length"


def checked(parameters: Any) -> dict[str, Any]:
    """As serde does: a wrong type is refused in plain text, null is absent, an unknown field is dropped."""
    if not isinstance(parameters, dict):
        raise wrong_type("parameters: invalid type, expected struct GenerateParameters")
    kinds: dict[str, Any] = dict.fromkeys((*_SIZES, "top_k"), int) | dict.fromkeys(_FLAGS, bool)
    kinds |= dict.fromkeys((*_NUMBERS, "frequency_penalty"), (int, float)) | {"stop": list, "grammar": dict}
    found = {n: v for n, v in parameters.items() if n in kinds and v is not None}
    for name, value in found.items():
        bad = not isinstance(value, kinds[name]) or (isinstance(value, bool) and kinds[name] is not bool)
        if bad or (name in _SIZES and value < 0) or (name == "stop" and not all(isinstance(s, str) for s in value)):
            raise wrong_type(f"parameters.{name}: invalid type or value")
    if (grammar := found.get("grammar")) and "value" not in grammar:
        raise wrong_type("parameters.grammar: missing field `value`")
    if grammar and grammar.get("type") not in ("json", "json_object", "regex", "json_schema"):
        raise wrong_type("parameters.grammar: unknown variant")
    return found


def schema_of(grammar: dict[str, Any]) -> dict[str, Any]:
    value = json.loads(grammar["value"]) if isinstance(grammar["value"], str) else grammar["value"]
    return value["schema"] if grammar["type"] == "json_schema" else value


def conforming(grammar: dict[str, Any]) -> str:
    """The smallest answer that a grammar admits."""
    if grammar["type"] == "regex":
        return _matching(re._parser.parse(grammar["value"]))  # type: ignore[attr-defined]
    return json.dumps(_instance(schema_of(grammar)), ensure_ascii=False)


def _instance(schema: dict[str, Any]) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    if properties := schema.get("properties"):
        return {name: _instance(properties[name]) for name in schema.get("required", properties)}
    if schema.get("type") == "array":
        return [_instance(schema["items"])] * schema.get("minItems", 0)
    least = schema.get("minimum", 0)
    simple = {"integer": least, "number": least, "boolean": True, "null": None}
    return simple.get(schema.get("type", "string"), "a" * schema.get("minLength", 1))


def _matching(parsed: Any) -> str:
    """A string for simple patterns: literals, classes, groups, alternatives, repeats."""
    parts: dict[str, Callable[[Any], str]] = {
        "LITERAL": chr,
        "RANGE": lambda a: chr(a[0]),
        "IN": lambda a: _matching(a[:1]),
        "SUBPATTERN": lambda a: _matching(a[-1]),
        "BRANCH": lambda a: _matching(a[1][0]),
        "MAX_REPEAT": lambda a: _matching(a[2]) * a[0],
    }
    return "".join(parts.get(str(op), lambda _: "0")(argument) for op, argument in parsed)


async def main() -> None:
    parser = argparse.ArgumentParser(description="A fake TGI server on loopback.")
    parser.add_argument("--port", type=int, default=0)
    for field in fields(Settings):
        kind = type(field.default)
        how: Any = {"action": argparse.BooleanOptionalAction} if kind is bool else {"type": kind}
        parser.add_argument(f"--{field.name.replace('_', '-')}", default=field.default, **how)
    settings = vars(parser.parse_args())
    port = settings.pop("port")
    print(await FakeTgi(**settings).start(port), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
