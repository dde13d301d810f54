"""The axis of a timeline: seconds of a session, in the order of its record. Pure.

The order of the record counts, not the clock: a clock that jumps back moves nothing. Time in which
nothing is known to have run, such as a night between two prompts, is cut to `KEPT_S`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final, NamedTuple

from tui.core.dataclass import dataclass

KEPT_S: Final = 30.0
"""Seconds of an unexplained stretch that stay on the axis."""
_BACK_S: Final = 2.0
"""Seconds by which records may come out of order without a word about it."""


class Passed(NamedTuple):
    """The time between two records: by the clock, and the part of it that is not on the axis. Below
    0, the clock jumped back."""

    seconds: float = 0.0
    cut: float = 0.0

    @property
    def jumped_back(self) -> bool:
        return self.seconds < -_BACK_S


_NONE: Final = Passed()


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
    _last: float | None = None

    def move(self, time: object, explained: float = 0.0) -> Passed:
        """Move to a record, by its time. `explained` are the seconds before it in which something
        is known to have run."""
        then = _seconds_of(time)
        if then is None:
            self.untimed += 1
            return _NONE
        last, self._last = self._last, then
        if last is None:
            self.started = then
            return _NONE
        passed = then - last
        if passed <= 0:
            back = Passed(passed)
            self.jumps += back.jumped_back
            return back
        kept = min(passed, explained + KEPT_S)
        self.now += kept
        return Passed(passed, passed - kept)

    def since(self, time: object) -> float | None:
        """The seconds from a moment by the clock to the last record; None where that is unknown."""
        then = _seconds_of(time)
        return None if then is None or self._last is None else self._last - then


def _seconds_of(time: object) -> float | None:
    """A record's time in seconds of Unix time; None where it can't be read."""
    if not isinstance(time, str):
        return None
    try:
        then = datetime.fromisoformat(time)
        return (then if then.tzinfo else then.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
