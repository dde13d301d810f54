"""The lines of a tool's output, bounded: the head and the tail are kept, the middle is counted."""

from __future__ import annotations

import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate, chain, islice
from typing import NamedTuple

LINE_MAX = 16_384
"""Characters kept of one line."""
BYTES_MAX = 48_000_000
"""Bytes kept in all (packed, an eighth of that); beyond it, the oldest quarter after the head is
dropped."""
HEAD_LINES = 2_000

_BLOCK = 65_536
_SPLIT_MAX = 4


class _Block(NamedTuple):
    """Whole lines, each with its end: packed, their size in bytes, their number."""

    packed: bytes
    size: int
    lines: int

    @property
    def data(self) -> bytes:
        return zlib.decompress(self.packed)


def _block(data: bytes) -> _Block:
    return _Block(zlib.compress(data, 1), len(data), data.count(b"\n"))


_GAP = _block(b"\n")
"""The line that stands for what was dropped."""


class OutputLines:
    """Lines that grow at the end. `over(i)` is the number of characters of line i that are not
    kept.

    A carriage return starts its line again, as on a terminal. The text is kept as UTF-8 in packed
    blocks, and a block is split when one of its lines is read: a line takes less memory than it has
    characters, and adding one costs no step of its own.
    """

    def __init__(self) -> None:
        self.dropped_lines = 0
        self.dropped_bytes = 0
        self._head = HEAD_LINES
        self._blocks: list[_Block] = []
        self._starts = [0]  # the first line of every block, and of what follows the last
        self._fresh = bytearray()  # whole lines that are no block yet
        self._open = ""  # a line without an end, maybe with a carriage return at its end
        self._open_over = 0
        self._whole = 0
        self._bytes = 0
        self._over: dict[int, int] = {}
        self._split: dict[int, list[bytes]] = {}

    def __len__(self) -> int:
        return self._whole + bool(self._open)

    def __getitem__(self, index: int) -> str:
        if not 0 <= index < len(self):
            raise IndexError(index)
        if index == self._whole:
            return self._open.removesuffix("\r")
        return _text(self._row(index))[:LINE_MAX]

    def __iter__(self) -> Iterator[str]:
        return self.between(0, len(self))

    @property
    def gap(self) -> int | None:
        """The index of the line that stands for the dropped ones."""
        return self._head if self.dropped_lines else None

    def over(self, index: int) -> int:
        """Return how many characters of a line are not kept, or not shown."""
        if index >= self._whole:
            return self._open_over
        row = self._row(index)
        long = max(0, len(_text(row)) - LINE_MAX) if len(row) > LINE_MAX else 0
        return long + self._over.get(index, 0)

    def between(self, start: int, stop: int) -> Iterator[str]:
        """Yield the lines from `start` up to `stop`."""
        stop = min(stop, len(self))
        number = self._block_of(start)
        blocks = (self._rows(n) for n in range(number, len(self._blocks) + 1))
        whole = islice(
            chain.from_iterable(blocks),
            start - self._starts[number],
            max(0, min(stop, self._whole) - self._starts[number]),
        )
        yield from (_text(row)[:LINE_MAX] for row in whole)
        if self._open and start <= self._whole < stop:
            yield self[self._whole]

    def write(self, text: str) -> int:
        """Add text, and return the index of the first line that changed."""
        first = self._whole
        head, ended, after_head = text.partition("\n")
        self._grow(head)
        if ended:
            self._end()
            whole, ended, last = after_head.rpartition("\n")
            self._add(whole + ended)
            self._grow(last)
        if self._bytes > BYTES_MAX:
            self._drop()
            return 0
        return first

    def _grow(self, piece: str) -> None:
        """Add to the line that has no end yet."""
        if not piece:
            return
        row = self._open + piece
        back = ""
        if "\r" in row:
            bare = row.rstrip("\r")
            back = "\r" if len(bare) < len(row) else ""
            _, again, row = bare.rpartition("\r")
            if again:
                self._open_over = 0
        self._open_over += max(0, len(row) - LINE_MAX)
        self._open = row[:LINE_MAX] + back

    def _end(self) -> None:
        row, over = self._open.removesuffix("\r"), self._open_over
        self._open, self._open_over = "", 0
        if over:
            self._over[self._whole] = over
        self._add(row + "\n")

    def _add(self, text: str) -> None:
        """Add whole lines, each with its end."""
        if "\r" in text:
            rows = text.replace("\r\n", "\n").split("\n")
            text = "\n".join(row.rstrip("\r").rpartition("\r")[2] for row in rows)
        data = text.encode("utf-8", "surrogatepass")
        self._split.pop(len(self._blocks), None)
        self._fresh += data
        self._bytes += len(data)
        self._whole += data.count(b"\n")
        while len(self._fresh) >= _BLOCK:
            self._seal(self._fresh.find(b"\n", _BLOCK - 1) + 1)

    def _seal(self, size: int) -> None:
        """Turn that much of the fresh lines into a block."""
        block = _block(bytes(self._fresh[:size]))
        del self._fresh[:size]
        self._blocks.append(block)
        self._starts.append(self._starts[-1] + block.lines)
        self._split.pop(len(self._blocks), None)

    def _drop(self) -> None:
        """Drop the oldest blocks after the head, a quarter of everything at a time."""
        blocks, before = self._blocks, self._whole
        if self._fresh:
            self._seal(len(self._fresh))
        # The gap replaces an earlier one.
        if self.dropped_lines:
            start = bisect_left(self._starts, self._head)
            del blocks[start]
        else:
            start = self._part()
        stop, freed = start, 0
        while stop < len(blocks) - 1 and freed < BYTES_MAX // 4:
            freed += blocks[stop].size
            stop += 1
        self.dropped_lines += sum(block.lines for block in blocks[start:stop])
        self.dropped_bytes += freed
        self._bytes -= freed
        blocks[start:stop] = [_GAP]
        self._starts = list(accumulate((block.lines for block in blocks), initial=0))
        self._whole = self._starts[-1]
        self._split.clear()
        # Lines after the gap have moved up.
        shift = before - self._whole
        self._over = {
            index if index < self._head else index - shift: count
            for index, count in self._over.items()
            if index < self._head or index - shift > self._head
        }

    def _part(self) -> int:
        """Make a block begin where the head ends, and return its number.

        If lines are long, the head has fewer of them: it takes at most a quarter of the room.
        """
        blocks, starts = self._blocks, self._starts
        sizes = accumulate(block.size for block in blocks)
        number = next(
            number
            for number, size in enumerate(sizes)
            if starts[number + 1] > self._head or size > BYTES_MAX // 4
        )
        if starts[number + 1] <= self._head:
            self._head = starts[number]
            return number
        head = self._rows(number)[: self._head - starts[number]]
        size = sum(map(len, head)) + len(head)
        data = blocks[number].data
        parts = filter(None, (data[:size], data[size:]))
        blocks[number : number + 1] = map(_block, parts)
        return number + bool(size)

    def _block_of(self, index: int) -> int:
        return bisect_right(self._starts, index) - 1

    def _row(self, index: int) -> bytes:
        number = self._block_of(index)
        return self._rows(number)[index - self._starts[number]]

    def _rows(self, number: int) -> list[bytes]:
        rows = self._split.get(number)
        if rows is None:
            blocks = self._blocks
            data = blocks[number].data if number < len(blocks) else bytes(self._fresh)
            rows = self._split[number] = data.split(b"\n")
            rows.pop()
            if len(self._split) > _SPLIT_MAX:
                del self._split[next(iter(self._split))]
        return rows


def _text(row: bytes) -> str:
    return row.decode("utf-8", "surrogatepass")
