"""This machine as an engine: each worker is a child process, which ends with the run's window."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from tui.batch.cluster.engines.port import EngineError, Life
from tui.core.dataclass import dataclass, field
from tui.core.errors import os_error_as

_END_S: Final = 25.0
"""Seconds that a worker has for ending its commands and giving its task back."""
_SHOWN: Final = 4000


@dataclass(slots=True)
class LocalEngine:
    """Starts workers on this machine, `slots` at a time. `logs` takes what they print."""

    slots: int
    logs: Path
    name: str = "local"
    look_s: float = 0.5
    outlives: bool = False
    _started: dict[str, subprocess.Popen[bytes]] = field(
        default_factory=dict[str, "subprocess.Popen[bytes]"]
    )
    _lives: tuple[socket.socket, socket.socket] | None = None
    """The end that workers get as stdin, and one that is closed with this process, however it
    ends."""
    _read: dict[str, int] = field(default_factory=dict[str, int])
    """The bytes of each log that `printed` has come to."""

    def put(self, commands: Mapping[str, Sequence[str]]) -> Mapping[str, str]:
        handles: dict[str, str] = {}
        with os_error_as(EngineError, "Can't start a worker"):
            self._lives = self._lives or socket.socketpair()
            self.logs.mkdir(mode=0o700, parents=True, exist_ok=True)
            for key, words in commands.items():
                with self._log(key).open("ab") as log:
                    self._read.setdefault(key, log.tell())  # what is there is of an earlier run
                    started = subprocess.Popen(
                        [sys.executable, "-P", "-m", "tui", *words],
                        stdin=self._lives[0].fileno(),
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                    )
                handles[key] = f"{key}:{started.pid}"
                self._started[handles[key]] = started
        return handles

    def watch(self, handles: Collection[str]) -> Mapping[str, Life]:
        return {handle: self._life(handle) for handle in handles}

    def _life(self, handle: str) -> Life:
        started = self._started.get(handle)
        if started is None:
            return "unknown"
        return "lives" if started.poll() is None else "ended"

    def fetch(self, handle: str) -> str:
        with suppress(OSError):
            return self._log(handle.partition(":")[0]).read_text("utf-8", "replace")[-_SHOWN:]
        return ""

    def cancel(self, handles: Collection[str]) -> None:
        ending = [one for handle in handles if (one := self._started.get(handle))]
        for one in ending:
            with suppress(ProcessLookupError):
                one.send_signal(signal.SIGTERM)
        for one in ending:
            try:
                one.wait(_END_S)
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    os.killpg(one.pid, signal.SIGKILL)
                one.wait()

    def live(self) -> int:
        """Count the workers that run."""
        return sum(one.poll() is None for one in [*self._started.values()])

    def was_killed(self, handle: str) -> bool:
        """True if a signal has ended a worker that could not give its task back."""
        started = self._started.get(handle)
        return started is not None and (started.poll() or 0) < 0

    def printed(self) -> Iterator[tuple[str, bytes]]:
        """Yield the whole lines that workers have printed since the last call, with their keys."""
        for key, begin in [*self._read.items()]:
            with suppress(OSError), self._log(key).open("rb") as log:
                log.seek(begin)
                for line in log:
                    if not line.endswith(b"\n"):
                        break  # the rest of it is still to come
                    self._read[key] += len(line)
                    yield key, line

    def drop(self, key: str) -> None:
        """Remove the log of a task whose result was taken."""
        self._read.pop(key, None)
        self._log(key).unlink(missing_ok=True)
        with suppress(OSError):  # others have theirs there
            self.logs.rmdir()

    def close(self) -> None:
        self.cancel([*self._started])
        for end in self._lives or ():
            end.close()
        self._lives = None

    def _log(self, key: str) -> Path:
        return self.logs / f"worker-{key}.log"
