"""The state of a watched session in words, for the line over its prompt."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from tui.app.door.lines import OPEN_STATES, Hello, OwnerKind, SessionStatus, State
from tui.core.text_cleaning import one_line

PLACES: Final[Mapping[OwnerKind, str]] = {
    "screen": "open on another screen",
    "plain": "open in plain lines",
    "background": "runs in the background",
    "print": "runs with -p",
    "editor": "open in an editor",
    "program": "driven by a program",
    "none": "nobody has it open",
}
"""Where a session is open, by the kind of its owner."""
WAITING: Final = "waiting for you"
_STATES: Final[Mapping[State, str]] = {
    "waiting": WAITING,
    "working": "working",
    "parked": "parked",
    "idle": "idle",
    "done": "done",
    "failed": "failed",
    "stopped": "stopped",
    "interrupted": "its process was killed; nothing recorded is lost",
    "saved": "saved",
}
_SAYS_ALL: Final = frozenset[State]({"waiting", "interrupted", "done"})
"""States whose detail says nothing that isn't on the screen."""
_WIDE: Final = 100
"""Columns from which there is room for the number of a process."""
CONTINUES: Final = "a prompt continues it"


def is_open(status: SessionStatus) -> bool:
    """True if a process has the session open."""
    return status.state in OPEN_STATES


def busy(status: SessionStatus) -> bool:
    """True if a turn runs, or waits for something."""
    return status.state in OPEN_STATES and status.state != "idle"


def state_words(status: SessionStatus, problem: str = "") -> str:
    """Return the state of a session in a line; `problem` says why its owner can't be asked."""
    if problem:
        return one_line(problem)
    words, detail = _STATES[status.state], one_line(status.detail)
    if detail and status.state not in _SAYS_ALL:
        words = detail if status.state == "working" else f"{words}: {detail.rstrip('.')}"
    if is_open(status):
        return words
    if status.state == "interrupted":
        return f"{words} · {CONTINUES}"
    return f"{words} · {PLACES['none']}; {CONTINUES}"


def cut_words(reason: str, seconds: float) -> str:
    """Return why there is no line to a session, and when it is tried again."""
    why = one_line(reason).rstrip(".").replace("The line ", "the line ", 1)
    when = f"again in {math.ceil(seconds)} s" if seconds > 0 else "now"
    return f"{why}; trying {when}"


def place_words(hello: Hello | None, width: int) -> str:
    """Return where the session is open, for the end of the line over the prompt; "" where nobody
    has it, which the line says. `width` is that of the screen."""
    if hello is None or hello.kind == "none":
        return ""
    pid = f" · process {hello.pid}" if hello.pid and width >= _WIDE else ""
    return f"{PLACES[hello.kind]}{pid}"
