"""One end of the line between two machines: what is urgent goes first, and nothing piles up.

Lines that may wait go in pieces, the channels in turn, and no more at a time than the line carries
in a moment: how much that is, the times between a piece and its receipt tell. So a question is
never behind megabytes of a conversation that are already on their way.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Final, Literal, NamedTuple, TypeAlias
from zlib import crc32

from tui.app.door.lines import MAX_LINE
from tui.core.clock import Clock
from tui.desk.far_lines import (
    CONTROL,
    BrokenLineError,
    ChannelLine,
    FarLine,
    Heartbeat,
    LinePiece,
    PiecesReceived,
    far_line_of,
    far_message_of,
)

log = logging.getLogger(__name__)

BEAT_S: Final = 5.0
SILENCE_S: Final = 15.0
"""Without a sign of the other side for that long, the line is cut."""
SLEEP_S: Final = 10.0
"""A second that took so long was one of sleep: nothing sent before it is worth waiting for."""

READ_LIMIT: Final = 1 << 20
"""Bytes of a line in one go; longer ones come in pieces."""
_PIECE_LEAST, _PIECE_MOST = 2048, 65_536
_WINDOW_LEAST, _WINDOW_MOST = 4 * _PIECE_LEAST, 4 << 20
_PIECES: Final = 16
"""Pieces in a window: what is urgent waits for one that is being carried, so they are small where
the line is slow."""
_SHORT: Final = 16_384
"""Bytes of the longest line that is urgent."""
_LINE_MOST: Final = 2 * MAX_LINE
_BEGUN_MOST: Final = 3 * MAX_LINE
"""Bytes of a line, and of all lines together, that have begun to come and not ended."""
_OBJECT: Final = 256
"""Bytes that a piece takes beside its own."""
_AT_ONCE: Final = 32
"""Messages that are taken before others in this process have their turn."""
_HURRY: Final = 65_536
"""Bytes of urgent lines written at a time."""
_URGENT_MOST: Final = 8 << 20
"""Bytes of urgent lines that wait: a line that can't carry even those is as good as cut."""
_ROOM_S: Final = 0.005
_CROWDED_S: Final = 0.02
"""Seconds that a piece may wait behind others: from the first on the window no longer grows, from
the second on it shrinks."""
_SMALLER, _CAREFUL = 0.75, 0.25
_LEARN_S: Final = 20.0
"""Seconds for which the shortest time of a piece counts: then the line may be another one."""

Rank: TypeAlias = Literal["urgent", "in order", "mark"]
"""The place of a line among those of its channel: before those that wait; behind all; behind all,
with nothing urgent getting before it."""


class SessionLine(NamedTuple):
    """A line of a channel."""

    channel: int
    line: bytes


Taken: TypeAlias = Callable[[FarLine | SessionLine], None]


class LineCutError(Exception):
    """The line is cut; says why."""


class FarLink:
    """Sends and receives over a pair of streams. `clock` runs while the machine sleeps."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, clock: Clock
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._clock = clock
        self._urgent: deque[bytes] = deque()
        self._urgent_size = 0
        self._waiting: dict[int, deque[memoryview]] = {}
        self._sizes: dict[int, int] = {}
        self._marked: set[int] = set()
        self._parts: dict[int, list[bytes]] = {}
        self._begun: dict[int, int] = {}
        """The bytes that `_parts` take."""
        self._begun_size = 0
        self._flow = _Flow(clock)
        self._received = 0
        self._receipt_due = False
        self._wake = asyncio.Event()
        self._progress = asyncio.Event()
        self._heard_at = clock.monotonic()

    def send(self, message: FarLine) -> None:
        """Send a message before all that waits."""
        self._hurry(far_line_of(message))

    def send_later(self, message: FarLine) -> None:
        """Send a message that may be large and may wait."""
        self._put(CONTROL, far_line_of(message))

    def send_line(self, channel: int, line: bytes, rank: Rank) -> None:
        """Send a line of a channel."""
        if rank == "urgent" and len(line) <= _SHORT and channel not in self._marked:
            self._hurry(b'{"type":"line","channel":%d,"line":%b}\n' % (channel, line.strip()))
            return
        if rank != "in order":  # a later urgent one may say that a large one is void
            self._marked.add(channel)
        self._put(channel, line)

    def waiting(self, channel: int) -> int:
        """Return the bytes of a channel that wait to be sent."""
        return self._sizes.get(channel, 0)

    async def drained(self, channel: int, size: int = 0) -> None:
        """Wait until at most `size` bytes of a channel wait to be sent."""
        while self.waiting(channel) > size:
            self._progress.clear()
            await self._progress.wait()

    def forget(self, channel: int) -> None:
        """Send and receive no more of a channel."""
        for table in (self._waiting, self._sizes, self._parts):
            table.pop(channel, None)
        self._begun_size -= self._begun.pop(channel, 0)
        self._marked.discard(channel)
        self._progress.set()

    async def run(self, take: Taken) -> str:
        """Hand each message to `take` until the line is cut. Returns why it is."""
        tasks = [
            asyncio.create_task(one) for one in (self._read(take), self._write(), self._beat())
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
        except (LineCutError, BrokenLineError) as cut:
            return str(cut)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return "it ended"

    def _hurry(self, line: bytes) -> None:
        self._urgent.append(line)
        self._urgent_size += len(line)
        self._wake.set()

    def _put(self, channel: int, line: bytes) -> None:
        self._waiting.setdefault(channel, deque()).append(memoryview(line))
        self._sizes[channel] = self._sizes.get(channel, 0) + len(line)
        self._wake.set()

    async def _write(self) -> None:
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                while data := self._next():
                    self._writer.write(data)
                    await self._writer.drain()
        except OSError as error:
            raise LineCutError(error.strerror or str(error) or "it is closed") from error

    def _next(self) -> bytes:
        """The bytes to write now; none if nothing may be written."""
        if self._urgent_size > _URGENT_MOST:
            raise LineCutError("it is too slow")
        parts: list[bytes] = []
        if self._receipt_due:
            self._receipt_due = False
            parts.append(far_line_of(PiecesReceived(size=self._received)))
        size = 0
        while self._urgent and size < _HURRY:
            size += len(self._urgent[0])
            parts.append(self._urgent.popleft())
        self._urgent_size -= size
        if not self._urgent and self._waiting and self._flow.is_open:
            parts.append(self._next_piece())
        return b"".join(parts)

    def _next_piece(self) -> bytes:
        channel = CONTROL if CONTROL in self._waiting else next(iter(self._waiting))
        lines = self._waiting.pop(channel)
        line = lines.popleft()
        size = self._flow.piece
        piece, rest = line[:size], line[size:]
        if rest:
            lines.appendleft(rest)
        if lines:
            self._waiting[channel] = lines  # at the end: the others come first
            self._sizes[channel] -= len(piece)
        else:
            del self._sizes[channel]
            self._marked.discard(channel)
        self._progress.set()
        self._flow.sent(len(piece))
        sum_ = crc32(piece)
        head = LinePiece(channel=channel, size=len(piece), crc=sum_, last=not rest)
        return far_line_of(head) + piece

    async def _read(self, take: Taken) -> None:
        taken = 0
        try:
            while True:
                line = await self._reader.readuntil(b"\n")
                taken += 1
                if taken % _AT_ONCE == 0:  # what has come already is read without a pause
                    await asyncio.sleep(0)
                self._heard_at = self._clock.monotonic()
                message = far_message_of(line)
                match message:
                    case None:
                        log.info("noise on the line to another machine: %.200r", line)
                    case Heartbeat():
                        pass
                    case PiecesReceived(size=size):
                        self._flow.received(size)
                        self._wake.set()
                    case ChannelLine(channel=channel, line=inner):
                        take(SessionLine(channel, bytes(inner)))
                    case LinePiece():
                        if whole := await self._piece(message):
                            take(whole)
                        await asyncio.sleep(0)
                    case _:
                        take(message)
        except (EOFError, OSError) as error:
            raise LineCutError("it ended") from error
        except asyncio.LimitOverrunError as error:
            raise LineCutError("what came over it can't be read") from error

    async def _piece(self, piece: LinePiece) -> FarLine | SessionLine | None:
        """Take the bytes of a piece; returns what it completes."""
        if not 0 < piece.size <= _PIECE_MOST:
            raise BrokenLineError(f"A piece of {piece.size} bytes came.")
        parts = self._parts.setdefault(piece.channel, [])
        data = await self._reader.readexactly(piece.size)
        if crc32(data) != piece.crc:
            raise BrokenLineError("Something else was printed into it.")
        parts.append(data)
        begun = self._begun.get(piece.channel, 0) + len(data) + _OBJECT
        self._begun_size += begun - self._begun.get(piece.channel, 0)
        self._begun[piece.channel] = begun
        if begun > _LINE_MOST or self._begun_size > _BEGUN_MOST:
            raise BrokenLineError("A line came that is too long.")
        self._received += piece.size
        self._receipt_due = True
        self._wake.set()
        if not piece.last:
            return None
        whole = b"".join(self._parts.pop(piece.channel))
        self._begun_size -= self._begun.pop(piece.channel)
        if piece.channel == CONTROL:
            return far_message_of(whole)
        return SessionLine(piece.channel, whole)

    async def _beat(self) -> None:
        """Say that this side is there; notice that the other one isn't, or that this one slept."""
        last = beaten = self._clock.monotonic()
        while True:
            await self._clock.sleep(1.0)
            now = self._clock.monotonic()
            if now - last > SLEEP_S:
                raise LineCutError("this machine slept")
            last = now
            if now - self._heard_at > SILENCE_S:
                raise LineCutError(f"nothing came for {SILENCE_S:.0f} seconds")
            if now - beaten >= BEAT_S:
                beaten = now
                self.send(Heartbeat())

    def close(self) -> None:
        """Close the writing side. What waits is lost."""
        if not self._writer.is_closing():  # which asyncio's pipes don't bear twice
            self._writer.transport.abort()


class _Flow:
    """Bytes of pieces that may be on their way: as many as don't make each other late."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._window = 2.0 * _WINDOW_LEAST
        self._growth = 1.0
        """The part of what has come by which the window grows: all, until it was too large."""
        self._sent = 0
        self._received = 0
        self._times: deque[tuple[int, float]] = deque()
        self._least = self._least_of_late = float("inf")
        """The shortest time of a piece: so far, and since `_learning`."""
        self._learning = clock.monotonic()
        self._shrunk = 0
        """Bytes sent when the window was last made smaller: it is not again until they are
        there."""

    @property
    def is_open(self) -> bool:
        return self._sent - self._received < self._window

    @property
    def piece(self) -> int:
        """The bytes of a piece now."""
        return min(max(int(self._window) // _PIECES, _PIECE_LEAST), _PIECE_MOST)

    def sent(self, size: int) -> None:
        self._sent += size
        self._times.append((self._sent, self._clock.monotonic()))

    def received(self, total: int) -> None:
        """Note a receipt, and learn from the time that it took."""
        before, self._received = self._received, max(self._received, min(total, self._sent))
        at: float | None = None
        while self._times and self._times[0][0] <= self._received:
            at = self._times.popleft()[1]
        if at is None:
            return
        now = self._clock.monotonic()
        delay = now - at
        self._learn(now, delay)
        if delay < self._least * 1.05 + _ROOM_S:
            came = self._received - before
            self._window = min(self._window + came * self._growth, _WINDOW_MOST)
        elif delay > self._least * 1.05 + _CROWDED_S and self._received > self._shrunk:
            self._shrink()

    def _learn(self, now: float, delay: float) -> None:
        """Take the shortest time of late for that of the line, once in a while; what waits in it
        goes out first, so that it is no part of the next one."""
        self._least, self._least_of_late = min(self._least, delay), min(self._least_of_late, delay)
        if now - self._learning > _LEARN_S:
            self._least, self._least_of_late = self._least_of_late, float("inf")
            self._learning = now
            self._shrink()

    def _shrink(self) -> None:
        self._window = max(self._window * _SMALLER, _WINDOW_LEAST)
        self._growth = _CAREFUL
        self._shrunk = self._sent
