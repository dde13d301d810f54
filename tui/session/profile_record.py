"""The profile that a session was asked with last, from its file alone: its header names the one it
was made with, and a record each other one after that. Blocks.
"""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any, Final

from tui.core.facts import DEFAULT_PROFILE
from tui.core.json_files import parse_json
from tui.core.messages import object_of, string_of
from tui.session.reader import open_session

_RECORD: Final = b'\n{"type":"profile"'
"""A line break in a text of a record is escaped, so this begins a record."""
_HEADER: Final = b'{"type":"session"'


def profile_of(path: Path) -> str:
    """The name of the profile, "default" for none; "" for a file that isn't a session of ours. Only
    a few lines are read of the file, however long it is. Raises SessionError, OSError."""
    with open_session(path) as file:
        if file.read(len(_HEADER)) != _HEADER:
            return ""
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            last = data.rfind(_RECORD)
            while last >= 0:
                if (fields := _line(data, last + 1)) is not None:
                    return string_of(fields.get("name")) or DEFAULT_PROFILE
                last = data.rfind(_RECORD, 0, last)  # a crash cut it short: it says nothing
            return string_of((_line(data, 0) or {}).get("profile")) or DEFAULT_PROFILE


def _line(data: mmap.mmap, begin: int) -> dict[str, Any] | None:
    """The fields of the line that begins at a place; None where it can't be read."""
    end = data.find(b"\n", begin)
    try:
        return object_of(parse_json(data[begin : end if end >= 0 else len(data)]))
    except (ValueError, RecursionError):
        return None
