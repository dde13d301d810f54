"""What tests ask of processes that they did not start themselves."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from tests.support.clock import PATIENCE_S


def gone(pid: int) -> bool:
    """Whether a process has ended; one that waits to be reaped has.

    One that was killed needs a processor to end, so it is waited for.
    """
    until = time.monotonic() + PATIENCE_S
    while not (end := ended(pid)) and time.monotonic() < until:
        time.sleep(0.002)
    return end


def kill_kept(home: Path) -> None:
    """kill -9 of every keeper and of its command, as where the machine stops."""
    for path in (home / "data" / "running").glob("*/*/state"):
        keeper = int(json.loads(path.read_text())["keeper"])
        children = Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
        for pid in (keeper, *map(int, children)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def ended(pid: int) -> bool:
    """Whether a process has ended by now."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        with suppress(ProcessLookupError):
            os.kill(pid, 0)
            return Path("/proc/self").exists()
        return True
    return stat[stat.rindex(")") + 1 :].split()[0] in "ZX"
