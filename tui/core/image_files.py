"""Images that arrive as files: paths in a pasted text, loading, and a store until they are sent.

Functions that touch the disk block: call them in a thread.
"""

from __future__ import annotations

import binascii
import os
import re
import shlex
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from tui.core.errors import ImageError
from tui.core.files import read_small, replace_file
from tui.core.image_resize import MAX_SOURCE, fitted
from tui.core.images import Image, display_name, image_info, media_type, too_large
from tui.core.late_pattern import late_pattern

STORED_DAYS = 30
"""Days after which an image that was attached and never sent is removed."""

_HEAD = 64
ENDINGS: Final = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}


def load(path: Path, name: str = "", *, real: bool = False) -> Image | None:
    """Load the image in a file, shrunk if it is larger than what is sent; None if the file is no
    image, or can't be read. At a `real` path, no part that has become a link is followed.

    Raises ImageError for an image that is too large to shrink, or that cannot be read to its end.
    """
    try:
        head, state = read_small(path, limit=_HEAD, whole=False, real=real)
        if media_type(head) != "image/jpeg" and image_info(head) is None:
            return None  # a JPEG's size stands further on
        if state.st_size > MAX_SOURCE:
            raise too_large(name or path.name, state.st_size, MAX_SOURCE)
        data, _ = read_small(path, limit=MAX_SOURCE, real=real)
    except (OSError, ValueError):
        return None
    image = fitted(data, name or path.name)
    if image is None:  # it begins as one, and has no size
        raise ImageError(
            f"Didn't attach {display_name(name or path.name)}: it can't be read as an image.",
            hint="Open it in an image program and save it as PNG or JPEG.",
        )
    return image


def store(folder: Path, image: Image) -> str:
    """Store an image that is not sent yet, as it was before it was shrunk. Returns the file's name,
    "" if it cannot be written.

    The same image is stored once. Files older than `STORED_DAYS` are removed.
    """
    from hashlib import sha256  # noqa: PLC0415 - only where something is kept

    data = image.source or binascii.a2b_base64(image.data)
    name = f"{sha256(data).hexdigest()[:32]}.{ENDINGS[media_type(data) or image.info.media_type]}"
    try:
        file = folder / name
        if file.is_file():
            os.utime(file)
        else:
            replace_file(file, data)
        _sweep(folder)
    except OSError:
        return ""
    return name


def load_stored(folder: Path, name: str, called: str) -> Image | None:
    """Load an image that was stored; None if it does not exist any more."""
    if Path(name).name != name:
        return None
    try:
        return load(folder / name, called)
    except ImageError:
        return None


def _sweep(folder: Path) -> None:
    oldest = time.time() - STORED_DAYS * 86_400
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.stat(follow_symlinks=False).st_mtime < oldest:
                    os.unlink(entry.path)  # noqa: PTH108 - a name, as scandir gave it


PASTE_MAX_CHARS = 20_000
"""Characters up to which a text may be a list of paths."""

PASTE_MAX_PATHS = 40
"""Paths in one text."""

_IMAGE_NAME = late_pattern(r"\.(?:png|jpe?g|gif|webp)\Z", re.IGNORECASE)
_START = late_pattern(r"/|~/|\.\.?/|[A-Za-z]:[\\/]")
_ADDRESS = late_pattern(r"file:(?://[^/]*)?(/.+)", re.IGNORECASE | re.DOTALL)
_CONTROL = late_pattern(r"[\0-\x08\x0b\x0c\x0e-\x1f\x7f]")


def pasted_paths(text: str) -> list[tuple[str, ...]]:
    """Return the possible readings of a pasted text as a list of paths, the likeliest first.

    Terminals differ in what they send when files are dropped on them: some escape blanks with
    backslashes, some quote, some send the path as it is. File managers copy `file://` addresses,
    one a line. A path is absolute, begins with `~/`, `./` or `../`, or ends like an image's name.
    Returns [] for any other text.
    """
    text = text.strip()
    if not text or len(text) > PASTE_MAX_CHARS or _CONTROL.search(text):
        return []
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > PASTE_MAX_PATHS:
        return []
    return [
        reading
        for reading in dict.fromkeys(_path_readings(text, lines))
        if 0 < len(reading) <= PASTE_MAX_PATHS and all(map(_is_path, reading))
    ]


def _path_readings(text: str, lines: list[str]) -> Iterator[tuple[str, ...]]:
    if "\n" not in text:
        yield (_unescaped_path(text),)
    yield tuple(map(_unescaped_path, lines))
    yield tuple(path for line in lines for path in _shell_words(line))
    yield tuple(_shell_words(text))  # quotes may hold a line break
    # Several paths in one line, neither quoted nor escaped: each begins as a path does.
    yield tuple(path for line in lines for path in re.split(r"\s+(?=/|~/|file:/)", line))


def _unescaped_path(path: str) -> str:
    """Return a path without quotes around it, if it is not escaped; an address decoded."""
    if len(path) > 1 and path[0] == path[-1] and path[0] in "\"'" and path[0] not in path[1:-1]:
        path = path[1:-1]
    return _decoded(path)


def _shell_words(text: str) -> list[str]:
    """Return the words as a shell would read them; none if quotes are left open."""
    try:
        return [_decoded(word) for word in shlex.split(text)]
    except ValueError:
        return []


def _decoded(path: str) -> str:
    """Return the path of a `file://` address; other paths as they are."""
    address = _ADDRESS.fullmatch(path)
    if address is None:
        return path
    from urllib.parse import unquote_to_bytes  # noqa: PLC0415 - only for an address

    return unquote_to_bytes(address[1]).decode("utf-8", "surrogateescape")


def _is_path(path: str) -> bool:
    return "\0" not in path and bool(_START.match(path) or _IMAGE_NAME.search(path))
