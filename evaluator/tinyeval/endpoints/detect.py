"""Connecting: which dialect a server speaks, what it serves, and whether it is what was said."""

from __future__ import annotations

import datetime
import hashlib
from pathlib import Path
from typing import Any

import msgspec

from tinyeval.config import ModelConfig, expand, single_url
from tinyeval.endpoints.failures import failure
from tinyeval.endpoints.llamacpp import LlamaCpp
from tinyeval.endpoints.local import LocalServer
from tinyeval.endpoints.protocol import Endpoint
from tinyeval.endpoints.retry import Limiter, Patience, persist
from tinyeval.endpoints.tgi import Tgi
from tinyeval.endpoints.tokenizer import PROBES, LocalTokenizer, check_agreement, load_files
from tinyeval.endpoints.transport import Reply, Transport
from tinyeval.errors import ConfigError, EndpointError

_FIRST = Patience(tries=5, seconds=60, unreachable=0)
"""At the start nobody waits for a server that is not there."""


async def connect(
    name: str, model: ModelConfig, seed: int, folder: Path | None = None, date: datetime.date | None = None
) -> LlamaCpp | Tgi:
    """Opens a served model; starts the embedded server for `api = "local"`.

    Args:
        name: the model's, for errors.
        model: its settings.
        seed: of sampled answers.
        folder: where the embedded server writes its log.
        date: for chat templates that print it; today when None.

    Raises:
        ConfigError: a setting is wrong.
        EndpointError: there is no such server.
    """
    where = f"models.{name}"
    if model.api == "local":
        server = await LocalServer.start(model, folder, where)
        transport = Transport(server.url, server.api_key, model.timeout)
        end = server.stop
    else:
        key = expand(model.api_key, f"{where}.api_key").strip() if model.api_key else None  # a file's last newline
        if key and not key.isprintable():
            raise ConfigError(f"{where}.api_key: the key has a line break or another unprintable character inside.")
        server, transport = None, Transport(single_url(model, where), key, model.timeout)
        end = lambda: None  # noqa: E731
    try:
        endpoint = await _dialect(transport, model, seed, where, date, server)
        if model.max_length:
            limit = min(model.max_length, endpoint.identity.max_total_tokens)
            endpoint.identity = msgspec.structs.replace(endpoint.identity, max_total_tokens=limit)
        mark = await _patiently(lambda: _template_and_tokenizer(endpoint))
        endpoint.identity = msgspec.structs.replace(endpoint.identity, template_and_tokenizer=mark)
    except BaseException:
        await transport.close()
        end()
        raise
    return endpoint


async def _dialect(
    transport: Transport,
    model: ModelConfig,
    seed: int,
    where: str,
    date: datetime.date | None,
    embedded: LocalServer | None,
) -> LlamaCpp | Tgi:
    quickly = min(model.timeout, 20.0)  # neither waits for the model
    info, props = await _get(transport, "/info", quickly), await _get(transport, "/props", quickly)
    is_tgi = _has(info, "max_total_tokens", "model_id")
    is_llamacpp = _has(props, "default_generation_settings")
    found = "tgi" if is_tgi else "llamacpp" if is_llamacpp else None
    if found is None:
        raise _stranger(transport, where, info, props)
    if model.api not in (None, "local", found):
        raise EndpointError(
            f'{where}: api = "{model.api}", but {transport.url} speaks {found}; say api = "{found}" or leave it out.'
        )
    if is_tgi:
        same = model.tokenizer == info.json["model_id"]
        files = load_files(model.tokenizer, info.json.get("model_sha") if same else None) if model.tokenizer else None
        endpoint = await _patiently(lambda: Tgi.connect(transport, info.json, seed, files, date))
        local = files.tokenizer if files else None
    else:
        endpoint = await _patiently(lambda: LlamaCpp.connect(transport, props.json, seed, date))
        local = load_files(model.tokenizer).tokenizer if model.tokenizer else None
        if embedded:
            endpoint.owns(embedded)
            local = local or _from_gguf(embedded.model_path)
    endpoint.generation = model.generation
    if local:
        await _patiently(lambda: check_agreement(local, endpoint.server_tokenizer, where))
        endpoint.tokenizer = local
    return endpoint


async def _template_and_tokenizer(endpoint: Endpoint) -> str:
    """A fingerprint that changes when prompts would be rendered or tokenized in another way."""
    message = {"role": "user", "content": "1 + 1 = ? 你好"}
    rendered = await endpoint.render_chat([message]) if endpoint.has_chat_template else ""
    ids = [(await endpoint.encode_prompt(text)).ids for text in (rendered, *PROBES) if text]
    return hashlib.sha256(msgspec.json.encode([rendered, ids])).hexdigest()[:16]


def _from_gguf(path: str) -> LocalTokenizer | None:
    """The tokenizer inside a model file; None for a kind that is not rebuilt here: the server tokenizes then."""
    from tinyeval.endpoints.gguf import GgufError, tokenizer_from_gguf

    try:
        found = tokenizer_from_gguf(Path(path))
    except GgufError:
        return None
    return LocalTokenizer(found.tokenizer, adds_special=False, bos_id=found.bos_id if found.add_bos else None)


async def _get(transport: Transport, path: str, silence: float) -> Reply:
    return await _patiently(lambda: _unless_overloaded(transport, path, silence))


async def _unless_overloaded(transport: Transport, path: str, silence: float) -> Reply:
    reply = await transport.get(path, silence)
    if reply.status in (429, 500, 502, 503, 504):
        raise failure(reply, transport.url + path)
    return reply


async def _patiently(ask: Any) -> Any:
    value, _ = await persist(ask, Limiter(1), _FIRST)
    return value


def _has_keys(reply: Reply) -> list[str]:
    body: Any = reply.json
    return list(body) if reply.status == 200 and isinstance(body, dict) else []  # pyright: ignore[reportUnknownArgumentType]


def _has(reply: Reply, *keys: str) -> bool:
    return all(k in _has_keys(reply) for k in keys)


def _stranger(transport: Transport, where: str, info: Reply, props: Reply) -> EndpointError:
    """The sentence for a server that is neither."""
    for path, reply in (("/info", info), ("/props", props)):
        if reply.status in (401, 403):
            return failure(reply, transport.url + path)
    for reply in (info, props):
        if "<html" in reply.text[:500].lower():
            return EndpointError(
                f"{where}: {transport.url} answers with a web page (HTML), not with JSON; is it the URL of the server "
                "itself, without /docs or a login page before it?"
            )
    return EndpointError(
        f"{where}: {transport.url} is neither TGI (/info answered {info.status}) nor llama.cpp "
        f"(/props answered {props.status}), the two dialects spoken here; give the server's root URL, without /v1."
    )
