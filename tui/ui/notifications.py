"""Calls a person who is elsewhere: a long turn is over, or an answer is needed.

Rings the bell, and shows a notification if the terminal is known to show one. Does nothing while
the terminal has the focus; a terminal that does not report its focus counts as having it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from textual.app import App

from tui.app.services import LiveSettings
from tui.core import facts
from tui.core.clock import Clock
from tui.core.dataclass import dataclass, field
from tui.core.fact_words import job_end
from tui.core.facts import Fact

LONG_S: Final = 20.0
"""Seconds; a longer turn notifies when it ends."""


@dataclass(slots=True)
class Notifier:
    """Watches the events of turns and calls the person with a few words.

    `call` is never used while not `wanted` (`notify = "off"`).
    """

    clock: Clock
    away: Callable[[], bool]
    call: Callable[[str], None]
    _began: float = field(default=0.0)

    def begin(self) -> None:
        """Note when a turn begins."""
        self._began = self.clock.monotonic()

    def see(self, event: Fact) -> None:
        """Call the person if an event needs them, or if a long command or turn has ended."""
        if facts.awaits_person(event):
            self._call("Needs your answer.")
        match event:
            case facts.Parked():
                self._call("Waiting for the server.")
            case facts.JobFinished(stopped_by="", seconds=seconds) if seconds > LONG_S:
                self._call(f"{job_end(event)}.")
            case facts.TurnFinished(outcome) if outcome != "interrupted":
                self.end(done=outcome == "done")
            case _:
                pass

    def need(self, text: str) -> None:
        """Call the person because something that isn't this program's own turn needs them."""
        self._call(text)

    def end(self, *, done: bool) -> None:
        """Call the person if the turn that ended took long."""
        if self.clock.monotonic() - self._began > LONG_S:
            self._call("Done." if done else "Stopped.")

    def _call(self, text: str) -> None:
        if self.away():
            self.call(text)


def notifier(
    app: App[Any], clock: Clock, notification: Callable[[str], str], settings: LiveSettings
) -> Notifier:
    """Return the notifier of an app; `notification` returns the codes that show a text, "" for
    none."""

    def call(text: str) -> None:
        if settings.now.notify == "auto":
            app.bell()
            write(app, notification(text))

    return Notifier(clock, lambda: not app.app_focus, call)


def write(app: App[Any], codes: str) -> None:
    """Send codes to the terminal of an app in one piece, between two frames."""
    driver = app._driver  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - as App.bell does
    if codes and driver is not None and not app.is_headless:
        driver.write(codes)
