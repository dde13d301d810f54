"""A retry that is coming: why, which, and when, counted down once a second."""

from __future__ import annotations

import math

from textual.content import Content
from textual.reactive import reactive
from textual.timer import Timer
from textual.widget import Widget

from tui.clock import Clock
from tui.widgets.plain import one_line


class RetryBanner(Widget):
    """Hidden unless a retry is scheduled. It never takes the focus by itself."""

    DEFAULT_CSS = """
    RetryBanner { height: 1; width: 1fr; padding: 0 1; display: none; background: $warning-muted; }
    RetryBanner.-waiting { display: block; }
    """

    remaining: reactive[int] = reactive(0)

    def __init__(self, clock: Clock, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._clock = clock
        self._due = 0.0
        self._reason = ""
        self._which = ""
        self._timer: Timer | None = None

    def on_mount(self) -> None:
        self._timer = self.set_interval(1, self.tick, pause=True)

    def wait(self, reason: str, *, attempt: int, max_attempts: int, delay_s: float) -> None:
        """Show a retry that comes in `delay_s` seconds."""
        self._due = self._clock.monotonic() + delay_s
        self._reason, self._which = one_line(reason), f"retry {attempt} of {max_attempts}"
        self.add_class("-waiting")
        self.tick()
        if self._timer:
            self._timer.reset()
            self._timer.resume()
        self.refresh()

    def done(self) -> None:
        """The retry began, or nobody waits for it any more."""
        self.remove_class("-waiting")
        if self._timer:
            self._timer.pause()

    def tick(self) -> None:
        self.remaining = max(0, math.ceil(self._due - self._clock.monotonic()))

    def render(self) -> Content:
        when = f"in {self.remaining} s" if self.remaining else "now"
        line = Content.assemble(
            ("↻ ", "bold $text-warning"),
            (self._reason, "$foreground"),
            (f"  {self._which} {when}", "bold $text-warning"),
            ("  esc stops", "$text-muted"),
        )
        return line.truncate(self.size.width, ellipsis=True)
