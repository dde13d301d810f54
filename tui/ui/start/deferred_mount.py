"""Loads and puts together the rest of the program after the first frame.

Imported in a thread while the first frame is shown; so this module may import what it wants, and
the app must not import it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from importlib import import_module
from typing import Any, Final

from tui.app.prompt_history import PromptHistory
from tui.app.services import AppServices, Opening
from tui.core.paths import shorten, workspace_slug
from tui.ui.commands.completion_sources import PromptSources
from tui.ui.frontend import ScreenFrontend
from tui.ui.screens.chat import ChatScreen
from tui.ui.toolkit.base_app import ThemedApp

_WARM: Final = (
    "aiofiles",
    "tui.app.open_session",
    "tui.app.router",
    "tui.ui.widgets.conversation.view",
    "tui.ui.widgets.output_view",
    "tui.ui.widgets.file_viewer.pane",
)
"""Imported together with this module, so that nothing waits for them later."""


def prepare(load: Callable[[], Opening]) -> Opening:
    """Import what completes the screen, and load what it opens with; runs in a thread."""
    for module in _WARM:
        import_module(module)
    return load()


def find_view(
    frontend: ScreenFrontend, name: str, argument: str
) -> Coroutine[Any, Any, None] | None:
    """Return the coroutine for a command that only the full screen has; None for one with a shared
    handler."""
    from tui.ui.commands.views import VIEWS  # noqa: PLC0415 - on demand

    return VIEWS[name](frontend, argument) if name in VIEWS else None


async def mount_rest(app: ThemedApp, chat: ChatScreen, services: AppServices) -> ScreenFrontend:
    """Complete the chat screen. No session is open yet."""
    await chat.furnish()
    frontend = ScreenFrontend(app, chat, services, find_view)
    await asyncio.to_thread(frontend.conversation.user_commands.load)
    await chat.ask.suggest(PromptSources(frontend.conversation, chat.conversation))
    chat.header.state = replace(chat.header.state, folder=shorten(services.workspace))
    history = services.folders.data / "history" / f"{workspace_slug(services.workspace)}.jsonl"
    chat.prompt.past = PromptHistory(history)
    await chat.prompt.past.load()
    return frontend
