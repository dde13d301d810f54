"""Starts a command line under a keeper, and ends groups of processes."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
from asyncio.subprocess import Process
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from tui.core.clock import Clock
from tui.core.config import Guard
from tui.core.errors import ToolError
from tui.core.process_birth import born
from tui.core.redaction import child_environment
from tui.keeper.command import (
    TERM,
    StartedBeforeError,
    Starter,
    SupervisedCommand,
    TerminalSize,
)
from tui.keeper.monitor import GRACE_S

_POLL_S = 0.05
QUIET = {
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

_OF_TERMINALS = frozenset(
    {"COLORTERM", "COLUMNS", "LINES", "TERMCAP", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "TMUX",
     "TMUX_PANE", "STY", "VTE_VERSION", "WT_SESSION", "KITTY_WINDOW_ID", "SSH_TTY"}
)  # fmt: skip
"""Variables about the terminal that a program runs in."""


@cache
def shell(path: str | None = None) -> tuple[str, ...]:
    """The words that run a command line: bash where there is one in `path` (None: our PATH)."""
    bash = shutil.which("bash", path=path)
    return (bash, "-c") if bash else ("/bin/sh", "-c")


async def start_command(
    line: str,
    *,
    cwd: Path,
    folder: Path,
    call: Mapping[str, Any],
    limits: Guard,
    env: Mapping[str, str] | None = None,
    starter: Starter,
    timeout: float | None = None,
    elsewhere: bool = True,
    terminal: TerminalSize | None = None,
) -> SupervisedCommand:
    """Run a command line by the shell, its stdout and stderr merged in order, kept in a new folder;
    or in a terminal of its own.

    `env` is its environment, ours without the program's secrets if left out. `call` is what a later
    run of the program will know of it, and `timeout` when its keeper ends it where no program is
    there. Without `elsewhere` it is not started where `folder` can't be made. Raises ToolError
    where it can't be started.
    """
    if "\0" in line:
        raise ToolError("The command contains a NUL byte.", hint="Send it without.")
    env = child_environment() if env is None else env
    try:
        return await SupervisedCommand.start(
            (*shell(env.get("PATH")), line),
            cwd=cwd,
            env={**env, **QUIET} if terminal is None else _with_terminal(env),
            folder=folder,
            starter=starter,
            call={**call, "command": line, "cwd": str(cwd)},
            limit=limits.spill_max_bytes,
            min_free=limits.spill_min_free_bytes,
            timeout=timeout,
            elsewhere=elsewhere,
            terminal=terminal,
        )
    except StartedBeforeError as error:
        raise ToolError(
            "The command was not started: this call has started one before.",
            hint="Nothing runs twice by itself. Call the tool again if it is to run again.",
        ) from error
    except (OSError, ValueError) as error:
        raise _cannot_start(error) from error


def _with_terminal(env: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command with a terminal: that of the person's own says nothing here."""
    kept = {name: value for name, value in env.items() if name not in _OF_TERMINALS}
    return {**kept, "TERM": TERM}


async def end_group(pid: int, birth: str, clock: Clock) -> bool:
    """End the process group of a command of an earlier run, if it is still the same process.

    SIGTERM, then SIGKILL after two seconds. Returns whether it is gone.
    """
    for number, patience in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, 1.0)):
        if await asyncio.to_thread(born, pid) != birth:
            return True
        _signal_group(pid, number)
        until = clock.monotonic() + patience
        while await asyncio.to_thread(born, pid) == birth and clock.monotonic() < until:
            await clock.sleep(_POLL_S)
    return await asyncio.to_thread(born, pid) != birth


async def end_server(process: Process, *, at_once: bool = False) -> None:
    """End a server that leads a group, with all that it started: close its input, then end its
    group by signals where that is not enough."""
    if process.stdin is not None:
        process.stdin.close()
    for number in (signal.SIGKILL,) if at_once else (None, signal.SIGTERM, signal.SIGKILL):
        if number is not None:
            _signal_group(process.pid, number)
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_S):
                await process.wait()
                break
    _signal_group(process.pid, signal.SIGKILL)  # what it has left behind


def _signal_group(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def outcome(returncode: int) -> tuple[int, str]:
    """A return code as the shell numbers it, and in words: `exit code 1`, `killed by SIGTERM`."""
    if returncode >= 0:
        return returncode, f"exit code {returncode}"
    try:
        name = signal.Signals(-returncode).name
    except ValueError:
        name = f"signal {-returncode}"
    return 128 - returncode, f"killed by {name}"


def _cannot_start(error: OSError | ValueError) -> ToolError:
    reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
    hint = "Look at the working folder and the limits of this system."
    if os.strerror(errno.E2BIG) in reason:
        hint = "The command line is too long: write it to a file and run that."
    return ToolError(f"Couldn't start the command: {reason}.", hint=hint)
