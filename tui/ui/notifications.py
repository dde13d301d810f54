"""A call for the person who looks elsewhere: a long turn is over, or an answer is needed.

The bell always; a notification too where the terminal is known to show one. Nothing while the
terminal has the focus: a terminal that does not tell of its focus counts as having it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from textual.app import App

from tui.agent import events
from tui.agent.events import Event
from tui.core.clock import Clock

LONG_S: Final = 20.0
"""A turn that took longer calls when it ends."""

_OSC_9: Final = frozenset({"iTerm.app", "WezTerm", "ghostty"})
_OSC_777: Final = ("foot", "rxvt")


@dataclass(slots=True)
class Notifier:
    """Sees the events of the turns; `call` gets what there is to say in a few words. It is never
    called while not `wanted` (`notify = "off"`)."""

    clock: Clock
    away: Callable[[], bool]
    call: Callable[[str], None]
    wanted: bool = True
    _began: float = field(default=0.0)

    def begin(self) -> None:
        """A turn begins."""
        self._began = self.clock.monotonic()

    def see(self, event: Event) -> None:
        """Call where the person should come and does not look."""
        match event:
            case events.PermissionAsked():
                self._call("Needs your answer.")
            case events.Parked():
                self._call("Waiting for the server.")
            case events.TurnFinished(outcome) if outcome != "interrupted":
                if self.clock.monotonic() - self._began > LONG_S:
                    self._call("Done." if outcome == "done" else "Stopped.")
            case _:
                pass

    def _call(self, text: str) -> None:
        if self.wanted and self.away():
            self.call(text)


def notifier(app: App[Any], clock: Clock, *, wanted: bool) -> Notifier:
    """That of an app."""

    def call(text: str) -> None:
        app.bell()
        if (code := notification(text, os.environ)) and (driver := app._driver):  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - as App.bell does
            driver.write(code)

    return Notifier(clock, lambda: not app.app_focus, call, wanted)


def notification(text: str, env: Mapping[str, str]) -> str:
    """What makes the terminal show a notification; "" where that is not known."""
    program, kind = env.get("TERM_PROGRAM", ""), env.get("TERM", "")
    if "TMUX" in env or "STY" in env:
        return ""  # it would not get through
    if program in _OSC_9 or kind == "xterm-kitty":
        return f"\x1b]9;holdfast: {text}\x07"
    if kind.startswith(_OSC_777):
        return f"\x1b]777;notify;holdfast;{text}\x07"
    return ""
