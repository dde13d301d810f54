"""The mounts of a process, as the kernel names them: each place and source by its present path."""

from __future__ import annotations

import os
import re

Mounted = tuple[str, str, str]
"""A line of mountinfo: the device of a file system, which part of it is mounted, and where."""


def mounts_of(process: int | str) -> bytes:
    """Read the mounts of a process."""
    with open(f"/proc/{process}/mountinfo", "rb") as lines:  # noqa: PTH123
        return lines.read()


def parsed(mounts: bytes) -> list[Mounted]:
    rows = [line.split(b" ") for line in mounts.splitlines()]
    return [(_unescaped(row[2]), _unescaped(row[3]), _unescaped(row[4])) for row in rows]


def _unescaped(field: bytes) -> str:
    if b"\\" not in field:
        return os.fsdecode(field)
    return os.fsdecode(re.sub(rb"\\([0-7]{3})", lambda octal: bytes([int(octal[1], 8)]), field))


def shows(one: Mounted, source: str, here: list[Mounted]) -> bool:
    """True if a mount shows what is at `source` here."""
    device = root = above = ""
    for mount in here:  # the innermost counts, and of several at one place the last
        place = mount[2]
        if len(place) >= len(above) and (source == place or is_below(source, [place])):
            device, root, above = mount
    path = root.rstrip("/") + source[len(above.rstrip("/")) :]
    return one[0] == device and one[1] == (path or "/")


def is_below(path: str, folders: list[str]) -> bool:
    return any(path.startswith(folder.rstrip("/") + "/") for folder in folders)
