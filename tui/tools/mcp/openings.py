"""The servers that `server/discover` loses, so that the next start begins with `initialize`.

Kept in one small file of the cache, by hashes of their commands and addresses.
"""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path
from typing import Any, Final, cast

from tui.core.config import McpServer
from tui.core.files import locked, read_small, replace_file
from tui.core.json_files import parse_json

log = logging.getLogger(__name__)

NAME: Final = "mcp-openings.json"
KEPT_MAX: Final = 500


def is_remembered(folder: Path, config: McpServer) -> bool:
    """True if the server is one of them. Blocks; never raises."""
    return _key(config) in _read(folder / NAME)


def remember(folder: Path, config: McpServer, *, with_initialize: bool) -> None:
    """Remember how a server wants to be begun with, where that can be written. Blocks."""
    try:
        with locked(folder):
            others = [one for one in _read(folder / NAME) if one != _key(config)]
            kept = [*others, _key(config)] if with_initialize else others
            replace_file(folder / NAME, json.dumps(kept[-KEPT_MAX:]).encode())
    except OSError as error:
        log.info("the opening of an MCP server isn't remembered: %s", error)


def _key(config: McpServer) -> str:
    return hashlib.sha256(json.dumps([config.words, config.url]).encode()).hexdigest()[:16]


def _read(file: Path) -> list[str]:
    try:
        kept: Any = parse_json(read_small(file)[0])
    except (OSError, ValueError, RecursionError):
        return []
    listed = cast("list[object]", kept) if isinstance(kept, list) else []
    return [one for one in listed if isinstance(one, str)]
