"""Lines of a file of any size, addressed by the byte at which they begin.

Only what is asked for is read. The newlines, or occurrences of a searched text, in each block of
the file are counted in slices, in a thread; the n-th is found by bisecting these sums. The sums of
4 GB take half a megabyte.
"""

from __future__ import annotations

import os
import re
import stat
from array import array
from bisect import bisect_left
from collections import OrderedDict
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import NamedTuple

from tui.core.dataclass import dataclass
from tui.ui.widgets.markdown.text import Line

BLOCK = 1 << 16
_BLOCKS_KEPT = 32
SCAN = 16
"""Blocks that are searched at once if nothing was counted yet: 1 MB."""


class LineFile:
    """The bytes of a regular file, or of a text in memory. Has to be closed. Raises OSError.

    `opened` is the descriptor if the file is open already; it is closed with this. `size` is that
    at opening. A file that is shortened later just ends earlier.
    """

    def __init__(self, source: Path | bytes | str, opened: int | None = None) -> None:
        self._data: bytes | None = None
        self._descriptor: int | None = None
        self._kept: OrderedDict[int, bytes] = OrderedDict()
        self._lock = Lock()  # a descriptor may be another file's once it is closed
        self.path: Path | None = None
        if isinstance(source, bytes | str):
            self._data = source.encode("utf-8", "replace") if isinstance(source, str) else source
            self.size = len(self._data)
        else:
            self.path = source
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
            self._descriptor = os.open(source, flags) if opened is None else opened
            state = os.fstat(self._descriptor)
            if not stat.S_ISREG(state.st_mode):
                self.close()
                raise OSError(f"{source} isn't a regular file")
            self.size = state.st_size
        self.lines = MatchCounts(self, b"\n", kept=True)

    def close(self) -> None:
        """Close the file; later reads return nothing."""
        self._kept.clear()
        self.size, self._data = 0, None
        with self._lock:
            descriptor, self._descriptor = self._descriptor, None
            if descriptor is not None:
                os.close(descriptor)

    def read(self, start: int, stop: int) -> bytes:
        """Return the bytes from `start` to `stop`, as far as there are any. Thread-safe."""
        start, stop = max(0, start), min(stop, self.size)
        if start >= stop:
            return b""
        if self._data is not None:
            return self._data[start:stop]
        with self._lock:
            if self._descriptor is None:
                return b""
            try:
                return os.pread(self._descriptor, stop - start, start)
            except OSError:
                return b""

    def block(self, number: int) -> bytes:
        """Return a block; the last used ones are kept."""
        data = self._kept.pop(number, None)
        if data is None:
            data = self.read(number * BLOCK, (number + 1) * BLOCK)
        self._kept[number] = data
        if len(self._kept) > _BLOCKS_KEPT:
            self._kept.popitem(last=False)
        return data

    def start(self, at: int) -> int:
        """Return the start of the line that byte `at` belongs to (a newline ends its line).

        If nothing is counted and no newline is near, a place within a very long line.
        """
        newline = self.lines.before(at, SCAN)
        if newline is None:
            return 0 if self.lines.passed(0, at) else max(0, at - SCAN * BLOCK)
        return newline + 1

    def begins(self, at: int) -> bool:
        """True if a line begins at this byte."""
        return at <= 0 or self.read(at - 1, at) == b"\n"

    def end(self, at: int) -> int | None:
        """Return the end of the line that byte `at` belongs to: its newline, or the end of the
        file.

        None while that is unknown.
        """
        newline = self.lines.after(at, SCAN)
        if newline is None:
            return self.size if self.lines.passed(at, self.size) else None
        return newline

    @property
    def count(self) -> int:
        """Number of lines; an estimate until all are counted."""
        lines = self.lines
        if lines.unfinished:
            return round(lines.total * self.size / max(1, lines.seen)) or 1
        return lines.total + (self.size > 0 and self.read(self.size - 1, self.size) != b"\n")

    def number(self, at: int) -> int:
        """Return the number of lines before byte `at`; an estimate beyond what is counted."""
        lines = self.lines
        if at > lines.seen:
            return round(lines.total * at / max(1, lines.seen))
        return lines.upto(at)

    def place(self, number: int) -> int:
        """Return the start of a line by its number; beyond what is counted, of one near it."""
        if number <= 0:
            return 0
        newline = self.lines.nth(number - 1)
        if newline is not None:
            return min(newline + 1, self.size)
        return self.start(min(self.size - 1, self.size * number // max(1, self.count)))


class MatchCounts:
    """The places of `needle` in a file. With `fold`, ASCII capitals equal small letters.

    Within a block, matches do not overlap. Only one thread may count at a time. With `kept`, blocks
    that are searched are kept; then only one thread may ask.
    """

    def __init__(
        self, file: LineFile, needle: bytes, *, fold: bool = False, kept: bool = False
    ) -> None:
        self.needle = needle.lower() if fold else needle
        self._file, self.fold, self._kept = file, fold, kept
        self._sums = array("Q", [0])

    @property
    def seen(self) -> int:
        """Number of bytes that were counted."""
        return min((len(self._sums) - 1) * BLOCK, self._file.size)

    @property
    def unfinished(self) -> bool:
        """True if there is anything left to count."""
        return self.seen < self._file.size

    @property
    def total(self) -> int:
        """Number of matches counted."""
        return self._sums[-1]

    def go_on(self, seconds: float) -> bool:
        """Count for about that long. True if there is anything left. Call it in a thread."""
        until = monotonic() + seconds
        while self.unfinished:
            data = self._read(len(self._sums) - 1)
            self._sums.append(self._sums[-1] + data.count(self.needle))
            if monotonic() > until:
                break
        return self.unfinished

    def _read(self, number: int) -> bytes:
        """Return a block with as much of the next as a match that begins in it may take."""
        more = len(self.needle) - 1
        data = self._file.read(number * BLOCK, (number + 1) * BLOCK + more)
        return data.lower() if self.fold else data

    def _block(self, number: int) -> bytes:
        return self._file.block(number) if self._kept else self._read(number)

    def passed(self, start: int, stop: int) -> bool:
        """True if everything from one byte to another was counted or is short enough to search."""
        return stop - max(start, self.seen) <= (SCAN - 1) * BLOCK

    def upto(self, at: int) -> int:
        """Return how many matches begin before `at`; uncounted ones are left out."""
        number = min(at // BLOCK, len(self._sums) - 1)
        within = at - number * BLOCK
        if not within or number >= len(self._sums) - 1:
            return self._sums[number]
        data = self._block(number)
        return self._sums[number] + data.count(self.needle, 0, within + len(self.needle) - 1)

    def nth(self, number: int) -> int | None:
        """Return the start of a match by its number, from 0; None if it was not counted."""
        if number < 0 or number >= self.total:
            return None
        block = bisect_left(self._sums, number + 1) - 1
        data, at = self._block(block), -len(self.needle)
        for _ in range(number - self._sums[block] + 1):
            at = data.find(self.needle, at + len(self.needle))
            if at < 0:
                return None
        return block * BLOCK + at

    def after(self, at: int, most: int | None = None) -> int | None:
        """Return the first match at or after a byte. At most `most` uncounted blocks are
        searched."""
        return self._nearest(at, at // BLOCK, 1, most)

    def before(self, at: int, most: int | None = None) -> int | None:
        """Return the last match that begins before a byte."""
        return self._nearest(at, (min(at, self._file.size) - 1) // BLOCK, -1, most)

    def _nearest(self, at: int, number: int, step: int, most: int | None) -> int | None:
        """Return the nearest match from byte `at` of block `number` on, forwards or (step -1)
        backwards."""
        blocks, sums = -(-self._file.size // BLOCK), self._sums
        while 0 <= number < blocks:
            counted = number + 1 < len(sums)
            if counted and sums[number + 1] == sums[number]:  # skips all blocks without a match
                beyond = sums[number] + 1 if step > 0 else sums[number]
                number = bisect_left(sums, beyond) - 1
                continue
            if not counted and most is not None:
                if most <= 0:
                    return None
                most -= 1
            data, within = self._block(number), at - number * BLOCK
            if step > 0:
                offset = data.find(self.needle, max(0, within))
            else:
                offset = data.rfind(self.needle, 0, min(within, BLOCK) + len(self.needle) - 1)
            if offset >= 0:
                return number * BLOCK + offset
            number += step
        return None


WINDOW = 1 << 14
"""Bytes of a line that are drawn at a time."""


class LinePart(NamedTuple):
    """The drawn part of a line. `behind` is None while the end of the line is unknown."""

    data: bytes
    before: int
    """Bytes of the line before it."""
    behind: int | None
    """Bytes of the line after it."""
    first: int
    """The byte of the file that it begins with."""


def part_of(file: LineFile, start: int, shift: int) -> LinePart:
    """Return the part to draw of the line that begins at byte `start`; of a long one, from `shift`
    bytes on.

    A carriage return starts its line again: whatever precedes the last one was overwritten.
    """
    end = file.end(start)
    stop = file.size if end is None else end
    tail = file.read(max(start, stop - WINDOW), stop).rstrip(b"\r") if end else b""
    again = tail.rfind(b"\r")
    if again >= 0:
        return LinePart(tail[again + 1 :], 0, 0, max(start, stop - WINDOW) + again + 1)
    if stop - start <= WINDOW:
        return LinePart(tail, 0, 0, start)
    first = start + min(shift, max(0, stop - start - WINDOW))
    data = file.read(first, first + WINDOW)
    if first > start:
        cut = _torn(data)
        data, first = data[cut:], first + cut
    behind = None if end is None else max(0, stop - first - len(data))
    return LinePart(data, first - start, behind, first)


def _torn(data: bytes) -> int:
    """Return how many bytes at the beginning belong to a character that began before."""
    return next((n for n in range(4) if n >= len(data) or data[n] & 0xC0 != 0x80), 0)


@dataclass(frozen=True, slots=True)
class Needle:
    """A text to mark in the bytes of a file, "" for nothing.

    With `fold`, capitals (ASCII only) equal small letters, and `text` has only these.
    """

    text: bytes = b""
    fold: bool = False

    def count(self, data: bytes) -> int:
        """Return how often it occurs in these bytes."""
        return (data.lower() if self.fold else data).count(self.text)

    def spots(self, drawn: Line) -> list[tuple[int, int]]:
        """Return its places in a drawn line, as (start, end) in characters."""
        needle = self.text.decode("utf-8", "replace")
        if not needle:
            return []
        flags = re.IGNORECASE | re.ASCII if self.fold else 0
        return [match.span() for match in re.finditer(re.escape(needle), drawn.text, flags)]
