"""Work on a list that two processes share: this one, and a fork of it that sends what it made.

Whatever becomes of the fork, the results are the same: what it did not send is made here. It never
outlives the work: it ends with its last item, or when nobody wants the results any more.
"""

from __future__ import annotations

import os
import signal
import struct
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import BinaryIO, Final, TypeVar

_Item = TypeVar("_Item")
_SIZE: Final = struct.Struct("<Q")
_AHEAD: Final = 1 << 20
"""Bytes that the fork may be ahead, where the system lets it."""
_F_SETPIPE_SZ: Final = 1031


def in_two(
    work: Callable[[_Item], bytes], items: Sequence[_Item], *, worth: bool = True
) -> Generator[bytes]:
    """Yield the result for each item, in their order. The work changes nothing but what it returns;
    a little of it isn't `worth` another process."""
    with in_fork(work, items[1::2], worth=worth) as others:
        for place, item in enumerate(items):
            yield next(others) if place % 2 else work(item)


@contextmanager
def in_fork(
    work: Callable[[_Item], bytes], items: Sequence[_Item], *, worth: bool = True
) -> Generator[Iterator[bytes]]:
    """Have a fork work on items while the block does something else. Gives the results in their
    order; each waits until it is made."""
    fork = _forked(work, items) if items and worth and _can_fork() else None
    if fork is None:
        yield map(work, items)
        return
    process, sent = fork
    try:
        with os.fdopen(sent, "rb") as results:
            yield _received(work, items, results)
    finally:
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(process, signal.SIGKILL)  # it may be at work for somebody who gave up
            os.waitpid(process, 0)


def _received(
    work: Callable[[_Item], bytes], items: Sequence[_Item], results: BinaryIO
) -> Iterator[bytes]:
    for item in items:
        made = _next(results)
        yield work(item) if made is None else made


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
