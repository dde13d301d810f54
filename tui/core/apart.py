"""A place for files that another program reads or writes for us, out of the reach of commands.
Blocks."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tui.core.errors import HoldfastError, os_error_as
from tui.core.paths import folders

_LEFT_S: Final = 86_400
"""The time after which the remains of a killed program are removed."""


@contextmanager
def folder_apart(error: type[HoldfastError]) -> Generator[Path]:
    """A new folder, removed at the end. It lies among our own, which the walls hide: TMPDIR may be
    a folder of the workspace, where a command could put a link into a file's place. Raises
    `error` where there can be none.
    """
    place = folders().data / "apart"
    with os_error_as(error, f"can't use {place}"):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        _sweep(place)
        made = TemporaryDirectory(dir=place, ignore_cleanup_errors=True)
    with made as folder:
        yield Path(folder).resolve()


def linked_apart(opened: int, place: Path) -> None:
    """Give an open file a second name in a folder of `folder_apart`; a copy where the disk can't.
    Raises OSError."""
    folder = os.open(place.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # Without a folder's descriptor Python calls link(), which takes the link itself (3.11).
        os.link(f"/proc/self/fd/{opened}", place.name, dst_dir_fd=folder)
    except OSError:
        with os.fdopen(os.dup(opened), "rb") as file, place.open("xb") as copy:
            shutil.copyfileobj(file, copy)
    finally:
        os.close(folder)


def _sweep(place: Path) -> None:
    """Remove what was left long ago."""
    for left in place.iterdir():
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _LEFT_S:
                shutil.rmtree(left)
