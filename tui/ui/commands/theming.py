"""/theme: choose the colours, with every theme shown as the cursor reaches it."""

from __future__ import annotations

from tui.core.errors import HoldfastError
from tui.ui.session_flow.command_context import Desk
from tui.ui.toolkit import themes


async def theme(desk: Desk, name: str) -> None:
    if name:
        await _keep(desk, name)
    else:
        desk.app.run_worker(_choose(desk), group="theme", exclusive=True)


async def _keep(desk: Desk, name: str) -> None:
    problems = desk.use_theme(name)
    await desk.bridge.services.save_theme(name)
    if problems:
        desk.bridge.chat.notice.say(
            str(problems[0]), "warning", hint="The built-in colour is used."
        )


async def _choose(desk: Desk) -> None:
    from tui.ui.screens.picker import PickScreen  # noqa: PLC0415 - on demand

    before = desk.app.theme
    names = list(themes.available(desk.bridge.services.folders.config / "themes"))
    own = themes.builtin_folder()
    files = themes.available(desk.bridge.services.folders.config / "themes")
    problems: dict[str, str] = {}

    def show(index: int) -> None:
        try:
            desk.use_theme(names[index])
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
    chosen = await desk.app.push_screen_wait(screen)
    if chosen is None:
        desk.use_theme(before)
        return
    name = names[chosen]
    if name in problems:
        desk.use_theme(before)
        desk.bridge.chat.notice.say(problems[name], "error")
        return
    try:
        await _keep(desk, name)
    except HoldfastError as error:
        desk.bridge.chat.notice.say(error.message, "error", hint=error.hint)
