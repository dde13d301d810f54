"""/recall: search and read what is no longer in the context, of this session and others here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tui.core.errors import HoldfastError

if TYPE_CHECKING:
    from tui.app.conversation import Conversation

USAGE: Final = "/recall WORDS searches, /recall 12 or /recall SESSION:12 reads a message."
_LINES: Final = 400
_BYTES: Final = 100_000
_MESSAGE: Final = re.compile(r"(?:([0-9a-f]{3,12}):)?([0-9]{1,7})(?: ([0-9]{1,7}))?")


async def recall(conversation: Conversation, words: str) -> None:
    """Search for words, or read a message by its number, from a line of it on."""
    from tui.tools.paging import PageLimits  # noqa: PLC0415 - on demand
    from tui.tools.recall import RecallParams  # noqa: PLC0415

    agent, frontend = conversation.open_agent(), conversation.frontend
    if agent is None:
        return
    if not words.strip():
        frontend.say(USAGE)
        return
    asked = RecallParams(query=words)
    if named := _MESSAGE.fullmatch(words.strip()):
        session, number, line = named.groups()
        asked = RecallParams(session=session or "", first=int(number), offset=int(line or 0))
    try:
        text, shown = await agent.recall(asked, PageLimits(_LINES, _BYTES, _LINES))
    except HoldfastError as error:
        frontend.say(error.message, "warning", hint=error.hint)
        return
    frontend.report(f"Recalled: {words.strip()} ({shown})", text.splitlines())
