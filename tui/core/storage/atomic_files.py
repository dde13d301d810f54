"""Small files of our own: read with a limit, replaced whole, changed by one process at a time.

Everything here blocks; call it in a thread where that matters.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

LIMIT = 1_000_000


def read_small(
    path: Path, *, limit: int = LIMIT, follow: bool = True, whole: bool = True
) -> tuple[bytes, os.stat_result]:
    """The bytes of a regular file, and its state when it was opened.

    Raises OSError, with a text that can be shown: for a folder, pipe or device (none of which is
    waited for), for a file above `limit` bytes, and without `follow` for a symlink. Not `whole`,
    the first `limit` bytes of a larger file are enough.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    try:
        file = os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ELOOP and not follow:
            raise OSError(errno.ELOOP, "it is a symbolic link", str(path)) from None
        raise
    try:
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


def replace_file(path: Path, data: bytes) -> None:
    """Put `data` in the place of a file's content, all of it or nothing, and sync it.

    A file that exists keeps its mode, and a symlink its place (its target is replaced); a new
    file is 0600 in a folder of 0700. Raises OSError; the old content then stands.
    """
    import tempfile  # noqa: PLC0415 - only where something is written

    target = Path(os.path.realpath(path))
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            with suppress(FileNotFoundError):
                os.fchmod(handle, stat.S_IMODE(target.stat().st_mode))
            stream.write(data)
            stream.flush()
            os.fsync(handle)
        os.replace(name, target)  # noqa: PTH105 - a name, as mkstemp gave it
    except BaseException:
        with suppress(OSError):
            os.unlink(name)  # noqa: PTH108 - as above
        raise
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def locked(folder: Path) -> Generator[None]:
    """Hold a folder against other processes of ours while a file in it is read and replaced.

    The folder is created where it is missing. A file system without locks is used without one.
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
