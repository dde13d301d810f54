"""The one place that tunes the interpreter: no collections for a while, and short thread turns.

A collection among a million new objects stops every thread for 50 ms and more. Pauses are counted:
the first switches collections off, the last puts back what the first found. What exists when
start-up is over, or another pause that loads what stays, code or a session, is not looked at by
collections any more, until `collect`.

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
"""How long a working thread may keep the interpreter while a key waits."""

_lock = Lock()
_pauses = 0
_collecting_before = True
_loading = True


def short_turns() -> None:
    """From here on threads take short turns: for programs that answer keys."""
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
    """End a pause. After one that loads what stays, what exists is taken for permanent; after
    others that would keep for ever what a screen leaves behind."""
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
