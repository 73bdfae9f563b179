"""A proxy that counts what reaches a server, so that a test can say what was sent twice.

python counting_proxy.py TARGET_URL      prints its own URL; GET /counted returns {path: [prompt hash, ...]}
"""

from __future__ import annotations

import asyncio
import hashlib
import sys

from aiohttp import ClientSession, ClientTimeout, TCPConnector, web

_counted: dict[str, list[str]] = {}


async def main(target: str) -> None:
    async with ClientSession(target, connector=TCPConnector(limit=0), timeout=ClientTimeout(total=None)) as session:

        async def forward(request: web.Request) -> web.Response:
            body = await request.read()
            _counted.setdefault(request.path, []).append(hashlib.sha256(body).hexdigest())
            kept = ("authorization", "content-type")
            headers = {k: v for k, v in request.headers.items() if k.lower() in kept}
            async with session.request(request.method, request.path_qs, data=body, headers=headers) as reply:
                return web.Response(status=reply.status, body=await reply.read(), content_type="application/json")

        async def counted(request: web.Request) -> web.Response:
            return web.json_response(_counted)

        app = web.Application(client_max_size=1 << 26)
        app.router.add_get("/counted", counted)
        app.router.add_route("*", "/{rest:.*}", forward)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
        print(f"http://127.0.0.1:{port}", flush=True)
        await asyncio.to_thread(sys.stdin.read)  # until the test closes it
        await runner.cleanup()


asyncio.run(main(sys.argv[1]))
