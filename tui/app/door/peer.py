"""Tells who is at the other end of a door: a program that a person started, or one of an agent's.

Only a person decides what an agent may do, so no command of an agent may speak for one. On Linux
the process at the other end must be of this user, have the same rights and namespaces (a command
behind walls has others), and neither bear the mark of what agents start (`tui.keeper.mark`: it
outlives the command's parents and whatever it does to itself) nor descend from this process.

Elsewhere only the user is known. And nowhere does it hold against a program of the same user that
nothing confines and that has another one act for it, such as a terminal multiplexer or a service
manager: such a program could as well type into the terminal.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from pathlib import Path
from typing import Final

from tui.app.background_parent import rights_of
from tui.core.errors import HoldfastError
from tui.keeper.mark import is_marked
from tui.keeper.peer import handle_of, peer

_LOCAL_PEERCRED: Final = 1
"""Of macOS and the BSDs: the user at the other end."""


class RefusedPeerError(HoldfastError):
    """The process that connected may not use the door."""


def admit(connection: socket.socket) -> None:
    """Check the process at the other end of a connection. Raises RefusedPeerError."""
    try:
        why = _refusal(connection)
    except (OSError, ValueError, IndexError) as error:
        why = f"what it is can't be read ({getattr(error, 'strerror', None) or error})"
    if why:
        raise RefusedPeerError(
            f"This process may not use the session: {why}.",
            hint="Watch it from a terminal of your own.",
        )


def _refusal(connection: socket.socket) -> str:
    """The reason why a process may not use the door; "" if it may. Raises OSError."""
    if sys.platform != "linux":
        return "" if _user(connection) == os.geteuid() else "it belongs to another user"
    with handle_of(connection) as runs:
        pid, user = peer(connection)
        if user != os.geteuid():
            return "it belongs to another user"
        if pid == os.getpid():
            return ""
        if is_marked(pid):
            return "an agent started it"
        if rights_of(str(pid)) != rights_of("self"):
            return "it runs behind other walls, or with other rights, than the session"
        if os.getpid() in ancestors(pid):
            return "the session itself started it"
        return "" if runs() else "it has ended"


def ancestors(pid: int) -> list[int]:
    """The processes that a process descends from, its parent first. Raises OSError."""
    line: list[int] = []
    while pid > 1 and pid not in line[:-1]:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        pid = int(stat[stat.rindex(")") + 1 :].split()[1])
        line.append(pid)
    return line


def _user(connection: socket.socket) -> int:
    """The user of the process at the other end, by `struct xucred`. Raises OSError."""
    made = connection.getsockopt(0, _LOCAL_PEERCRED, struct.calcsize("IIh16I"))
    return struct.unpack_from("II", made)[1]
