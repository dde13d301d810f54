"""What the footer says: the keys of what has the focus first, then those of the chat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from textual.widget import Widget

from tui.ui.screens.labels import NEXT, QUEUE, SEND
from tui.ui.widgets.status_line import Hint

_BACK: Final = Hint("esc", "back", "screen.stop_or_close")
_CLOSE: Final = Hint("esc", "close")
_SMALLER: Final = Hint("esc", "smaller")
_FIND: Final = Hint("ctrl+f", "find", "screen.find")

_KEYS: Final[Mapping[str, tuple[Hint, ...]]] = {
    "Conversation": (
        Hint("enter", "fold"),
        Hint("y", "copy"),
        _BACK,
        Hint("shift+↑↓", "select"),
        _FIND,
    ),
    "OutputView": (
        Hint("o", "open"),
        Hint("/", "find"),
        _BACK,
        Hint("w", "wrap"),
        Hint("y", "copy"),
    ),
    "CopyView": (
        Hint("/", "find"),
        Hint("n", "next"),
        _BACK,
        Hint("w", "wrap"),
        Hint("y", "copy"),
    ),
    "CopyPane": (Hint("enter", "find"), _CLOSE),
    "FindBar": (Hint("↑ ↓", "older, newer"), _CLOSE),
    "PromptSearch": (Hint("enter", "take"), Hint("↑ ↓", "older, newer"), _CLOSE),
}
"""By the class of a widget: what its keys do, the most useful first."""


def footer(focused: Widget | None, general: tuple[Hint, ...]) -> tuple[Hint, ...]:
    """The hints while `focused` has the focus. `general` are those of the prompt: what Enter does
    there is left out elsewhere, and Esc goes on to stop what runs where it does nothing nearer."""
    names = [type(each).__name__ for each in focused.ancestors_with_self] if focused else []
    if not names or "Prompt" in names:
        return general
    own = next((_KEYS[name] for name in names if name in _KEYS), ())
    if not own and not {SEND, QUEUE} & set(general):
        return general  # of a screen without a prompt
    stop = next((hint for hint in general if hint.key == "esc"), None)
    if "OutputSide" in names and focused and focused.screen.has_class("-whole"):
        own = tuple(_SMALLER if hint == _BACK else hint for hint in own if hint.key != "o")
    elif stop and _CLOSE not in own:
        own = (stop, *(hint for hint in own if hint.key != "esc"))
    taken = {hint.key for hint in own}
    rest = (hint for hint in general if hint not in {SEND, QUEUE} and hint.key not in taken)
    return (*own, NEXT, *rest)
