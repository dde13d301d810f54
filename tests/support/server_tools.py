"""Tools that join and leave in the middle of a conversation.

A tool of `tools` is there from the beginning, unless its loading is deferred. Blocks in system
messages add and remove tools from there on; those of a compacted range stand in its block.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Self

from tests.support.server_bodies import TOOL_CHANGES, blocks_of, compaction_of
from tests.support.server_errors import EXTRA, Rejection, invalid
from tests.support.server_script import Json, part

INLINE_TOOLS: Final = "inline-tools-2026-09-15"
TOOL_REFERENCES: Final = "mid-conversation-tool-changes-2026-07-01"
MOST_TOOLS: Final = 10_000
MOST_BYTES: Final = 4_000_000
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_FORMS: Final = {"tool_reference", "tool_definition", "mcp_tool_reference", "mcp_toolset_reference"}


@dataclass(slots=True)
class Toolbox:
    """The tools at one place of a conversation: those that are known, and those to be had."""

    known: dict[str, Json] = field(default_factory=dict[str, Json])
    available: set[str] = field(default_factory=set[str])
    inline: dict[str, int] = field(default_factory=dict[str, int])
    """How many bytes each definition takes that came by value, the latest of each name."""

    @classmethod
    def at_start(cls, body: Json) -> Self:
        """What the request declares, changed as the range behind its compaction block was."""
        tools: list[Json] = body.get("tools", [])
        known = {str(tool.get("name")): tool for tool in tools}
        box = cls(known, {name for name, tool in known.items() if not is_deferred(tool)})
        earlier: list[Json] = (compaction_of(body) or {}).get("tool_changes") or []
        for change in earlier:
            box.apply(change)
        return box

    @classmethod
    def at_end(cls, body: Json) -> Self:
        """What an answer may call."""
        box = cls.at_start(body)
        for message in body["messages"]:
            if message["role"] == "system":
                for block in blocks_of(message):
                    if block.get("type") in TOOL_CHANGES:
                        box.apply(block)
        if any(str(tool.get("type")).startswith("tool_search") for tool in box.known.values()):
            box.available |= {name for name, tool in box.known.items() if is_deferred(tool)}
        return box

    def apply(self, change: Json) -> None:
        """What a change says, once it is taken."""
        definition, name = part(change, "tool", "definition"), name_of(change)
        if definition:
            self.known[name] = definition
            self.inline[name] = len(json.dumps(definition).encode())
        if change["type"] == "tool_removal":
            self.available.discard(name)
        else:
            self.available.add(name)


def is_deferred(tool: Json) -> bool:
    """Whether a tool stands in no prompt until something refers to it."""
    return bool(tool.get("defer_loading"))


def name_of(change: Json) -> str:
    """The name of the tool that joins or leaves."""
    tool = part(change, "tool")
    return str(part(tool, "definition").get("name") or tool.get("name"))


def net_changes(body: Json) -> list[Json]:
    """The changes that lead from `tools` to what is there at the end, the last one of each name."""
    last: dict[str, Json] = {}
    earlier: list[Json] = (compaction_of(body) or {}).get("tool_changes") or []
    said = [b for m in body["messages"] if m["role"] == "system" for b in blocks_of(m)]
    for change in (*earlier, *(b for b in said if b.get("type") in TOOL_CHANGES)):
        name = name_of(change)
        known = part(last.pop(name, {}), "tool", "definition")
        if change["type"] == "tool_addition" and known and not part(change, "tool", "definition"):
            by_value = {"type": "tool_definition", "definition": known}
            last[name] = {"type": "tool_addition", "tool": by_value}
        else:
            last[name] = {key: value for key, value in change.items() if key != "cache_control"}
    return list(last.values())


def tool_change_violations(body: Json, betas: frozenset[str]) -> Iterator[Rejection]:
    """What is wrong with the changes of tools in a request."""
    tools: list[Json] = body.get("tools", [])
    if sum(map(is_deferred, tools)) > MOST_TOOLS:
        yield _too_many(f"tools: at most {MOST_TOOLS} tools may be deferred")
    box = Toolbox.at_start(body)
    changed: set[str] = set()  # by the system messages in a row, which count as one
    messages: list[Json] = body["messages"]
    for number, message in enumerate(messages):
        if message["role"] != "system":
            changed.clear()
            continue
        spoken = [m["role"] for m in messages[:number] if m["role"] != "system"]
        for index, block in enumerate(blocks_of(message)):
            if block.get("type") not in TOOL_CHANGES:
                continue
            at = f"messages.{number}.content.{index}"
            if wrong := _form(block, betas):
                yield wrong._replace(message=f"{at}.{wrong.message}")
                return
            if spoken[-1:] == ["assistant"]:
                yield invalid(f"{at}: tools cannot change right after a paused turn")
            if conflict := _conflict(block, box, changed, body):
                yield conflict._replace(message=f"{at}.{conflict.message}")
                return
            changed.add(name_of(block))
            box.apply(block)
    if len(box.inline) > MOST_TOOLS:
        yield _too_many(f"messages: at most {MOST_TOOLS} tools may be defined in messages")
    if sum(box.inline.values()) > MOST_BYTES:
        yield _too_many(f"messages: tools defined in messages exceed {MOST_BYTES} bytes")
    elif sum(len(json.dumps(box.known[name])) for name in box.available) > MOST_BYTES:
        yield _too_many(f"tools: the tools that are available exceed {MOST_BYTES} bytes")


def _form(block: Json, betas: frozenset[str]) -> Rejection | None:
    """What is wrong with the shape of a change, or with a header that it needs."""
    kind, tool = block["type"], part(block, "tool")
    form, definition = str(tool.get("type")), part(tool, "definition")
    if not betas & {INLINE_TOOLS, TOOL_REFERENCES}:
        return invalid(f"type: Input tag '{kind}' is not expected")
    if extra := block.keys() - {"type", "tool", "cache_control"}:
        return invalid(f"{kind}.{min(extra)}: {EXTRA}")
    by_value = form == "tool_definition"
    if form not in _FORMS or (by_value and (kind == "tool_removal" or INLINE_TOOLS not in betas)):
        return invalid(f"{kind}.tool.type: Input tag '{form}' is not expected")
    if not by_value:
        return None
    for name in ("name", "input_schema"):
        if name not in definition and "type" not in definition:
            return invalid(f"{kind}.tool.definition.{name}: Field required")
    if not _NAME.fullmatch(str(definition.get("name"))):
        pattern = f"String should match pattern '^{_NAME.pattern}$'"
        return invalid(f"{kind}.tool.definition.name: {pattern}")
    if "cache_control" in block and "cache_control" in definition:
        return invalid(f"{kind}: cache_control stands on the block or in the definition, not both")
    return None


def _conflict(block: Json, box: Toolbox, changed: set[str], body: Json) -> Rejection | None:
    """What a change cannot do where it stands.

    The documentation says when a name is unresolved or conflicts only in part; where it is silent,
    a change that changes nothing is refused as well.
    """
    kind, tool, name = block["type"], part(block, "tool"), name_of(block)
    form = tool["type"]
    if form.startswith("mcp_"):
        servers: list[Json] = body.get("mcp_servers", [])
        if tool.get("server_name") not in {server.get("name") for server in servers}:
            return _unresolved(f"{kind}.tool: no MCP server {tool.get('server_name')!r}")
        return None
    declared = {str(one.get("name")) for one in body.get("tools", [])}
    if name in changed:
        return _named_twice(f"{kind}.tool: {name!r} is changed twice at one place")
    if form == "tool_definition":
        if name in declared:
            return _named_twice(f"{kind}.tool.definition.name: {name!r} is a tool of `tools`")
        return None
    if name not in box.known or (kind == "tool_removal" and not _to_be_had(name, box)):
        return _unresolved(f"{kind}.tool: {name!r} is no tool of this conversation")
    if kind == "tool_addition" and name in box.available:
        return _named_twice(f"{kind}.tool: {name!r} is available already")
    return None


def _to_be_had(name: str, box: Toolbox) -> bool:
    return name in box.available or is_deferred(box.known[name])


def _unresolved(text: str) -> Rejection:
    return invalid(text, "tool_reference_unresolved")


def _named_twice(text: str) -> Rejection:
    return invalid(text, "tool_name_conflict")


def _too_many(text: str) -> Rejection:
    return invalid(text, "available_tools_limit_exceeded")
