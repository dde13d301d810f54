"""The system's ssh, as the program starts it for tasks and for the desk: with nobody to ask."""

from __future__ import annotations

import os
import shlex


def ssh_command(*, alive_s: int, times: int, connect_s: int = 20) -> list[str]:
    """Return the words that begin a call of ssh, or of what the person has in its place
    (GIT_SSH_COMMAND, as git takes it). A server that doesn't answer `times` questions, one every
    `alive_s` seconds, is gone; one that takes `connect_s` seconds to connect isn't there."""
    named = shlex.split(os.environ.get("GIT_SSH_COMMAND", "")) or ["ssh"]
    options = (
        "BatchMode=yes",
        f"ConnectTimeout={connect_s}",
        f"ServerAliveInterval={alive_s}",
        f"ServerAliveCountMax={times}",
    )
    return [*named, *(word for one in options for word in ("-o", one))]
