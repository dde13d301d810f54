"""Work on a list that two processes share: this one, and a fork of it that sends what it made.

Whatever becomes of the fork, the results are the same: what it did not send is made here. It ends
with its last item, or as soon as nobody reads what it sends.
"""

from __future__ import annotations

import os
import signal
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import BinaryIO, Final, TypeVar

_Item = TypeVar("_Item")
_SIZE: Final = struct.Struct("<Q")
_AHEAD: Final = 1 << 20
"""Bytes that the fork may be ahead, where the system lets it."""
_F_SETPIPE_SZ: Final = 1031


def in_two(work: Callable[[_Item], bytes], items: Sequence[_Item]) -> Iterator[bytes]:
    """Yield the result for each item, in their order. The work changes nothing but what it
    returns."""
    fork = _forked(work, items[1::2]) if len(items) > 1 and _can_fork() else None
    if fork is None:
        yield from map(work, items)
        return
    process, sent = fork
    try:
        with os.fdopen(sent, "rb") as results:
            for place, item in enumerate(items):
                made = _next(results) if place % 2 else None
                yield work(item) if made is None else made
    finally:
        with suppress(ChildProcessError):
            os.waitpid(process, 0)


def _can_fork() -> bool:
    """True where a fork has a processor of its own, and no thread holds a lock for ever in it."""
    if not hasattr(os, "fork") or threading.active_count() > 1:
        return False
    mine = getattr(os, "sched_getaffinity", None)
    return (len(mine(0)) if mine else os.cpu_count() or 1) > 1


def _forked(work: Callable[[_Item], bytes], items: Sequence[_Item]) -> tuple[int, int] | None:
    """Fork a process that sends the results; None where there can't be one."""
    try:
        here, there = os.pipe()
    except OSError:
        return None
    with suppress(ImportError, OSError):
        import fcntl  # noqa: PLC0415 - where the system has it

        fcntl.fcntl(there, _F_SETPIPE_SZ, _AHEAD)
    try:
        process = os.fork()
    except OSError:
        os.close(here)
        os.close(there)
        return None
    if process:
        os.close(there)
        return process, here
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.close(here)
        with os.fdopen(there, "wb") as results:
            for item in items:
                made = work(item)
                results.write(_SIZE.pack(len(made)))
                results.write(made)
                results.flush()
    finally:
        os._exit(0)  # what it lacks is made by the other one, which says what is wrong


def _next(results: BinaryIO) -> bytes | None:
    """The next result that was sent, None if no more come whole."""
    head = results.read(_SIZE.size)
    if len(head) < _SIZE.size:
        return None
    (size,) = _SIZE.unpack(head)
    made = results.read(size)
    return made if len(made) == size else None
