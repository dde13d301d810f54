"""A tool of an MCP server, as a tool like the rest: gated, guarded, recorded."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias, cast

from tui.core.errors import ToolError
from tui.core.messages import ToolOutput
from tui.tools.base import Effect, Params, Preview, Tool, ToolContext

if TYPE_CHECKING:
    import mcp_types

NAME_MAX: Final = 64
DESCRIPTION_MAX: Final = 2000
LABEL_MAX: Final = 200

Call: TypeAlias = Callable[[str, dict[str, Any], Callable[[str], None]], Awaitable[ToolOutput]]
"""Calls a tool of the server by its own name; the last argument takes words on the progress."""


class McpParams(Params, frozen=True, kw_only=True):
    """The arguments as the model wrote them: the server knows what they must be."""

    arguments: dict[str, Any]


class McpTool(Tool[McpParams]):
    """What a server says of its tool is not trusted: it is asked for like a command is.

    Permission rules name it as `mcp__server__tool`, with `*` where wanted; what they match their
    glob against is the JSON of the arguments.
    """

    effect: ClassVar[Effect] = "run"
    params: ClassVar[type[Params]] = McpParams

    def __init__(self, server: str, tool: mcp_types.Tool, call: Call) -> None:
        self.name = tool_name(server, tool.name)  # type: ignore[misc]  # one class, many tools
        self.own_name = tool.name
        self.server = server
        self._description = (tool.description or tool.title or tool.name)[:DESCRIPTION_MAX]
        self._schema = tool.input_schema
        self._call = call

    async def run(self, params: McpParams, ctx: ToolContext) -> ToolOutput:
        return await self._call(self.own_name, params.arguments, ctx.emit)

    def subject(self, params: McpParams) -> str:
        return json.dumps(params.arguments, ensure_ascii=False, sort_keys=True)

    def paths(self, params: McpParams) -> tuple[str, ...]:  # noqa: ARG002
        return ()

    async def preview(self, params: McpParams, ctx: ToolContext) -> Preview:  # noqa: ARG002
        shown = json.dumps(params.arguments, ensure_ascii=False, indent=2)
        return Preview("text", f"{self.own_name} of the MCP server {self.server}\n{shown}")

    def label(self, params: McpParams) -> str:
        shown = ", ".join(f"{name}={_short(value)}" for name, value in params.arguments.items())
        return shown[:LABEL_MAX]

    @property
    def description(self) -> str:
        return self._description

    def schema(self) -> dict[str, Any]:
        schema = {"type": "object", **self._schema}
        return {"name": self.name, "description": self.description, "input_schema": schema}

    def parse(self, arguments: object) -> McpParams:
        if not isinstance(arguments, dict) or set(cast("dict[str, Any]", arguments)) == {
            "raw_input"
        }:
            raise ToolError(
                f"The input of {self.name} was not valid JSON.", hint="Send one JSON object."
            )
        return McpParams(arguments=cast("dict[str, Any]", arguments))


def tool_name(server: str, tool: str) -> str:
    """A name that the API takes: `mcp__server__tool`, hashed where that had to be changed."""
    wanted = f"mcp__{server}__{tool}"
    safe = re.sub(r"[^A-Za-z0-9_-]", "_", wanted)
    if safe == wanted and len(safe) <= NAME_MAX:
        return safe
    digest = hashlib.sha256(wanted.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{safe[: NAME_MAX - 9]}_{digest}"


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:39] + "…"
