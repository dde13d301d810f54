"""Documents: pages of a PDF as a content block that a model reads as text and as images."""

from __future__ import annotations

import re
from typing import Final

from tui.core.late_pattern import late_pattern
from tui.core.messages import Block, object_of, string_of

PAGE_TOKENS: Final = 3000
"""Approximate tokens of a page: its text and its image."""

MAX_BYTES: Final = 6 * 1024 * 1024
"""Maximum bytes of the PDF of one document: a request of 32 MB is refused as a whole."""

_TITLE = late_pattern(r".*, pages? (\d{1,7})(?:-(\d{1,7}))? of \d+", re.DOTALL)
_PAGE_CHARS = 100_000
"""Approximate base64 characters of a page, for a document that does not name its pages."""


def pages_name(first: int, last: int, total: int) -> str:
    """Return the name of some pages: `page 3 of 133`, `pages 1-20 of 133`."""
    return f"page {last} of {total}" if first == last else f"pages {first}-{last} of {total}"


def document_block(name: str, pages: str, data: str) -> Block:
    """Return a document block of a PDF in base64; `pages` names its pages of the file `name`."""
    source = {"type": "base64", "media_type": "application/pdf", "data": data}
    return {"type": "document", "source": source, "title": f"{name}, {pages}"}


def page_count(block: Block) -> int:
    """Return the number of pages of a document: from its title, otherwise an estimate."""
    match = _TITLE.fullmatch(string_of(block.get("title")))
    if match is None:
        data = string_of(object_of(block.get("source")).get("data"))
        return max(1, len(data) // _PAGE_CHARS)
    first = int(match[1])
    return max(1, int(match[2] or first) - first + 1)
