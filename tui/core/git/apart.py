"""A place for the files that git reads or writes for us, out of the reach of commands. Blocks."""

from __future__ import annotations

import shutil
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tui.core.errors import os_error_as
from tui.core.git.door import GitError
from tui.core.paths import folders

_LEFT_S: Final = 86_400
"""What a program that was killed left is removed after this time."""


@contextmanager
def folder_apart() -> Generator[Path]:
    """A new folder, removed at the end. It lies among our own, which the walls hide: TMPDIR may be
    a folder of the workspace, where a command could put a link for git to follow. Raises GitError.
    """
    place = folders().data / "git"
    with os_error_as(GitError, f"can't use {place}"):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        _sweep(place)
        made = TemporaryDirectory(dir=place, ignore_cleanup_errors=True)
    with made as folder:
        yield Path(folder).resolve()


def _sweep(place: Path) -> None:
    """Remove what was left long ago."""
    for left in place.iterdir():
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _LEFT_S:
                shutil.rmtree(left)
