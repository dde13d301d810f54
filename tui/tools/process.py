"""One command: its process group, the pipe its output comes through, and how both are ended.

The pipe is read by the event loop itself, so a full pipe, a slow reader and a descendant that
keeps the pipe open after the shell has gone are all in our hands.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

from tui.clock import Clock
from tui.errors import ToolError
from tui.secrets import child_environment

GRACE_S = 2.0
"""Between SIGTERM and SIGKILL."""

_POLL_S = 0.05
_DRAIN_S = 0.25
_CHUNK = 65_536
_QUIET = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "TERM": "dumb",
    "PYTHONUNBUFFERED": "1",
}
"""So that nothing waits for a person, and output comes when it is written."""


@cache
def shell() -> tuple[str, ...]:
    """The words that run a command line: bash where there is one."""
    bash = shutil.which("bash")
    return (bash, "-c") if bash else ("/bin/sh", "-c")


class Process:
    """A command in a process group of its own, its stdout and stderr merged in order.

    `returncode` is None while the shell runs; negative when a signal ended it. Made by `start`;
    whoever made it ends with `close`, on every way out.
    """

    def __init__(self, process: asyncio.subprocess.Process, pipe: int) -> None:
        self._process = process
        self._pipe = pipe
        self._sink: Callable[[bytes], None] = _nowhere
        self._drained = asyncio.Event()
        self._exit = asyncio.create_task(process.wait())

    @classmethod
    async def start(cls, command: str, *, cwd: Path, sink: Callable[[bytes], None]) -> Process:
        """Run `command` by the shell. `sink` gets its output as it comes, on the event loop."""
        if "\0" in command:
            raise ToolError("The command holds a NUL byte.", hint="Send it without.")
        pipe, theirs = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *shell(),
                command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=theirs,
                stderr=theirs,
                cwd=cwd,
                env=child_environment() | _QUIET,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            os.close(pipe)
            raise _cannot_start(error) from error
        except BaseException:
            os.close(pipe)
            raise
        finally:
            os.close(theirs)
        started = cls(process, pipe)
        started._sink = sink
        os.set_blocking(pipe, False)
        asyncio.get_running_loop().add_reader(pipe, started._read)
        return started

    @property
    def pid(self) -> int:
        """The shell's process id, which is the group's too."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    async def wait(self, seconds: float | None) -> bool:
        """Whether the shell has exited, waiting at most `seconds` (None: as long as it takes)."""
        done, _ = await asyncio.wait({self._exit}, timeout=seconds)
        return bool(done)

    async def drain(self) -> bool:
        """Read what is left after the shell has exited. False: someone still holds the pipe."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._drained.wait(), _DRAIN_S)
        return self._drained.is_set()

    def group_alive(self) -> bool:
        """Whether a process of the group still runs. Zombies do not count where /proc tells."""
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return _living_member(self.pid)

    async def end(self, clock: Clock) -> None:
        """SIGTERM to the group, two seconds of grace, SIGKILL. Cancelled, it kills at once."""
        try:
            self._signal(signal.SIGTERM)
            until = clock.monotonic() + GRACE_S
            while self.group_alive() and clock.monotonic() < until:
                await clock.sleep(_POLL_S)
        finally:
            self._signal(signal.SIGKILL)
        await self.wait(1.0)

    def close(self) -> None:
        """Kill what is left of the group and stop reading. Never waits; may be called again."""
        if self.returncode is None or self.group_alive():
            self._signal(signal.SIGKILL)
        self._stop_reading()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _read(self) -> None:
        try:
            data = os.read(self._pipe, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._sink(data)
        else:
            self._stop_reading()

    def _stop_reading(self) -> None:
        if self._drained.is_set():
            return
        self._drained.set()
        asyncio.get_running_loop().remove_reader(self._pipe)
        os.close(self._pipe)


def outcome(returncode: int) -> tuple[int, str]:
    """A return code as the shell numbers it, and in words: `exit code 1`, `killed by SIGTERM`."""
    if returncode >= 0:
        return returncode, f"exit code {returncode}"
    try:
        name = signal.Signals(-returncode).name
    except ValueError:
        name = f"signal {-returncode}"
    return 128 - returncode, f"killed by {name}"


def _nowhere(_data: bytes) -> None:
    pass


def _living_member(group: int) -> bool:
    """A look at /proc: a container without an init may keep zombies that killpg still finds."""
    proc = Path("/proc/self/stat")
    if not proc.exists():
        return True
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        with suppress(OSError, ValueError, IndexError):
            stat = Path(entry.path, "stat").read_text(encoding="utf-8", errors="replace")
            state, _parent, pgrp = stat[stat.rindex(")") + 1 :].split()[:3]
            if int(pgrp) == group and state not in "ZX":
                return True
    return False


def _cannot_start(error: OSError | ValueError) -> ToolError:
    if isinstance(error, OSError):
        too_long = error.errno == errno.E2BIG
        reason = error.strerror or str(error)
    else:
        too_long, reason = False, str(error)
    hint = (
        "The command line is too long: write it to a file and run that."
        if too_long
        else "Look at the working folder and the limits of this system."
    )
    return ToolError(f"The command could not be started: {reason}.", hint=hint)
