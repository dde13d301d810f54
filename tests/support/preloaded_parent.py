"""A process that has imported the program and becomes it, once for each start that it is asked for.

A fresh `python -m tui` spends most of its time on imports; a fork of one that has done them does
not. `tests.support.preloaded` starts this and asks. Each fork returns from `_serve` and runs the
program at the top level, so that the interpreter itself ends it: by its exit code, a signal, or
what was registered to run at its end.

A request is a length, JSON of that length, and five descriptors: standard input, output and error,
the working folder, and a pipe that is told the process id, and how the process ended.
"""

from __future__ import annotations

import gc
import io
import json
import os
import runpy
import selectors
import signal
import socket
import struct
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any, Final, NamedTuple

from tests.support import disk

HEADER: Final = struct.Struct("!I")
DESCRIPTORS: Final = 5


class Request(NamedTuple):
    """What is to be started, and where; what is to be loaded before, if it is not yet."""

    module: str
    words: list[str]
    env: dict[str, str]
    preload: list[str]
    umask: int
    new_session: bool
    descriptors: list[int]


def main(control: socket.socket) -> str:
    """Serve requests until nobody can send one. Returns in each fork, which is as fresh as can be,
    the module to run."""
    disk.sync_at_once()
    wake, woken = socket.socketpair()
    wake.setblocking(False)
    woken.setblocking(False)
    signal.signal(signal.SIGCHLD, _nothing)
    signal.signal(signal.SIGINT, _nothing)  # a Ctrl+C at pytest's terminal is for pytest
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    request = _serve(control, woken)
    if request is None:
        os._exit(0)
    _become(request)
    return request.module


def _nothing(number: int, frame: object) -> None:
    """A signal is only to wake the parent, or not meant for it."""


def _serve(control: socket.socket, woken: socket.socket) -> Request | None:
    """The request that this process, a fork, is to carry out; None at the end of the requests."""
    ends: dict[int, int] = {}  # process id -> the pipe that is told its end
    with selectors.DefaultSelector() as selector:
        selector.register(control, selectors.EVENT_READ)
        selector.register(woken, selectors.EVENT_READ)
        while True:
            ready = {key.fileobj for key, _ in selector.select()}
            if woken in ready:
                with suppress(BlockingIOError):
                    woken.recv(4096)
                _reap(ends)
            if control not in ready:
                continue
            request = _received(control)
            if request is None:
                return None
            for place in request.preload:
                load(place)
            gc.freeze()  # a fork shares what no collection touches
            if not (pid := os.fork()):
                return request
            *given, end = request.descriptors
            for number in given:
                os.close(number)
            ends[pid] = end
            _tell(end, pid)


def load(place: str) -> None:
    """Import a module and, where one is named after a colon, call its function."""
    name, _, function = place.partition(":")
    module = import_module(name)
    if function:
        getattr(module, function)()


def _received(control: socket.socket) -> Request | None:
    head, descriptors, _, _ = socket.recv_fds(control, HEADER.size, DESCRIPTORS)
    if not head:
        return None
    while len(head) < HEADER.size:
        head += control.recv(HEADER.size - len(head))
    (left,) = HEADER.unpack(head)
    body = b""
    while len(body) < left:
        body += control.recv(left - len(body))
    asked: dict[str, Any] = json.loads(body)
    return Request(**asked, descriptors=list(descriptors))


def _reap(ends: dict[int, int]) -> None:
    """Tell of each process that has ended how it did."""
    for pid in list(ends):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            _tell(ends[pid], os.waitstatus_to_exitcode(status))
            os.close(ends.pop(pid))


def _tell(end: int, number: int) -> None:
    with suppress(BrokenPipeError):
        os.write(end, b"%d\n" % number)


def _become(request: Request) -> None:
    """Make this fork what a process is that was just started with the request's words."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if request.new_session:
        os.setsid()
    os.umask(request.umask)
    *standard, folder, _ = request.descriptors
    os.fchdir(folder)
    for number, given in enumerate(standard):
        os.dup2(given, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.environ.clear()
    os.environ.update(request.env)
    sys.argv = ["-m", *request.words]
    sys.orig_argv = [sys.executable, "-m", request.module, *request.words]
    sys.path[0] = os.getcwd()
    sys.stdin = sys.__stdin__ = _stream(0, "r", sys.__stdin__)  # type: ignore[misc, assignment]
    sys.stdout = sys.__stdout__ = _stream(1, "w", sys.__stdout__)  # type: ignore[misc, assignment]
    sys.stderr = sys.__stderr__ = _stream(2, "w", sys.__stderr__)  # type: ignore[misc, assignment]


def _stream(number: int, mode: str, like: Any) -> io.TextIOWrapper:
    """A standard stream as the interpreter makes it; the locale is that of the one before it."""
    unbuffered = bool(like.write_through)
    binary = open(number, f"{mode}b", 0 if unbuffered and mode != "r" else -1, closefd=False)  # noqa: SIM115
    return io.TextIOWrapper(
        binary,
        encoding=like.encoding,
        errors=like.errors,
        newline=None if mode == "r" else "\n",
        line_buffering=not unbuffered and (number == 2 or os.isatty(number)),
        write_through=unbuffered,
    )


if __name__ == "__main__":
    module = main(socket.socket(fileno=int(sys.argv[1])))
    runpy.run_module(module, run_name="__main__", alter_sys=True)
