"""A clock that moves only when told to, or when something sleeps on it; and real patience."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime, timedelta
from typing import Final

PATIENCE_S: Final = float(os.environ.get("HOLDFAST_TEST_PATIENCE_S", "60"))
"""How long a test waits for what a real process or thread does: longer than that takes on the
slowest and busiest machine. What comes is not waited for any longer."""


class FakeClock:
    """Starts at 2026-11-21 09:00 UTC. `sleep` returns at once and moves time forward.

    `slept` holds every duration asked for, in order.
    """

    def __init__(self) -> None:
        self.start = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
        self.elapsed: float = 0.0
        self.slept: list[float] = []

    def now(self) -> datetime:
        return self.start + timedelta(seconds=self.elapsed)

    def monotonic(self) -> float:
        return self.elapsed

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.elapsed += seconds
        await asyncio.sleep(0)


class ManualClock(FakeClock):
    """Moves only by `advance`, for which `sleep` waits. For what watches in the background."""

    def __init__(self) -> None:
        super().__init__()
        self._moved = asyncio.Event()

    def advance(self, seconds: float) -> None:
        self.elapsed += seconds
        self._moved.set()
        self._moved = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        until = self.elapsed + seconds
        while self.elapsed < until:
            await self._moved.wait()
