"""Documents: pages of a PDF as a content block that a model reads as text and as images."""

from __future__ import annotations

import re
from typing import Final

from tui.core.messages import Block, object_of, string_of

PAGE_TOKENS: Final = 3000
"""What a page costs, about: its text and its image."""

MAX_BYTES: Final = 6 * 1024 * 1024
"""The largest PDF of one document: a request of 32 MB is refused as a whole."""

_TITLE = re.compile(r".*, pages? (\d{1,7})(?:-(\d{1,7}))? of \d+", re.DOTALL)
_PAGE_CHARS = 100_000
"""How much base64 text is a page, about, where a document does not say how many it has."""


def pages_name(first: int, last: int, total: int) -> str:
    """`page 3 of 133`, `pages 1-20 of 133`."""
    return f"page {last} of {total}" if first == last else f"pages {first}-{last} of {total}"


def document_block(name: str, pages: str, data: str) -> Block:
    """A PDF in base64 that holds pages of the file `name`; `pages` says which."""
    source = {"type": "base64", "media_type": "application/pdf", "data": data}
    return {"type": "document", "source": source, "title": f"{name}, {pages}"}


def page_count(block: Block) -> int:
    """How many pages a document has: as its title says, else about."""
    match = _TITLE.fullmatch(string_of(block.get("title")))
    if match is None:
        data = string_of(object_of(block.get("source")).get("data"))
        return max(1, len(data) // _PAGE_CHARS)
    first = int(match[1])
    return max(1, int(match[2] or first) - first + 1)
