"""What tests ask of processes that they did not start themselves."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from tests.support.clock import PATIENCE_S


def gone(pid: int) -> bool:
    """Whether a process has ended; one that waits to be reaped has.

    One that was killed needs a processor to end, so it is waited for.
    """
    until = time.monotonic() + PATIENCE_S
    while not (ended := _ended(pid)) and time.monotonic() < until:
        time.sleep(0.002)
    return ended


def _ended(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        with suppress(ProcessLookupError):
            os.kill(pid, 0)
            return Path("/proc/self").exists()
        return True
    return stat[stat.rindex(")") + 1 :].split()[0] in "ZX"
