"""One TCP connection of the loopback server: HTTP/1.1, and whether the client is still there."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass, field

import h11

from tests.support.server_script import Json


@dataclass(slots=True)
class SeenRequest:
    """One request as it arrived. `gone` is set when the client left before the answer's end."""

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes
    connection: int
    query: str = ""
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def body(self) -> Json:
        return json.loads(self.raw)


class GoneError(Exception):
    """The client closed the connection."""


class Connection:
    """One TCP connection: h11 over streams, with an eye on the client while it is answered."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.h11 = h11.Connection(h11.SERVER)
        self._reader = reader
        self._writer = writer
        self._reading: asyncio.Task[bytes] | None = None

    async def request(self) -> tuple[h11.Request, bytes] | None:
        """The next request with its body; None when the client is done."""
        head: h11.Request | None = None
        body: list[bytes] = []
        while True:
            event = self.h11.next_event()
            if event is h11.NEED_DATA:
                self.h11.receive_data(await self._read())
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body.append(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                return head, b"".join(body)
            else:
                return None

    def watch(self, seen: SeenRequest) -> None:
        """Notice when the client leaves. What it sends meanwhile is kept for later."""

        def left(task: asyncio.Task[bytes]) -> None:
            if not task.cancelled() and (task.exception() is not None or not task.result()):
                seen.gone.set()

        self._reading = asyncio.create_task(self._reader.read(65_536))
        self._reading.add_done_callback(left)

    async def send(self, *events: h11.Event) -> None:
        data = b"".join(self.h11.send(event) or b"" for event in events)
        self._writer.write(data)
        await self._writer.drain()

    def reset(self) -> None:
        """End the connection with a TCP RST."""
        sock: socket.socket = self._writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()

    async def _read(self) -> bytes:
        task, self._reading = self._reading, None
        return await (task or self._reader.read(65_536))
