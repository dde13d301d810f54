"""The body of an answer, read as it comes, so that many small chunks are handled as one piece.

Servers send each event as an HTTP chunk of its own: what is done for each piece of an answer must
not be done for each of them. While a key is on its way to the screen, no piece is handed over, and
hardly anything is read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from time import perf_counter
from typing import Final

from tui.core import gc_pause
from tui.core.clock import Clock

BUFFER_BYTES: Final = 1024**2
"""Bytes that are read ahead of the consumer."""
PIECE_BYTES: Final = 32 * 1024
"""Maximum bytes of a piece: handling it does not hold up the keys."""
WAITED_S: Final = 0.001
"""Seconds after which a piece was waited for: it was not there already."""
_WORK_S: Final = 0.001
"""Seconds of reading without giving way: a key takes some five turns of the loop to the screen."""
_IDLE_TURNS: Final = 3
"""Turns of the loop without a chunk after which none is there: reading the socket takes two."""


class ReadAhead:
    """Reads chunks in a task of its own, which owns and closes them. Use it as an async context
    manager.

    A chunk that was waited for is handed over alone, and nothing is read until the next is asked
    for: what a slow stream sends meanwhile then comes at once, from the socket.
    """

    def __init__(self, chunks: AsyncGenerator[bytes], clock: Clock) -> None:
        self._chunks = chunks
        self._clock = clock
        self._buffer = bytearray()
        self._error: Exception | None = None
        self._ended = False
        self._waiting_since: float | None = None
        self._arrived, self._asked = asyncio.Event(), asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.waited = False
        """True if the last piece was not there when it was asked for, nor right after."""

    async def __aenter__(self) -> ReadAhead:
        self._task = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def read(self) -> bytes:
        """Return what has come since, at most PIECE_BYTES; b"" at the end.

        Raises what reading raised, after the bytes before it.
        """
        self.waited = False
        self._asked.set()
        if not self._buffer and not self._ended:
            self._waiting_since = self._clock.monotonic()
            self._arrived.clear()
            await self._arrived.wait()
        if not self.waited:
            await self._gather()
        if self._error is not None and not self._buffer:
            raise self._error
        piece = bytes(self._buffer[:PIECE_BYTES])
        del self._buffer[:PIECE_BYTES]
        return piece

    async def _gather(self) -> None:
        """Let waiting keys through, for as long as the turns of the loop bring more of a piece."""
        idle = 0
        while idle < _IDLE_TURNS or gc_pause.key_pending():
            size = len(self._buffer)
            await asyncio.sleep(0)
            if (len(self._buffer) >= PIECE_BYTES or self._ended) and not gc_pause.key_pending():
                break
            idle = idle + 1 if len(self._buffer) == size else 0

    async def _read(self) -> None:
        try:
            async with aclosing(self._chunks) as chunks:
                until = perf_counter() + _WORK_S
                async for chunk in chunks:
                    self._buffer += chunk
                    if self._waiting_since is not None and chunk:
                        self._arrive(self._waiting_since)
                    if self.waited or len(self._buffer) >= BUFFER_BYTES:
                        self._asked.clear()
                        await self._asked.wait()
                    elif perf_counter() < until and not gc_pause.key_pending():
                        continue
                    else:
                        await asyncio.sleep(0)
                    until = perf_counter() + _WORK_S
        except Exception as error:  # noqa: BLE001 - raised where the bytes are read
            self._error = error
        finally:
            self._ended = True
            self._arrived.set()

    def _arrive(self, waiting_since: float) -> None:
        """Wake the reader, who found nothing."""
        self.waited = self._clock.monotonic() - waiting_since > WAITED_S
        self._waiting_since = None
        self._arrived.set()
