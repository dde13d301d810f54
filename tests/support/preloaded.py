"""The program as a process that is forked from one that has already imported it.

Most of what `python -m tui` costs is imports, and the tests start it hundreds of times. A parent is
started once in each of pytest's workers, when it is first needed; see `preloaded_parent`. What is
about starting itself (times, the first frame, who the parent is, what the interpreter is told) is
started afresh instead.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent import futures
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import IO, Any, Final, Self, TypeAlias

from tests.support.preloaded_parent import HEADER
from tui.app.background_parent import LOADED

RUN: Final = (
    *("tui.cli.main", "tui.ui.start.first_frame", "tui.app.options.parser"),
    *("tui.cli.print_mode", "tui.batch.command", *LOADED),
)
"""What a run without a screen imports by its first request; `module:function` is called, too."""

SCREEN: Final = (
    *RUN,
    *("tui.ui.start.fullscreen_main", "tui.ui.app", "tui.ui.start.deferred_mount"),
    *("tui.ui.start.terminal_takeover", "tui.app.program", "tui.app.open_session"),
    *("tui.app.router", "tui.app.start_rows", "tui.app.quitting", "tui.app.to_background"),
    *("tui.ui.widgets.conversation.view", "tui.ui.widgets.output_view", "tui.ui.widgets.vim"),
    *("tui.ui.widgets.file_viewer.pane", "tui.ui.widgets.retry_banner", "aiofiles"),
    *("textual.layouts.factory", "textual.layouts.horizontal", "textual.layouts.stream"),
    *("markdown_it", "linkify_it", "pygments.lexers.python", "tiktoken", "yaml"),
)
"""What the full screen imports by the end of its first turn."""

PLAIN: Final = (*RUN, "tui.plain.input_loop", "tui.plain.frontend", "tui.app.program", "yaml")
"""What plain mode imports by its first answer, but for `readline`, which asks what the terminal is
when it is imported."""

AT_START: Final = (
    *("PYTHON", "LC_", "LANG", "TZ", "LD_", "MALLOC_", "GLIBC_", "OPENSSL_"),
    *("TEXTUAL_", "TERM_PROGRAM", "ESCDELAY", "OTEL_", "PILLOW_"),
    *("PYDANTIC_", "DEFER_PYDANTIC_"),
)
"""How the names of variables begin that are read while modules are imported, or before: a program
that has others of them than the parent is started afresh."""

_ROOT: Final = Path(__file__).parents[2]


class Forked:
    """A process that the parent was asked for; what tests use of `subprocess.Popen` is here."""

    def __init__(self, words: Sequence[str], end: int) -> None:
        self.args = words
        self.returncode: int | None = None
        self.stdin: IO[Any] | None = None
        self.stdout: IO[Any] | None = None
        self.stderr: IO[Any] | None = None
        self._end, self._told = end, b""
        self.pid = _must(self._number(None))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for stream in (self.stdout, self.stderr, self.stdin):
            if stream is not None:
                stream.close()
        self.wait()

    def __del__(self) -> None:
        os.close(self._end)

    def _number(self, seconds: float | None) -> int | None:
        """The next number that the parent tells; None when it doesn't within `seconds`."""
        until = None if seconds is None else time.monotonic() + seconds
        while b"\n" not in self._told:
            left = None if until is None else max(0.0, until - time.monotonic())
            if not select.select([self._end], [], [], left)[0]:
                return None
            told = os.read(self._end, 64)
            assert told, "the parent of the programs has ended"
            self._told += told
        number, _, self._told = self._told.partition(b"\n")
        return int(number)

    def poll(self) -> int | None:
        """The exit code; None while it runs."""
        if self.returncode is None:
            self.returncode = self._number(0.0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end. Raises `subprocess.TimeoutExpired`."""
        if self.returncode is None:
            self.returncode = self._number(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(list(self.args), timeout or 0.0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, if it still runs."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, given: bytes = b"", timeout: float | None = None) -> list[bytes]:
        """Give it its standard input; take its output and its errors, each "" without a pipe.

        Raises `subprocess.TimeoutExpired`.
        """
        with ThreadPoolExecutor(3) as threads:
            threads.submit(self._give, given)
            taken = [threads.submit(_all_of, stream) for stream in (self.stdout, self.stderr)]
            _, late = futures.wait(taken, timeout)
            if late:
                self.kill()
                raise subprocess.TimeoutExpired(list(self.args), timeout or 0.0)
            self.wait(timeout)
            return [one.result() for one in taken]

    def _give(self, given: bytes) -> None:
        if self.stdin is not None:
            with suppress(BrokenPipeError):
                self.stdin.write(given)
            with suppress(BrokenPipeError):
                self.stdin.close()


Process: TypeAlias = Forked | subprocess.Popen[Any]
Stream: TypeAlias = int | IO[Any]


def _must(number: int | None) -> int:
    assert number is not None
    return number


def _all_of(stream: IO[bytes] | None) -> bytes:
    return b"" if stream is None else stream.read()


class _Parent:
    """The parent of the programs of one of pytest's workers."""

    def __init__(self, at_start: dict[str, str]) -> None:
        self.at_start = at_start
        self._turn = Lock()
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.preloaded_parent", str(theirs.fileno())],
                cwd=_ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        atexit.register(self._end)

    def _end(self) -> None:
        self._control.close()
        self._process.wait()

    def fork(self, request: Mapping[str, object], descriptors: Sequence[int]) -> None:
        body = json.dumps(request).encode()
        with self._turn:
            socket.send_fds(self._control, [HEADER.pack(len(body))], descriptors)
            self._control.sendall(body)


@cache
def _parent() -> _Parent:
    return _Parent(_at_start(os.environ))


def _at_start(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(AT_START)}


def start(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdin: Stream = subprocess.DEVNULL,
    stdout: Stream = subprocess.DEVNULL,
    stderr: Stream = subprocess.DEVNULL,
    text: bool = False,
    start_new_session: bool = False,
    preload: Sequence[str] = RUN,
) -> Process:
    """Start a module of the program or of the tests with `python -m`, as `subprocess.Popen` would.

    It is started afresh where the environment differs in what is read while modules are imported.
    """
    python, option, module, *words = argv
    assert (python, option) == (sys.executable, "-m")
    parent = _parent()
    if _at_start(env) != parent.at_start:
        return subprocess.Popen(
            argv, cwd=cwd, env=env, stdin=stdin, stdout=stdout, stderr=stderr,
            text=text, start_new_session=start_new_session,
        )  # fmt: skip
    os.umask(umask := os.umask(0o077))
    request = {
        "module": module,
        "words": words,
        "env": {**env},
        "preload": [*preload],
        "umask": umask,
        "new_session": start_new_session,
    }
    with ExitStack() as stack:
        streams = [
            _ends(stream, mode if text else f"{mode}b", stack)
            for stream, mode in ((stdin, "w"), (stdout, "r"), (stderr, "r"))
        ]
        folder = os.open(cwd, os.O_RDONLY | os.O_DIRECTORY)
        stack.callback(os.close, folder)
        told, end = os.pipe()
        stack.callback(os.close, end)
        parent.fork(request, [*(theirs for theirs, _ in streams), folder, end])
    process = Forked(argv, told)
    process.stdin, process.stdout, process.stderr = (ours for _, ours in streams)
    return process


def _ends(stream: Stream, mode: str, stack: ExitStack) -> tuple[int, IO[Any] | None]:
    """The program's end of a standard stream, and ours where it is a pipe, opened in `mode`."""
    if stream == subprocess.DEVNULL:
        theirs = os.open(os.devnull, os.O_RDWR)
        stack.callback(os.close, theirs)
        return theirs, None
    if stream != subprocess.PIPE:
        return (stream if isinstance(stream, int) else stream.fileno()), None
    reading, writing = os.pipe()
    theirs, ours = (writing, reading) if mode.startswith("r") else (reading, writing)
    stack.callback(os.close, theirs)
    return theirs, os.fdopen(ours, mode)
