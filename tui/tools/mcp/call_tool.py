"""call_tool: a tool of an MCP server that no request lists, by its name.

A call of it is carried out as a call of that tool (see `tui.core.messages.as_meant`): its rules,
its card, its limits. Here lands only what names none.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import field

from tui.core.errors import ToolError
from tui.core.messages import CALL_TOOL, ToolOutput
from tui.tools.base import Effect, Params, Tool, ToolContext, about


class CallToolParams(Params, frozen=True, kw_only=True):
    name: Annotated[str, about("The tool's whole name, mcp__server__tool.", min_length=1)]
    input: Annotated[dict[str, Any], about("Its arguments.")] = field(default_factory=dict)


class CallTool(Tool[CallToolParams]):
    name: ClassVar[str] = CALL_TOOL
    effect: ClassVar[Effect] = "none"
    params: ClassVar[type[Params]] = CallToolParams

    async def run(self, params: CallToolParams, ctx: ToolContext) -> ToolOutput:  # noqa: ARG002
        raise ToolError(
            f"{params.name:.200} isn't a tool of an MCP server.",
            hint="Search with search_tools; call tools that are listed by their own names.",
        )

    def subject(self, params: CallToolParams) -> str:
        return params.name
