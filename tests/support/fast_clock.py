"""The program with a clock that runs fast once it is told so: `python -m tests.support.fast_clock`.

From the signal `FASTER` on, a second is a minute to everything that waits in Python: the event
loop, sleeps, conditions of threads. What happens in a minute of rest is seen in a second.
"""

from __future__ import annotations

import runpy
import select
import selectors
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final

FACTOR: Final = 60
FASTER: Final = getattr(signal, "SIGRTMIN", signal.SIGTERM)
"""Linux has it; where there is none, nothing is measured."""

_WAITS: Final[tuple[tuple[Any, str], ...]] = (
    (time, "sleep"),
    (select, "select"),
    (selectors.DefaultSelector, "select"),
    (threading.Condition, "wait"),
)
"""Where Python waits; the last argument is the seconds, if there are any."""


class Pace:
    """How fast time runs, for all that is made of `clock` and `wait`."""

    def __init__(self) -> None:
        self.factor = 1

    def clock(self, real: Callable[[], float]) -> Callable[[], float]:
        """A clock that goes on from what `real` says now, at this pace."""
        shown = seen = real()

        def read() -> float:
            nonlocal shown, seen
            now = real()
            shown, seen = shown + (now - seen) * self.factor, now
            return shown

        return read

    def wait(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """A function that waits like `real`, at this pace."""

        def wait(*given: Any, timeout: float | None = None) -> Any:
            if timeout is not None:
                given = (*given, timeout)
            *others, last = given
            return real(*others, last / self.factor if isinstance(last, int | float) else last)

        return wait

    def faster(self, *_: object) -> None:
        self.factor = FACTOR


def main() -> None:
    """Be the program, at a pace that the signal changes."""
    pace = Pace()
    for name in ("monotonic", "time", "perf_counter"):
        setattr(time, name, pace.clock(getattr(time, name)))
    for owner, name in _WAITS:
        setattr(owner, name, pace.wait(getattr(owner, name)))
    signal.signal(FASTER, pace.faster)
    sys.argv[0] = "holdfast"
    runpy.run_module("tui", run_name="__main__")


if __name__ == "__main__":
    main()
