"""A line between a desk and a machine in this process, which is cut as a test wants it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tui.core.clock import Clock
from tui.desk.far_link import READ_LIMIT
from tui.desk.far_ssh import LineEnd
from tui.desk.host import DeskHost
from tui.desk.serve import serve

_BLOCK = 4096


class CutLine:
    """A line with a machine's `serve` at its far end. `limit` is the number of bytes, of both ways
    together, after which it is cut; `open` lets them pass while it is set."""

    def __init__(self, limit: float = float("inf")) -> None:
        self.limit = limit
        self.passed = 0
        self.open = asyncio.Event()
        self.open.set()
        self.reader: asyncio.StreamReader
        self.writer: asyncio.StreamWriter
        self.serving: asyncio.Task[None]
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def begin(self, host: DeskHost, home: Path, clock: Clock) -> None:
        """Start serving, and connect."""
        streams = [await _pair() for _ in range(2)]
        (self.reader, self.writer), (near_in, near_out) = streams[0]
        (far_in, far_out), (there_in, there_out) = streams[1]
        self._writers = [near_out, far_out]
        self.serving = asyncio.create_task(serve(home, there_in, there_out, host, clock))
        self._tasks = [
            asyncio.create_task(self._copy(near_in, far_out)),
            asyncio.create_task(self._copy(far_in, near_out)),
        ]

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while block := await reader.read(_BLOCK):
                await self.open.wait()
                room = max(int(min(self.limit - self.passed, len(block))), 0)
                self.passed += room
                writer.write(block[:room])
                await writer.drain()
                if self.passed > self.limit - 1:
                    break
        self.cut()

    def cut(self) -> None:
        """Cut it, with all that is on its way."""
        for writer in self._writers:
            writer.close()

    async def close(self) -> LineEnd:
        self.writer.close()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(self.serving, *self._tasks, return_exceptions=True)
        return LineEnd(255, "ssh: connection lost")


class CutLines:
    """Dials a machine, again and again. `limit` names the bytes after which each line is cut."""

    def __init__(
        self,
        host: Callable[[], DeskHost],
        home: Path,
        clock: Clock,
        limit: Callable[[], float] = lambda: float("inf"),
    ) -> None:
        self._host = host
        self._home = home
        self._clock = clock
        self.limit = limit
        self.lines: list[CutLine] = []
        self.dialled = asyncio.Event()

    async def __call__(self) -> CutLine:
        line = CutLine(self.limit())
        await line.begin(self._host(), self._home, self._clock)
        self.lines.append(line)
        self.dialled.set()
        return line


_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _pair() -> tuple[_Streams, _Streams]:
    one, other = socket.socketpair()
    return (
        await asyncio.open_connection(sock=one, limit=READ_LIMIT),
        await asyncio.open_connection(sock=other, limit=READ_LIMIT),
    )
