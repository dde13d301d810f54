"""The room that keys need of everything else in the process: no collections for a while, long ones
at rest, short thread turns, and the turns of the loop for a key that is on its way.

A collection among a million new objects stops every thread for 50 ms and more. Pauses are counted:
the first one switches collections off, the last one restores the earlier state. Objects that exist
at the end of start-up, or of another pause that loads something permanent (code or a session), are
exempt from collections until `collect`.

A collection of all other objects still takes 20 ms and more in a long session. For `short_turns` it
comes rarely by itself: `rest` makes it when nobody waits.

A thread that imports, parses or searches keeps the interpreter from the one that answers keys, by
default for 5 ms each time that one has waited for anything.

A key takes some five turns of the loop to the screen, and in each of them would wait for whatever
else is ready: more of an answer, a frame of it. The thread that reads the terminal reports
`key_read`, whoever has drawn what the key did, `key_drawn`; other work waits while `key_pending`.
A key that draws nothing is waited for only for a moment.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock
from time import monotonic

_TURN_S = 0.0005
"""Seconds that a working thread may keep the interpreter while a key waits."""

KEY_S = 0.02
"""Seconds after which nothing waits for a key any more."""

_DUE, _RARELY = 10, 100
"""Collections of young objects after which one of all is due, and after which it comes by itself:
a long answer makes some ten."""

_lock = Lock()
_pauses = 0
_collecting_before = True
_loading = True
_key_since: float | None = None


def short_turns() -> None:
    """Let threads take short turns from now on, and collections of old objects wait for `rest`: for
    programs that answer keys."""
    sys.setswitchinterval(_TURN_S)
    gc.set_threshold(*gc.get_threshold()[:2], _RARELY)


def rest() -> None:
    """Collect old objects if that is due: nobody waits now."""
    if gc.isenabled() and gc.get_count()[2] >= _DUE:
        gc.collect()


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


def key_read() -> None:
    """Note that a key was read. Of keys that come fast and draw nothing, as one that is held down,
    nothing waits for more than half of the time."""
    global _key_since  # noqa: PLW0603 - the terminal is one, too
    now = monotonic()
    if _key_since is None or now - _key_since >= 2 * KEY_S:
        _key_since = now


def key_drawn() -> None:
    """Note that what the last key did is drawn."""
    global _key_since  # noqa: PLW0603 - as above
    _key_since = None


def key_pending() -> bool:
    """True if a key was read whose effect is not drawn yet."""
    since = _key_since  # another thread sets it
    return since is not None and monotonic() - since < KEY_S
