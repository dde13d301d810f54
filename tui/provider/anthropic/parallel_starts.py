"""Sessions that start at the same time with the same tools and system prompt.

What a request writes to the server's cache can be read once its answer has begun. So the first one
goes ahead, and the others wait for the beginning of its answer, instead of all writing the same.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Final

from tui.core.clock import Clock
from tui.core.dataclass import dataclass, field
from tui.provider.base import Request

LONGEST_WAIT_S: Final = 15.0


@dataclass(slots=True)
class Start:
    """An attempt to send a request. `ended` is set once its answer has begun, or it has failed."""

    begun: bool = False
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def begin(self) -> None:
        """The answer has begun: what was sent can be read from the cache."""
        self.begun = True
        self.ended.set()


class ParallelStarts:
    """Lets one of several equal starts go ahead.

    Where that one fails, the next goes ahead; if it takes longer than `LONGEST_WAIT_S`, the
    others stop waiting.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead: dict[bytes, Start] = {}

    @asynccontextmanager
    async def start(self, request: Request) -> AsyncGenerator[Start]:
        """Send a request within this context, when it is its turn."""
        own, key = Start(), _beginning(request)
        if not key or await self._others_begun(key):
            yield own
            return
        self._ahead[key] = own
        try:
            yield own
        finally:
            own.ended.set()
            if self._ahead.get(key) is own:
                del self._ahead[key]

    async def _others_begun(self, key: bytes) -> bool:
        """Wait for the start ahead. False where there is none: this one is to go ahead."""
        until = self._clock.monotonic() + LONGEST_WAIT_S
        while (ahead := self._ahead.get(key)) is not None and not ahead.begun:
            left = until - self._clock.monotonic()
            if left <= 0:
                del self._ahead[key]
                return True
            waits: list[asyncio.Task[object]] = [
                asyncio.create_task(wait) for wait in (ahead.ended.wait(), self._clock.sleep(left))
            ]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
                await asyncio.gather(*waits, return_exceptions=True)
            if ahead.begun:  # it may have ended, too
                return True
        return ahead is not None


def _beginning(request: Request) -> bytes:
    """Identify what a request shares with those of other sessions: all up to the end of the first
    block of the system prompt. Empty where that has no cache mark, as after the first request."""
    first = request.system[:1]
    if not any("cache_control" in block for block in first):
        return b""
    shared = json.dumps([request.model, request.tools, first], default=str)
    return sha256(shared.encode("utf-8", "surrogatepass")).digest()
