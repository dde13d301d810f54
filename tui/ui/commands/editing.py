"""Commands that open the person's own editor, and one that asks the model to write a file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tui.app.commands.init import INIT

if TYPE_CHECKING:
    from tui.ui.session_flow.command_context import Desk


def init(desk: Desk, _: str) -> None:
    desk.bridge.submit(INIT)


def edit_file(desk: Desk, path: Path, then: Callable[[], object] | None = None) -> None:
    """Open a file in the editor; `then` is called when it is closed again."""

    async def work() -> None:
        from tui.ui.screens.external_programs import look  # noqa: PLC0415 - on demand

        problem = await look(desk.app, path, "editor", exact=False)
        if problem:
            desk.bridge.chat.notice.say(problem, "error")
        elif then is not None:
            then()

    desk.app.run_worker(work(), group="editor", exclusive=True)


async def edit_prompt(desk: Desk) -> None:
    """Ctrl+G: what is typed, in the editor. What cannot be read back changes nothing."""
    from tui.ui.screens.external_programs import edited  # noqa: PLC0415 - on demand

    prompt, say = desk.bridge.chat.prompt, desk.bridge.chat.notice.say
    text, problem = await edited(desk.app, prompt.value)
    if problem:
        say(problem, "error")
    if text is not None:
        prompt.put_whole(text.removesuffix("\n"))
    await asyncio.sleep(0)
    prompt.focus()
