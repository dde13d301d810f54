"""The folder of a kept command: the files through which the program and the keeper communicate.

    call     what was run, for whom: JSON, by the program, before the command starts
    output   all that it printed, as it came
    state    its state, and later its end: JSON, by the keeper. Made right before the command
             starts, and only if there is none: a command without a state was not started, and
             one with a state is not started again
    lock     locked by the keeper as long as it lives
    control  a FIFO: one letter each to end the command, to kill it, or to lift its time limit

A terminal's folder has two more. Its output is a recording (asciicast).

    terminal a socket: what it shows, what is typed, its size (`tui.keeper.terminal`)
    screen   its last screen: JSON, by the keeper, when the command has ended

Beside the folders of all sessions, `ends-here` says that commands end with their program.

Standard library only, and little of it: the keeper imports it.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CALL, OUTPUT, STATE, LOCK, CONTROL = "call", "output", "state", "lock", "control"
TERMINAL, SCREEN = "terminal", "screen"

ENDS_HERE = "ends-here"
"""The file two folders above a command's that says that nobody comes back to it."""

END, KILL, NO_LIMIT = b"e", b"k", b"n"
"""SIGTERM to the group of the command; SIGKILL to all of it; no time limit any more."""

VERSION = 1
"""The version of `state` and `call`: a program of another version may read them."""

LIMIT = "limit"
"""The reason why no more is written into `output`, if it is the limit."""

TAIL_BYTES = 64 * 1024
"""If the file lacks the end of the output, the state has this much of it."""

_STATE_BYTES = 1024
"""The state is padded to this size, so that the end can be written even on a full disk."""


def state_text(**fields: Any) -> bytes:
    """The content of `state`."""
    return json.dumps({"version": VERSION, **fields}).ljust(_STATE_BYTES).encode()


def begin(folder: int, **fields: Any) -> None:
    """Make the state, which must not exist yet: the one place that decides if a folder's command
    starts, or never does.

    Raises FileExistsError if that is decided already, OSError if nothing can be decided.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(STATE, flags, 0o600, dir_fd=folder)
    try:
        with suppress(OSError):  # a full disk: its existence is enough
            os.write(file, state_text(**fields))
    finally:
        os.close(file)


def send(folder: str | os.PathLike[str], letter: bytes) -> bool:
    """Send a letter to the keeper. False if none lives. Never blocks."""
    try:
        file = os.open(os.path.join(folder, CONTROL), os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # noqa: PTH118
    except OSError:
        return False
    try:
        return os.write(file, letter) == 1
    except OSError:
        return False
    finally:
        os.close(file)
