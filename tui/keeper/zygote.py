"""A small process with one thread that forks a monitor for each command of the program.

The program has threads and an event loop: after a fork, only system calls would be safe in it. This
process is started once for each session (`python -I -S`), loads little, and forks in about a
millisecond. It lives as long as the program's end of the socket; the keepers that it forked outlive
it.

A request is a file with JSON, a socket for the report, and the streams of the command. The monitor
reports `{"pid": …}` once it runs, then `{"status": …, "rest": …}` when nothing of it runs any more,
or `{"error": …}`.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
from contextlib import suppress

from tui.keeper.mark import mark
from tui.keeper.monitor import Keeper, Monitor, words

_EVERY_S = 5

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn, Protocol, TypeAlias

    Run: TypeAlias = Callable[[Monitor], tuple[int, bool]]
    """Runs a command to its end, in its monitor: its status, and True if something still ran
    then."""
    Begin: TypeAlias = Callable[[dict[str, Any]], Run]
    """Makes the runner for a request, in the zygote: raises OSError if that is impossible."""
    Ask: TypeAlias = Callable[[dict[str, Any], socket.socket], None]

    class Ahead(Protocol):
        """Prepares for the next command while nothing is asked for."""

        def patience(self) -> float:
            """The seconds until `prepare` is due."""
            ...

        def prepare(self, requests: socket.socket) -> None:
            """Do what is due. A fork of it lets go of `requests`."""
            ...

        def let_go(self) -> None:
            """Close all that belongs to the zygote, in a fork of it."""
            ...

        def take(self, spec: dict[str, Any], files: list[int]) -> bool:
            """Hand a request to what was prepared for it. False if there is nothing that fits."""
            ...


def main(
    control: int,
    begin: Begin | None = None,
    ask: Ask | None = None,
    ahead: Ahead | None = None,
) -> None:
    """Serve requests until the program has gone. `begin` knows more than plain commands; `ask`
    answers requests that are questions."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    mark()
    begin = begin or plain
    requests = socket.socket(fileno=control)
    gc.freeze()  # a fork shares what no collection touches
    while True:
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        patience = min(_EVERY_S, ahead.patience()) if ahead else _EVERY_S
        if not select.select([requests], [], [], patience)[0]:
            if ahead:
                ahead.prepare(requests)
            continue  # and reap ended monitors without waiting for the next command
        message, files, _, _ = socket.recv_fds(requests, 1, 5, socket.MSG_CMSG_CLOEXEC)
        if not message:
            return
        try:
            _serve(files, requests, begin, ask, ahead)
        finally:
            for file in files:
                os.close(file)


def _serve(
    files: list[int], requests: socket.socket, begin: Begin, ask: Ask | None, ahead: Ahead | None
) -> None:
    with socket.socket(fileno=os.dup(files[1])) as answer:
        try:
            spec = request_in(files)
            if "ask" in spec:
                if ask:
                    ask(spec, answer)
                return
            if ahead and ahead.take(spec, files):
                return
            run = begin(spec)
            zygote = os.getpid()
            if os.fork():
                return
        except (OSError, ValueError) as error:
            Monitor(answer, 0, []).failed(error)
            return
        # The fork must let go of everything that belongs to the zygote before it runs the command.
        requests.close()
        if ahead:
            ahead.let_go()
        begin_fork()

        def start(streams: list[int]) -> Monitor:
            if keep := spec.get("keep"):
                return keeper(answer, streams[:2], keep)
            return Monitor(answer, zygote, streams)

        supervise(answer, files, start, run)


def keeper(answer: socket.socket, streams: list[int], keep: dict[str, Any]) -> Keeper:
    """Make the keeper of a command; one with a terminal loads more."""
    if not keep.get("terminal"):
        return Keeper(answer, streams, keep)
    import sys  # noqa: PLC0415 - as below

    sys.path += keep["terminal"]["paths"]
    from tui.keeper.terminal import TerminalKeeper  # noqa: PLC0415 - other commands do without

    return TerminalKeeper(answer, streams, keep)


def has_terminal(spec: dict[str, Any]) -> bool:
    """True if a request is for a command with a terminal."""
    keep: dict[str, Any] = spec.get("keep") or {}
    return bool(keep.get("terminal"))


def take_terminal(spec: dict[str, Any]) -> None:
    """Make the input of this process, which leads a session, its terminal, if it is one. Raises
    OSError."""
    if has_terminal(spec):
        import fcntl  # noqa: PLC0415 - other commands do without
        import termios  # noqa: PLC0415 - as above

        fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def request_in(files: list[int]) -> dict[str, Any]:
    """Read the request that came with these files."""
    with os.fdopen(os.dup(files[0]), "rb") as file:
        file.seek(0)
        return json.loads(file.read())


def begin_fork() -> None:
    """Begin a session of its own, with signals as a command expects them."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    os.setsid()


def supervise(
    answer: socket.socket, files: list[int], start: Callable[[list[int]], Monitor], run: Run
) -> NoReturn:
    """Run the command of a request to its end. `files` are those of the request; `start` makes
    its monitor of its streams, and takes those that it needs."""
    monitor = None
    try:
        monitor = start(files[2:])
        for file in files:
            os.close(file)
        status, rest = run(monitor)
        monitor.ended(status, rest=rest)
    except BaseException as error:  # noqa: BLE001 - the fork must end here, whatever happens
        (monitor or Monitor(answer, 0, [])).failed(error)
    finally:
        os._exit(0)


def plain(spec: dict[str, Any]) -> Run:
    """Return the runner of a command without walls."""

    def run(monitor: Monitor) -> tuple[int, bool]:
        error, theirs = os.pipe()
        child = os.fork()
        if not child:
            try:
                os.setsid()
                take_terminal(spec)
                os.chdir(spec["cwd"])
            except OSError as failure:
                os.write(theirs, words(failure).encode())
                os._exit(127)
            execute(spec, theirs)
        os.close(theirs)
        close_streams()
        with os.fdopen(error, "rb") as file:
            if reason := file.read():
                raise OSError(reason.decode())
        monitor.running(child)
        status = monitor.wait(child)
        return status, isinstance(monitor, Keeper) and monitor.end_group()

    return run


def close_streams() -> None:
    """Close our copies: only the command keeps its output open, so that its end is noticed."""
    for file in (0, 1, 2):
        os.close(file)


def execute(spec: dict[str, Any], error: int) -> NoReturn:
    """Become the command; if that is impossible, the reason is written to `error`."""
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.execve(spec["argv"][0], spec["argv"], spec["env"])  # noqa: S606
    except (OSError, ValueError) as failure:
        os.write(error, f"{spec['argv'][0]}: {words(failure)}".encode(errors="replace"))
    finally:
        os._exit(127)
