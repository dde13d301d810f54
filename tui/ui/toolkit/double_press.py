"""What is done only when it is asked for twice."""

from __future__ import annotations

from tui.core.clock import Clock


class Twice:
    """Ctrl+C to quit, Esc to rewind: the second time counts if it comes within `within_s`."""

    def __init__(self, clock: Clock, within_s: float) -> None:
        self._within_s = within_s
        self._clock = clock
        self._asked = float("-inf")

    def asked(self) -> bool:
        """Whether it was asked for just before. It has been now."""
        now, before = self._clock.monotonic(), self._asked
        self._asked = now
        return now - before <= self._within_s

    def forget(self) -> None:
        """The next time is the first one again."""
        self._asked = float("-inf")
