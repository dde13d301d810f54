"""A tool of an MCP server, with permissions, limits and records like any other tool."""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64decode
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, cast

from tui.core.errors import ToolError
from tui.core.images import MEDIA_TYPES
from tui.core.messages import Block, ToolOutput, image_block, object_of, text_block
from tui.tools.base import CallHost, CallPreview, Effect, Params, Tool, ToolContext
from tui.tools.mcp.argument_names import with_own_names, with_safe_names
from tui.tools.mcp.promised_output import broken_promises

if TYPE_CHECKING:
    import mcp_types


NAME_MAX: Final = 64
DESCRIPTION_MAX: Final = 2000
LABEL_MAX: Final = 200
LEFT_OUT: Final = "holdfast/left-out"
NOTES: Final = "holdfast/notes"
"""In the `_meta` of an answer: the tools that no client can use, and what was mended in it."""
SCHEMA_MAX: Final = 64 * 1024
"""Bytes of a tool's schema: a larger one would take the room of a conversation."""
_WRAPPER: Final = "arguments"
_CHOICES: Final = frozenset({"oneOf", "anyOf", "allOf", "not"})
_FURTHER: Final = _CHOICES | {
    "$ref", "if", "patternProperties", "dependentSchemas", "dependencies", "unevaluatedProperties"
}  # fmt: skip
"""Keywords that may admit arguments besides those that are listed."""


class ServerCalls(Protocol):
    """The requests to the server of a tool."""

    async def call(self, tool: str, arguments: dict[str, Any], host: CallHost) -> ToolOutput:
        """Call a tool by its own name: `host` is told of the progress, and asks the person what the
        server asks."""
        ...


class ListedTool(Protocol):
    """A tool as a server lists it."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str | None: ...
    @property
    def description(self) -> str | None: ...
    @property
    def input_schema(self) -> dict[str, Any]: ...
    @property
    def output_schema(self) -> dict[str, Any] | None: ...


class McpParams(Params, frozen=True, kw_only=True):
    """The arguments as the model wrote them: the server knows what they must be."""

    arguments: dict[str, Any]


class McpTool(Tool[McpParams]):
    """One tool of a server. What the server says about it is not trusted: it needs permission as
    a command does.

    Permission rules name it as `mcp__server__tool`, with `*` for any part; their globs are
    matched against the JSON of the arguments.
    """

    effect: ClassVar[Effect] = "run"
    params: ClassVar[type[Params]] = McpParams

    def __init__(self, server: str, tool: ListedTool, calls: ServerCalls) -> None:
        self.name = tool_name(server, tool.name)  # type: ignore[misc]  # one class, many tools
        self.own_name = tool.name
        self.server = server
        self._description = (tool.description or tool.title or tool.name)[:DESCRIPTION_MAX]
        schema, self._wrapped = api_schema(tool.input_schema)
        self._schema, self._names = with_safe_names(schema)
        self._own_schema = tool.input_schema
        self.output_schema = tool.output_schema
        self._calls = calls

    async def run(self, params: McpParams, ctx: ToolContext) -> ToolOutput:
        output = await self._calls.call(self.own_name, params.arguments, ctx.host)
        strange = unlisted(self._own_schema, params.arguments)
        if output.is_error or not strange:
            return output
        note = f"[{self.name} lists no {_named(strange)}: the server may have ignored it.]"
        return output.with_lines([note])

    def subject(self, params: McpParams) -> str:
        return json.dumps(params.arguments, ensure_ascii=False, sort_keys=True)

    def paths(self, params: McpParams) -> tuple[str, ...]:  # noqa: ARG002
        return ()

    async def preview(self, params: McpParams, ctx: ToolContext) -> CallPreview:  # noqa: ARG002
        shown = json.dumps(params.arguments, ensure_ascii=False, indent=2)
        return CallPreview("text", f"{self.own_name} of the MCP server {self.server}\n{shown}")

    def input_shown(self, params: McpParams, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Under the names that the server gets: a guard knows those."""
        return params.arguments if self._names or self._wrapped else given

    def label(self, params: McpParams) -> str:
        shown = ", ".join(f"{name}={_short(value)}" for name, value in params.arguments.items())
        return shown[:LABEL_MAX]

    @property
    def description(self) -> str:
        return self._description

    def schema(self) -> dict[str, Any]:
        return {"name": self.name, "description": self.description, "input_schema": self._schema}

    def parse(self, arguments: object) -> McpParams:
        if not isinstance(arguments, dict) or set(cast("dict[str, Any]", arguments)) == {
            "raw_input"
        }:
            raise ToolError(
                f"The input of {self.name} wasn't valid JSON.", hint="Send one JSON object."
            )
        values = cast("dict[str, Any]", arguments)
        if self._wrapped and isinstance(inner := values.get(_WRAPPER), dict) and len(values) == 1:
            values = cast("dict[str, Any]", inner)
        given = cast("dict[str, Any]", with_own_names(sound(values), self._names))
        strange = unlisted(self._own_schema, given)
        if strange and self._own_schema.get("additionalProperties") is False:
            # Servers of the protocol's own libraries run the call without it: a dry run that is
            # misspelt is none.
            raise ToolError(
                f"{self.name} has no {_named(strange)}. Nothing was run.",
                hint=f"Its arguments: {', '.join(object_of(self._own_schema.get('properties')))}.",
            )
        return McpParams(arguments=given)


def unlisted(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> list[str]:
    """The arguments that a schema doesn't list, where it says nothing else of further ones."""
    listed = object_of(schema.get("properties"))
    if not listed or not _FURTHER.isdisjoint(schema) or schema.get("additionalProperties"):
        return []
    return [name for name in arguments if name not in listed]


def api_schema(given: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """A tool's schema as the API takes it, and whether the arguments are wrapped in `arguments`.

    The API wants an object, and no choice between schemas at the top; definitions stay there,
    where references look for them. Arguments of the protocol are an object in any case.
    """
    if given.get("type", "object") != "object":
        return {"type": "object"}, False
    if _CHOICES.isdisjoint(given):
        return {"type": "object", **given}, False
    definitions = {name: given[name] for name in ("$defs", "definitions") if name in given}
    inner = {name: part for name, part in given.items() if name not in definitions}
    schema = {"type": "object", "properties": {_WRAPPER: inner}, "required": [_WRAPPER]}
    return schema | definitions, True


def sound(value: object) -> object:
    """A value without lone halves of characters, which no message of the protocol can hold."""
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [sound(one) for one in cast("list[object]", value)]
        case dict():
            items = cast("dict[str, object]", value).items()
            return {str(sound(name)): sound(one) for name, one in items}
        case _:
            return value


def tool_name(server: str, tool: str) -> str:
    """A name that the API takes: `mcp__server__tool`, with a hash if it had to be changed."""
    wanted = f"mcp__{server}__{tool}"
    safe = re.sub(r"[^A-Za-z0-9_-]", "_", wanted)
    if safe == wanted and len(safe) <= NAME_MAX:
        return safe
    digest = hashlib.sha256(wanted.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{safe[: NAME_MAX - 9]}_{digest}"


def _named(arguments: list[str]) -> str:
    names = ", ".join(f"`{_short(name)}`" for name in arguments[:5])
    return f"{'argument' if len(arguments) == 1 else 'arguments'} {names}"


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:39] + "…"


def tool_output(
    result: mcp_types.CallToolResult, promised: Mapping[str, Any] | None = None
) -> ToolOutput:
    """The result's blocks in their order. What a model cannot take is described in words, and where
    the answer isn't what the server `promised` or the protocol wants, a note says so."""
    blocks = list(content_blocks(result.content))
    if not blocks and result.structured_content is not None:
        text = json.dumps(result.structured_content, ensure_ascii=False, indent=1)
        blocks = [text_block(text)]
    notes = [str(note) for note in (result.meta or {}).get(NOTES) or ()]
    if promised is not None and not result.is_error:
        notes += broken_promises(promised, result.structured_content)
    if notes:
        blocks.append(text_block(f"[Problems with the answer: {'; '.join(notes)}.]"))
    return ToolOutput(
        blocks or [text_block("(no output)")],
        is_error=result.is_error,
        details={"blocks": len(result.content)},
    )


def content_blocks(content: Iterable[mcp_types.ContentBlock]) -> Iterable[Block]:
    """Blocks of the protocol as those of a message."""
    for block in content:
        match block.type:
            case "text":
                yield text_block(block.text)
            case "image" if block.mime_type in MEDIA_TYPES:  # the view checks size and bytes
                yield image_block(block.mime_type, block.data)
            case "image" | "audio":
                yield text_block(f"[{block.type}, {block.mime_type}: not shown]")
            case "resource_link":
                yield text_block(f"[resource {block.uri}: {block.description or block.name}]")
            case "resource":
                yield embedded(block.resource)


def embedded(resource: mcp_types.TextResourceContents | mcp_types.BlobResourceContents) -> Block:
    text, blob = getattr(resource, "text", None), getattr(resource, "blob", None)
    if isinstance(text, str):
        return text_block(f"[resource {resource.uri}]\n{text}")
    if isinstance(blob, str) and resource.mime_type in MEDIA_TYPES:
        return image_block(resource.mime_type, blob)
    if isinstance(blob, str) and (resource.mime_type or "").startswith("text/"):
        with suppress(ValueError):  # it is no text after all
            return text_block(f"[resource {resource.uri}]\n{b64decode(blob).decode('utf-8-sig')}")
    return text_block(f"[resource {resource.uri}, {resource.mime_type or 'binary'}: not shown]")
