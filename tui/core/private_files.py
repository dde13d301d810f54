"""Private files: those in the workspace's `.holdfast/` folder and others that nobody else may read.

No symlink redirects what is written to them. Everything here blocks; call it in a thread where that
matters.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO, Final

from tui.core.errors import StorageError
from tui.core.files import read_small
from tui.core.git.checkout import Checkout
from tui.core.git.door import GitError
from tui.core.workspace import PRIVATE_DIR

_IGNORED: Final = (
    b"# Written by Holdfast: what it makes here, and this file. Yours to change.\n/.gitignore\n"
    b"/tool-results/\n/plans/\n/run/\n/worktrees/\n/*.log\n/*.lock\n/MEMORY.md\n"
)
_FORMERLY: Final = frozenset(
    {
        b"/tool-results/\n/plans/\n/run/\n/*.log\n/*.lock\n/MEMORY.md\n",
        b"/tool-results/\n/run/\n/*.log\n/*.lock\n/MEMORY.md\n",
    }
)
"""The content that earlier versions wrote there."""
EVERYTHING: Final = b"*\n"
"""The .gitignore of a folder from which nothing is committed."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def private_folder(private: Path) -> None:
    """Create the workspace's `.holdfast/` and its .gitignore, if they are missing. Blocks.

    Raises StorageError if the folder is a symlink or cannot be made.
    """
    try:
        os.close(_enter(private))
    except OSError as error:
        raise _failed(private, error) from error


def private_file(path: Path) -> BinaryIO:
    """Create a file of mode 0600 for writing. Blocks; the caller closes it.

    A missing folder is created (0700); inside `.holdfast/` that one is too, with a .gitignore. A
    file of an earlier call is never touched: the next free numbered name is taken, and the handle's
    `name` is the path in use. Raises StorageError if the folder, `.holdfast` or the file is a
    symlink, or if the file cannot be made.
    """
    try:
        folder = _enter(path.parent)
        try:
            return _create(path, folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise _failed(path, error) from error


@contextmanager
def private_copy(path: Path) -> Generator[BinaryIO]:
    """Yield a private file that is synced when the block ends. If the block fails, no partial file
    is left, which would be taken for the whole. Raises OSError and StorageError."""
    with private_file(path) as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            Path(str(file.name)).unlink(missing_ok=True)
            raise


def private_link(source: Path, path: Path) -> Path:
    """Give a private file a second name, made as `private_file` makes one; a copy if the disk
    can't. Returns the path in use. Blocks. Raises OSError and StorageError."""
    folder = private_dir(path.parent)
    try:
        for name in _names(path):
            try:
                os.link(source, name, dst_dir_fd=folder, follow_symlinks=False)
            except FileExistsError:
                continue
            except OSError:
                break
            return path.with_name(name)
    finally:
        os.close(folder)
    with private_copy(path) as copy, source.open("rb") as file:
        while data := file.read(1 << 20):
            copy.write(data)
    return Path(str(copy.name))


def private_dir(folder: Path, *, create: bool = True) -> int:
    """Return a descriptor of a private folder that no symlink led to; the caller closes it. Blocks.

    A missing folder is made, unless `create` is False. Raises StorageError.
    """
    try:
        if not create:
            folder.lstat()
        return _enter(folder)
    except OSError as error:
        raise _failed(folder, error) from error


def open_private(path: Path) -> BinaryIO:
    """Open a private file for reading: a command may have put a link in its place, or in that of
    its folder, and that is not followed. Blocks; raises OSError."""
    path.parent.lstat()
    folder = _enter(path.parent)
    try:
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.fdopen(os.open(path.name, flags, dir_fd=folder), "rb")
    finally:
        os.close(folder)


def _create(path: Path, folder: int) -> BinaryIO:
    def opener(used: str, flags: int) -> int:
        return os.open(Path(used).name, flags | os.O_NOFOLLOW, 0o600, dir_fd=folder)

    for name in _names(path):
        used = path.with_name(name)
        try:
            return open(used, "xb", opener=opener)
        except FileExistsError:
            if used.is_symlink():
                raise
    raise FileExistsError(f"no free name for {path.name}")


def _names(path: Path) -> Iterator[str]:
    """Yield the names that a new file may get, in order."""
    yield path.name
    yield from (f"{path.stem}-{n}{path.suffix}" for n in range(2, 1000))


def _enter(folder: Path) -> int:
    """Return a descriptor of the folder, made if missing, that no symlink led to."""
    if folder.name == PRIVATE_DIR:
        parent = os.open(folder.parent, _FOLDER)
    elif folder.parent.name == PRIVATE_DIR:
        parent = _enter(folder.parent)
    else:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(folder, _FOLDER)
    try:
        with suppress(FileExistsError):
            os.mkdir(folder.name, 0o755 if folder.name == PRIVATE_DIR else 0o700, dir_fd=parent)
        entered = os.open(folder.name, _FOLDER, dir_fd=parent)
    finally:
        os.close(parent)
    if folder.name == PRIVATE_DIR:
        _keep_out_of_git(folder, entered)
    return entered


def _keep_out_of_git(folder: Path, private: int) -> None:
    """Write the .gitignore of `.holdfast/`. An existing one is the person's own, unless an earlier
    version wrote it and no commit holds it."""
    with suppress(OSError):
        try:
            _write_new(".gitignore", _IGNORED, private)
        except FileExistsError:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            opened = os.open(".gitignore", flags, dir_fd=private)
            content, _ = read_small(folder / ".gitignore", opened=opened)
            if content in _FORMERLY and _is_untracked(folder):
                new = f".gitignore.{os.getpid()}.lock"
                _write_new(new, _IGNORED, private)
                os.rename(new, ".gitignore", src_dir_fd=private, dst_dir_fd=private)


def _write_new(name: str, data: bytes, folder: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(name, flags, 0o644, dir_fd=folder), "wb") as file:
        file.write(data)


@cache
def _is_untracked(folder: Path) -> bool:
    """True if git reports that the .gitignore of a folder is in no index: otherwise, changing it
    would change the repository."""
    try:
        checkout = Checkout.of(folder.parent)
        return not checkout.git("ls-files", "--", f"{folder.name}/.gitignore", folder=folder.parent)
    except GitError:
        return False


def leave_ignored_folder(folder: Path) -> None:
    """Remove a folder that has nothing in it but the .gitignore that was written for it."""
    with suppress(OSError):
        ignore = folder / ".gitignore"
        alone = not folder.is_symlink() and list(folder.iterdir()) == [ignore]
        if alone and read_small(ignore, follow=False)[0] in {_IGNORED, EVERYTHING}:
            ignore.unlink()
        folder.rmdir()


def _failed(path: Path, error: OSError) -> StorageError:
    chain = [path, path.parent]
    if path.parent.parent.name == PRIVATE_DIR:
        chain.append(path.parent.parent)
    for part in chain:
        if part.is_symlink():
            return StorageError(
                f"{part} is a symbolic link; Holdfast doesn't write private files through links.",
                hint="Remove the link.",
            )
    return StorageError(f"Can't create {path}: {error.strerror or error}.")
