"""The private store: files that nobody else may read and that no symlink redirects (L19)."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from tui.core.errors import StorageError
from tui.core.workspace import PRIVATE_DIR

_IGNORED = b"/tool-results/\n/run/\n/*.log\n/*.lock\n/MEMORY.md\n"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def safe_name(call_id: str) -> str:
    """A call id as a file name: `[A-Za-z0-9_-]{1,64}` (L18).

    An id that had to be changed, or is empty, ends in a hash of the original, so that two ids
    never share a name.
    """
    if re.fullmatch(r"[A-Za-z0-9_-]{1,64}", call_id):
        return call_id
    digest = sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{re.sub(r'[^A-Za-z0-9_-]', '_', call_id)[:47] or 'call'}-{digest}"


def private_folder(private: Path) -> None:
    """Create the workspace's `.holdfast/` and its .gitignore, where they are missing. Blocks.

    Raises StorageError if the folder is a symlink or cannot be made.
    """
    try:
        os.close(_enter(private))
    except OSError as error:
        raise _failed(private, error) from error


def private_file(path: Path) -> BinaryIO:
    """Create a file of mode 0600 for writing. Blocks; the caller closes it.

    The folder is created (0700) where it is missing; inside `.holdfast/` that one is too, with a
    .gitignore. A file of an earlier call is never touched: the next free numbered name is taken,
    and the handle's `name` is the path in use. Raises StorageError if the folder, `.holdfast`
    or the file is a symlink, or if the file cannot be made.
    """
    try:
        folder = _enter(path.parent)
        try:
            return _create(path, folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise _failed(path, error) from error


def private_dir(folder: Path, *, create: bool = True) -> int:
    """A descriptor of a private folder that no symlink led to; the caller closes it. Blocks.

    Made where it is missing, unless `create` is False. Raises StorageError.
    """
    try:
        if not create:
            folder.lstat()
        return _enter(folder)
    except OSError as error:
        raise _failed(folder, error) from error


def _create(path: Path, folder: int) -> BinaryIO:
    def opener(used: str, flags: int) -> int:
        return os.open(Path(used).name, flags | os.O_NOFOLLOW, 0o600, dir_fd=folder)

    for name in (path.name, *(f"{path.stem}-{n}{path.suffix}" for n in range(2, 1000))):
        used = path.with_name(name)
        try:
            return open(used, "xb", opener=opener)
        except FileExistsError:
            if used.is_symlink():
                raise
    raise FileExistsError(f"no free name for {path.name}")


def _enter(folder: Path) -> int:
    """A descriptor of the folder, made where missing, that no symlink led to."""
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
        _keep_out_of_git(entered)
    return entered


def _keep_out_of_git(private: int) -> None:
    with suppress(OSError):  # a file that is there already is the person's own
        file = os.open(
            ".gitignore",
            os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW,
            0o644,
            dir_fd=private,
        )
        try:
            os.write(file, _IGNORED)
        finally:
            os.close(file)


def _failed(path: Path, error: OSError) -> StorageError:
    chain = [path, path.parent]
    if path.parent.parent.name == PRIVATE_DIR:
        chain.append(path.parent.parent)
    for part in chain:
        if part.is_symlink():
            return StorageError(
                f"{part} is a symbolic link; private files are not written through links.",
                hint="Remove the link.",
            )
    return StorageError(f"{path} cannot be created: {error.strerror or error}.")
