"""The server's own tools: how a request offers them, and how an answer reports their calls.

The server runs them within its answer: their calls and results are in it, and are sent back
unchanged. Today that is the search of the web (API, `web_search_20250305`): the version that needs
no code execution and that every model accepts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tui.core.formatting import plural
from tui.core.messages import Block, list_of, object_of, string_of

CALL: Final = "server_tool_use"
"""The type of a call's block."""
WEB_SEARCH: Final = "web_search"
_TYPE: Final = "web_search_20250305"
_RESULT: Final = "_tool_result"
_MOST_SEARCHES: Final = 8
"""Maximum number in one answer; each is paid for."""

_ERRORS: Final = {
    "too_many_requests": "the server's search is busy",
    "unavailable": "the server's search is down",
    "max_uses_exceeded": f"no more than {_MOST_SEARCHES} searches in one answer",
    "query_too_long": "the query is too long",
    "request_too_large": "the request is too large for a search",
    "invalid_tool_input": "the server didn't understand the query",
}


class CitedPage(NamedTuple):
    """A page that an answer cites."""

    url: str
    title: str


class ServerResult(NamedTuple):
    """A result of one of the server's tools, for a person: the pages, a line each."""

    id: str
    name: str
    summary: str
    text: str
    is_error: bool


def web_search(allowed: Sequence[str] = (), blocked: Sequence[str] = ()) -> dict[str, Any]:
    """The web search tool as a request offers it. Domains are bare names and include their
    subdomains; the API accepts only one of the two lists."""
    tool: dict[str, Any] = {"type": _TYPE, "name": WEB_SEARCH, "max_uses": _MOST_SEARCHES}
    if allowed:
        return tool | {"allowed_domains": list(allowed)}
    return tool | ({"blocked_domains": list(blocked)} if blocked else {})


def is_server_tool(tool: Mapping[str, Any]) -> bool:
    """True if a tool of a request is one of the server's own."""
    return tool.get("type") == _TYPE


def is_result(block: Block) -> bool:
    """True if a block is the result of one of the server's tools."""
    kind = string_of(block.get("type"))
    return kind.endswith(_RESULT) and "tool_use_id" in block


def result_of(block: Block) -> ServerResult:
    """Read a result's block, whatever is in it."""
    name = string_of(block.get("type")).removesuffix(_RESULT)
    id_, content = string_of(block.get("tool_use_id")), block.get("content")
    code = string_of(object_of(content).get("error_code"))
    if code:
        reason = _ERRORS.get(code, code.replace("_", " "))
        return ServerResult(id_, name, reason, reason, is_error=True)
    pages = [page for page in map(object_of, list_of(content)) if page.get("url")]
    lines = [_line(page) for page in pages]
    return ServerResult(id_, name, plural(len(pages), "page"), "\n".join(lines), is_error=False)


def _line(page: Block) -> str:
    parts = (string_of(page.get(name)).strip() for name in ("title", "url", "page_age"))
    return " · ".join(part for part in parts if part)


def sources(content: Iterable[Block]) -> list[CitedPage]:
    """The web pages that an answer cites, each once, in order."""
    pages: dict[str, CitedPage] = {}
    for block in content:
        for cited in map(object_of, list_of(block.get("citations"))):
            if url := string_of(cited.get("url")):
                pages.setdefault(url, CitedPage(url, string_of(cited.get("title")).strip()))
    return list(pages.values())
