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
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tui.core.apart import folder_apart
from tui.core.errors import os_error_as
from tui.core.files import PLACE, open_real, real_folder
from tui.core.git.checkout import Checkout
from tui.core.git.door import GitError, listed
from tui.core.real_folders import NOT_THERE

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
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
    for path in paths:
        with os_error_as(GitError, f"can't put {path} in its place"):
            _put(apart / path, checkout.top, Path(path))
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


def clear(top: Path, path: str) -> None:
    """Remove a file of a checkout, and the folders that it leaves empty. Where a folder has become
    a link, there is none: what the link leads to isn't the checkout's."""
    file = top / path
    with suppress(FileNotFoundError, NotADirectoryError), _place_of(file) as folder:
        os.unlink(file.name, dir_fd=folder)
    with suppress(OSError):
        for above in file.parents[: len(Path(path).parts) - 1]:
            with _place_of(above) as folder:
                os.rmdir(above.name, dir_fd=folder)


@contextmanager
def _place_of(file: Path) -> Generator[int]:
    """The folder of a real path, opened. Raises NotADirectoryError where a part of it is a link."""
    try:
        folder = real_folder(file.parent)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NotADirectoryError(*error.args) from error
        raise
    try:
        yield folder
    finally:
        os.close(folder)


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


def _put(made: Path, top: Path, path: Path) -> None:
    """Put a file, a link or a submodule's folder at a path of the checkout. Raises OSError."""
    folder = _folder(top, path.parent)
    try:
        state = made.lstat()
        if stat.S_ISDIR(state.st_mode):
            with suppress(FileExistsError):
                os.mkdir(path.name, dir_fd=folder)
            return
        with suppress(FileNotFoundError, NotADirectoryError):
            os.rmdir(path.name, dir_fd=folder)
        new = f".holdfast-{os.urandom(8).hex()}.tmp"
        try:
            _copy(made, state, new, folder)
            os.replace(new, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(new, dir_fd=folder)
            raise
    finally:
        os.close(folder)


def _copy(made: Path, found: os.stat_result, name: str, folder: int) -> None:
    if stat.S_ISLNK(found.st_mode):
        os.symlink(made.readlink(), name, dir_fd=folder)
        return
    copy = os.open(name, _NEW, stat.S_IMODE(found.st_mode), dir_fd=folder)
    with os.fdopen(copy, "wb") as file, made.open("rb") as source:
        shutil.copyfileobj(source, file)


def _folder(top: Path, path: Path) -> int:
    """A folder of the checkout, opened part by part: it is made where it is missing, and what
    stands in its place goes. The caller closes it. Raises OSError."""
    at = real_folder(top)
    for part in path.parts:
        try:
            inner = _entered(part, at)
        finally:
            os.close(at)
        at = inner
    return at


def _entered(name: str, folder: int) -> int:
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
