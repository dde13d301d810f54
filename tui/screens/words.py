"""What the keys of the chat screen do, and what its modes are called."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
