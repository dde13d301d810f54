"""Tells which keys can act before a session is open; all others wait, and what follows them too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from textual import events

from tui.core.keymap import shown
from tui.ui.start.first_frame import is_command
from tui.ui.toolkit.key_sequencer import CommandLine, Pressed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from textual.screen import Screen

    from tui.ui.screens.chat import ChatScreen

_AT_ONCE: Final = frozenset({"quit", "redraw", "app.suspend_process"})
"""Actions that wait for nothing, not even for keys before them; nor does Ctrl+C."""
_NEED_NO_SESSION: Final = frozenset(
    {
        *("help", "palette", "debug_view", "app.edit_prompt", "paste"),
        *("screen.search_history", "screen.stop_or_close"),
    }
)
"""Actions that need only what the program loads after its first frame."""
_CHOOSING: Final = frozenset({"up", "down", "tab", "escape"})


def needs_nothing(event: Pressed, screen: Screen[Any]) -> bool:
    """True for a key that leaves or stops something, which nobody wants to wait for."""
    if not isinstance(event, events.Key):
        return False
    bound = screen.active_bindings.get(event.key)
    return event.key == "ctrl+c" or (bound is not None and bound.binding.action in _AT_ONCE)


def depends_on_text(event: Pressed) -> bool:
    """True if what a key does may depend on the letters before it."""
    return isinstance(event, events.Key) and (not event.is_printable or event.character == "?")


def acts_now(event: Pressed, screen: ChatScreen, *, loaded: bool) -> bool:
    """True if a key has what it needs while no session is open yet; with `loaded`, everything else
    is there."""
    prompt = screen.prompt
    if isinstance(event, CommandLine):
        return loaded and event.text == "/help"
    if isinstance(event, events.Paste):
        return True
    key = event.key
    bound = screen.active_bindings.get(key)
    action = bound.binding.action if bound else ""
    if action.startswith(("screen.page(", "screen.edge(")):  # in the end of the session
        return screen.left.begun
    if action == "app.to_background":  # which only moves the cursor while no command runs
        return True
    if screen.focused is not prompt:
        return event.is_printable and bound is None
    suggested = prompt.suggestions is not None and prompt.suggestions.opened
    if key in prompt.keymap["send"]:
        return not is_command(prompt.text)
    if key in _CHOOSING and (suggested or key in {"up", "down"}):
        return loaded
    if not prompt.text and key in {"home", "end"}:
        return screen.left.begun
    if not prompt.text and event.character == "?":
        return False
    if action in _NEED_NO_SESSION:
        return loaded
    return bound is None or (bound.node is prompt and "." not in action)


def named(waiting: Iterable[Pressed]) -> list[str]:
    """Return what waits in words: keys by their names, letters as the text that they are."""
    words: list[str] = []
    typing = False
    for event in waiting:
        text = event.character if isinstance(event, events.Key) and event.is_printable else None
        if text and typing:
            words[-1] += text
        elif text:
            words.append(text)
        elif isinstance(event, events.Key):
            words.append(shown(event.key))
        else:
            words.append(event.text)
        typing = bool(text)
    return words
