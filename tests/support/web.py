"""A web server on loopback for the tests of web_fetch: bytes as they are to be sent."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

Handler: TypeAlias = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class WebServer:
    """`requests` are the heads of what was asked for; a page is by its target."""

    pages: Mapping[str, bytes | Handler]
    requests: list[str] = field(default_factory=list[str])
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0

    def url(self, target: str = "/", host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{target}"

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            self.requests.append(head)
            page = self.pages[head.split(" ")[1]]
            if isinstance(page, bytes):
                writer.write(page)
                await writer.drain()
            else:
                await page(writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.gone.set()
            writer.close()


@asynccontextmanager
async def web_server(
    pages: Mapping[str, bytes | Handler], context: ssl.SSLContext | None = None
) -> AsyncGenerator[WebServer]:
    web = WebServer(pages)
    server = await asyncio.start_server(web.answer, "127.0.0.1", 0, ssl=context)
    web.port = server.sockets[0].getsockname()[1]
    try:
        yield web
    finally:
        server.close()


def response(
    body: bytes | str = b"", content_type: str = "text/html", status: str = "200 OK", **more: str
) -> bytes:
    """An answer that ends with its connection. `more` are headers."""
    data = body.encode() if isinstance(body, str) else body
    headers = {"Content-Type": content_type, **more} if content_type else more
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode() + data


def redirect(location: str, status: str = "302 Found") -> bytes:
    return response("moved", status=status, Location=location)
