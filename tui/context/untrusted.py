"""Marks text as data for the model, never as an instruction: it is wrapped in tags. Pure."""

from __future__ import annotations

import re
from typing import Final

from tui.core.late_pattern import late_pattern

TAG: Final = "untrusted_content"
OPEN_MAX: Final = 120
"""Maximum characters of a source's name in the opening tag."""

_OPENING = late_pattern(rf'<{TAG} source="([^">]*)">\n')
_TAG = late_pattern(rf"<(?=\s*/?\s*{TAG})", re.IGNORECASE)


def wrap(text: str, source: str) -> str:
    """Wrap a text in tags that name its source. Tags inside it are neutralized."""
    return f"{opening_tag(source)}\n{neutral(text)}\n{CLOSING}"


def opening_tag(source: str) -> str:
    """The tag before a text from `source`."""
    shown = re.sub(r'[<>"\s]+', " ", source).strip()[:OPEN_MAX]
    return f'<{TAG} source="{shown}">'


CLOSING: Final = f"</{TAG}>"


def source_of(text: str) -> str:
    """The source of a marked text; "" if it is not marked."""
    tag = _OPENING.match(text)
    return tag[1] if tag else ""


def neutral(text: str) -> str:
    """Turn our tags inside a text into plain text. Doing it twice changes nothing more."""
    return _TAG.sub("&lt;", text)
