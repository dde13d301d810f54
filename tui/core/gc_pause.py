"""The one place that tunes the interpreter: no collections for a while, and short thread turns.

A collection among a million new objects stops every thread for 50 ms and more. Pauses are counted:
the first one switches collections off, the last one restores the earlier state. Objects that exist
at the end of start-up, or of another pause that loads something permanent (code or a session), are
exempt from collections until `collect`.

A thread that imports, parses or searches keeps the interpreter from the one that answers keys, by
default for 5 ms each time that one has waited for anything.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock

_TURN_S = 0.0005
"""Seconds that a working thread may keep the interpreter while a key waits."""

_lock = Lock()
_pauses = 0
_collecting_before = True
_loading = True


def short_turns() -> None:
    """Let threads take short turns from now on: for programs that answer keys."""
    sys.setswitchinterval(_TURN_S)


def begin() -> None:
    """Begin a pause; `end` must follow, from any thread."""
    global _pauses, _collecting_before  # noqa: PLW0603 - the interpreter's settings are global, too
    with _lock:
        _pauses += 1
        if _pauses == 1:
            _collecting_before = gc.isenabled()
            gc.disable()


def end() -> None:
    """End a pause. After one that loads something permanent, all existing objects count as
    permanent; after others, that would keep the remains of a screen for ever."""
    global _pauses, _loading  # noqa: PLW0603 - as above
    with _lock:
        _pauses -= 1
        if _pauses:
            return
        if _loading:
            _loading = False
            gc.freeze()
        if _collecting_before:
            gc.enable()


@contextmanager
def gc_pause(*, loading: bool = False) -> Generator[None]:
    """Pause for the block: heavy work in a thread, or `loading` something permanent."""
    global _loading  # noqa: PLW0603 - as above
    begin()
    _loading = _loading or loading
    try:
        yield
    finally:
        end()


def collect() -> None:
    """Free objects of a session that counted as permanent. Takes a moment."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
