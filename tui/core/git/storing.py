"""Puts files as they are into an index, and their content into the repository. Blocks.

Git reads a file by its path, and a command that runs may exchange a folder of the path with a link
at any moment: what lies outside would then be in the repository, for the command to read. So git
is given copies, in a folder that no command can reach, and the copies are made by handles.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Final

from tui.core.apart import folder_apart
from tui.core.errors import os_error_as
from tui.core.git.checkout import Checkout
from tui.core.git.door import GitError, listed
from tui.core.real_folders import RealFolders

_COPIED_BYTES: Final = 64_000_000
"""About so much is copied at a time."""
_ATTRIBUTES: Final = ".gitattributes"


def store(checkout: Checkout, paths: Iterable[str], env: Mapping[str, str] | None = None) -> None:
    """Put the files and links that are at the paths now into the index that `env` names, else that
    of the checkout. What is gone goes first, for what took its place. Raises GitError, also where
    a file changes its kind or goes meanwhile."""
    with RealFolders(checkout.top) as folders:
        sizes = {path: _size(folders, path) for path in dict.fromkeys(paths)}
        missing = [path for path, size in sizes.items() if size is None]
        if missing:
            words = ("update-index", "--force-remove", "-z", "--stdin")
            checkout.git(*words, stdin=listed(missing), env=env)
        for some in _in_parts(sizes):
            with folder_apart(GitError) as place:
                for path in some:
                    with os_error_as(GitError, f"can't store {path}"):
                        _copy(folders, path, place)
                for path in _attributes_for(some):
                    with suppress(OSError):
                        _copy(folders, path, place)
                _add(checkout, some, place, env)
    if env is None:  # the copies' times are noted, which are not the files'
        checkout.answer("update-index", "-q", "--refresh")


def _add(
    checkout: Checkout, paths: Sequence[str], place: Path, env: Mapping[str, str] | None
) -> None:
    here = {**(env or {}), "GIT_WORK_TREE": str(place)}
    words = ("update-index", "--add", "-z", "--stdin")
    checkout.git(*words, stdin=listed(paths), env=here, folder=place)


def _size(folders: RealFolders, path: str) -> int | None:
    """The size of the file or link at a path; None where there is none."""
    with suppress(OSError):
        state = folders.stat(os.fsencode(path))
        if stat.S_ISREG(state.st_mode) or stat.S_ISLNK(state.st_mode):
            return state.st_size
    return None


def _in_parts(sizes: Mapping[str, int | None]) -> Iterator[list[str]]:
    """The paths that are there, in parts of about the same size, in their order."""
    sums: dict[str, int] = {}
    so_far = 0
    for path, size in sizes.items():
        if size is not None:
            sums[path] = so_far // _COPIED_BYTES
            so_far += size
    for _, some in groupby(sums, sums.__getitem__):
        yield list(some)


def _copy(folders: RealFolders, path: str, place: Path) -> None:
    """Copy a file or a link into a folder of ours. Raises OSError."""
    name, target = os.fsencode(path), place / path
    target.parent.mkdir(parents=True, exist_ok=True)
    if stat.S_ISLNK(folders.stat(name).st_mode):
        target.symlink_to(os.fsdecode(folders.target(name)))
        return
    source = folders.open(name, os.O_RDONLY | os.O_NONBLOCK)
    try:
        state = os.fstat(source)
        if not stat.S_ISREG(state.st_mode):
            raise FileNotFoundError(errno.ENOENT, "it's no longer a file", path)
        with target.open("wb") as copy, os.fdopen(source, "rb", closefd=False) as file:
            shutil.copyfileobj(file, copy)
    finally:
        os.close(source)
    target.chmod(stat.S_IMODE(state.st_mode) | stat.S_IRUSR)


def _attributes_for(paths: Iterable[str]) -> Iterator[str]:
    """The files that say how git is to store some paths, where they are not among them."""
    places = dict.fromkeys(place for path in paths for place in Path(path).parents)
    names = (str(place / _ATTRIBUTES) for place in places)
    taken = set(paths)
    yield from (name for name in names if name not in taken)
