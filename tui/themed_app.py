"""What every app of this program does the same way: its colours, its return, its worst end."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from textual.app import App
from textual.theme import Theme
from textual.worker import WorkerFailed

from tui import themes
from tui.errors import ConfigError
from tui.paths import folders

log = logging.getLogger(__name__)


class ThemedApp(App[None]):
    """An app in the colours of a theme's file."""

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return {"rule": "#808080"}

    def use_theme(self, name: str, *, now: bool = True) -> tuple[ConfigError, ...]:
        """Change the colours; says what was wrong with the theme's file. Raises ConfigError."""
        loaded = themes.load(name, folders().config / "themes")
        self._put_on(loaded.theme, now=now)
        return loaded.problems

    def _put_on(self, theme: Theme, *, now: bool) -> None:
        before = self.available_themes.get(theme.name)
        self.register_theme(theme)
        if not now:
            self.set_reactive(App.theme, theme.name)
            self.stylesheet.set_variables(self.get_css_variables())
        elif self.theme != theme.name:
            self.theme = theme.name
        elif theme != before:  # its file has changed
            self.mutate_reactive(App.theme)

    def guess_theme(self, name: str, look: Mapping[str, str] | None = None) -> None:
        """Begin with a theme that may not exist any more, before anything is drawn. Where `look`
        remembers it, its file need not be read yet."""
        if look and look.get("theme") == name:
            self._put_on(themes.remembered(look), now=False)
            return
        try:
            self.use_theme(name, now=False)
        except ConfigError:
            self.use_theme(themes.DEFAULT_DARK, now=False)

    def correct_theme(self, name: str) -> tuple[ConfigError, ...]:
        """Change from the guessed theme to the one that the configuration names, or to the usual
        one where that is broken. Returns what is wrong with it."""
        try:
            return self.use_theme(name)
        except ConfigError as error:
            self.use_theme(themes.DEFAULT_DARK)
            return (error,)

    def resumed(self, _: object) -> None:
        """After fg: the terminal shows nothing of what was drawn before."""
        self.refresh(layout=True)

    def _fatal_error(self) -> None:
        """A mistake of the program itself: the details go to the log, not to the terminal."""
        error = self._exception
        if isinstance(error, WorkerFailed):  # it has no traceback of its own
            error = error.error
        log.critical("the screen failed", exc_info=error)
        self.panic(
            "holdfast: stopped by a mistake of its own. "
            "What was recorded is safe; the details are in the log file."
        )
