"""The server's own tools in an answer: their results, and the pages that it cites.

The server runs them within its answer: their calls and results stand there, and go back to it as
they came.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tui.core.facts import SourcesCited, ToolFinished
from tui.core.formatting import plural
from tui.core.messages import Block, list_of, object_of, string_of

CALL: Final = "server_tool_use"
"""The type of the block of a call."""
MOST_SEARCHES: Final = 8
"""In one answer; each is paid for."""
_RESULT: Final = "_tool_result"

_ERRORS: Final = {
    "too_many_requests": "the server's search is busy",
    "unavailable": "the server's search is down",
    "max_uses_exceeded": f"no more than {MOST_SEARCHES} searches in one answer",
    "query_too_long": "the query is too long",
    "request_too_large": "the request is too large for a search",
    "invalid_tool_input": "the server didn't understand the query",
}


def is_result(block: Block) -> bool:
    """True if a block is the result of a tool of the server's."""
    kind = string_of(block.get("type"))
    return kind.endswith(_RESULT) and "tool_use_id" in block


def result_of(block: Block) -> ToolFinished:
    """Put a result's block in words, whatever is in it: the pages that were found, a line each."""
    name = string_of(block.get("type")).removesuffix(_RESULT)
    id_, content = string_of(block.get("tool_use_id")), block.get("content")
    if code := string_of(object_of(content).get("error_code")):
        said = _ERRORS.get(code, code.replace("_", " "))
        return ToolFinished(id_, name, True, 0.0, None, said, said)
    pages = [page for page in map(object_of, list_of(content)) if page.get("url")]
    text = "\n".join(map(_line, pages))
    return ToolFinished(id_, name, False, 0.0, None, plural(len(pages), "page"), text)


def _line(page: Block) -> str:
    parts = (string_of(page.get(name)).strip() for name in ("title", "url", "page_age"))
    return " · ".join(part for part in parts if part)


def sources_of(content: Iterable[Block]) -> list[SourcesCited]:
    """The pages of the web that an answer cites, each once, in the order in which it does; none
    where it cites none."""
    pages: dict[str, dict[str, str]] = {}
    for block in content:
        for cited in map(object_of, list_of(block.get("citations"))):
            if url := string_of(cited.get("url")):
                pages.setdefault(url, {"url": url, "title": string_of(cited.get("title")).strip()})
    return [SourcesCited(tuple(pages.values()))] if pages else []
