"""What the model is shown of a request, as the cache and the counts take it.

Tools are left out while their loading is deferred, and put where something refers to them; a
message for one turn is gone after it; thinking that the API drops is not there. A mark for the
whole request stands on the last block that may carry one.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from tests.support.server_bodies import TOOL_CHANGES, blocks_of, is_cleared
from tests.support.server_script import Json, part
from tests.support.server_tools import is_deferred, name_of

_UNMARKED: Final = {"thinking", "redacted_thinking"}


def shown(body: Json, dropped: Collection[tuple[int, int]] = ()) -> Json:
    """A body as its model sees it. `dropped` are the places of thinking that it cannot see."""
    tools: list[Json] = body.get("tools", [])
    deferred = {tool["name"]: tool for tool in tools if is_deferred(tool)}
    messages: list[Json] = []
    for number, message in enumerate(body["messages"]):
        content = [
            _block(block, deferred)
            for index, block in enumerate(blocks_of(message))
            if (number, index) not in dropped
        ]
        cleared = is_cleared(body["messages"], number)
        messages.append(message | {"content": [] if cleared else content})
    if mark := body.get("cache_control"):
        _mark_last(messages, mark)
    front = [tool for tool in tools if not is_deferred(tool)]
    return body | {"tools": front, "messages": messages}


def _block(block: Json, deferred: dict[str, Json]) -> Json:
    kind, tool = block.get("type"), part(block, "tool")
    if kind == "compaction":
        return {name: value for name, value in block.items() if name != "signature"}
    if kind not in TOOL_CHANGES:
        return block
    if mark := part(tool, "definition").get("cache_control"):
        block = block | {"cache_control": mark}
    if tool.get("type") == "tool_reference" and name_of(block) in deferred:
        block = block | {"definition": deferred[name_of(block)]}
    return block


def _mark_last(messages: list[Json], mark: Json) -> None:
    for message in reversed(messages):
        if message.get("clear_at") == "next_user_message":
            continue
        content: list[Json] = message["content"]
        for index in range(len(content) - 1, -1, -1):
            if content[index].get("type") not in _UNMARKED:
                content[index] = content[index] | {"cache_control": mark}
                return
