"""Keys that people know from other programs, as data: what they mean where nothing else has them.

`tui.ui.toolkit.base_app` looks here for a key that no widget, screen or app has a use for. What the
programs themselves do with these keys is in `tests/ui/habits`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

MEANT: Final[Mapping[str, str]] = {
    "j": "down", "k": "up", "h": "left", "l": "right", "g": "home", "G": "end",
    "J": "pagedown", "K": "pageup", "H": "left", "L": "right", "b": "pageup",
    "ctrl+n": "down", "ctrl+d": "pagedown", "ctrl+u": "pageup",
    "ctrl+f": "pagedown", "ctrl+b": "pageup", "full_stop": "pagedown", "comma": "pageup",
    "less_than_sign": "home", "greater_than_sign": "end",
    "left_square_bracket": "shift+tab", "right_square_bracket": "tab",
    "space": "pagedown", "z": "u", "q": "escape", "question_mark": "f1",
}  # fmt: skip
"""The key that each of them stands for: in lists and texts, those of vim, less, lazygit and Emacs.
Space stands for Enter where that chooses a row."""

INSTEAD: Final[Mapping[str, str]] = {
    "alt+o": "Holdfast has no fast mode; F5 changes how hard the model thinks.",
    "alt+w": "Task files do what workflows do: Ctrl+T.",
    "f8": "Holdfast has no voice input.",
}
"""The sentence about a key of another agent for which there is nothing here."""
