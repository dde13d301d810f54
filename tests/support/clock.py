"""A clock that moves only when told to, or when something sleeps on it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta


class FakeClock:
    """Starts at 2026-11-21 09:00 UTC. `sleep` returns at once and moves time forward.

    `slept` holds every duration asked for, in order.
    """

    def __init__(self) -> None:
        self.start = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
        self.elapsed = 0.0
        self.slept: list[float] = []

    def now(self) -> datetime:
        return self.start + timedelta(seconds=self.elapsed)

    def monotonic(self) -> float:
        return self.elapsed

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.elapsed += seconds
        await asyncio.sleep(0)
