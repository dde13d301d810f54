"""Calls the person who is elsewhere: a long turn is over, or an answer is needed.

The bell always; a notification too where the terminal is known to show one. Nothing while the
terminal has the focus: a terminal that does not tell of its focus counts as having it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from textual.app import App

from tui.app.services import LiveSettings
from tui.core import facts
from tui.core.clock import Clock
from tui.core.fact_words import job_end
from tui.core.facts import Fact

LONG_S: Final = 20.0
"""A turn that took longer calls when it ends."""


@dataclass(slots=True)
class Notifier:
    """Sees the events of the turns; `call` gets what there is to say in a few words."""

    clock: Clock
    away: Callable[[], bool]
    call: Callable[[str], None]
    _began: float = field(default=0.0)

    def begin(self) -> None:
        """A turn begins."""
        self._began = self.clock.monotonic()

    def see(self, event: Fact) -> None:
        """Call where the person should come and does not look."""
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

    def end(self, *, done: bool) -> None:
        """Call where what has ended took long."""
        if self.clock.monotonic() - self._began > LONG_S:
            self._call("Done." if done else "Stopped.")

    def _call(self, text: str) -> None:
        if self.away():
            self.call(text)


def notifier(
    app: App[Any], clock: Clock, notification: Callable[[str], str], settings: LiveSettings
) -> Notifier:
    """That of an app, where the person wants it (`notify`); `notification` is what makes the
    terminal show a text, "" for nothing."""

    def call(text: str) -> None:
        if settings.now.notify == "auto":
            app.bell()
            write(app, notification(text))

    return Notifier(clock, lambda: not app.app_focus, call)


def write(app: App[Any], codes: str) -> None:
    """Send codes to the terminal of an app, in one piece and between two frames."""
    driver = app._driver  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - as App.bell does
    if codes and driver is not None and not app.is_headless:
        driver.write(codes)
