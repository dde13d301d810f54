"""Summaries of a conversation: extracted, since rules cannot condense."""

from __future__ import annotations

import re

from tui.core.messages import text_of
from tui.provider.base import Request

_CONVERSATION = re.compile(r"<untrusted_content[^>]*>(.*?)</untrusted_content>", re.DOTALL)
_PATH = re.compile(r"(?<![\w/.-])(?:[\w.-]+/)*[\w-]+\.[A-Za-z]\w{0,4}(?![\w/])")
_NOTES = "worth keeping, answer `none`"
"""What only the request for notes says: that there may be nothing."""
_FILES = 12
_LINE = 160


def summary_of(request: Request) -> str | None:
    """The summary that a request wants; None for other requests.

    Such a request has no tools and carries the conversation as wrapped, untrusted content. Where
    notes for later sessions are wanted there are none: real models would read them, too.
    """
    text = "" if request.tools or not request.messages else text_of(request.messages[-1]["content"])
    if not (found := _CONVERSATION.findall(text)):
        return None
    return "none" if _NOTES in text else _extract("\n".join(found))


def _extract(conversation: str) -> str:
    """How a conversation began and ended, and the files that it names."""
    lines = [line.strip() for line in conversation.splitlines() if line.strip()]
    files = list(dict.fromkeys(_PATH.findall(conversation)))
    parts = {
        "How it began": lines[:3],
        "Files that were named": files[:_FILES],
        "How it stands": lines[3:][-6:],
    }
    listed = [
        f"## {title}\n\n" + "\n".join(f"- {line[:_LINE]}" for line in found)
        for title, found in parts.items()
        if found
    ]
    return "\n\n".join(listed) or "The conversation was empty."
