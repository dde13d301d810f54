"""What comes behind the first frame: the rest of the program, loaded and put together.

Imported in a thread while the first frame stands; that is why this module may import what it
wants, and the app must not import it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Final

from textual.app import App

from tui.app.commands.user_commands import own_commands
from tui.app.ports import AppServices, Opening, SessionChoice
from tui.app.prompt_history import PromptHistory
from tui.core.errors import ConfigError
from tui.core.paths import shorten, workspace_slug
from tui.ui.commands.completion_sources import PromptSources
from tui.ui.screens.chat import ChatScreen
from tui.ui.session_flow.command_context import Desk
from tui.ui.session_flow.open_session import Way
from tui.ui.session_flow.resume_options import Resuming
from tui.ui.turn_controller import Bridge

_WARM: Final = (
    "aiofiles",
    "tui.ui.widgets.conversation.view",
    "tui.ui.widgets.output_view",
    "tui.ui.widgets.file_viewer.pane",
)
"""Imported along with this, so that what imports them later waits for nothing."""


@dataclass(frozen=True, slots=True)
class Furnished:
    """What a complete screen works with: `bridge` runs the agent, `desk` is for the commands,
    `way` leads to a session, and `resuming` takes one up again."""

    bridge: Bridge
    desk: Desk
    way: Way
    resuming: Resuming


def prepare(load: Callable[[], Opening]) -> Opening:
    """In a thread: import what the screen is completed with, and load what it opens with."""
    for module in _WARM:
        import_module(module)
    return load()


async def furnish(
    app: App[Any],
    chat: ChatScreen,
    services: AppServices,
    *,
    open_session: Callable[[SessionChoice], Any],
    use_theme: Callable[[str], tuple[ConfigError, ...]],
) -> Furnished:
    """Complete the chat screen. No session is open yet."""
    await chat.furnish()
    bridge = Bridge(app, chat, services)
    own = own_commands(services)
    desk = Desk(app, bridge, open_session, use_theme, own)
    await asyncio.to_thread(own.load)
    await chat.suggest(PromptSources(desk))
    resuming = Resuming(app, bridge, open_session)
    chat.header.state = replace(chat.header.state, folder=shorten(services.workspace))
    history = services.folders.data / "history" / f"{workspace_slug(services.workspace)}.jsonl"
    chat.prompt.past = PromptHistory(history)
    await chat.prompt.past.load()
    return Furnished(bridge, desk, Way(app, bridge, resuming), resuming)
