"""What the settings screen asks of the rest of the program."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from tui.core.config import Config
from tui.core.paths import Folders
from tui.settings.layers import LoadedSettings
from tui.ui.widgets.notice import Kind


@dataclass(frozen=True, slots=True)
class Said:
    """A word to the person."""

    text: str
    kind: Kind = "info"
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Port:
    """`read` reads all layers anew; it blocks and raises ConfigError. `take_up` makes a change
    count where it can, and raises HoldfastError. `edit_file` opens the file in the person's
    editor and says what came of it; `servers` shows the MCP servers; `try_theme` shows the colours
    of a theme, or raises HoldfastError. `models` are those whose prices are asked for.
    """

    folders: Folders
    read: Callable[[], LoadedSettings]
    take_up: Callable[[Config, Config], Awaitable[None]]
    edit_file: Callable[[], Awaitable[Said]]
    servers: Callable[[], object]
    try_theme: Callable[[str], object]
    themes: Sequence[str] = ()
    models: Sequence[str] = ()
