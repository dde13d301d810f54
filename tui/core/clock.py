"""Time as a port, so that tests never wait and a jumping wall clock breaks nothing."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Final, Protocol

_BOOT: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    """A source of time. `now` is the wall clock in UTC, for the record and the screen; `monotonic`
    measures intervals."""

    def now(self) -> datetime: ...
    def monotonic(self) -> float: ...
    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The real clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        import asyncio  # noqa: PLC0415 - loaded by whoever waits, and nobody else needs it

        await asyncio.sleep(seconds)


class SuspendAwareClock(SystemClock):
    """The real clock, whose seconds pass while the process is stopped or the machine sleeps."""

    def monotonic(self) -> float:
        return time.clock_gettime(_BOOT)


def timestamp(moment: datetime) -> str:
    """Format a moment for the record: ISO 8601, UTC, milliseconds, `Z`."""
    utc = moment.astimezone(UTC)
    return utc.strftime("%Y-%m-%dT%H:%M:%S.") + f"{utc.microsecond // 1000:03d}Z"
