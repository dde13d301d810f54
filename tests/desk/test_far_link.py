"""One end of a line between two machines, on a line of which the test knows the rate and length."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import Any

import msgspec

from tests.support.clock import ManualClock
from tui.desk.far_lines import PiecesReceived, far_line_of
from tui.desk.far_link import FarLink

STEP_S = 0.01
RATE = 250_000
_PIECE = b'{"type":"piece"'


class SimulatedLine:
    """Carries `RATE` bytes a second, each there and confirmed after `trip_s`, by the clock. It is
    the writer of a link. `carried` counts bytes."""

    def __init__(self, clock: ManualClock, trip_s: float) -> None:
        self.trip_s = trip_s
        self.carried = 0
        self.reader = asyncio.StreamReader()
        self._clock = clock
        self._free_at = 0.0
        self._coming: deque[tuple[float, int]] = deque()
        self._received = 0

    def write(self, data: bytes) -> None:
        self._free_at = max(self._free_at, self._clock.elapsed) + len(data) / RATE
        _, mark, rest = data.rpartition(_PIECE)
        if mark:
            head, _, piece = rest.partition(b"\n")
            size = msgspec.json.decode(mark + head)["size"]
            assert len(piece) == size
            self._coming.append((self._free_at + self.trip_s, size))

    async def drain(self) -> None:
        """Do nothing: it takes all at once."""

    async def carry(self, seconds: float) -> float:
        """Let time pass. Returns the longest that anything would have waited."""
        worst = 0.0
        for _ in range(round(seconds / STEP_S)):
            self._clock.advance(STEP_S)
            arrived = self._received
            while self._coming and self._coming[0][0] <= self._clock.elapsed:
                arrived += self._coming.popleft()[1]
            if arrived > self._received:
                self.carried += arrived - self._received
                self._received = arrived
                self.reader.feed_data(far_line_of(PiecesReceived(size=arrived)))
            for _ in range(6):
                await asyncio.sleep(0)
            worst = max(worst, self._free_at - self._clock.elapsed)
        return worst


async def test_a_slow_line_is_full_and_what_is_urgent_waits_little() -> None:
    clock = ManualClock()
    line = SimulatedLine(clock, 0.15)
    writer: Any = line
    link = FarLink(line.reader, writer, clock)
    link.send_line(1, b"x" * 60_000_000, "in order")
    running = asyncio.create_task(link.run(lambda _: None))
    await line.carry(3)
    for trip_s in (0.15, 0.4, 0.05):  # another route is not taken for a crowd
        line.trip_s = trip_s
        await line.carry(25)
        before = line.carried
        waits = await line.carry(10)
        assert waits < 0.08
        assert line.carried - before > 0.5 * RATE * 10
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
