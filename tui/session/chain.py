"""The chain of a session file: each line ends with a link, a hash over the link before it and the
line itself, so that a line that was changed, moved or removed since is found.

    {"type":"user",…,"chain":"0123456789abcdef0123456789abcdef"}

It detects accidents and edits, not an owner who recomputes all links. Where the last line of a file
has no link (an older version wrote it, or it was cut short), a line
`{"type":"chain",…,"bytes":N,"sha256":…}` starts a new chain, with the hash of all bytes before.
The end of a file isn't covered: lines that were cut off there leave no trace.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from tui.core.dataclass import dataclass
from tui.core.errors import StorageError, os_error_as
from tui.core.late_pattern import late_pattern

CHAIN: Final = "chain"
"""The field of a link, and the type of a line that begins a chain."""
LINK: Final = late_pattern(rb',"chain":"([0-9a-f]{32})"\}(\r?)$')
_DIGITS: Final = 32
TAIL: Final = 200
"""Bytes at the end of a line that hold its link."""
_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class ChainEnd:
    """The place where a chain continues: after `link`, "" at the beginning of a file. `covers` are
    the fields of the line that is to begin a chain first, None where the last line has a link."""

    link: str = ""
    covers: dict[str, Any] | None = None


def linked(line: bytes, before: str) -> tuple[bytes, str]:
    """A line of JSON, with its newline, with its link behind the link `before`; and that link."""
    link = hash_over(line.removesuffix(b"\n"), before)
    return line[: line.rindex(b"}")] + f',"{CHAIN}":"{link}"}}\n'.encode(), link


def all_linked(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a new file with their links."""
    link = ""
    for line in lines:
        made, link = linked(line, link)
        yield made


def end_of(path: Path) -> ChainEnd:
    """Find where the chain of a file continues. Blocks: a file whose last line has no link is read
    whole. Raises StorageError where it can't be read."""
    with os_error_as(StorageError, f"Can't read {path}"), path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        if not size:
            return ChainEnd()
        file.seek(max(0, size - TAIL))
        tail = file.read()
        match = LINK.search(tail.removesuffix(b"\n")) if tail.endswith(b"\n") else None
        if match is not None:
            return ChainEnd(match[1].decode())
        file.seek(0)
        digest = sha256()
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    if not tail.endswith(b"\n"):  # the writer adds it
        digest.update(b"\n")
        size += 1
    return ChainEnd(digest.hexdigest(), {"bytes": size, "sha256": digest.hexdigest()})


def hash_over(body: bytes, before: str) -> str:
    """The link of a line behind the link `before`."""
    return sha256(before.encode() + body).hexdigest()[:_DIGITS]
