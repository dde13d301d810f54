"""The time that an answer may be silent, by the program's clock.

An event or a comment is a sign of life, a byte is not: a server that sends one byte a minute is as
good as silent. A kilobyte of an incomplete event counts, since large blocks may come in one event.
Only the time spent waiting is counted: a slow reader does not make the server silent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from inspect import iscoroutine
from typing import Final, TypeVar

from tui.core.clock import Clock

T = TypeVar("T")

LONGEST_PINGING_S: Final = 3600.0
"""Pings are signs of life, but nothing except pings for an hour is no answer."""

ALIVE_BYTES: Final = 1024

_TURN_S: Final = 0.01
_OVERSHOT_S: Final = 5.0
_CATCHING_UP_S: Final = 5.0

NOTHING: Final = 0
LIFE: Final = 1
PROGRESS: Final = 2
"""The content of a chunk: no event, a ping or a comment, or an event that says something."""


class Silence:
    """Watches the waits of one attempt. Use it as an async context manager.

    The first sign of life may take `first_s` seconds, each later one `stall_s`.
    """

    def __init__(self, clock: Clock, first_s: float, stall_s: float) -> None:
        self._clock = clock
        self._first_s = first_s
        self._stall_s = stall_s
        self._silent_s = 0.0
        self._pinging_s = 0.0
        self._bytes = 0
        self._deadline = 0.0
        self._scope: asyncio.Timeout | None = None
        self._task: asyncio.Task[None] | None = None
        self.began = self.expired = False
        self.limit_s = first_s
        """The longest wait without a sign of life, as of now."""

    async def __aenter__(self) -> Silence:
        self._task = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def wait(self, coming: Awaitable[T]) -> T:
        """Return the result of `coming`. Raises TimeoutError if there was silence for too long."""
        began, left = self._clock.monotonic(), self._remaining_s()
        self._deadline = began + left
        self.expired = left <= 0
        if self.expired:
            if iscoroutine(coming):  # anext()'s result can't be closed unawaited
                coming.close()
            raise TimeoutError
        scope = self._scope = asyncio.timeout(None)
        try:
            async with scope:
                return await coming
        finally:
            self.expired = scope.expired()
            self._scope = None
            waited = self._clock.monotonic() - began
            self._silent_s += waited
            self._pinging_s += waited

    def heard(self, sign: int, size: int) -> bool:
        """Note a chunk of `size` bytes. Returns True if it was a sign of life."""
        self._bytes += size
        if sign == NOTHING and self._bytes < ALIVE_BYTES:
            return False
        self._silent_s, self._bytes = 0.0, 0
        self.began, self.limit_s = True, self._stall_s
        if sign != LIFE:
            self._pinging_s = 0.0
        return True

    async def _watch(self) -> None:
        # Deadlines move while this sleeps, mostly away; in steps of the shorter limit it wakes in
        # time for one that came nearer.
        step = min(self._first_s, self._stall_s)
        while True:
            now = self._clock.monotonic()
            if self._scope is not None and self._deadline <= now:
                self._scope.reschedule(asyncio.get_running_loop().time())
                self._scope = None
            left = self._remaining_s() if self._scope is None else self._deadline - now
            asked = min(max(left, _TURN_S), step)
            await self._clock.sleep(asked)
            overshot = self._clock.monotonic() - now - asked
            if overshot > _OVERSHOT_S:
                # The program was stopped (Ctrl+Z): what arrived meanwhile is waiting in the socket.
                self._deadline = max(
                    self._deadline, self._clock.monotonic() + min(_CATCHING_UP_S, step)
                )

    @property
    def only_pings(self) -> bool:
        """True if there were signs of life, but no answer."""
        return self.expired and self._pinging_s > self._silent_s

    def _remaining_s(self) -> float:
        return min(self.limit_s - self._silent_s, LONGEST_PINGING_S - self._pinging_s)
