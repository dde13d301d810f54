"""/config and /theme: the settings, and what a change of them means for what is running."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from tui.core.config import Config
from tui.core.errors import HoldfastError
from tui.core.paths import shorten
from tui.settings.layers import config_problem
from tui.ui.toolkit import themes

if TYPE_CHECKING:
    from tui.ui.frontend import ScreenFrontend
    from tui.ui.screens.setting_rows import SettingsPort
    from tui.ui.widgets.notices import NoticeText


async def config(frontend: ScreenFrontend, words: str) -> None:
    """Show the settings that match `words`, all of them without any."""
    from tui.ui.screens.settings import SettingsScreen  # noqa: PLC0415 - as those below: on demand

    frontend.app.push_screen(SettingsScreen(_port(frontend), words))


def _port(frontend: ScreenFrontend) -> SettingsPort:
    from tui.agent.composition import PRACTICE  # noqa: PLC0415
    from tui.ui.commands.views import mcp  # noqa: PLC0415
    from tui.ui.screens.setting_rows import SettingsPort  # noqa: PLC0415
    from tui.ui.toolkit import themes  # noqa: PLC0415

    services, agent = frontend.services, frontend.conversation.agent
    answering = (agent.model,) if agent and agent.model != PRACTICE else ()
    return SettingsPort(
        folders=services.folders,
        read=services.read_settings,
        take_up=partial(take_up, frontend),
        edit_file=partial(edit_file, frontend),
        servers=lambda: frontend.app.run_worker(mcp(frontend, ""), group="command"),
        try_theme=frontend.app.use_theme,
        themes=tuple(themes.available(services.folders.config / "themes")),
        models=answering,
    )


async def take_up(frontend: ScreenFrontend, before: Config, now: Config) -> None:
    """Make changed settings count: at once where that can be, else for the next session.

    Raises HoldfastError where that fails.
    """
    chat, agent, services = frontend.chat, frontend.conversation.agent, frontend.services
    if now.theme != before.theme:
        frontend.app.use_theme(now.theme)
    frontend.notifier.wanted = now.notify == "auto"
    if now.motion != before.motion:
        chat.calm = now.motion == "reduced"
    if agent is not None and (now.permissions, now.redact) != (
        before.permissions,
        before.redact,
    ):
        agent.take_up(now)
    if services.use_settings is not None:
        await services.use_settings()


async def edit_file(frontend: ScreenFrontend) -> NoticeText:
    """Open config.toml in the editor; afterwards say whether it can be used."""
    from tui.session.writer import make_private  # noqa: PLC0415
    from tui.ui.screens.external_programs import open_file  # noqa: PLC0415
    from tui.ui.widgets.notices import NoticeText  # noqa: PLC0415

    file = frontend.services.folders.config_file
    try:
        make_private(file.parent)
        file.touch(mode=0o600, exist_ok=True)
        before = file.read_bytes()
    except OSError as error:
        return NoticeText(f"{shorten(file)} cannot be opened: {error.strerror or error}.", "error")
    if problem := await open_file(frontend.app, file, "editor", exact=False):
        return NoticeText(problem, "error")
    if wrong := await asyncio.to_thread(config_problem, file):
        return NoticeText(wrong.message, "error", wrong.hint or "e opens it again.")
    if await asyncio.to_thread(file.read_bytes) == before:
        return NoticeText("The settings are as they were.")
    return NoticeText("The settings are sound.", "success", "What can count at once does.")


async def theme(frontend: ScreenFrontend, name: str) -> None:
    if name:
        await _keep(frontend, name)
    else:
        await _choose(frontend)


async def _keep(frontend: ScreenFrontend, name: str) -> None:
    problems = frontend.app.use_theme(name)
    await frontend.services.save_theme(name)
    if problems:
        frontend.say(str(problems[0]), "warning", hint="The built-in colour is used.")


async def _choose(frontend: ScreenFrontend) -> None:
    from tui.ui.screens.picker import PickScreen  # noqa: PLC0415 - on demand

    before = frontend.app.theme
    names = list(themes.available(frontend.services.folders.config / "themes"))
    own = themes.builtin_folder()
    files = themes.available(frontend.services.folders.config / "themes")
    problems: dict[str, str] = {}

    def show(index: int) -> None:
        try:
            frontend.app.use_theme(names[index])
        except HoldfastError as error:
            problems[names[index]] = error.message

    rows = [
        [
            (f"{name:<20}", "text"),
            ("now" if name == before else "", "accent"),
            ("" if files[name].parent == own else "  yours", "muted"),
        ]
        for name in names
    ]
    at = names.index(before) if before in names else 0
    screen = PickScreen("theme", rows, cursor=at, on_move=show, enter="keep")
    chosen = await frontend.app.push_screen_wait(screen)
    if chosen is None:
        frontend.app.use_theme(before)
        return
    name = names[chosen]
    if name in problems:
        frontend.app.use_theme(before)
        frontend.say(problems[name], "error")
        return
    try:
        await _keep(frontend, name)
    except HoldfastError as error:
        frontend.say(error.message, "error", hint=error.hint)
