"""Paths in a pasted text: what a terminal sends when files are dropped on it. Pure.

Terminals differ. Some escape blanks with backslashes, some quote, some send the path as it is;
file managers copy `file://` addresses, one a line.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

LONGEST = 20_000
"""A longer text is no list of paths."""

MOST = 40
"""Paths in one text."""

_IMAGE = re.compile(r"\.(?:png|jpe?g|gif|webp)\Z", re.IGNORECASE)
_START = re.compile(r"/|~/|\.\.?/|[A-Za-z]:[\\/]")
_ADDRESS = re.compile(r"file:(?://[^/]*)?(/.+)", re.IGNORECASE | re.DOTALL)
_CONTROL = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\x7f]")


def readings(text: str) -> list[tuple[str, ...]]:
    """The ways to read a text as paths, the likeliest first; none where it is another text.

    A path is absolute, begins with `~/`, `./` or `../`, or is a name that ends like an image's.
    """
    text = text.strip()
    if not text or len(text) > LONGEST or _CONTROL.search(text):
        return []
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > MOST:
        return []
    found: list[tuple[str, ...]] = []
    for reading in _readings(text, lines):
        if 0 < len(reading) <= MOST and reading not in found and all(map(_like_a_path, reading)):
            found.append(reading)
    return found


def _readings(text: str, lines: list[str]) -> Iterator[tuple[str, ...]]:
    if "\n" not in text:
        yield (_plain(text),)
    yield tuple(map(_plain, lines))
    yield tuple(path for line in lines for path in _words(line))
    yield tuple(_words(text))  # quotes may hold a line break
    yield tuple(path for line in lines for path in _blank_separated(line))


def _plain(path: str) -> str:
    """A path that is not escaped: as it is, less quotes around it; an address decoded."""
    if len(path) > 1 and path[0] == path[-1] and path[0] in "\"'" and path[0] not in path[1:-1]:
        path = path[1:-1]
    return _decoded(path)


def _words(text: str) -> list[str]:
    """The words as a shell would read them; none where quotes are left open."""
    try:
        return [_decoded(word) for word in shlex.split(text)]
    except ValueError:
        return []


def _blank_separated(line: str) -> list[str]:
    """Paths behind one another, neither quoted nor escaped: each begins as a path does."""
    return re.split(r"\s+(?=/|~/|file:/)", line)


def _decoded(path: str) -> str:
    """The path of a `file://` address; other paths as they are."""
    found = _ADDRESS.fullmatch(path)
    if found is None:
        return path
    from urllib.parse import unquote_to_bytes  # noqa: PLC0415 - only for an address

    return unquote_to_bytes(found[1]).decode("utf-8", "surrogateescape")


def _like_a_path(path: str) -> bool:
    return "\0" not in path and bool(_START.match(path) or _IMAGE.search(path))
