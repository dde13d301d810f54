"""This machine as an engine: each worker is a child process, which ends with the run's window."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
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

    def put(self, commands: Mapping[str, Sequence[str]]) -> Mapping[str, str]:
        handles: dict[str, str] = {}
        with os_error_as(EngineError, "Can't start a worker"):
            self.logs.mkdir(mode=0o700, parents=True, exist_ok=True)
            for key, words in commands.items():
                with self._log(key).open("ab") as log:
                    started = subprocess.Popen(
                        [sys.executable, "-P", "-m", "tui", *words],
                        stdin=subprocess.DEVNULL,
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

    def close(self) -> None:
        self.cancel([*self._started])

    def _log(self, key: str) -> Path:
        return self.logs / f"worker-{key}.log"
