"""The end of a worker by force, where it doesn't end by itself. A thread sees to it, since the
event loop may hang.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Timer
from types import FrameType
from typing import Final

from tui.core.signals import heeded_signals

EXIT_STOPPED: Final = 143
END_S: Final = 20.0
"""Seconds that a stopped run has for ending its commands."""
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def end_by_force(after_s: float = END_S) -> None:
    """End this process, and its group if that is its own, unless it has ended by then."""
    ending = Timer(after_s, _end)
    ending.daemon = True
    ending.start()


def _end() -> None:
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(EXIT_STOPPED)


@contextmanager
def signals_for_sure(stop: Callable[[], None], after_s: float = END_S) -> Generator[None]:
    """Signals call `stop`, as in `heeded_signals`, and end the process by force `after_s` later."""

    def force(_number: int, _frame: FrameType | None) -> None:
        end_by_force(after_s)

    with heeded_signals(stop):
        for number in _SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:
                # beside the loop's own, which is told by a file and not by this
                signal.signal(number, force)
        yield
