"""The conversation without a toolkit, and everything that its front ends share.

`conversation`: the open session, its turns and what waits; `work` runs one thing at a time.
`router`: where a typed line goes; `api`: a conversation for a program, without a person.
`frontend`: what it asks of the full screen, of plain lines, or of a test.
`open_session`: from a choice to an open session, with the questions on the way; `interruption`:
work that an earlier run left open; `error_options`: the ways on from a failed request.
`commands`: the table of slash commands, the handlers; `models`: /model.
`drafts`, `attachments`, `send_queue`, `user_shell`, `prompt_history`: parts of a conversation.
`services`: what a front end is given; `program`: the composition root.
`options`, `launch_config`, `doctor`: the command line as data, the installation examined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui.app.api import HeadlessConversation as Conversation
    from tui.app.frontend import Frontend
    from tui.app.program import Program

__all__ = ["Conversation", "Frontend", "Program"]


def __getattr__(name: str) -> object:
    """Load a name that another program embeds, when it is used."""
    from importlib import import_module  # noqa: PLC0415 - as those below: nothing is loaded for the others

    places = {
        "Program": ("program", "Program"),
        "Conversation": ("api", "HeadlessConversation"),
        "Frontend": ("frontend", "Frontend"),
    }
    if name not in places:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, own_name = places[name]
    return getattr(import_module(f"{__name__}.{module}"), own_name)
