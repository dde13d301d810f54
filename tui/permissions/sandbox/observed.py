"""An observed state of the file system: what was made of it holds as long as it is the same."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import Any, TypeVar

_Seen = TypeVar("_Seen")


class Observed:
    """Looks at paths, each in each way once; `hold` looks again at all of them."""

    def __init__(self) -> None:
        self._seen: dict[tuple[Callable[[str], Any], str], Any] = {}

    def at(self, path: str, look: Callable[[str], _Seen]) -> _Seen:
        """Return what a look at a path gives: a function of the module, which must not raise."""
        key = (look, path)
        if key not in self._seen:
            self._seen[key] = look(path)
        return self._seen[key]

    def exists(self, path: str) -> bool:
        return self._kind(path)[1] != 0

    def is_dir(self, path: str) -> bool:
        return self._kind(path)[1] == stat.S_IFDIR

    def is_file(self, path: str) -> bool:
        return self._kind(path)[1] == stat.S_IFREG

    def is_link(self, path: str | os.PathLike[str]) -> bool:
        return self._kind(os.fspath(path))[0]

    def _kind(self, path: str) -> tuple[bool, int]:
        return self.at(path, _kind)

    def real(self, path: str | os.PathLike[str]) -> str:
        """Return the real path: nearly all begin with the same folders."""
        path = os.fspath(path)
        above, slash, name = path.rpartition("/")
        if not slash or name in {"", ".", ".."}:
            return self.at(path, os.path.realpath)
        place = f"{self.real(above) if above else ''}".rstrip("/") + f"/{name}"
        return self.at(place, os.path.realpath) if self.is_link(place) else place

    def names(self, folder: str) -> list[str]:
        """List a folder; nothing if it is none, or cannot be read."""
        return self.at(folder, _names)

    def hold(self) -> bool:
        """True if everything still looks as it did."""
        return all(look(path) == seen for (look, path), seen in self._seen.items())


def _kind(path: str) -> tuple[bool, int]:
    """Return whether something is a link, and the type of what it is or leads to, 0 for nothing:
    one look for all questions about a path."""
    link = False
    try:
        mode = os.lstat(path).st_mode
        if link := stat.S_ISLNK(mode):
            mode = os.stat(path).st_mode  # noqa: PTH116 - much faster
    except (OSError, ValueError):
        return link, 0
    return link, stat.S_IFMT(mode)


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208
    except OSError:
        return []
