"""What the commands and the ways on from a failure work with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from textual.app import App

from tui.bridge import Bridge
from tui.errors import ConfigError
from tui.services import SessionChoice


@dataclass(frozen=True, slots=True)
class Desk:
    """`open_session` may lead over the welcome screen; `use_theme` returns what was wrong with
    the theme's file."""

    app: App[Any]
    bridge: Bridge
    open_session: Callable[[SessionChoice], Any]
    use_theme: Callable[[str], tuple[ConfigError, ...]]
