"""Heavy work in a thread while keys are answered in another: short turns, no collections."""

from __future__ import annotations

import gc
import sys
from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock

_TURN_S = 0.0005
"""How long the working thread may keep the interpreter while a key waits."""

_lock = Lock()
_running = 0
_usual_s = 0.0


@contextmanager
def smooth() -> Generator[None]:
    """While it lasts. A collection among a million new objects would stop every thread for 50 ms
    and more; what has been made by the end is taken for permanent. May overlap, in any thread.
    """
    global _running, _usual_s  # noqa: PLW0603 - as the interpreter's own settings
    with _lock:
        _running += 1
        if _running == 1:
            _usual_s = sys.getswitchinterval()
            sys.setswitchinterval(_TURN_S)
            gc.disable()
    try:
        yield
    finally:
        with _lock:
            _running -= 1
            if not _running:
                sys.setswitchinterval(_usual_s)
                gc.freeze()
                gc.enable()
