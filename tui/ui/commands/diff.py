"""/diff: what the session's own tools changed in files."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tui.context.file_changes import Change, changes, texts
from tui.tools.diff import unified
from tui.ui.widgets.figures import plural

if TYPE_CHECKING:
    from tui.ui.session_flow.command_context import Desk

CHARS_MAX = 2_000_000
"""Above this a file's diff takes too long to make: only its name is shown."""


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


def diff_text(found: Iterable[Change], root: Path) -> str:
    """One unified diff of all files, from before the session to how they are now. Blocks."""
    return "\n".join(_of_file(change, root) for change in found)


def _of_file(change: Change, root: Path) -> str:
    path = change.path
    name = str(path.relative_to(root)) if root in path.parents else str(path)
    try:
        old, new = texts(change)
    except OSError as error:
        return f"--- {name}\n+++ {name}\n cannot be compared: {error.strerror or error}\n"
    if old == new:
        return f"--- {name}\n+++ {name}\n is as it was before the session\n"
    if len(old or "") + len(new or "") > CHARS_MAX:
        return f"--- {name}\n+++ {name}\n too large to compare\n"
    if new is None:
        return f"--- a/{name}\n+++ /dev/null\n the file is gone\n"
    return unified(old, new, name).text + "\n"
