"""What is going on and for how long, over the prompt."""

from __future__ import annotations

from textual.content import Content

from tui.core.clock import Clock
from tui.core.formatting import duration
from tui.ui.widgets.panes import PaneRule

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
FRAMES_PER_S = 2
_AROUND, _LEAST = 13, 16
"""The cells around the phase on its rule, and those that it keeps."""
_UNKNOWN = 1_000
SILENCE_S = 5
"""Seconds without a byte from the model from which on they are counted."""


class ActivityIndicator:
    """Draws itself on a rule. `what` is the phase, "" while nothing goes on; `calm`: it counts,
    and nothing turns.

    The seconds count from the first phase on, not from each; `draw` brings them up to date.
    """

    def __init__(self, clock: Clock, rule: PaneRule) -> None:
        self.what = ""
        self.calm = False
        self._clock = clock
        self._rule = rule
        self._since = 0.0
        self._heard: float | None = None

    def enter(self, what: str, *, listening: bool = False) -> bool:
        """Whether it is another phase than before. `listening`: a byte of the model's answer
        has just come, or the wait for the first one has begun."""
        now = self._clock.monotonic()
        self._heard = now if listening else None
        if what == self.what:
            return False
        if not self.what:
            self._since = now
        self.what = what
        return True

    def leave(self) -> None:
        """Nothing goes on any more."""
        self.what = ""
        self._rule.title = Content("")

    def draw(self) -> None:
        if not self.what:
            return
        now = self._clock.monotonic()
        passed = duration(now - self._since)
        silent = now - self._heard if self._heard is not None else 0.0
        silence = f"  nothing heard for {duration(silent)}" if silent >= SILENCE_S else ""
        room = (self._rule.size.width or _UNKNOWN) - self._rule.right.cell_length
        room -= len(passed) + _AROUND
        if room - len(silence) < min(len(self.what), _LEAST):
            silence = ""
        room = max(_LEAST, room - len(silence))
        what = Content.styled(self.what, "$foreground").truncate(room, ellipsis=True)
        glyph = "●" if self.calm else SPINNER[int(now * FRAMES_PER_S) % len(SPINNER)]
        self._rule.title = Content.assemble(
            (f"{glyph} ", "bold $text-primary"),
            what,
            (f"  {passed}", "$text-muted"),
            (silence, "$text-muted"),
        )
