"""The folder of a command that is kept: what the program and the keeper leave there for the next.

    call     what was run, for whom: JSON, by the program, before the command starts
    output   all that it printed, as it came
    state    how it stands, then how it ended: JSON, by the keeper. Made right before the command
             starts, and only where there is none: what has no state was not started, and what
             has one is not started again
    lock     locked by the keeper as long as it lives
    control  a FIFO: one letter each to end the command, to kill it, or to let it take its time

Standard library only, and little of it: the keeper imports it.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any

CALL, OUTPUT, STATE, LOCK, CONTROL = "call", "output", "state", "lock", "control"

END, KILL, NO_LIMIT = b"e", b"k", b"n"
"""SIGTERM to the group of the command; SIGKILL to all of it; no time limit any more."""

VERSION = 1
"""Of `state` and `call`: a program of another version may read them."""

LIMIT = "limit"
"""Why no more is written into `output`, where it is that."""

TAIL_BYTES = 64 * 1024
"""Of an output that is not kept to its end, so much of the end is in the state."""

_STATE_BYTES = 1024
"""The state is padded to this, so that its end can be written on a full disk too."""


def state_text(**fields: Any) -> bytes:
    """The content of `state`."""
    return json.dumps({"version": VERSION, **fields}).ljust(_STATE_BYTES).encode()


def begin(folder: int, **fields: Any) -> None:
    """Make the state, which nobody may have done before: the one place where it is decided that
    the command of a folder starts, or that it never does.

    Raises FileExistsError where that is decided already, OSError where nothing can be decided.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(STATE, flags, 0o600, dir_fd=folder)
    try:
        with suppress(OSError):  # a full disk: that it is there says it
            os.write(file, state_text(**fields))
    finally:
        os.close(file)


def send(folder: str | os.PathLike[str], letter: bytes) -> bool:
    """Tell the keeper something. False where none lives. Never blocks."""
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
