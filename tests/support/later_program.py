"""The program at another time: its clock and that of its checkpoints are ahead of the system's by
`HOLDFAST_TEST_AHEAD_S` seconds. The times of files stay the system's."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Final

import tui.session.checkpoints.store as store_module
from tui.cli.main import start
from tui.core.clock import SystemClock

AHEAD: Final = "HOLDFAST_TEST_AHEAD_S"


def main() -> None:
    ahead = float(os.environ.get(AHEAD, "0"))

    def now(self: SystemClock) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=ahead)

    SystemClock.now = now
    times = SimpleNamespace(time=lambda: time.time() + ahead, time_ns=time.time_ns)
    store_module.time = times  # type: ignore[assignment]
    start()


if __name__ == "__main__":
    main()
