"""Summaries of a conversation, and notes on it: extracted, since rules cannot condense."""

from __future__ import annotations

import re

from tui.messages import text_of
from tui.provider.base import Request

_OPEN = "<untrusted_content"
_WRAPPED = re.compile(r"<untrusted_content[^>]*>(.*?)</untrusted_content>", re.DOTALL)
_PATH = re.compile(r"(?<![\w/.-])(?:[\w.-]+/)*[\w-]+\.[A-Za-z]\w{0,4}(?![\w/])")
_ERROR = re.compile(r"\b(?:error|failed|failure|exception|traceback)\b", re.IGNORECASE)
_NOTES = "worth keeping, answer `none`"
"""What only the request for notes says: that there may be nothing."""
_REMEMBER = re.compile(
    r"^Person: (?:please\s+)?(?:remember|note)(?:\s+that)?[:,]?\s+(.+)",
    re.IGNORECASE | re.MULTILINE,
)
_CHANGED = re.compile(r"^Result: ((?:Created|Replaced|Edited) .+)", re.MULTILINE)
_KEPT = 12
_LINE = 160


def answer(request: Request) -> str | None:
    """The summary or the notes that a request wants; None for other requests.

    Such a request has no tools and carries the conversation as wrapped, untrusted content.
    """
    if request.tools or not request.messages:
        return None
    text = text_of(request.messages[-1]["content"])
    found = _WRAPPED.findall(text)
    if not found:
        return None
    wanted = notes if _NOTES in text.partition(_OPEN)[0] else summarise
    return wanted("\n".join(found))


def notes(conversation: str) -> str:
    """What the person asked to remember, and which files were changed: no more is worth keeping,
    since the later sessions of real models read it too."""
    noted = [*_REMEMBER.findall(conversation), *_CHANGED.findall(conversation)]
    found = [" ".join(note.split())[:_LINE] for note in dict.fromkeys(noted)]
    return "\n".join(f"- {note}" for note in found[-_KEPT:]) or "none"


def summarise(conversation: str) -> str:
    """The files, commands and errors that a conversation names, and how it began and ended."""
    lines = [line.strip() for line in conversation.splitlines() if line.strip()]
    files = list(dict.fromkeys(_PATH.findall(conversation)))
    errors = list(dict.fromkeys(line for line in lines if _ERROR.search(line)))
    parts = [
        ("How it began", lines[:3]),
        ("Files that were named", files[:_KEPT]),
        ("Lines about errors", errors[-_KEPT // 2 :]),
        ("How it stands", lines[3:][-6:]),
    ]
    listed = [
        f"## {title}\n\n" + "\n".join(f"- {line[:_LINE]}" for line in found)
        for title, found in parts
        if found
    ]
    return "\n\n".join(listed) or "The conversation was empty."
