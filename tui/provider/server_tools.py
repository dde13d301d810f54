"""The server's own tools as a request offers them.

Today that is the search of the web (API, `web_search_20250305`): the version that needs no code
execution and that every model takes. What an answer says of them: `tui.core.server_results`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tui.core.server_results import MOST_SEARCHES

WEB_SEARCH: Final = "web_search"
_TYPE: Final = "web_search_20250305"


def web_search(allowed: Sequence[str] = (), blocked: Sequence[str] = ()) -> dict[str, Any]:
    """The search of the web as a request offers it. Domains are bare names, their subdomains
    included; the API takes one of the two lists."""
    tool: dict[str, Any] = {"type": _TYPE, "name": WEB_SEARCH, "max_uses": MOST_SEARCHES}
    if allowed:
        return tool | {"allowed_domains": list(allowed)}
    return tool | ({"blocked_domains": list(blocked)} if blocked else {})


def is_server_tool(tool: Mapping[str, Any]) -> bool:
    """True if a tool of a request is one of the server's own."""
    return tool.get("type") == _TYPE
