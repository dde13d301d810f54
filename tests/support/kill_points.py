"""SIGKILL at a numbered step: behind each system call that leaves something, in this process.

Counted are calls of `os` that change files, and what goes to another process. It counts while it is
`armed`; the process is killed right before step `at` happens, and reports how many there were where
it gets to its end.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable
from typing import Any

_STEPS = (
    *("open", "write", "pwrite", "close", "fsync", "fdatasync"),
    *("mkdir", "rmdir", "rename", "replace", "unlink", "link", "mkfifo", "ftruncate"),
    *("fork", "execve", "kill", "killpg"),
)


class KillPoint:
    """Kills this process before step `at`, counted while it is `armed`; 0 for never. The process
    `spared` is left alone, where it forks those that are meant."""

    def __init__(self, at: int, spared: int = 0) -> None:
        self.at = at
        self.spared = spared
        self.steps = 0
        self.armed = False
        self._lock = threading.Lock()

    def install(self) -> None:
        """Watch this process, and those that it forks."""
        for name in _STEPS:
            setattr(os, name, self._watched(getattr(os, name)))
        socket.socket.sendmsg = self._watched(socket.socket.sendmsg)
        socket.socket.sendall = self._watched(socket.socket.sendall)

    def step(self) -> None:
        """Something is about to happen."""
        if os.getpid() == self.spared:
            return
        with self._lock:
            self.steps += self.armed
            if self.armed and self.steps == self.at:
                _kill(os.getpid(), signal.SIGKILL)

    def _watched(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def doing(*args: Any, **named: Any) -> Any:
            if self.armed:
                self.step()
            return real(*args, **named)

        return doing


_kill = os.kill
