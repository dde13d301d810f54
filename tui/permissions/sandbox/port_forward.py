"""A port of the sandbox's own network, opened to the person at 127.0.0.1."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress

_CHUNK = 65_536

Connect = Callable[[int], Awaitable[socket.socket]]


async def forward(port: int, connect: Connect) -> asyncio.Server:
    """Forward connections at 127.0.0.1 to `port` behind the walls, until the server is closed.

    It listens on the same number, or, if that is taken, on one that the system chooses.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there = await asyncio.open_connection(sock=await connect(port))
        except OSError:
            writer.close()  # as the system does when nothing listens
            return
        async with asyncio.TaskGroup() as both:
            both.create_task(_copy(reader, there[1]))
            both.create_task(_copy(there[0], writer))

    try:
        return await asyncio.start_server(serve, "127.0.0.1", port)
    except OSError:
        return await asyncio.start_server(serve, "127.0.0.1", 0)


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Copy until one side ends, or the other is gone."""
    with suppress(OSError):
        while data := await source.read(_CHUNK):
            target.write(data)
            await target.drain()
    with suppress(OSError):
        target.close()
        await target.wait_closed()
