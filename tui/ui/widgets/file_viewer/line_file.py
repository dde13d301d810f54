"""Lines of a file of any size, addressed by the byte at which they begin.

Nothing is read but what is asked for. How often a newline or a searched text begins in each block
of the file is counted in slices, in a thread; from these sums the n-th is found by bisection. The
sums of 4 GB take half a megabyte.
"""

from __future__ import annotations

import os
import re
import stat
from array import array
from bisect import bisect_left
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import NamedTuple

from tui.ui.widgets.markdown.text import Line

BLOCK = 1 << 16
_BLOCKS_KEPT = 32
SCAN = 16
"""Blocks that are looked through at once where nothing was counted yet: 1 MB."""


class LineFile:
    """The bytes of a regular file, or of a text in memory. To be closed. Raises OSError.

    `opened` is the file, where it is open already; it is closed with this. `size` is that at the
    opening. A file that is shortened later just ends earlier.
    """

    def __init__(self, source: Path | bytes | str, opened: int | None = None) -> None:
        self._data: bytes | None = None
        self._descriptor: int | None = None
        self._kept: OrderedDict[int, bytes] = OrderedDict()
        self._lock = Lock()  # nothing is read of a descriptor that another file may have by now
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
        """Let go of the file; what is read afterwards is empty."""
        self._kept.clear()
        self.size, self._data = 0, None
        with self._lock:
            descriptor, self._descriptor = self._descriptor, None
            if descriptor is not None:
                os.close(descriptor)

    def read(self, start: int, stop: int) -> bytes:
        """The bytes from `start` to `stop`, as far as there are any. Safe to use from threads."""
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
        """A block; the last used ones are kept."""
        data = self._kept.pop(number, None)
        if data is None:
            data = self.read(number * BLOCK, (number + 1) * BLOCK)
        self._kept[number] = data
        if len(self._kept) > _BLOCKS_KEPT:
            self._kept.popitem(last=False)
        return data

    def start(self, at: int) -> int:
        """Where the line begins to which byte `at` belongs (a newline ends its line).

        Where nothing is counted and none is near, somewhere within a very long line.
        """
        found = self.lines.before(at, SCAN)
        if found is None:
            return 0 if self.lines.passed(0, at) else max(0, at - SCAN * BLOCK)
        return found + 1

    def begins(self, at: int) -> bool:
        """Whether a line begins at a byte."""
        return at <= 0 or self.read(at - 1, at) == b"\n"

    def end(self, at: int) -> int | None:
        """Where the line ends that byte `at` belongs to: its newline, or the end of the file.

        None where that is not known yet.
        """
        found = self.lines.after(at, SCAN)
        if found is None:
            return self.size if self.lines.passed(at, self.size) else None
        return found

    @property
    def count(self) -> int:
        """How many lines there are; an estimate until all are counted."""
        lines = self.lines
        if lines.unfinished:
            return round(lines.total * self.size / max(1, lines.seen)) or 1
        return lines.total + (self.size > 0 and self.read(self.size - 1, self.size) != b"\n")

    def number(self, at: int) -> int:
        """How many lines stand before byte `at`; beyond what is counted an estimate."""
        lines = self.lines
        if at > lines.seen:
            return round(lines.total * at / max(1, lines.seen))
        return lines.upto(at)

    def place(self, number: int) -> int:
        """Where a line of a number begins; beyond what is counted one near the place."""
        if number <= 0:
            return 0
        found = self.lines.nth(number - 1)
        if found is not None:
            return min(found + 1, self.size)
        return self.start(min(self.size - 1, self.size * number // max(1, self.count)))


class MatchCounts:
    """Where `needle` begins in a file. `fold`: ASCII capitals count as small letters.

    Within a block what was found does not overlap. Only one thread may count at a time. `kept`:
    blocks that are looked into are kept; then only one thread may ask.
    """

    def __init__(
        self, file: LineFile, needle: bytes, *, fold: bool = False, kept: bool = False
    ) -> None:
        self.needle = needle.lower() if fold else needle
        self._file, self.fold, self._kept = file, fold, kept
        self._sums = array("Q", [0])

    @property
    def seen(self) -> int:
        """Bytes that were counted."""
        return min((len(self._sums) - 1) * BLOCK, self._file.size)

    @property
    def unfinished(self) -> bool:
        """Whether there is anything left to count."""
        return self.seen < self._file.size

    @property
    def total(self) -> int:
        """How many were counted."""
        return self._sums[-1]

    def go_on(self, seconds: float) -> bool:
        """Count on for about that long; whether there is anything left. Belongs into a thread."""
        until = monotonic() + seconds
        while self.unfinished:
            data = self._read(len(self._sums) - 1)
            self._sums.append(self._sums[-1] + data.count(self.needle))
            if monotonic() > until:
                break
        return self.unfinished

    def _read(self, number: int) -> bytes:
        """A block and as much of the next as what begins in it may take."""
        more = len(self.needle) - 1
        data = self._file.read(number * BLOCK, (number + 1) * BLOCK + more)
        return data.lower() if self.fold else data

    def _block(self, number: int) -> bytes:
        return self._file.block(number) if self._kept else self._read(number)

    def passed(self, start: int, stop: int) -> bool:
        """Whether all was counted from one byte to another, or could be looked through."""
        return stop - max(start, self.seen) <= (SCAN - 1) * BLOCK

    def upto(self, at: int) -> int:
        """How many begin before `at`; what is not counted does not count."""
        number = min(at // BLOCK, len(self._sums) - 1)
        rest = at - number * BLOCK
        if not rest or number >= len(self._sums) - 1:
            return self._sums[number]
        data = self._block(number)
        return self._sums[number] + data.count(self.needle, 0, rest + len(self.needle) - 1)

    def nth(self, number: int) -> int | None:
        """Where the one of a number begins, from 0; None where that was not counted."""
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
        """The first at or after a byte. `most` blocks that are not counted are looked through."""
        return self._nearest(at, at // BLOCK, 1, most)

    def before(self, at: int, most: int | None = None) -> int | None:
        """The last that begins before a byte."""
        return self._nearest(at, (min(at, self._file.size) - 1) // BLOCK, -1, most)

    def _nearest(self, at: int, number: int, step: int, most: int | None) -> int | None:
        """The nearest from byte `at` of block `number` on, forwards or (step -1) backwards."""
        blocks, sums = -(-self._file.size // BLOCK), self._sums
        while 0 <= number < blocks:
            counted = number + 1 < len(sums)
            if counted and sums[number + 1] == sums[number]:  # it has none: past all such blocks
                beyond = sums[number] + 1 if step > 0 else sums[number]
                number = bisect_left(sums, beyond) - 1
                continue
            if not counted and most is not None:
                if most <= 0:
                    return None
                most -= 1
            data, rest = self._block(number), at - number * BLOCK
            if step > 0:
                found = data.find(self.needle, max(0, rest))
            else:
                found = data.rfind(self.needle, 0, min(rest, BLOCK) + len(self.needle) - 1)
            if found >= 0:
                return number * BLOCK + found
            number += step
        return None


WINDOW = 1 << 14
"""Bytes of a line that are drawn at a time."""


class LinePart(NamedTuple):
    """What is drawn of a line. `behind` is None where the end of the line is not known yet."""

    data: bytes
    before: int
    """Bytes of the line that come before it."""
    behind: int | None
    """Bytes of the line that come after it."""
    first: int
    """The byte of the file that it begins with."""


def part_of(file: LineFile, start: int, shift: int) -> LinePart:
    """The part of the line that begins at byte `start`; of a long one that from `shift` bytes on.

    A carriage return starts its line again: what comes before the last one was overwritten.
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
    """How many bytes at the beginning belong to a character that began before."""
    return next((n for n in range(4) if n >= len(data) or data[n] & 0xC0 != 0x80), 0)


@dataclass(frozen=True, slots=True)
class Needle:
    """`text` in the bytes of a file, "" for nothing; `fold`: capitals (ASCII only) are the same
    as small letters, and `text` has only these."""

    text: bytes = b""
    fold: bool = False

    def count(self, data: bytes) -> int:
        """How often it stands in these bytes."""
        return (data.lower() if self.fold else data).count(self.text)

    def spots(self, drawn: Line) -> list[tuple[int, int]]:
        """The characters of a drawn line that it is, from start to end."""
        wanted = self.text.decode("utf-8", "replace")
        if not wanted:
            return []
        flags = re.IGNORECASE | re.ASCII if self.fold else 0
        return [found.span() for found in re.finditer(re.escape(wanted), drawn.text, flags)]
