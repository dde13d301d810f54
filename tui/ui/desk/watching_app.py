"""A program that watches sessions of other processes, on a terminal of its own."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from functools import partial
from typing import Final

from tui.app.door.lines import Hello
from tui.app.services import LiveSettings
from tui.core.clock import Clock
from tui.core.config import Config
from tui.core.keymap import keymap_of
from tui.core.plain_detection import need_terminal
from tui.ui.notifications import notifier, write
from tui.ui.terminal import SEND_AGAIN_S, TerminalStatus
from tui.ui.toolkit.base_app import ThemedApp, draw_in_utf8
from tui.ui.toolkit.key_sequencer import DoublePress
from tui.ui.widgets.keys import APP_KEYS, bindings

QUIT_WITHIN_S: Final = 2.0
READ_WITHIN_S: Final = 30.0
"""Seconds for which what was left out of broken settings is shown."""


class WatchingApp(ThemedApp):
    """Has the terminal, its keys and its signals; `taken` is who had the session that the person
    chose to continue in this terminal, and `notices` are shown in a corner first."""

    TITLE = "holdfast"
    BINDINGS = bindings(APP_KEYS)  # pyright: ignore[reportAssignmentType]

    def __init__(
        self, config: Config, theme: str, clock: Clock | None, notices: Sequence[str] = ()
    ) -> None:
        super().__init__(clock=clock)
        self._notices = notices
        self.taken: Hello | None = None
        self.terminal = TerminalStatus(partial(write, self), config.terminal)
        self.notifier = notifier(self, self.clock, self.terminal.notification, LiveSettings(config))
        self.quit_press = DoublePress(self.clock, QUIT_WITHIN_S)
        self.guess_theme(theme)
        self.use_keys(keymap_of(config.keys))

    def on_mount(self) -> None:
        self.heed_ends(self._signal_came)
        self.use_terminal(self.terminal)
        self.set_interval(SEND_AGAIN_S, self.terminal.say_again)
        for text in self._notices:
            self.notify(text, severity="warning", timeout=READ_WITHIN_S, markup=False)

    def resumed(self) -> None:
        super().resumed()
        self.terminal.resume()

    def _signal_came(self, number: int) -> None:
        """Leave after a signal, or because the terminal has gone (`number` is 0)."""
        self.exit(return_code=128 + (number or signal.SIGHUP))


def take_terminal(without: str) -> None:
    """Prepare the terminal for drawing. Raises UsageError with `without` if there is none."""
    need_terminal(without)
    if not sys.stderr.isatty():
        sys.__stderr__ = sys.__stdout__  # Textual draws on it; a redirected one still gets the log
    draw_in_utf8()
