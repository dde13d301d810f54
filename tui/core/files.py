"""The program's own files: small ones, read with a limit and replaced whole.

A small file is changed by one process at a time (`locked`). Files that nobody else may read are
made by `private_files`. `installation_key` is a secret by which the program recognises what it
wrote itself.

Everything here blocks; call it in a thread where that matters.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tui.core.late_pattern import late_pattern

SMALL_FILE_BYTES = 1_000_000


def read_small(
    path: Path,
    *,
    limit: int = SMALL_FILE_BYTES,
    follow: bool = True,
    whole: bool = True,
    real: bool = False,
    opened: int | None = None,
) -> tuple[bytes, os.stat_result]:
    """Return the bytes of a regular file, and its state when it was opened.

    Raises OSError, with a text that can be shown: for a folder, pipe or device (never waiting for
    one), for a file above `limit` bytes, without `follow` for a symlink, and with `real` for one in
    any part of the path. Without `whole`, the first `limit` bytes of a larger file are enough.
    `opened` is the file, if it is open already; it is closed.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    file = opened
    if file is None:
        try:
            file = open_real(path, flags) if real else os.open(path, flags)
        except OSError as error:
            if error.errno == errno.ELOOP and (real or not follow):
                raise OSError(errno.ELOOP, "it is a symbolic link", str(path)) from None
            raise
    try:
        # Checked on the open file: another may be at the path by now.
        state = os.fstat(file)
        if stat.S_ISDIR(state.st_mode):
            raise IsADirectoryError(errno.EISDIR, "it is a folder, not a file", str(path))
        if not stat.S_ISREG(state.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        with os.fdopen(file, "rb", closefd=False) as stream:
            data = stream.read(limit + whole)
        if len(data) > limit:
            raise OSError(errno.EFBIG, f"it is larger than {limit:,} bytes", str(path))
        return data, state
    finally:
        os.close(file)


def replace_file(path: Path, data: bytes, *, real: bool = False) -> None:
    """Replace a file's content by `data`, all of it or nothing, and sync it.

    A file that exists keeps its mode; of a symlink, the target is replaced. A new file is 0600 in a
    folder of 0700. A `real` path is taken as it is: none of its parts may be a link. Raises
    OSError; the old content is then unchanged.
    """
    target = path if real else Path(os.path.realpath(path))
    folder = real_folder(target.parent, create=True, mode=0o700)
    try:
        existing = os.stat(target.name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        existing = None
    finally:
        os.close(folder)
    atomic_write(target, data, like=existing, mode=0o600, check=lambda: None)


REMAINS: Final = late_pattern(r"(?:.*/)?\.holdfast-[0-9a-f]{16}\.tmp", re.DOTALL)
"""A file that `atomic_write` had not renamed yet when the program was killed, by its path."""


def atomic_write(
    path: Path,
    data: bytes,
    *,
    like: os.stat_result | None,
    mode: int,
    check: Callable[[], None],
    owner: bool = False,
) -> os.stat_result:
    """Write `data` to a temporary file next to `path`, sync it, and rename it to `path`.

    The mode (without setuid and setgid, as after any write) and, if possible, the owner are those
    of `like`, the file that is replaced; with `owner`, another one is an error. A new file gets
    `mode`, within the umask. `path` is a real one (`real_folder`). `check` is called before
    the last step and may raise to prevent it. Returns the new file's stat. Raises OSError; the
    temporary file never stays.
    """
    folder = real_folder(path.parent)
    temporary = f".holdfast-{os.urandom(8).hex()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(temporary, flags, mode if like is None else 0o600, dir_fd=folder)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
                file.flush()
                # The owner first: changing it may clear bits of the mode.
                if like is not None:
                    try:
                        os.fchown(fd, like.st_uid, like.st_gid)
                    except OSError:
                        if owner:
                            raise
                    os.fchmod(fd, stat.S_IMODE(like.st_mode) & 0o1777)
                os.fsync(fd)
                written = os.fstat(fd)
            check()
            os.replace(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
            raise
        with suppress(OSError):  # not every file system can sync a folder
            sync_folder(".", folder)
    finally:
        os.close(folder)
    return written


def open_real(path: Path, flags: int) -> int:
    """Open an existing file at a real path. Raises OSError if a part of it has become a link: the
    file that was allowed would not be the one that is opened."""
    if path == path.parent:
        return os.open(path, flags)
    folder = real_folder(path.parent)
    try:
        return os.open(path.name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    finally:
        os.close(folder)


def sha256_of(file: int) -> str:
    """Return the SHA-256 of an open regular file, which is closed. Raises OSError for any other."""
    from hashlib import file_digest  # noqa: PLC0415 - hardly ever needed

    with os.fdopen(file, "rb") as opened:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        return file_digest(opened, "sha256").hexdigest()


def remove_real(path: Path) -> None:
    """Remove the file at a real path. Raises OSError if a part of it has become a link."""
    folder = real_folder(path.parent)
    try:
        os.unlink(path.name, dir_fd=folder)
    finally:
        os.close(folder)


def set_real_mode(path: Path, mode: int) -> None:
    """Set the permissions of the file at a real path. Raises OSError if a part of it has become a
    link."""
    opened = open_real(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        os.fchmod(opened, mode)
    finally:
        os.close(opened)


def real_folder(path: Path, *, create: bool = False, mode: int = 0o777) -> int:
    """Return a descriptor of the folder at a real path, found part by part: no link is followed.

    With `create` missing parts are made, with `mode`. The descriptor may serve only as a place to
    open things in. The caller closes it.
    """
    at = os.open(path.anchor, PLACE)
    for part in path.parts[1:]:
        try:
            entered = _entered(part, at, mode if create else None)
        finally:
            os.close(at)
        at = entered
    return at


def _entered(name: str, folder: int, mode: int | None) -> int:
    """Open a folder in an open one; with a `mode`, a missing one is made."""
    try:
        return os.open(name, PLACE, dir_fd=folder)
    except FileNotFoundError:
        if mode is None:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, mode, dir_fd=folder)
    return os.open(name, PLACE, dir_fd=folder)


def sync_folder(folder: Path | str, inside: int | None = None) -> None:
    """Wait until the names in a folder are on the disk; `inside` is the folder that its path is
    relative to."""
    named = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=inside)
    try:
        os.fsync(named)
    finally:
        os.close(named)


@contextmanager
def locked(folder: Path) -> Generator[None]:
    """Hold a folder against other processes of ours while a file in it is read and replaced.

    A missing folder is created. A file system without locks is used without one.
    """
    import fcntl  # noqa: PLC0415 - only where something is written

    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


PLACE = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags that open a folder as a place to find things in; a link is refused."""


def safe_name(call_id: str) -> str:
    """Return a call id as a file name: `[A-Za-z0-9_-]{1,64}`.

    An id that had to be changed, or is empty, ends in a hash of the original, so that two ids never
    share a name.
    """
    if re.fullmatch(r"[A-Za-z0-9_-]{1,64}", call_id):
        return call_id
    from hashlib import sha256  # noqa: PLC0415 - hardly ever needed

    digest = sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{re.sub(r'[^A-Za-z0-9_-]', '_', call_id)[:47] or 'call'}-{digest}"


def free_bytes(file: int) -> int:
    """Return the free bytes on the disk of an open file."""
    disk = os.fstatvfs(file)
    return disk.f_bavail * disk.f_frsize


NAME: Final = "seal.key"
_BYTES: Final = 32


def installation_key(data: Path) -> bytes:
    """Return the key in a data folder; a missing one is made (mode 0600). Blocks.

    If it can neither be read nor written it is one for this process alone: to the next process,
    content sealed with it is a stranger's.
    """
    path = data / NAME
    if existing := _read(path):
        return existing
    made = secrets.token_bytes(_BYTES)
    try:
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = data / f".{NAME}.{os.getpid()}"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(made)
        try:
            os.link(temporary, path)  # the first of two programs wins
        finally:
            temporary.unlink()
    except OSError:
        return _read(path) or made
    return made


def known_key(data: Path) -> bytes:
    """Return the key in a data folder; b"" if there is none. Blocks."""
    return _read(data / NAME)


def _read(path: Path) -> bytes:
    try:
        key = path.read_bytes()
    except OSError:
        return b""
    return key if len(key) == _BYTES else b""
