"""What the chat screen says when nothing has been said yet, and what its keys do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from tui.screens.decided import MODE_NAMES
from tui.widgets.status_line import Hint

if TYPE_CHECKING:
    from tui.permissions.base import Mode

BACK = Hint("esc", "conversation", "screen.stop_or_close")
OUTPUT = Hint("f4", "output", "app.command('output')")
NEXT = Hint("tab", "next pane", "screen.next_pane")
SEND, QUEUE = Hint("enter", "send"), Hint("enter", "queue")
IDLE_HINTS = (
    SEND,
    Hint("ctrl+p", "commands", "app.command_palette"),
    Hint("f1", "help", "app.command('help')"),
    Hint("f2", "context", "app.command('context')"),
    Hint("f3", "sessions", "app.command('sessions')"),
    OUTPUT,
    Hint("shift+tab", "mode", "app.next_mode"),
)
BUSY_HINTS = (
    Hint("esc", "stop", "screen.stop_or_close"),
    QUEUE,
    *IDLE_HINTS[1:],
)
MODES: dict[Mode, tuple[str, str]] = {
    "ask": (MODE_NAMES["ask"], "$text-muted"),
    "accept_edits": (MODE_NAMES["accept_edits"], "$text-accent"),
    "plan": (MODE_NAMES["plan"], "$text-secondary"),
}
"""By mode: its name and style over the prompt."""

_WHAT = (
    "Say what shall be done, in your own words. It reads, searches, edits and runs commands in"
    " this folder, and asks before it changes anything."
)


def intro(version: str) -> Content:
    """The words of an empty conversation."""
    return Content.assemble(
        ("holdfast", "bold $text-primary"),
        (f" {version}\n\n", "$text-muted"),
        (f"{_WHAT}\n\n", "$foreground"),
        ("for instance\n", "$text-muted"),
        ("  read README.md and say what this project is about\n", "$text-secondary"),
        ("  run the tests and fix what fails\n\n", "$text-secondary"),
        ("f1", "$text-accent"),
        (" keys and commands     ", "$text-muted"),
        ("f3", "$text-accent"),
        (" earlier sessions", "$text-muted"),
    )
