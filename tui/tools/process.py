"""Runs one command: its process group, the pipe with its output, and the end of both.

A thread reads the pipe and passes the bytes on: so the event loop never waits for the disk, and a
command that prints faster than the disk can write has to wait.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Protocol, TypeAlias

from tui.core.clock import Clock
from tui.core.errors import ToolError
from tui.core.redaction import child_environment

GRACE_S = 2.0
"""Between SIGTERM and SIGKILL."""

_POLL_S = 0.05
_DRAIN_S = 0.25
_LEFT_IN_PIPE = 1 << 20
"""No pipe holds more. After this many bytes, another process must still be printing."""
_CHUNK = 1 << 18
_QUIET = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "TERM": "dumb",
    "PYTHONUNBUFFERED": "1",
}
"""So that nothing waits for a person, output comes when it is written, and a look of git writes
nothing: a hook would run after it."""


@cache
def shell(path: str | None = None) -> tuple[str, ...]:
    """The words that run a command line: bash where there is one in `path` (None: our PATH)."""
    bash = shutil.which("bash", path=path)
    return (bash, "-c") if bash else ("/bin/sh", "-c")


class Running(Protocol):
    """What runs a command: a process of asyncio, or one behind the walls of a sandbox."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None: ...
    async def wait(self) -> int: ...


Starter: TypeAlias = Callable[[Sequence[str], Path, Mapping[str, str], int], Awaitable[Running]]
"""Starts a command: its words, its folder, its environment, and where its output goes."""


class Process:
    """A command in a process group of its own, its stdout and stderr merged in order.

    `returncode` is None while the shell runs, negative if a signal ended it. Made by `start`; the
    caller must call `close` in the end, also after an error.
    """

    def __init__(self, process: Running, pipe: int, sink: Callable[[bytes], None]) -> None:
        self._process = process
        self._sink = sink
        self._drained = asyncio.Event()
        self._exit = asyncio.create_task(process.wait())
        self._loop = asyncio.get_running_loop()
        self._read = 0
        self._closed = False
        self._taking = threading.Lock()
        stop, self._stop = os.pipe()
        if sys.platform == "linux":
            with suppress(OSError):  # this user's pipes hold as much as they may
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _LEFT_IN_PIPE)
        threading.Thread(
            target=self._read_all, args=(pipe, stop), name="command-output", daemon=True
        ).start()

    @classmethod
    async def start(
        cls,
        command: str,
        *,
        cwd: Path,
        sink: Callable[[bytes], None],
        env: Mapping[str, str] | None = None,
        starter: Starter | None = None,
    ) -> Process:
        """Run `command` by the shell. `sink` gets its output as it comes, in a thread.

        It is not called any more once `close` has returned. `env` is its environment, ours
        without the program's secrets if left out. `starter` starts it in a sandbox.
        """
        if "\0" in command:
            raise ToolError("The command contains a NUL byte.", hint="Send it without.")
        env = child_environment() if env is None else env
        pipe, theirs = os.pipe()
        try:
            words = (*shell(env.get("PATH")), command)
            process = await (starter or _unconfined)(words, cwd, {**env, **_QUIET}, theirs)
        except (OSError, ValueError) as error:
            os.close(pipe)
            raise _cannot_start(error) from error
        except BaseException:
            os.close(pipe)
            raise
        finally:
            os.close(theirs)
        return cls(process, pipe, sink)

    @property
    def pid(self) -> int:
        """The shell's process id, which is the group's too."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    @property
    def outlived(self) -> bool:
        """Whether the end of a sandbox stopped something that the command had left running."""
        return bool(getattr(self._process, "rest", False))

    async def wait(self, seconds: float | None) -> bool:
        """Whether the shell has exited, waiting at most `seconds` (None: as long as it takes)."""
        done, _ = await asyncio.wait({self._exit}, timeout=seconds)
        return bool(done)

    async def drain(self) -> bool:
        """Read the rest after the shell has exited. False: a process still has the pipe open."""
        first = self._read
        while not self._drained.is_set():
            before = self._read
            with suppress(TimeoutError):  # not wait_for: before 3.12 it loses a cancellation
                async with asyncio.timeout(_DRAIN_S):
                    await self._drained.wait()
            idle = self._read == before and not self._taking.locked()
            if idle or self._read - first > _LEFT_IN_PIPE:
                break
        return self._drained.is_set()

    def group_alive(self) -> bool:
        """Whether a process of the group still runs; zombies do not count if /proc exists."""
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return _has_live_member(self.pid)

    def redirect(self, hand_over: Callable[[], Callable[[bytes], None]]) -> None:
        """Let another sink take the output from here on, the one that `hand_over` returns; while
        that works, nothing is read. Blocks: call it in a thread."""
        with self._taking:
            self._sink = hand_over()

    async def end(self, clock: Clock) -> None:
        """SIGTERM to the group, two seconds of grace, SIGKILL. Cancelled, it kills at once."""
        try:
            self._signal(signal.SIGTERM)
            until = clock.monotonic() + GRACE_S
            while await asyncio.to_thread(self.group_alive) and clock.monotonic() < until:
                await clock.sleep(_POLL_S)
        finally:
            self._signal(signal.SIGKILL)
        await self.wait(1.0)

    def close(self) -> None:
        """Kill the rest of the group and stop reading. May be called again.

        Waits only until the piece of output that is being processed is done.
        """
        if self.returncode is None or self.group_alive():
            self._signal(signal.SIGKILL)
        with self._taking:
            if self._closed:
                return
            self._closed = True
        os.close(self._stop)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _read_all(self, pipe: int, stop: int) -> None:
        """The thread: hand over what comes until the pipe ends or `close` says stop."""
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        poll.register(stop, select.POLLIN)
        try:
            while all(file != stop for file, _ in poll.poll()):
                data = os.read(pipe, _CHUNK)
                if not data or not self._take(data):
                    break
        except OSError:
            pass  # as good as the end
        finally:
            os.close(pipe)
            os.close(stop)
            with suppress(RuntimeError):  # the loop was closed meanwhile
                self._loop.call_soon_threadsafe(self._drained.set)

    def _take(self, data: bytes) -> bool:
        with self._taking:
            if not self._closed:
                self._read += len(data)
                self._sink(data)
            return not self._closed


async def _unconfined(
    words: Sequence[str], cwd: Path, env: Mapping[str, str], output: int
) -> Running:
    return await asyncio.create_subprocess_exec(
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        cwd=cwd,
        env=env,
        start_new_session=True,
    )


def born(pid: int) -> str:
    """When a process began, as a text that no other process with the same number has.

    "" if it is gone, a zombie, or if this is not known. Blocks.
    """
    with suppress(OSError, ValueError, IndexError):
        state, *fields = _stat_of(pid)
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return "" if state in "ZX" else f"{boot}/{fields[18]}"
    if Path("/proc/self/stat").exists():
        return ""
    with suppress(OSError, subprocess.SubprocessError):  # macOS
        asked = ["ps", "-o", "lstart=", "-p", str(pid)]
        return subprocess.run(
            asked, capture_output=True, text=True, check=True, timeout=2
        ).stdout.strip()
    return ""


async def end_group(pid: int, birth: str, clock: Clock) -> bool:
    """End the process group of a command of an earlier run, if it is still the same process.

    SIGTERM, then SIGKILL after two seconds. Returns whether it is gone.
    """
    for number, patience in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, 1.0)):
        if await asyncio.to_thread(born, pid) != birth:
            return True
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, number)
        until = clock.monotonic() + patience
        while await asyncio.to_thread(born, pid) == birth and clock.monotonic() < until:
            await clock.sleep(_POLL_S)
    return await asyncio.to_thread(born, pid) != birth


def outcome(returncode: int) -> tuple[int, str]:
    """A return code as the shell numbers it, and in words: `exit code 1`, `killed by SIGTERM`."""
    if returncode >= 0:
        return returncode, f"exit code {returncode}"
    try:
        name = signal.Signals(-returncode).name
    except ValueError:
        name = f"signal {-returncode}"
    return 128 - returncode, f"killed by {name}"


def _stat_of(pid: int | str) -> list[str]:
    """What /proc says of a process after its name: state, parent, group and so on."""
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    return stat[stat.rindex(")") + 1 :].split()


def _has_live_member(group: int) -> bool:
    """Check /proc: a container without an init may have zombies that killpg still finds."""
    if not Path("/proc/self/stat").exists():
        return True
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        with suppress(OSError, ValueError, IndexError):
            state, _parent, pgrp = _stat_of(entry.name)[:3]
            if int(pgrp) == group and state not in "ZX":
                return True
    return False


def _cannot_start(error: OSError | ValueError) -> ToolError:
    reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
    hint = "Look at the working folder and the limits of this system."
    if isinstance(error, OSError) and error.errno == errno.E2BIG:
        hint = "The command line is too long: write it to a file and run that."
    return ToolError(f"Couldn't start the command: {reason}.", hint=hint)
