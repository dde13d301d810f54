"""What the commands and the ways on from a failure work with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from textual.app import App

from tui.app.ports import SessionChoice
from tui.core.errors import ConfigError
from tui.settings.user_commands import UserCommands
from tui.ui.session_flow.save_on_exit import Leaving
from tui.ui.turn_controller import Bridge


@dataclass(frozen=True, slots=True)
class Desk:
    """`open_session` may lead over the welcome screen; `use_theme` returns what was wrong with
    the theme's file; `own` are the commands that the person wrote."""

    app: App[Any]
    bridge: Bridge
    open_session: Callable[[SessionChoice], Any]
    use_theme: Callable[[str], tuple[ConfigError, ...]]
    own: UserCommands = field(default_factory=UserCommands)
    leaving: Leaving = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "leaving", Leaving(self.app, self.bridge))
