"""The system's ssh, as the store and the engine for plain hosts start it: with nobody to ask."""

from __future__ import annotations

import os
import shlex
from typing import Final

_UNASKED: Final = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=20")


def ssh_command(*, alive_s: int, times: int) -> list[str]:
    """Return the words that begin a call of ssh, or of what the person has in its place
    (GIT_SSH_COMMAND, as git takes it). A server that doesn't answer `times` questions, one every
    `alive_s` seconds, is gone."""
    named = shlex.split(os.environ.get("GIT_SSH_COMMAND", "")) or ["ssh"]
    alive = (f"ServerAliveInterval={alive_s}", f"ServerAliveCountMax={times}")
    return [*named, *_UNASKED, *(word for one in alive for word in ("-o", one))]
