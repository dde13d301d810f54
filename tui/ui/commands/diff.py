"""/diff: what the session's own tools changed in files."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tui.app.commands.diff import diff_text
from tui.context.file_changes import changes
from tui.core.formatting import plural

if TYPE_CHECKING:
    from tui.ui.session_flow.command_context import Desk


async def diff(desk: Desk, _: str) -> None:
    from tui.ui.screens.diff import DiffScreen  # noqa: PLC0415 - on demand
    from tui.ui.widgets.diff import counts  # noqa: PLC0415 - on demand

    agent = desk.bridge.agent
    found = changes(list(agent.session.records)) if agent else []
    if not found:
        desk.bridge.chat.notice.say(
            "This session's tools have changed no file.",
            hint="What a command did to files is not known here.",
        )
        return
    text = await asyncio.to_thread(diff_text, found, desk.bridge.services.workspace)
    title = f"{plural(len(found), 'file')} changed · {counts(text)}"
    desk.app.push_screen(DiffScreen(title, text))
