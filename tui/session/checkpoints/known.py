"""The paths of the last checkpoint, by folder: so that a look at the workspace goes through both in
step."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from tui.session.checkpoints.entries import PathEntry


class KnownPaths:
    """The entries of all known paths below the workspace. Paths are bytes with slashes; the names
    in a folder are text, as the system lists them."""

    def __init__(self) -> None:
        self._folders: dict[bytes, dict[str, PathEntry]] = {}

    def within(self, folder: bytes) -> Mapping[str, PathEntry]:
        """Return the entries of a folder, given with its slash (b"": the workspace)."""
        return self._folders.get(folder, {})

    def below(self, path: bytes) -> Iterator[tuple[bytes, PathEntry]]:
        """Yield the entries of a folder and of those in it, given without its slash."""
        folders = [path + b"/" if path else b""]
        while folders:
            folder = folders.pop()
            for name, entry in self.within(folder).items():
                inner = folder + os.fsencode(name)
                yield inner, entry
                if inner + b"/" in self._folders:
                    folders.append(inner + b"/")

    def get(self, path: bytes) -> PathEntry | None:
        folder, name = _parts(path)
        return self.within(folder).get(name)

    def put(self, path: bytes, entry: PathEntry) -> None:
        folder, name = _parts(path)
        self._folders.setdefault(folder, {})[name] = entry

    def drop(self, path: bytes) -> None:
        """Forget a path; the paths below it stay."""
        folder, name = _parts(path)
        names = self._folders.get(folder, {})
        names.pop(name, None)
        if not names:
            self._folders.pop(folder, None)


def _parts(path: bytes) -> tuple[bytes, str]:
    at = path.rfind(b"/") + 1
    return path[:at], os.fsdecode(path[at:])
