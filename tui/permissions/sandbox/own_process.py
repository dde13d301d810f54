"""Protects secrets of the program's own process from everything else that the same user runs.

A command outside the walls, or one behind Landlock, shares the machine's `/proc` with the program.
"""

from __future__ import annotations

import ctypes
import os
import sys

from tui.permissions.sandbox.environment import clean_environment


def hide_secrets() -> None:
    """Blank the secrets in the environment that this process was started with, as `ps e` and
    /proc/PID/environ show it, and let no process of the same user trace it or read its memory.

    The program's own environment does not change. Root can still do both.
    """
    if sys.platform != "linux":
        return
    from tui.permissions.sandbox.system_calls import hide_memory  # noqa: PLC0415 - for Linux only

    hide_memory()
    find = ctypes.CDLL(None).getenv
    find.restype = ctypes.c_void_p
    for name in os.environ.keys() - clean_environment(os.environ).keys():
        value = os.environb[os.fsencode(name)]
        place = find(os.fsencode(name))
        if place and value:
            ctypes.memset(place, ord("x"), len(value))
            os.environb[os.fsencode(name)] = value  # another copy, for programs started later
