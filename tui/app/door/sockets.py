"""The sockets of open sessions: one for each, in a private folder.

The path of a socket has 107 bytes at most, so on Linux it is named by way of the open folder;
elsewhere a long one has a short name in a private folder for temporary files. Everything here
blocks for a moment.
"""

from __future__ import annotations

import os
import socket
import stat
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from tui.core.paths import Folders

_SUFFIX: Final = ".sock"
_MOST_BYTES: Final = 100
"""Bytes of a socket's path that every system takes."""
_OLD_S: Final = 86_400.0
_WAITING: Final = 64
"""Connections that may wait to be accepted."""


def folder_of(home: Folders) -> Path:
    """The folder of the sockets."""
    return home.data / "live"


class DoorListener:
    """A socket on which connections to one session come. `fd` is its file descriptor."""

    def __init__(self, home: Folders, session: str) -> None:
        """Listen in the place of any earlier owner's socket: who has the session's lock is its
        owner. Raises OSError."""
        self._folder, self._name = folder_of(home), f"{session}{_SUFFIX}"
        self._made: os.stat_result | None = None
        with _private(self._folder, make=True) as place:
            _sweep(place)
            new = f".{os.getpid()}-{sha256(session.encode()).hexdigest()[:8]}"
            with suppress(FileNotFoundError):
                os.unlink(new, dir_fd=place)
            made = socket.socket(socket.AF_UNIX)
            try:
                if _by_folder():
                    made.bind(_address(place, self._folder, new))
                    os.chmod(new, 0o600, dir_fd=place)
                    made.listen(_WAITING)
                    self._made = os.stat(new, dir_fd=place, follow_symlinks=False)
                    # nobody ever finds one on which nobody listens
                    os.rename(new, self._name, src_dir_fd=place, dst_dir_fd=place)
                else:
                    path = _address(place, self._folder, self._name)
                    Path(path).unlink(missing_ok=True)
                    made.bind(path)
                    made.listen(_WAITING)
                    self._made = os.lstat(path)
                made.setblocking(False)
            except BaseException:
                made.close()
                with suppress(OSError):
                    os.unlink(new, dir_fd=place)
                raise
        self.fd = made.detach()

    def accept(self) -> socket.socket:
        """The next connection. Raises OSError; BlockingIOError where none waits."""
        listening = socket.socket(fileno=self.fd)
        try:
            return listening.accept()[0]
        finally:
            listening.detach()

    def close(self) -> None:
        """Listen no more, and remove the socket if it is still this one. May be called again."""
        if self.fd < 0:
            return
        os.close(self.fd)
        self.fd = -1
        with suppress(OSError), _private(self._folder, make=False) as place:
            path = _address(place, self._folder, self._name)
            if self._made is not None and os.path.samestat(self._made, os.lstat(path)):
                Path(path).unlink()


@contextmanager
def _private(folder: Path, *, make: bool) -> Generator[int]:
    """An open folder of this user's that nobody else can enter. Raises OSError."""
    if make:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        about = os.fstat(place)
        if about.st_uid != os.geteuid():
            raise PermissionError(1, "it belongs to another user", str(folder))
        if about.st_mode & 0o077:
            if not make:
                raise PermissionError(1, "others can enter it", str(folder))
            os.fchmod(place, 0o700)
        yield place
    finally:
        os.close(place)


def _by_folder() -> bool:
    return sys.platform == "linux"


def _address(place: int, folder: Path, name: str) -> str:
    """The path of a socket by which the system takes it. Raises OSError."""
    if _by_folder():
        return f"/proc/self/fd/{place}/{name}"
    whole = os.fsencode(folder / name)
    if len(whole) <= _MOST_BYTES:
        return str(folder / name)
    short = Path(tempfile.gettempdir(), f"holdfast-{os.geteuid()}")
    with _private(short, make=True):
        return str(short / f"{sha256(whole).hexdigest()[:16]}{_SUFFIX}")


def _sweep(place: int) -> None:
    """Remove sockets of long ago in an open folder on which nobody listens any more."""
    if not _by_folder():
        return
    for name in os.listdir(place):
        with suppress(OSError):
            about = os.stat(name, dir_fd=place, follow_symlinks=False)
            if stat.S_ISSOCK(about.st_mode) and time.time() - about.st_mtime > _OLD_S:
                remove_dead(place, name)


def remove_dead(place: int, name: str) -> None:
    """Remove a socket in an open folder if nothing listens on it any more."""
    with socket.socket(socket.AF_UNIX) as tried:
        tried.setblocking(False)
        try:
            tried.connect(f"/proc/self/fd/{place}/{name}")
        except ConnectionRefusedError:
            os.unlink(name, dir_fd=place)
