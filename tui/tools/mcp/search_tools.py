"""search_tools: tools of MCP servers that no request lists, found by words."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

from tui.core.formatting import plural
from tui.core.messages import ToolOutput
from tui.tools.base import Effect, Params, Tool, ToolContext, about
from tui.tools.file_access import in_thread
from tui.tools.mcp.tool_search import ToolIndex

if TYPE_CHECKING:
    from tui.tools.mcp.tool import McpTool

NAME: Final = "search_tools"


class SearchToolsParams(Params, frozen=True, kw_only=True):
    query: Annotated[str, about("Words for what the tool should do.")] = ""
    server: Annotated[str, about("Only tools of this server.")] = ""
    limit: Annotated[int, about("How many to show.", ge=1, le=20)] = 5


class SearchTools(Tool[SearchToolsParams]):
    """`deferred` gives the tools by name as they are now."""

    name: ClassVar[str] = NAME
    effect: ClassVar[Effect] = "none"
    params: ClassVar[type[Params]] = SearchToolsParams

    def __init__(self, deferred: Callable[[], Mapping[str, McpTool]]) -> None:
        self._deferred = deferred
        self._index = ToolIndex(())

    async def run(self, params: SearchToolsParams, ctx: ToolContext) -> ToolOutput:  # noqa: ARG002
        return await in_thread(lambda _stop: self._answer(params))

    def subject(self, params: SearchToolsParams) -> str:
        return params.query

    def _answer(self, params: SearchToolsParams) -> ToolOutput:
        tools = tuple(self._deferred().values())
        if not params.query.strip() and not params.server:
            return _servers(tools)
        if params.server:
            tools = tuple(tool for tool in tools if tool.server == params.server)
        if tools != self._index.tools:
            self._index = ToolIndex(tools)
        if params.query.strip():
            matches = self._index.find(params.query, params.limit)
        else:
            matches = list(tools[: params.limit])
        if not matches:
            return ToolOutput.text(
                f"No tool of {len(tools):,} fits. Try other words, or none to list the servers.",
                summary="nothing found",
            )
        shown = [
            f"{tool.name}: {tool.description}\ninput_schema: "
            + json.dumps(tool.schema()["input_schema"], ensure_ascii=False, separators=(",", ":"))
            for tool in matches
        ]
        head = f"{len(matches)} of {plural(len(tools), 'tool')}, the best first:"
        names = ", ".join(tool.own_name for tool in matches)
        return ToolOutput.text("\n\n".join([head, *shown]), summary=names[:200])


def _servers(tools: tuple[McpTool, ...]) -> ToolOutput:
    counts = Counter(tool.server for tool in tools)
    lines = [f"{server}: {plural(count, 'tool')}" for server, count in sorted(counts.items())]
    text = "\n".join(["Servers whose tools are found by words:", *lines])
    return ToolOutput.text(text if lines else "No server has further tools now.")
