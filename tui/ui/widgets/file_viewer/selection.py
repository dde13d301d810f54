"""Of a line of a file that may be endless, the part that is drawn. Pure but for reading."""

from __future__ import annotations

from typing import NamedTuple

from tui.ui.widgets.file_viewer.line_file import CopyFile

WINDOW = 1 << 14
"""Bytes of a line that are drawn at a time."""


class Part(NamedTuple):
    """What is drawn of a line. `behind` is None where the end of the line is not known yet."""

    data: bytes
    before: int
    """Bytes of the line that stand before it."""
    behind: int | None
    """Bytes of the line that stand behind it."""
    first: int
    """The byte of the file that it begins with."""


def part_of(file: CopyFile, start: int, shift: int) -> Part:
    """The part of the line that begins at byte `start`; of a long one that from `shift` bytes on.

    A carriage return starts its line again: what stands before the last one was overwritten.
    """
    end = file.end(start)
    stop = file.size if end is None else end
    tail = file.read(max(start, stop - WINDOW), stop).rstrip(b"\r") if end else b""
    again = tail.rfind(b"\r")
    if again >= 0:
        return Part(tail[again + 1 :], 0, 0, max(start, stop - WINDOW) + again + 1)
    if stop - start <= WINDOW:
        return Part(tail, 0, 0, start)
    first = start + min(shift, max(0, stop - start - WINDOW))
    data = file.read(first, first + WINDOW)
    if first > start:
        cut = _torn(data)
        data, first = data[cut:], first + cut
    behind = None if end is None else max(0, stop - first - len(data))
    return Part(data, first - start, behind, first)


def _torn(data: bytes) -> int:
    """How many bytes at the beginning belong to a character that began before."""
    return next((n for n in range(4) if n >= len(data) or data[n] & 0xC0 != 0x80), 0)
