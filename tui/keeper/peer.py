"""Tells which process is at the other end of a Unix socket.

The number of a process is free once it has ended, and another may get it before who connected is
checked. So a process is held by its handle while it is checked: the system gives the handle of the
very process that connected (SO_PEERPIDFD, since Linux 6.5).
"""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
from collections.abc import Callable, Generator
from contextlib import contextmanager

_SO_PEERPIDFD = 77


def peer(connection: socket.socket) -> tuple[int, int]:
    """The process at the other end, and its user. On Linux. Raises OSError."""
    size = struct.calcsize("3i")
    made = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    pid, user, _ = struct.unpack("3i", made)
    return pid, user


@contextmanager
def handle_of(connection: socket.socket) -> Generator[Callable[[], bool]]:
    """Yield a function that says if the process at the other end still runs: then its number has
    been its own all the time. On Linux. Raises OSError, also where it has ended."""
    try:
        handle = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD)
    except OSError as error:
        if error.errno != errno.ENOPROTOOPT:  # it has ended: its number may be another's by now
            raise
        handle = os.pidfd_open(peer(connection)[0])  # before Linux 6.5
    try:
        yield lambda: not select.select([handle], [], [], 0)[0]
    finally:
        os.close(handle)
