"""How long an answer may be silent, by the program's clock.

What counts as life is an event or a comment, not a byte: a server that drips one byte a minute
is as good as silent. A kilobyte of an event that is not yet complete counts, since large blocks
may come in one event. Only the time spent waiting is counted: who reads slowly does not make
the server silent.
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
"""Pings are life, but nothing except pings for an hour is no answer."""

ALIVE_BYTES: Final = 1024

_TURN_S: Final = 0.01
_OVERSHOT_S: Final = 5.0
_CATCHING_UP_S: Final = 5.0

NOTHING: Final = 0
LIFE: Final = 1
PROGRESS: Final = 2
"""What a chunk brought: no event, a ping or a comment, or an event that says something."""


class Silence:
    """Watches the waits of one attempt. Use it as an async context manager.

    Until the first sign of life `first_s` seconds may be waited, from then on `stall_s` between
    two.
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
        """What may be waited without a sign of life, as of now."""

    async def __aenter__(self) -> Silence:
        self._task = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def wait(self, coming: Awaitable[T]) -> T:
        """What `coming` gives. Raises TimeoutError when it has been silent for too long."""
        began, left = self._clock.monotonic(), self._remaining_s()
        self._deadline = began + left
        self.expired = left <= 0
        if self.expired:
            if iscoroutine(coming):  # what anext() gives must not be closed before it was awaited
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
        """Take note of a chunk of `size` bytes. Returns whether it was a sign of life."""
        self._bytes += size
        if sign == NOTHING and self._bytes < ALIVE_BYTES:
            return False
        self._silent_s, self._bytes = 0.0, 0
        self.began, self.limit_s = True, self._stall_s
        if sign != LIFE:
            self._pinging_s = 0.0
        return True

    async def _watch(self) -> None:
        # Deadlines move while this sleeps, as a rule away; in steps of the shorter limit it is
        # awake in time for one that came nearer.
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
                # The program was stopped (Ctrl+Z): what came meanwhile waits in the socket.
                self._deadline = max(
                    self._deadline, self._clock.monotonic() + min(_CATCHING_UP_S, step)
                )

    @property
    def only_pings(self) -> bool:
        """Whether there was life, but no answer."""
        return self.expired and self._pinging_s > self._silent_s

    def _remaining_s(self) -> float:
        return min(self.limit_s - self._silent_s, LONGEST_PINGING_S - self._pinging_s)
