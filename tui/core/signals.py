"""Heeds the signals that ask a run to end, where no screen heeds them."""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Generator


@contextmanager
def heeded_signals(
    stop: Callable[[], None], hang_up: Callable[[], None] | None = None
) -> Generator[None]:
    """SIGINT, SIGTERM and SIGHUP call `stop`, except those that are ignored, as under nohup;
    SIGHUP calls `hang_up` where that is given."""
    loop = asyncio.get_running_loop()
    every = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    heeded = [number for number in every if signal.getsignal(number) != signal.SIG_IGN]
    for number in heeded:
        call = hang_up if number == signal.SIGHUP and hang_up else stop
        loop.add_signal_handler(number, call)
    try:
        yield
    finally:
        for number in heeded:
            loop.remove_signal_handler(number)
