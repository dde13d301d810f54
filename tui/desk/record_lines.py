"""The lines of a session's file for a watcher: those that come after what it has. Blocks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Final

import msgspec

from tui.session.reader import open_session

CHUNK: Final = 1_000_000
"""Bytes of a part, unless one line alone has more."""
_READ: Final = 1 << 20
_DRAFT: Final = (b'{"type":"draft"', b'{"type":"chain"')
"""The beginnings of lines that are no records."""


class _Head(msgspec.Struct):
    """The fields of a line that say where it belongs."""

    type: str = ""
    id: str = ""
    parent: str | None = None


class FilePart(msgspec.Struct, frozen=True):
    """The part of a session's file between two bytes. `afresh`: what a watcher has is void; `last`
    is the last record in it, or the one before it; `whole`: the record that it was to end with is
    in it; `inode` tells the file from another that took its place."""

    start: int = 0
    end: int = 0
    afresh: bool = False
    last: str = ""
    whole: bool = True
    inode: int = 0


_HEADS: Final = msgspec.json.Decoder(_Head)


def part_after(path: Path, after: str, last: str | None) -> FilePart:
    """The part of a file that a watcher lacks who has the records up to `after`, "" for none. It
    ends with the record `last`, or with None at the end of the file.

    Where a rewind began another branch since, or `after` is not there, it is all from the
    beginning. Raises SessionError if the file can't be read.
    """
    if last == "":
        return FilePart(afresh=bool(after))
    with open_session(path) as file:
        inode = os.fstat(file.fileno()).st_ino
        start, end, before, linear = 0, 0, "", False
        for line, stop in _lines(file, 0):
            end = stop
            head = _head(line)
            if head is None:
                continue
            linear = linear and head.parent == before
            before = head.id
            if after and head.id == after:
                start, linear = stop, True
            if head.id == last:
                break
        whole = last is None or before == last
    afresh = not linear
    return FilePart(0 if afresh else start, end, afresh, before, whole, inode)


def grown(path: Path, part: FilePart) -> FilePart:
    """The bytes that a file has gained behind a part; all of it afresh where it is another file
    now, or a rewind began another branch. Raises SessionError if it can't be read."""
    with open_session(path) as file:
        state = os.fstat(file.fileno())
        if state.st_ino != part.inode or state.st_size < part.end:
            return part_after(path, "", None)
        end, before = part.end, part.last
        for line, stop in _lines(file, part.end):
            end = stop
            if (head := _head(line)) is None:
                continue
            if head.parent != before and before:
                return part_after(path, "", None)
            before = head.id
    return FilePart(part.end, end, False, before, True, part.inode)


def texts(path: Path, start: int, end: int) -> tuple[tuple[str, ...], int]:
    """The records' lines from a byte on, about CHUNK of them, and the byte where they end. Raises
    SessionError."""
    chosen: list[str] = []
    size = 0
    with open_session(path) as file:
        for line, stop in _lines(file, start):
            if stop > end:
                break
            start = stop
            if line and not line.startswith(_DRAFT):
                chosen.append(line.decode(errors="replace"))
                size += len(line)
            if size >= CHUNK:
                break
        else:
            start = end
    return tuple(chosen), start


def _lines(file: FileIO, start: int) -> Iterator[tuple[bytes, int]]:
    """The whole lines of a file from a byte on, without their ends, and where the next begins."""
    begun: list[bytes] = []
    file.seek(start)
    while data := file.read(_READ):
        *ended, rest = data.split(b"\n")
        for line in ended:
            whole = b"".join((*begun, line)) if begun else line
            begun.clear()
            start += len(whole) + 1
            yield whole, start
        if rest:
            begun.append(rest)


def _head(line: bytes) -> _Head | None:
    """The head of a record's line; None for any other line."""
    if line.startswith(_DRAFT):
        return None
    with suppress(ValueError, RecursionError):
        head = _HEADS.decode(line)
        if head.id and head.type != "session":
            return head
    return None
