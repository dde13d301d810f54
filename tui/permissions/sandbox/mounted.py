"""The mounts of a process, as the kernel names them: each place and source by its present path."""

from __future__ import annotations

import os
import re

from tui.core.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Mounted:
    """A line of mountinfo: which part of which file system is mounted where."""

    device: str
    root: str
    place: str


def mounts_of(process: int | str) -> bytes:
    """Read the mounts of a process."""
    with open(f"/proc/{process}/mountinfo", "rb") as lines:  # noqa: PTH123
        return lines.read()


def parsed(mounts: bytes) -> list[Mounted]:
    rows = [line.split(b" ") for line in mounts.splitlines()]
    return [Mounted(*map(_unescaped, row[2:5])) for row in rows]


def _unescaped(field: bytes) -> str:
    if b"\\" not in field:
        return os.fsdecode(field)
    return os.fsdecode(re.sub(rb"\\([0-7]{3})", lambda octal: bytes([int(octal[1], 8)]), field))


def shows(one: Mounted, source: str, here: list[Mounted]) -> bool:
    """True if a mount shows what is at `source` here."""
    above = [mount for mount in here if mount.place == source or is_below(source, [mount.place])]
    base = max(reversed(above), key=lambda mount: len(mount.place))
    path = base.root.rstrip("/") + source[len(base.place.rstrip("/")) :]
    return one.device == base.device and one.root == (path or "/")


def is_below(path: str, folders: list[str]) -> bool:
    return any(path.startswith(folder.rstrip("/") + "/") for folder in folders)
