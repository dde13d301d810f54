"""Images from files, and images kept in files until they are sent. Blocks: call it in a thread."""

from __future__ import annotations

import binascii
import os
import time
from contextlib import suppress
from pathlib import Path

from tui.core.errors import ImageError
from tui.core.images.images import MAX_FILE, Image, of_bytes, picture_of, shown, too_large
from tui.core.storage.atomic_files import read_small, replace_file

KEPT_DAYS = 30
"""What was attached and never sent goes after so many days."""

_HEAD = 64
_ENDINGS = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}


def load(path: Path, name: str = "") -> Image | None:
    """The image in a file; None where the file is none, or there is none to read.

    Raises ImageError for an image that is too large, or that cannot be read to its end.
    """
    try:
        head, state = read_small(path, limit=_HEAD, whole=False)
        if not _like_an_image(head):
            return None
        if state.st_size > MAX_FILE:
            raise too_large(name or path.name, state.st_size)
        data, _ = read_small(path, limit=MAX_FILE)
    except (OSError, ValueError):
        return None
    image = of_bytes(data, name or path.name)
    if image is None:  # it begins as one, and has no size
        raise ImageError(
            f"{shown(name or path.name)} was not attached: it cannot be read as an image.",
            hint="Open it in an image program and save it again, as PNG or JPEG.",
        )
    return image


def _like_an_image(head: bytes) -> bool:
    """Whether a file that begins so is an image, as far as its first bytes say."""
    return head.startswith(b"\xff\xd8\xff") or picture_of(head) is not None


def keep(folder: Path, image: Image) -> str:
    """Keep an image that is not sent yet. Returns the file's name; "" where that cannot be.

    The same image is kept once. What is older than `KEPT_DAYS` goes.
    """
    from hashlib import sha256  # noqa: PLC0415 - only where something is kept

    data = binascii.a2b_base64(image.data)
    name = f"{sha256(data).hexdigest()[:32]}.{_ENDINGS[image.picture.media_type]}"
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


def kept(folder: Path, name: str, called: str) -> Image | None:
    """An image that was kept; None where it is not there any more."""
    if Path(name).name != name:
        return None
    try:
        return load(folder / name, called)
    except ImageError:
        return None


def _sweep(folder: Path) -> None:
    oldest = time.time() - KEPT_DAYS * 86_400
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.stat(follow_symlinks=False).st_mtime < oldest:
                    os.unlink(entry.path)  # noqa: PTH108 - a name, as scandir gave it
