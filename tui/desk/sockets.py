"""Connections to the sockets on which open sessions are served: only to our own, in a private
folder."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import stat
import struct
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Protocol

from tui.app.door.lines import MAX_LINE
from tui.core.errors import HoldfastError
from tui.core.paths import shorten

_PEER: Final = struct.Struct("3i")
_NEWLINE: Final = b"\n"


class ForeignSocketError(HoldfastError):
    """A socket, or its folder, that somebody else made, or could have."""


class LineTaker(Protocol):
    """Takes whole lines as they come, and the end of them."""

    def lines(self, lines: Sequence[bytes]) -> None: ...
    def ended(self) -> None: ...


def open_private(folder: Path) -> int:
    """Open the folder of the sockets, which nobody else may write to. Raises OSError where there is
    none, and ForeignSocketError."""
    try:
        file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in {errno.ENOTDIR, errno.ELOOP}:
            raise _foreign(folder, "it is a link or a file") from None
        raise
    state = os.fstat(file)
    if state.st_uid == os.geteuid() and not state.st_mode & 0o077:
        return file
    os.close(file)
    another = state.st_uid != os.geteuid()
    raise _foreign(folder, "it is another user's" if another else "others may use it")


def connected(folder: Path, opened: int, name: str) -> socket.socket:
    """A connection to a socket in an open folder, which doesn't block. Raises OSError where nobody
    listens, BlockingIOError where too many wait already, and ForeignSocketError."""
    state = os.stat(name, dir_fd=opened, follow_symlinks=False)
    if not stat.S_ISSOCK(state.st_mode):
        raise _foreign(folder / name, "it is no socket")
    if state.st_uid != os.geteuid():
        raise _foreign(folder / name, "it is another user's")
    with ExitStack() as stack:
        connection = stack.enter_context(socket.socket(socket.AF_UNIX))
        connection.setblocking(False)
        connection.connect(_address(folder, opened, name))
        if (user := _peer(connection)) not in {None, os.geteuid()}:
            raise _foreign(folder / name, f"user {user} listens on it")
        stack.pop_all()
    return connection


def _address(folder: Path, opened: int, name: str) -> str:
    """The folder that was opened, however long its path."""
    here = f"/proc/self/fd/{opened}"
    return f"{here}/{name}" if os.path.exists(here) else str(folder / name)  # noqa: PTH110 - a link to a folder, not a path


def _peer(connection: socket.socket) -> int | None:
    """The user at the other end; None where the system doesn't say it this way."""
    if not hasattr(socket, "SO_PEERCRED"):
        return None
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    return int(_PEER.unpack(data)[1])


def _foreign(path: Path, why: str) -> ForeignSocketError:
    return ForeignSocketError(
        f"{shorten(path)} isn't used: {why}.",
        hint="Only you should be able to write there: remove it if you did not make it.",
    )


class LineProtocol(asyncio.Protocol):
    """Cuts what comes into lines, without their ends. A line that is too long ends the
    connection."""

    def __init__(self, taker: LineTaker) -> None:
        self._taker = taker
        self._transport: asyncio.Transport | None = None
        self._begun: list[bytes] = []
        self._size = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        first, *others = data.split(_NEWLINE)
        self._begun.append(first)
        self._size += len(first)
        if self._size > MAX_LINE:
            self.close()
        elif others:
            lines = [b"".join(self._begun), *others]
            self._begun = [lines.pop()]
            self._size = len(self._begun[0])
            self._taker.lines(lines)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - as asyncio has it
        self._transport = None
        self._taker.ended()

    def write(self, line: bytes) -> None:
        if self._transport is not None:
            self._transport.write(line)

    def hold(self, *, on: bool) -> None:
        """Stop reading for a time, or go on: the other end then waits."""
        if self._transport is not None:
            (self._transport.pause_reading if on else self._transport.resume_reading)()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


async def attached(connection: socket.socket, taker: LineTaker) -> LineProtocol:
    """Hand what comes over a connection to a taker."""
    loop = asyncio.get_running_loop()
    _, protocol = await loop.create_connection(lambda: LineProtocol(taker), sock=connection)
    return protocol
