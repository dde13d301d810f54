"""A loopback server that answers with bytes, in HTTP chunks of a given size."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Self


class ByteServer:
    """Answers every request with the same bytes. Use it as an async context manager.

    Each of the `pieces` is a chunk of the transfer. `served` once a client has all, or has left.
    """

    def __init__(self, pieces: Sequence[bytes], kind: str = "text/event-stream") -> None:
        self.pieces, self.kind = pieces, kind
        self.asked = 0
        self.served = asyncio.Event()
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            await reader.readexactly(int(head.partition(b"content-length:")[2].split()[0]))
            self.asked += 1
            writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n")
            writer.write(b"content-type: %s\r\n\r\n" % self.kind.encode())
            chunks = (b"%x\r\n%s\r\n" % (len(piece), piece) for piece in self.pieces if piece)
            writer.write(b"".join(chunks) + b"0\r\n\r\n")
            await writer.drain()
        self.served.set()
        writer.close()
