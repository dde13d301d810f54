"""ASGI apps served on loopback within a test's own event loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send


@asynccontextmanager
async def serving(app: ASGIApp, listening: socket.socket | None = None) -> AsyncGenerator[str]:
    """Serve an app; gives its address."""
    listening = listening or socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = server.force_exit = True
        await task


class HeaderGate:
    """Lets through the requests with a header, and keeps those of all: others get a 401."""

    def __init__(self, app: ASGIApp, name: str, value: str) -> None:
        self._app, self._name, self._value = app, name.lower(), value
        self.seen: list[dict[str, str]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode().lower(): value.decode() for name, value in scope["headers"]}
        self.seen.append(headers)
        if headers.get(self._name) == self._value:
            await self._app(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 401, "headers": []})
        await send({"type": "http.response.body", "body": b""})
