"""The time that a server takes to say all that it has to say about a text: learned from what it
did.

No message of the protocol ends a list that was published: servers publish in stages (the syntax
first, all types a second later), and some say nothing where nothing changed. The list is whole
once a server is quiet for longer than it ever paused, and works on nothing that it announced.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from tui.core.dataclass import dataclass, field

NEW_QUIET_S: Final = 1.0
"""Seconds of quiet that end the list of a server that is not known yet."""
NEW_PATIENCE_S: Final = 10.0
"""Seconds after which a server that is not known yet counts as silent about a text."""
_QUIET_S: Final = (0.1, 2.0)
_PATIENCE_S: Final = (1.0, 10.0)
_KEPT: Final = 8


@dataclass(slots=True)
class Pace:
    """The pace of one server. It is `known` once one text was answered."""

    known: bool = False
    _first: deque[float] = field(default_factory=lambda: deque[float](maxlen=_KEPT))
    _pauses: deque[float] = field(default_factory=lambda: deque[float](maxlen=_KEPT))

    @property
    def quiet_s(self) -> float:
        """Seconds after a list without another one, which make it whole."""
        longest = max(self._pauses, default=0.0)
        return _within(2 * longest, _QUIET_S) if self.known else NEW_QUIET_S

    @property
    def patience_s(self) -> float:
        """Seconds after a text without any list, after which none is expected."""
        slowest = max(self._first, default=0.0)
        return _within(4 * slowest, _PATIENCE_S) if self.known else NEW_PATIENCE_S

    def note_first(self, seconds: float) -> None:
        """Note how long the first list took. What a server does while it starts tells nothing."""
        if self.known:
            self._first.append(seconds)

    def note_pause(self, seconds: float) -> None:
        """Note that more came after a pause; after a long one, something else was the reason."""
        if seconds <= _QUIET_S[1]:
            self._pauses.append(seconds)


def _within(seconds: float, bounds: tuple[float, float]) -> float:
    return min(max(seconds, bounds[0]), bounds[1])
