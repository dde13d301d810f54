"""/config: the settings, and what a change of them means for what is running."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from tui.core.config import Config
from tui.core.paths import shorten
from tui.settings.layers import config_problem

if TYPE_CHECKING:
    from tui.ui.screens.settings import Port
    from tui.ui.screens.settings.port import Said
    from tui.ui.session_flow.command_context import Desk


def config(desk: Desk, words: str) -> None:
    """Show the settings that match `words`, all of them without any."""
    from tui.ui.screens.settings import SettingsScreen  # noqa: PLC0415 - as those below: on demand

    desk.app.push_screen(SettingsScreen(_port(desk), words))


def _port(desk: Desk) -> Port:
    from tui.agent.composition import PRACTICE  # noqa: PLC0415
    from tui.ui.commands.servers import mcp  # noqa: PLC0415
    from tui.ui.screens.settings import Port  # noqa: PLC0415
    from tui.ui.toolkit import themes  # noqa: PLC0415

    services, agent = desk.bridge.services, desk.bridge.agent
    answering = (agent.model,) if agent and agent.model != PRACTICE else ()
    return Port(
        folders=services.folders,
        read=services.read_settings,
        take_up=partial(take_up, desk),
        edit_file=partial(edit_file, desk),
        servers=lambda: mcp(desk, ""),
        try_theme=desk.use_theme,
        themes=tuple(themes.available(services.folders.config / "themes")),
        models=answering,
    )


async def take_up(desk: Desk, before: Config, now: Config) -> None:
    """Make changed settings count: at once where that can be, else for the next session.

    Raises HoldfastError where that fails.
    """
    bridge = desk.bridge
    if now.theme != before.theme:
        desk.use_theme(now.theme)
    bridge.attention.wanted = now.notify == "auto"
    if now.motion != before.motion:
        bridge.chat.calm = now.motion == "reduced"
    if bridge.agent is not None and (now.permissions, now.redact) != (
        before.permissions,
        before.redact,
    ):
        bridge.agent.take_up(now)
    if bridge.services.use_settings is not None:
        await bridge.services.use_settings()


async def edit_file(desk: Desk) -> Said:
    """Open config.toml in the editor; afterwards say whether it can be used."""
    from tui.session.writer import make_private  # noqa: PLC0415
    from tui.ui.screens.external_programs import look  # noqa: PLC0415
    from tui.ui.screens.settings.port import Said  # noqa: PLC0415

    file = desk.bridge.services.folders.config_file
    try:
        make_private(file.parent)
        file.touch(mode=0o600, exist_ok=True)
        before = file.read_bytes()
    except OSError as error:
        return Said(f"{shorten(file)} cannot be opened: {error.strerror or error}.", "error")
    if problem := await look(desk.app, file, "editor", exact=False):
        return Said(problem, "error")
    if wrong := await asyncio.to_thread(config_problem, file):
        return Said(wrong.message, "error", wrong.hint or "e opens it again.")
    if await asyncio.to_thread(file.read_bytes) == before:
        return Said("The settings are as they were.")
    return Said("The settings are sound.", "success", "What can count at once does.")
