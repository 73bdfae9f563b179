"""HTTP to one server: one aiohttp session, the only module that knows the library.

A reply of any status is returned; only the way to the server fails here, always as a `Retry`. Redirects are
not followed, so a key never leaves for another host. There is no total timeout: waiting in our own queue costs
nothing, and a request is given up only after `silence` seconds without a byte.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import aiohttp
import msgspec

from tinyeval.errors import EndpointError, Retry


class Reply(NamedTuple):
    """An HTTP reply: status, headers (case-insensitive), body.

    `redact` takes the key out of what is quoted in a message: servers repeat it in theirs.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    redact: Callable[[str], str] = str

    @property
    def text(self) -> str:
        """The body as text, undecodable bytes replaced."""
        return self.body.decode("utf-8", "replace")

    @property
    def json(self) -> Any:
        """The body as JSON; None if it is none (a page, a cut body, an empty one)."""
        try:
            return msgspec.json.decode(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None


class Transport:
    """Requests to one server.

    Args:
        url: scheme, host, port and perhaps a path prefix.
        api_key: sent as a bearer token.
        silence: seconds without a byte after which a request is given up.
    """

    def __init__(self, url: str, api_key: str | None = None, silence: float = 600.0) -> None:
        self.url = url.rstrip("/")
        self._key = api_key
        self._silence = silence
        headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=300),
            headers=headers | {"content-type": "application/json"},
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def get(self, path: str, silence: float | None = None) -> Reply:
        """GET.

        Args:
            path: below the url.
            silence: seconds, instead of the session's.

        Raises:
            Retry: no reply came.
        """
        return await self._send("GET", path, None, silence)

    async def post(self, path: str, body: Any) -> Reply:
        """POST of a JSON body.

        Raises:
            Retry: no reply came.
        """
        return await self._send("POST", path, msgspec.json.encode(body))

    async def close(self) -> None:
        """Closes all connections."""
        await self._session.close()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0)

    async def _send(self, method: str, path: str, data: bytes | None, silence: float | None = None) -> Reply:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=silence or self._silence)
        try:
            async with self._session.request(
                method, self.url + path, data=data, allow_redirects=False, timeout=timeout
            ) as response:
                return Reply(response.status, response.headers, await response.read(), self._redact)
        except (aiohttp.InvalidURL, UnicodeError) as e:
            raise EndpointError(f"{self.url} is not a URL: expected http://HOST:PORT or https://HOST.") from e
        except aiohttp.ClientConnectorError as e:
            # asyncio puts a sentence of its own where the system's reason should be
            number = e.os_error.errno or 0
            reason = os.strerror(number) if number > 0 else str(e.os_error).partition("] ")[2] or str(e.os_error)
            raise Retry(f"{self.url} does not answer: {reason}", unreachable=True) from e
        except TimeoutError as e:
            raise Retry(f"{self.url}{path} was silent for too long", tries=3) from e
        except aiohttp.ClientPayloadError as e:
            raise Retry(f"{self.url}{path} broke off its answer") from e
        except (aiohttp.ClientError, OSError) as e:
            reason = " ".join(self._redact(str(e)).split()) or type(e).__name__
            raise Retry(f"the connection to {self.url} broke: {reason}") from e

    def _redact(self, text: str) -> str:
        return text.replace(self._key, "***") if self._key else text
