"""The process that watches one command: a fork of the zygote.

`Monitor` reports to the program and ends with the zygote. `Keeper` ends with nobody: it reads the
command's output into a file, ends the command when its time is over and the program has gone, and
records the end. Standard library only: each running command has one in memory.
"""

from __future__ import annotations

import binascii
import errno
import fcntl
import hashlib
import json
import os
import select
import signal
import socket
import time
from contextlib import suppress

from tui.keeper import folder as names

TYPE_CHECKING = False
if TYPE_CHECKING:  # the first command waits for what its keeper imports
    from typing import Any, NoReturn

GRACE_S = 2.0
"""Seconds between SIGTERM and SIGKILL."""
_PIPE_BYTES = 1 << 20
"""No pipe holds more. After this many bytes, another process must still be printing."""
_CHUNK = 1 << 18
_IDLE_S = 0.25
_STEP_S = 0.01
_ALWAYS_BYTES = 1 << 20
"""Bytes that are written even if little space is free."""
_CHECK_FREE_EVERY = 64 * 1024**2


def output_pipe() -> tuple[int, int]:
    """A pipe for a command's output: its reading and its writing end."""
    reading, writing = os.pipe()
    with suppress(OSError, AttributeError):  # this user's pipes may be at their limit
        fcntl.fcntl(reading, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return reading, writing


def words(error: BaseException) -> str:
    """An error in words for a person."""
    if isinstance(error, OSError) and error.strerror:
        name = f" ({error.filename})" if error.filename else ""
        return f"{error.strerror}{name}"
    return str(error)


def end_descendants() -> None:
    """Kill all remaining descendants and wait for them."""
    while True:
        with suppress(OSError, ValueError), open("/proc/thread-self/children", "rb") as children:  # noqa: PTH123 - pathlib is slow to load
            for child in children.read().split():
                os.kill(int(child), signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def end_and_exit(*_: object) -> NoReturn:
    end_descendants()
    os._exit(0)


class Monitor:
    """Watches a command whose output somebody else reads; it only reports.

    `parent` is the process that it ends with, 0 for none. `streams` are those of the command.
    """

    def __init__(self, answer: socket.socket, parent: int, streams: list[int]) -> None:
        self.answer = answer
        self.parent = parent
        for number, file in enumerate(streams):
            os.dup2(file, number)

    def report(self, **message: Any) -> None:
        with suppress(OSError):  # the program has gone
            self.answer.sendall(json.dumps(message).encode() + b"\n")

    def running(self, pid: int) -> None:
        """Report that the command runs. `pid` leads its process group."""
        self.report(pid=pid)

    def wait(self, child: int) -> int:
        """Wait for a child; return its status."""
        return os.waitpid(child, 0)[1]

    def ended(self, status: int, *, rest: bool) -> None:
        """Report that nothing of the command runs any more. `rest`: something still did when it
        ended."""
        self.report(status=status, rest=rest)

    def failed(self, error: BaseException) -> None:
        self.report(error=words(error) if isinstance(error, OSError) else repr(error))


class Keeper(Monitor):
    """Keeps a command and its output, whatever happens to the program."""

    def __init__(
        self, answer: socket.socket, streams: list[int], keep: dict[str, Any], pipe: int = -1
    ) -> None:
        """`streams` are the command's input and the file that gets its output; `keep` has the
        `folder`, the `limit` of bytes, the space to leave free (`min_free`), and the seconds after
        which the command is over (`timeout`, None for never). `pipe` is where its output comes
        from, if it has its streams already."""
        source, output = streams
        self._output = os.dup(output)
        self._pipe, theirs = (pipe, -1) if pipe >= 0 else output_pipe()
        self._folder = os.open(keep["folder"], os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._check_folder()
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        self._lock = os.open(names.LOCK, flags, 0o600, dir_fd=self._folder)
        fcntl.flock(self._lock, fcntl.LOCK_EX)  # anybody who tests the lock releases it at once
        os.mkfifo(names.CONTROL, 0o600, dir_fd=self._folder)
        flags = os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC
        self._control = os.open(names.CONTROL, flags, dir_fd=self._folder)
        self._limit, self._min_free = keep["limit"], keep["min_free"]
        self._began, self._started = time.monotonic(), time.time()
        self._timeout: float | None = keep["timeout"]
        self._kill_at: float | None = None
        self._pid = 0
        self._timed_out = self._open_end = self._eof = False
        self._attended = True
        self.bytes = self._lines = self._checked_at = 0
        self._written: int = 0
        self._stopped = ""
        self._tail = b""
        self._digest = hashlib.sha256()
        self._wake, wakes = os.pipe()
        for file in (self._wake, wakes):
            os.set_blocking(file, False)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        # Handlers, because ignored signals stay ignored in the command.
        for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, _nothing)
        signal.signal(signal.SIGTERM, self._asked_to_end)
        super().__init__(answer, 0, [source, theirs, theirs] if theirs >= 0 else [])
        if theirs >= 0:
            os.close(theirs)
        self._poll = select.poll()
        for file in (self._pipe, self._wake, self._control, answer.fileno()):
            self._poll.register(file, select.POLLIN)
        names.begin(self._folder, **self._about)

    # Called by engines

    def running(self, pid: int) -> None:
        self._pid = pid
        self._write_state(pid=pid)
        super().running(pid)

    def wait(self, child: int) -> int:
        while True:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return status
            self._step(self._patience())

    def end_group(self) -> bool:
        """Read the remaining output of a command that has ended, and end what it left running in
        its group. Returns True if there was anything."""
        first = self.bytes
        while not self._eof and self.bytes - first <= _PIPE_BYTES:
            before = self.bytes
            self._step(_IDLE_S, until=time.monotonic() + _IDLE_S)
            if self.bytes == before:
                break
        if self._eof and not group_alive(self._pid):
            return False
        self.end()
        until = time.monotonic() + GRACE_S
        while group_alive(self._pid) and time.monotonic() < until:
            self._step(_STEP_S)
        self._kill()
        return True

    def ended(self, status: int, *, rest: bool) -> None:
        until = time.monotonic() + 1
        while not self._eof and time.monotonic() < until:
            before = self.bytes
            self._step(_IDLE_S, until=time.monotonic() + _IDLE_S)
            if self.bytes == before:
                break  # a process that is no child of ours has it open
        fields = self._fields(status=status, rest=rest)
        self._write_state(**fields)
        self.report(**fields)

    def failed(self, error: BaseException) -> None:
        super().failed(error)
        self._write_state(error=words(error), pid=self._pid)

    def end(self) -> None:
        """Send SIGTERM now, SIGKILL after two seconds."""
        if self._pid:
            self._kill_at = self._kill_at or time.monotonic() + GRACE_S
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGTERM)

    # Inside

    @property
    def _about(self) -> dict[str, Any]:
        return {"keeper": os.getpid(), "started": self._started}

    def _check_folder(self) -> None:
        """Raise OSError if the folder was replaced since the request: that is another start."""
        ours = os.fstat(self._output)
        there = os.stat(names.OUTPUT, dir_fd=self._folder, follow_symlinks=False)
        if not os.path.samestat(ours, there):
            raise OSError(errno.ESTALE, "its folder is another one")

    def _asked_to_end(self, *_: object) -> None:
        self.end()

    def _kill(self) -> None:
        if self._pid:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGKILL)
        with suppress(OSError, ValueError), open("/proc/thread-self/children", "rb") as children:  # noqa: PTH123 - pathlib is slow to load
            for child in children.read().split():
                os.kill(int(child), signal.SIGKILL)

    def _patience(self) -> float | None:
        """Do what is due; return the seconds until something is, None for nothing."""
        now = time.monotonic()
        if self._kill_at is not None:
            if now < self._kill_at:
                return self._kill_at - now
            self._kill()
            return _STEP_S
        if self._attended or self._timeout is None:
            return None
        if (left := self._began + self._timeout - now) > 0:
            return left
        self._timed_out = True
        self.end()
        return GRACE_S

    def _step(self, patience: float | None, until: float | None = None) -> None:
        """Wait for an event, and handle it; with `until`, for output until then."""
        read = self.bytes
        while True:
            for file, what in self._poll.poll(None if patience is None else patience * 1000):
                if file == self._pipe:
                    self._take()
                elif file == self._wake:
                    with suppress(BlockingIOError):
                        os.read(self._wake, 512)
                elif file == self._control:
                    self._obey()
                elif file == self.answer.fileno():
                    self._check_program(what)
                else:
                    self._serve(file, what)
            if until is None or self._eof or self.bytes != read or time.monotonic() >= until:
                return

    def _serve(self, file: int, what: int) -> None:
        """Handle an event of a file that a kind of keeper has added."""

    def _check_program(self, what: int) -> None:
        """Note if the program has gone, and end with it where that is wanted."""
        if what & ~select.POLLIN or not self.answer.recv(1):
            self._poll.unregister(self.answer.fileno())
            self._attended = False
            with suppress(OSError):
                os.stat(f"../../{names.ENDS_HERE}", dir_fd=self._folder)
                self.end()

    def _obey(self) -> None:
        with suppress(BlockingIOError):
            for letter in os.read(self._control, 64):
                if letter == names.END[0]:
                    self.end()
                elif letter == names.KILL[0]:
                    self._kill()
                elif letter == names.NO_LIMIT[0]:
                    self._timeout = None

    def _take(self) -> None:
        try:
            data = os.read(self._pipe, _CHUNK)
        except OSError:
            data = b""
        if not data:
            self._eof = True
            self._poll.unregister(self._pipe)
            return
        self.bytes += len(data)
        self._lines += data.count(b"\n")
        self._open_end = not data.endswith(b"\n")
        self._digest.update(data)
        if not self._stopped:
            data = self._write(data)
        if self._stopped:
            self._tail = (self._tail + data)[-names.TAIL_BYTES :]

    def _write(self, data: bytes) -> bytes:
        """Keep output in the file; return what there was no room for."""
        if self._written >= self._checked_at:
            more = _CHECK_FREE_EVERY if self._written else _ALWAYS_BYTES
            self._checked_at = self._written + more
            if self._written and _free(self._output) < self._min_free:
                self._stopped = "the disk is nearly full"
                return data
        room = memoryview(data)[: self._limit - self._written]
        try:
            while room:
                count = os.write(self._output, room)
                self._written += count
                room, data = room[count:], data[count:]
        except OSError as error:
            self._stopped = words(error)
            return data
        if self._written >= self._limit:
            self._stopped = names.LIMIT
        return data

    def _fields(self, **end: Any) -> dict[str, Any]:
        return {
            **end,
            "pid": self._pid,
            "seconds": round(time.monotonic() - self._began, 3),
            "bytes": self.bytes,
            "lines": self._lines + self._open_end,
            "written": self._written,
            "sha256": self._digest.hexdigest(),
            "stopped": self._stopped,
            "tail": binascii.b2a_base64(self._tail, newline=False).decode(),
            "timed_out": self._timed_out,
        }

    def _write_state(self, **fields: Any) -> None:
        """Replace the state; if there is no room for it, without the end of the output."""
        fields = self._about | fields
        new = f"{names.STATE}.new"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
            file = os.open(new, flags, 0o600, dir_fd=self._folder)
            try:
                data = names.state_text(**fields)
                if os.write(file, data) != len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            finally:
                os.close(file)
            os.replace(new, names.STATE, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        except OSError:
            with suppress(OSError):
                file = os.open(names.STATE, os.O_WRONLY | os.O_CLOEXEC, dir_fd=self._folder)
                try:
                    os.write(file, names.state_text(**fields | {"tail": ""}))
                finally:
                    os.close(file)


def _nothing(*_: object) -> None:
    """A handler for a signal that only wakes."""


def _free(file: int) -> int:
    space = os.fstatvfs(file)
    return space.f_bavail * space.f_frsize


def group_alive(group: int) -> bool:
    """True if a process of the group still runs; zombies do not count if /proc exists."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return _has_live_member(group)


def _has_live_member(group: int) -> bool:
    """Check /proc: a container without an init may have zombies that killpg still finds."""
    if not os.path.exists("/proc/self/stat"):  # noqa: PTH110
        return True
    for entry in os.listdir("/proc"):  # noqa: PTH208
        if not entry.isdigit():
            continue
        with suppress(OSError, ValueError, IndexError), open(f"/proc/{entry}/stat", "rb") as stat:  # noqa: PTH123
            text = stat.read()
            state, _parent, pgrp = text[text.rindex(b")") + 1 :].split()[:3]
            if int(pgrp) == group and state not in b"ZX":
                return True
    return False
