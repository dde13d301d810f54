"""Folders below a root, opened part by part from its handle: no link is followed on the way.

Code that walks a workspace by path can be led out of it, since a command may exchange a folder for
a link at any moment. Whatever is found through a handle is below the root, or was there.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final

from tui.core.files import PLACE, real_folder

NOT_THERE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
"""The errors of a path that leads nowhere: nothing is there, or a link on the way."""
_KEPT: Final = 64
"""Handles that stay open at most: deeper folders are opened each time."""


class RealFolders:
    """The folders below a real path. Those opened last stay open: the next one is probably near.

    Paths are relative to the root, with slashes, as bytes. Everything blocks and raises OSError.
    """

    def __init__(self, root: Path) -> None:
        self._parts: list[bytes] = []
        self._handles = [real_folder(root)]
        self._deep = -1

    def __enter__(self) -> RealFolders:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        for handle in (*self._handles, *([self._deep] if self._deep >= 0 else [])):
            os.close(handle)
        self._handles, self._parts, self._deep = [], [], -1

    def enter(self, folder: bytes) -> int:
        """Return a handle of a folder, to find things in. It stays open until the next call."""
        parts = folder.split(b"/") if folder else []
        if self._deep >= 0:
            os.close(self._deep)
            self._deep = -1
        same = 0
        while same < min(len(parts), len(self._parts)) and parts[same] == self._parts[same]:
            same += 1
        while len(self._parts) > same:
            self._parts.pop()
            os.close(self._handles.pop())
        for part in parts[same:_KEPT]:
            self._handles.append(os.open(part, PLACE, dir_fd=self._handles[-1]))
            self._parts.append(part)
        for part in parts[_KEPT:]:
            at = self._deep if self._deep >= 0 else self._handles[-1]
            entered = os.open(part, PLACE, dir_fd=at)
            if self._deep >= 0:
                os.close(self._deep)
            self._deep = entered
        return self._deep if self._deep >= 0 else self._handles[-1]

    def open(self, path: bytes, flags: int) -> int:
        """Open what exists at a path. The caller closes it."""
        folder, _, name = path.rpartition(b"/")
        return os.open(
            name or b".", flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.enter(folder)
        )

    def stat(self, path: bytes) -> os.stat_result:
        """Return the state of what is at a path: of a link, its own."""
        folder, _, name = path.rpartition(b"/")
        return os.stat(name, dir_fd=self.enter(folder), follow_symlinks=False)

    def target(self, path: bytes) -> bytes:
        """Return the target of the link at a path."""
        folder, _, name = path.rpartition(b"/")
        return os.readlink(name, dir_fd=self.enter(folder))

    def holds(self, path: bytes) -> bool:
        """True if something is at a path."""
        with suppress(OSError):
            self.stat(path)
            return True
        return False
