"""What the keys of the chat screen do, and what its modes are called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tui.app.permission_log import MODE_NAMES
from tui.ui.widgets.status_line import Hint

if TYPE_CHECKING:
    from tui.permissions.types import Mode

BACK = Hint("esc", "conversation", "screen.stop_or_close")
OUTPUT = Hint("f4", "output", "app.command('output')")
NEXT = Hint("tab", "next pane", "screen.next_pane")
SEND, QUEUE, RUN = Hint("enter", "send"), Hint("enter", "queue"), Hint("enter", "run")
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
ELEVATED = ("asks nothing", "$text-error")
"""In the place of a mode that would ask."""
SHELL: Mapping[str, tuple[str, str]] = {
    "!": ("command, run by you", "$text-accent"),
    "!!": ("command, run by you, kept from the model", "$text-accent"),
}
"""In the place of a mode, by how a command of the person's own begins."""
READ_ONLY = ("read-only", "$text-warning")
"""In the place of a mode, where nothing can be asked."""
TO_ASK = "What shall be done?  / for commands, ! for the shell"
TO_READ = "Read-only: nothing can be sent.  /fork goes on with a copy"
"""What the empty prompt says."""
NOT_SAVED = "✗ Not saved:"
UNSAVED = "Make room, or let the file be written: all is in memory, and it is tried again."
"""What to do where the session cannot be written."""
