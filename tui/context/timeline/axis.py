"""The axis of a timeline: seconds of a session, in the order of its record. Pure.

The order of the record counts, not the clock: a clock that jumps back moves nothing. Time in which
nothing is known to have run, such as a night between two prompts, is cut to `KEPT_S`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from tui.core.dataclass import dataclass

KEPT_S: Final = 30.0
"""Seconds of an unexplained stretch that stay on the axis."""
BACK_S: Final = 2.0
"""Seconds by which records may come out of order without a word about it."""


@dataclass(slots=True)
class TimeAxis:
    """Gives each record of a session its place on the axis, in seconds from the first one."""

    now: float = 0.0
    started: float | None = None
    """The time of the first record that has one, in seconds of Unix time."""
    untimed: int = 0
    """The records without a readable time."""
    jumps: int = 0
    """How often the clock jumped back."""
    clock: float | None = None
    """The time of the last one that has one."""

    def passed(self, time: object) -> float:
        """Take the time of the next record. Returns the seconds by the clock since the one before,
        below 0 where it jumped back, 0 where that is unknown."""
        then = _seconds_of(time)
        if then is None:
            self.untimed += 1
            return 0.0
        last, self.clock = self.clock, then
        if last is None:
            self.started = then
            return 0.0
        return then - last

    def move(self, seconds: float, explained: float = 0.0) -> float:
        """Go on by the seconds that have passed. `explained` are those of them in which something
        is known to have run. Returns how many were cut."""
        kept = min(seconds, explained + KEPT_S)
        self.now += kept
        return seconds - kept

    def since(self, time: object) -> float | None:
        """The seconds from a moment by the clock to the last record; None where that is unknown."""
        then = _seconds_of(time)
        return None if then is None or self.clock is None else self.clock - then


def _seconds_of(time: object) -> float | None:
    """A record's time in seconds of Unix time; None where it can't be read."""
    if not isinstance(time, str):
        return None
    try:
        then = datetime.fromisoformat(time)
        return (then if then.tzinfo else then.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
