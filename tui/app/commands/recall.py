"""/recall: search and read what is no longer in the context, of this session and others here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tui.app.reports import Report
from tui.core.errors import HoldfastError

if TYPE_CHECKING:
    from tui.app.conversation import Conversation

USAGE: Final = "/recall WORDS searches, /recall 12, 12-15 or ID:12 reads messages."
_LINES: Final = 400
_BYTES: Final = 100_000
_FROM: Final = re.compile(r"(\S+)(?: ([0-9]{1,9}))?")


async def recall(conversation: Conversation, words: str) -> None:
    """Search for words, or read messages by their address, from a character of them on."""
    from tui.tools.paging import PageLimits  # noqa: PLC0415 - on demand
    from tui.tools.recall import MessageAddress, RecallParams  # noqa: PLC0415

    agent, frontend = conversation.open_agent(), conversation.frontend
    if agent is None:
        return
    if not words.strip():
        frontend.say(USAGE)
        return
    params = RecallParams(query=words)
    named = _FROM.fullmatch(words.strip())
    if named is not None and MessageAddress.is_one(named[1]):
        params = RecallParams(message=named[1], offset=int(named[2] or 0))
    try:
        text, shown = await agent.context.recall(params, PageLimits(_LINES, _BYTES, _LINES))
    except HoldfastError as error:
        frontend.say(error.message, "warning", hint=error.hint)
        return
    frontend.report(Report(f"Recalled: {words.strip()} ({shown})", text.splitlines()))
