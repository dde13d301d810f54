"""Opens the command palette over the current screen and runs the choice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from tui.core.paths import folders
from tui.ui.screens.palette import (
    PaletteEntry,
    PaletteScreen,
    load_recent,
    palette_entries,
    run_entries,
    save_recent,
)
from tui.ui.toolkit.base_app import ThemedApp
from tui.ui.toolkit.base_screen import BaseScreen, TooSmall

if TYPE_CHECKING:
    from textual.screen import Screen

    from tui.settings.user_commands import UserCommand
    from tui.ui.screens.chat import ChatScreen
    from tui.ui.widgets.keys import Key


RECENT: Final = "recent-commands.json"
"""File in the data folder."""


async def open_palette(
    app: ThemedApp, chat: ChatScreen, own: Iterable[UserCommand], uncover: Callable[[], object]
) -> None:
    """Show the palette over the current screen, or close it if it is open.

    Over a question, entries that need the prompt are left out, because the prompt can't be reached
    from there.

    Args:
        own: The commands that the person wrote.
        uncover: Closes what covers the chat.
    """
    entries = palette_entries(own, app.own_keys)
    if any(isinstance(screen, BaseScreen) and screen.awaited for screen in app.screen_stack):
        reachable = (e for e in entries if not e.needs_words and e.namespace != "prompt")
        entries = [replace(entry, command="") for entry in reachable]
    await _show(app, entries, partial(_choose, app, chat, uncover))


async def open_run_palette(app: ThemedApp, run: Screen[None], table: Sequence[Key]) -> None:
    """Like `open_palette`, over a screen that has the terminal to itself, with its keys. Over
    another one only entries that work everywhere are offered."""
    entries = run_entries(app.own_keys, table)
    if app.screen is not run:
        entries = [entry for entry in entries if entry.namespace == "app"]
    await _show(app, entries, partial(_run, app, run))


async def _show(
    app: ThemedApp,
    entries: Sequence[PaletteEntry],
    choose: Callable[[PaletteEntry, bool], Awaitable[None]],
) -> None:
    if isinstance(app.screen, PaletteScreen):
        app.screen.dismiss(None)
        return
    open_ = any(isinstance(screen, PaletteScreen) for screen in app.screen_stack)
    if open_ or isinstance(app.screen, TooSmall):
        return
    recent = await asyncio.to_thread(load_recent, folders().data / RECENT)

    async def chosen(choice: tuple[PaletteEntry, bool] | None) -> None:
        if choice is not None:
            name = choice[0].name
            app.run_worker(asyncio.to_thread(save_recent, folders().data / RECENT, name))
            await choose(*choice)

    app.push_screen(PaletteScreen(entries, recent), chosen)


async def _run(app: ThemedApp, run: Screen[None], entry: PaletteEntry, _edit: bool) -> None:
    await app.run_action(entry.action, app if entry.namespace == "app" else run)


async def _choose(
    app: ThemedApp,
    chat: ChatScreen,
    uncover: Callable[[], object],
    entry: PaletteEntry,
    edit: bool,
) -> None:
    if edit:
        uncover()
        prompt = chat.prompt
        if prompt.text and not prompt.stashed:
            prompt.action_stash()
        prompt.accept()
        prompt.insert(entry.command)
        prompt.focus()
        return
    nodes = {"app": app, "chat": chat, "prompt": chat.prompt}
    if entry.namespace != "app":
        uncover()
    await app.run_action(entry.action, nodes[entry.namespace])
