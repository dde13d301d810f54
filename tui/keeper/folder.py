"""The folder of a command that is kept: what the program and the keeper leave there for the next.

    call     what was run, for whom: JSON, by the program, before the command starts
    output   all that it printed, as it came
    state    how it stands, then how it ended: JSON, by the keeper
    lock     locked by the keeper as long as it lives
    control  a FIFO: one letter each to end the command, to kill it, or to let it take its time

Standard library only, and little of it: the keeper imports it.
"""

from __future__ import annotations

import os

CALL, OUTPUT, STATE, LOCK, CONTROL = "call", "output", "state", "lock", "control"

END, KILL, NO_LIMIT = b"e", b"k", b"n"
"""SIGTERM to the group of the command; SIGKILL to all of it; no time limit any more."""

VERSION = 1
"""Of `state` and `call`: a program of another version may read them."""

LIMIT = "limit"
"""Why no more is written into `output`, where it is that."""

TAIL_BYTES = 64 * 1024
"""Of an output that is not kept to its end, so much of the end is in the state."""


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
