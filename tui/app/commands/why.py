"""/why: says which prompt wrote lines of a file, by which call, with which model, at what price."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Final

from tui.app.reports.why import WhyAnswer, why_report
from tui.context.blame import asked_lines, blame_file, line_range
from tui.core.config import Price
from tui.core.dataclass import replace
from tui.core.errors import HoldfastError
from tui.core.paths import Folders
from tui.tools.file_access import in_thread

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tui.app.conversation import Conversation

USAGE: Final = "/why FILE:10 asks about a line, FILE:10-20 about some, FILE about all."
_SPACED: Final = re.compile(r"\s+:?(?=\d[\d,+-]*$)")
"""The text before the lines where a completed path has left its blank."""


async def why(conversation: Conversation, asked: str) -> None:
    """Report on the lines that are named."""
    if not asked:
        conversation.frontend.say(USAGE)
        return
    await answer_why(
        conversation,
        asked.removeprefix("@"),
        lambda it: conversation.frontend.report(why_report(it)),
    )


async def answer_why(
    conversation: Conversation, asked: str, show: Callable[[WhyAnswer], None]
) -> None:
    """Find whence the lines come and show that."""
    services, frontend = conversation.services, conversation.frontend

    async def answer() -> None:
        prices = services.settings.now.prices
        work = partial(looked_up, asked, services.workspace, services.folders, prices)
        try:
            found = await in_thread(work)
            rows = await services.list_sessions()
        except HoldfastError as error:
            frontend.say(error.message, "warning", hint=error.hint)
            return
        own = conversation.agent.session.id if conversation.agent else ""
        show(replace(found, own=own, here=frozenset(row.id for row in rows)))

    await conversation.run_reading("reading the sessions", answer)


def looked_up(
    asked: str,
    workspace: Path,
    folders: Folders,
    prices: Mapping[str, Price],
    stop: Event,
) -> WhyAnswer:
    """Answer about FILE or FILE:LINES. Blocks. Raises HoldfastError where there is no answer, and
    once `stop` is set."""

    def still_wanted(_done: int, _of: int) -> None:
        if stop.is_set():
            raise HoldfastError("Stopped.")

    if not (workspace / asked).exists():
        asked = _SPACED.sub(":", asked)
    path, wanted = asked_lines(asked, workspace)
    found, lines = blame_file(path, folders, still_wanted)
    first, last = line_range(wanted, len(lines), path.name)
    name = found.path
    with suppress(ValueError):
        name = str(Path(found.path).relative_to(workspace.resolve()))
    return WhyAnswer(name, found, lines, first, last, prices)
