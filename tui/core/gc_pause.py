"""The one place that tunes the interpreter: no collections and short thread turns, for a while.

A collection among a million new objects stops every thread for 50 ms and more, and a thread that
imports or parses keeps the interpreter from the one that answers keys. Pauses are counted: the
first changes the settings, the last puts back what the first found. What exists when start-up is
over, or another pause that loads what stays, code or a session, is not looked at by collections any
more, until `collect`.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock

_SWITCH_INTERVAL_S = 0.0005
"""How long a working thread may keep the interpreter while a key waits."""

_lock = Lock()
_pauses = 0
_settings_before: tuple[bool, float] = (True, 0.005)
_loading = True


def begin() -> None:
    """Begin a pause; `end` must follow, from any thread."""
    global _pauses, _settings_before  # noqa: PLW0603 - the interpreter's settings are global, too
    with _lock:
        _pauses += 1
        if _pauses == 1:
            _settings_before = (gc.isenabled(), sys.getswitchinterval())
            gc.disable()
            sys.setswitchinterval(_SWITCH_INTERVAL_S)


def end() -> None:
    """End a pause. After one that loads what stays, what exists is taken for permanent; after
    others that would keep for ever what a screen leaves behind."""
    global _pauses, _loading  # noqa: PLW0603 - as above
    with _lock:
        _pauses -= 1
        if _pauses:
            return
        collecting, interval = _settings_before
        sys.setswitchinterval(interval)
        if _loading:
            _loading = False
            gc.freeze()
        if collecting:
            gc.enable()


@contextmanager
def gc_pause(*, loading: bool = False) -> Generator[None]:
    """Pause for the block: heavy work in a thread, or `loading` what stays."""
    global _loading  # noqa: PLW0603 - as above
    begin()
    _loading = _loading or loading
    try:
        yield
    finally:
        end()


def collect() -> None:
    """Free what a session left behind that was taken for permanent. Takes a moment."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
