"""The mark of what an agent started: a process cannot take it off, nor can what it starts.

It is a limit of the system that nothing heeds any more (on file locks, since Linux 2.4.25). A
process without rights of its own may lower the most that it may set, and never raise it; whatever
it starts has the same limits, also in a session of its own, with another environment, and once its
parents are gone. So it tells a person's own processes from those of an agent's command, of a hook,
of a check or of an MCP or language server. Root may take it off.

A program that is marked once it runs may have started another one before: `marked` gives the words
that start it with the mark on.

On Linux only; elsewhere nothing is marked. Standard library only: the zygote imports it.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

_LOCKS = 10
"""RLIMIT_LOCKS, which Python does not name."""
_NAME = "Max file locks"
_MOST = 0x486F6C64
"""The limit of what is marked: no setting of a person's."""


_PRLIMIT = "/usr/bin/prlimit"
"""Of util-linux: it starts in a millisecond, Python in eighteen."""
_START = f"""
import os, resource, signal, sys
hard = resource.getrlimit({_LOCKS})[1]
if hard == resource.RLIM_INFINITY or hard > {_MOST}:
    resource.setrlimit({_LOCKS}, ({_MOST}, {_MOST}))
for name in ("SIGPIPE", "SIGXFSZ"):  # which Python ignores
    signal.signal(getattr(signal, name), signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])
"""


def marked(words: Sequence[str], env: Mapping[str, str], cwd: Path) -> list[str]:
    """The words that start a program with the mark on it. `env` and `cwd` are those with which it
    is started. One that isn't there is to fail as it would: its words stay as they are. Blocks for
    a moment."""
    program = str(cwd / words[0]) if "/" in words[0] else words[0]
    if sys.platform != "linux" or not shutil.which(program, path=env.get("PATH", os.defpath)):
        return [*words]
    if is_marked("self"):
        return [*words]  # what it starts is, too
    if os.access(_PRLIMIT, os.X_OK):
        return [_PRLIMIT, f"--locks={_MOST}:{_MOST}", "--", *words]
    return [sys.executable, "-I", "-S", "-c", _START, *words]


def mark(process: int = 0) -> None:
    """Mark a process, this one where it is 0, and all that it will start. Never raises."""
    if sys.platform != "linux":
        return
    import resource  # noqa: PLC0415 - not everywhere

    with suppress(OSError, ValueError):
        hard = resource.prlimit(process, _LOCKS)[1]
        if hard == resource.RLIM_INFINITY or hard > _MOST:
            resource.prlimit(process, _LOCKS, (_MOST, _MOST))


def is_marked(process: int | str) -> bool:
    """True if a process is marked. Raises OSError where it is gone. Blocks."""
    with open(f"/proc/{process}/limits", encoding="ascii") as file:  # noqa: PTH123 - pathlib is slow to load
        for line in file:
            if line.startswith(_NAME):
                hard = line[len(_NAME) :].split()[1]
                return hard != "unlimited" and int(hard) <= _MOST
    return False
