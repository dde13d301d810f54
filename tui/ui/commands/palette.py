"""What the command palette lists where the person is, and what a choice from it does."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from tui.core.paths import folders
from tui.ui.screens.palette import (
    PaletteEntry,
    PaletteScreen,
    load_recent,
    palette_entries,
    save_recent,
)
from tui.ui.toolkit.base_app import BaseScreen, TooSmall

if TYPE_CHECKING:
    from tui.ui.app import HoldfastApp


RECENT: Final = "recent-commands.json"
"""In the data folder."""


async def open_palette(app: HoldfastApp) -> None:
    """Show it over whatever is shown; take it away where it is there already.

    Over a question, what needs the prompt is not offered: the prompt can't be reached from there.
    """
    if isinstance(app.screen, PaletteScreen):
        app.screen.dismiss(None)
        return
    if any(isinstance(screen, (PaletteScreen, TooSmall)) for screen in app.screen_stack):
        return
    recent = await asyncio.to_thread(load_recent, folders().data / RECENT)
    own = app.conversation.user_commands.commands.values() if app.ready else ()
    entries = palette_entries(own, app.own_keys)
    if any(isinstance(screen, BaseScreen) and screen.awaited for screen in app.screen_stack):
        reachable = (e for e in entries if not e.needs_words and e.namespace != "prompt")
        entries = [replace(entry, command="") for entry in reachable]
    app.push_screen(PaletteScreen(entries, recent), partial(_choose, app))


async def _choose(app: HoldfastApp, choice: tuple[PaletteEntry, bool] | None) -> None:
    if choice is None:
        return
    entry, edit = choice
    app.run_worker(asyncio.to_thread(save_recent, folders().data / RECENT, entry.name))
    if edit:
        app.uncover()
        prompt = app.chat.prompt
        if prompt.text and not prompt.stashed:
            prompt.action_stash()
        prompt.accept()
        prompt.insert(entry.command)
        prompt.focus()
        return
    nodes = {"app": app, "chat": app.chat, "prompt": app.chat.prompt}
    if entry.namespace != "app":
        app.uncover()
    await app.run_action(entry.action, nodes[entry.namespace])
