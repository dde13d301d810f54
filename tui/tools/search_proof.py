"""Confirms the matches of a search by folder handles.

A search that runs without walls walks by path, and a command may exchange a folder for a link
meanwhile. So only matches count that are at their path if no link is followed. Blocks.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

from tui.core.late_pattern import late_pattern
from tui.core.real_folders import RealFolders

_LINE_BYTES: Final = 1 << 16
"""Bytes of a line that are compared: more than are ever shown."""
_WIDE_BYTES: Final = 20 << 20
"""Bytes of a text with two bytes a character, which is read as a whole."""
_CUT: Final = late_pattern(r" \[\.\.\. (?:omitted end of long line|\d+ more match(?:es)?)\]\Z")
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY


def confirmed_names(root: Path, names: Iterable[bytes]) -> list[bytes]:
    """Return the names that exist, in order of their folders. The root is a real path."""
    try:
        with RealFolders(root) as folders:
            return [name for name in sorted(names, key=_place) if folders.holds(name)]
    except OSError:
        return []


def confirmed_lines(root: Path, found: Mapping[bytes, Mapping[int, str]]) -> dict[bytes, set[int]]:
    """Return the numbers of the lines that are really in their files, of those that were found."""
    confirmed: dict[bytes, set[int]] = {}
    try:
        with RealFolders(root) as folders:
            for name in sorted(found, key=_place):
                with suppress(OSError):
                    confirmed[name] = _in_file(folders.open(name, _READ), found[name])
    except OSError:
        pass
    return confirmed


def shown_line(line: bytes) -> str:
    """Return a line of a file as a search shows it."""
    return line.rstrip(b"\r\n").decode("utf-8", "replace").replace("\0", "\ufffd")


def _place(name: bytes) -> tuple[bytes, bytes]:
    folder, _, last = name.rpartition(b"/")
    return folder, last


def _in_file(opened: int, found: Mapping[int, str]) -> set[int]:
    with os.fdopen(opened, "rb") as file:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            return set()
        last = max(found, default=0)
        return {
            number
            for number, line in zip(range(1, last + 1), _lines(file), strict=False)
            if number in found and _is(line, found[number])
        }


def _is(line: str, shown: str) -> bool:
    cut = _CUT.search(shown)
    return line == shown or (cut is not None and line.startswith(shown[: cut.start()]))


def _lines(file: BinaryIO) -> Iterator[str]:
    """Yield the lines of a text, each as far as it is compared."""
    start = file.read(3)
    if start[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        wide = (start + file.read(_WIDE_BYTES)).decode("utf-16", "replace")
        yield from (shown_line(line.encode()) for line in wide.split("\n"))
        return
    file.seek(3 if start == b"\xef\xbb\xbf" else 0)
    while line := file.readline(_LINE_BYTES):
        whole = shown_line(line)
        while not line.endswith(b"\n") and (line := file.readline(_LINE_BYTES)):
            pass
        yield whole
