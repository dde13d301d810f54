"""Puts files of an index into their checkout, and takes files out of it. Blocks.

Git writes a file by its path, and a command that runs may exchange a folder of the path with a link
at any moment: git would then write outside. So git writes into a folder that no command can reach,
and what it wrote is put in its place by handles.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import Final, Self

from tui.core.apart import folder_apart
from tui.core.errors import os_error_as
from tui.core.files import PLACE, open_real, real_folder
from tui.core.git.checkout import Checkout
from tui.core.git.door import GitError, listed
from tui.core.real_folders import NOT_THERE

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PART: Final = 1 << 20
_TRIES: Final = 20
"""Number of times that an obstacle in the place of a folder is removed, at most."""


def place(checkout: Checkout, paths: Sequence[str]) -> None:
    """Put what the index holds at these paths into the checkout, in place of what is there; only a
    folder that isn't empty stays. Raises GitError."""
    with folder_apart(GitError) as apart:
        words = ("checkout-index", "-f", "-q", "-z", "--stdin", f"--prefix={apart}/")
        checkout.git(*words, stdin=listed(paths))
        take(checkout, apart, paths)


def take(checkout: Checkout, apart: Path, paths: Iterable[str]) -> None:
    """Put what git wrote into a folder apart at these paths of the checkout, in place of what is
    there; only a folder that isn't empty stays. Raises GitError."""
    new = f".holdfast-{os.urandom(8).hex()}.tmp"
    with _Folders(checkout.top) as folders:
        for path in paths:
            above, _, name = path.rpartition("/")
            with os_error_as(GitError, f"can't put {path} in its place"):
                _put(f"{apart}/{path}", folders.at(above, _made_entry), name, new)
    checkout.answer("update-index", "-q", "--refresh")


def fill(checkout: Checkout) -> None:
    """Check out all that belongs into a new worktree, which is empty. Raises GitError."""
    with folder_apart(GitError) as apart:
        here = {"GIT_WORK_TREE": str(apart)}
        checkout.git("reset", "-q", "--hard", env=here, folder=apart)
        with os_error_as(GitError, f"can't fill {checkout.top}"):
            top = real_folder(checkout.top)
            try:
                _move(apart, top)
            finally:
                os.close(top)
    checkout.answer("update-index", "-q", "--refresh")


def copy_real(source: Path, copy: Path) -> bool:
    """Copy a file with its mode and times to where none is. False where a part of either path is a
    link, or has become one: it leads elsewhere. Raises OSError."""
    try:
        opened = open_real(source, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in NOT_THERE:
            return False
        raise
    with os.fdopen(opened, "rb") as file:
        state = os.fstat(opened)
        try:
            folder = real_folder(copy.parent, create=True)
        except OSError as error:
            if error.errno in NOT_THERE:
                return False
            raise
        try:
            made = os.open(copy.name, _NEW, stat.S_IMODE(state.st_mode), dir_fd=folder)
        finally:
            os.close(folder)
        with os.fdopen(made, "wb") as target:
            shutil.copyfileobj(file, target)
            target.flush()
            os.utime(made, ns=(state.st_atime_ns, state.st_mtime_ns))
    return True


def clear(top: Path, paths: Iterable[str]) -> None:
    """Remove files of a checkout, and the folders that they leave empty. Where a folder has become
    a link, there is none: what the link leads to isn't the checkout's."""
    emptied: defaultdict[int, set[str]] = defaultdict(set)
    with _Folders(top) as folders:
        for path in paths:
            above, _, name = path.rpartition("/")
            try:
                os.unlink(name, dir_fd=folders.at(above, _real_entry))
            except OSError as error:
                if error.errno not in NOT_THERE:
                    raise
            emptied[path.count("/")].add(above)
        for depth in range(max(emptied, default=0), 0, -1):
            for folder in sorted(emptied[depth]):
                above, _, name = folder.rpartition("/")
                with suppress(OSError):
                    os.rmdir(name, dir_fd=folders.at(above, _real_entry))
                    emptied[depth - 1].add(above)


class _Folders:
    """Opens the folders of a checkout part by part, and keeps those on the way to the last one:
    paths that are in order open each folder once. Raises OSError."""

    def __init__(self, top: Path) -> None:
        self._top = top
        self._way: list[tuple[str, int]] = []
        """Each folder's name and descriptor, from the top of the checkout, which has no name."""
        self._last: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._leave(0)

    def at(self, folder: str, entry: Callable[[str, int], int]) -> int:
        """A folder by its path in the checkout, "" for its top; open until the next call. `entry`
        opens a name in an open folder."""
        if folder != self._last:
            self._last = None
            parts = ["", *folder.split("/")] if folder else [""]
            known = zip(self._way, parts, strict=False)
            self._leave(sum(1 for _ in takewhile(lambda pair: pair[0][0] == pair[1], known)))
            for part in parts[len(self._way) :]:
                opened = entry(part, self._way[-1][1]) if self._way else real_folder(self._top)
                self._way.append((part, opened))
            self._last = folder
        return self._way[-1][1]

    def _leave(self, length: int) -> None:
        while len(self._way) > length:
            os.close(self._way.pop()[1])


def _move(made: Path, folder: int) -> None:
    """Move what is in a folder into an open one that has nothing of these names. Raises OSError."""
    for one in made.iterdir():
        try:
            os.rename(one, one.name, dst_dir_fd=folder)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            _copy_new(one, folder)


def _copy_new(made: Path, folder: int) -> None:
    """Copy a file, a link or a folder with what is in it into an open folder. Raises OSError."""
    state = made.lstat()
    if not stat.S_ISDIR(state.st_mode):
        _copy(made, state, made.name, folder)
        return
    os.mkdir(made.name, dir_fd=folder)
    inner = os.open(made.name, PLACE, dir_fd=folder)
    try:
        for one in made.iterdir():
            _copy_new(one, inner)
    finally:
        os.close(inner)


def _put(made: str, folder: int, name: str, new: str) -> None:
    """Put a file, a link or a submodule's folder into an open folder, a file as `new` first. Raises
    OSError."""
    found = os.lstat(made)
    if stat.S_ISDIR(found.st_mode):
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)
        return
    try:
        _copy(made, found, new, folder)
        try:
            os.replace(new, name, src_dir_fd=folder, dst_dir_fd=folder)
        except IsADirectoryError:
            os.rmdir(name, dir_fd=folder)
            os.replace(new, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(new, dir_fd=folder)
        raise


def _copy(made: str | Path, found: os.stat_result, name: str, folder: int) -> None:
    if stat.S_ISLNK(found.st_mode):
        os.symlink(Path(made).readlink(), name, dir_fd=folder)
        return
    source = os.open(made, os.O_RDONLY | os.O_CLOEXEC)
    try:
        copy = os.open(name, _NEW, stat.S_IMODE(found.st_mode), dir_fd=folder)
        try:
            while part := memoryview(os.read(source, _PART)):
                while part := part[os.write(copy, part) :]:
                    pass
        finally:
            os.close(copy)
    finally:
        os.close(source)


def _real_entry(name: str, folder: int) -> int:
    return os.open(name, PLACE, dir_fd=folder)


def _made_entry(name: str, folder: int) -> int:
    """Open a folder in an open one: it is made where it is missing, and what stands in its place
    goes. Raises OSError."""
    for _ in range(_TRIES):
        try:
            return os.open(name, PLACE, dir_fd=folder)
        except FileNotFoundError:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=folder)
        except OSError as error:
            if error.errno not in {errno.ENOTDIR, errno.ELOOP}:
                raise
            with suppress(FileNotFoundError, IsADirectoryError):
                os.unlink(name, dir_fd=folder)
    raise OSError(errno.EBUSY, "something exchanges its folder all the time", name)
