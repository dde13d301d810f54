"""MCP servers in the driver's own process: their messages go over the stream.

The driver runs them, so they need no connection, only the few requests that tools take: to begin,
to list, to call. The tools are like those of any other MCP server for the model and for rules.
"""

from __future__ import annotations

import json
from typing import Any, Final

import tui
from tui.cli.claude_stream.link import DriverError, DriverLink
from tui.core.dataclass import dataclass, field
from tui.core.errors import ToolError
from tui.core.images import MEDIA_TYPES
from tui.core.messages import (
    Block,
    ToolOutput,
    image_block,
    list_of,
    object_of,
    string_of,
    text_block,
)
from tui.tools.base import CallHost, Tool
from tui.tools.mcp.tool import McpTool

PROTOCOL: Final = "2025-11-25"
PAGES: Final = 20
"""Pages of a list of tools that are asked for."""


@dataclass(frozen=True, slots=True)
class DriverTool:
    """A tool of the driver's, as `McpTool` takes it."""

    name: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    title: str = ""


@dataclass(slots=True)
class DriverServer:
    """One server of the driver's. `problem` is why it has no tools, "" where it has."""

    name: str
    link: DriverLink
    tools: list[Tool[Any]] = field(default_factory=list[Tool[Any]])
    info: dict[str, Any] = field(default_factory=dict[str, Any])
    problem: str = ""
    _number: int = 0

    async def begin(self) -> None:
        """Greet the server and list its tools. What fails is its `problem`."""
        client = {"name": "holdfast", "title": "Holdfast", "version": tui.__version__}
        hello = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client}
        try:
            greeted = await self._request("initialize", hello)
            self.info = object_of(greeted.get("serverInfo"))
            await self._send({"method": "notifications/initialized"})
            cursor: dict[str, Any] = {}
            for _ in range(PAGES):
                listed = await self._request("tools/list", cursor)
                self.tools += [self._tool(object_of(one)) for one in list_of(listed.get("tools"))]
                if not (following := string_of(listed.get("nextCursor"))):
                    break
                cursor = {"cursor": following}
        except ToolError as error:
            self.problem = error.message

    async def call(self, tool: str, arguments: dict[str, Any], host: CallHost) -> ToolOutput:  # noqa: ARG002 - as the port has it
        """Call a tool by its own name. Raises ToolError."""
        result = await self._request("tools/call", {"name": tool, "arguments": arguments})
        blocks = [_block(object_of(one)) for one in list_of(result.get("content"))]
        if not blocks and result.get("structuredContent") is not None:
            blocks = [text_block(json.dumps(result["structuredContent"], ensure_ascii=False))]
        failed = result.get("isError", result.get("is_error")) is True
        return ToolOutput(blocks or [text_block("(no output)")], is_error=failed)

    def _tool(self, given: dict[str, Any]) -> Tool[Any]:
        name = string_of(given.get("name"))
        if not name:
            raise DriverError(f"The MCP server {self.name} lists a tool without a name.")
        schema = object_of(given.get("inputSchema")) or {"type": "object"}
        described = string_of(given.get("description"))
        promised = object_of(given.get("outputSchema")) or None
        return McpTool(self.name, DriverTool(name, described, schema, promised), self)

    async def _request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"method": method, "id": self._number}
        answer = await self._send(message | ({"params": params} if params else {}))
        if error := object_of(answer.get("error")):
            raise DriverError(f"{method} of the MCP server {self.name} failed: {_words(error)}")
        return object_of(answer.get("result"))

    async def _send(self, message: dict[str, Any]) -> dict[str, Any]:
        sent = {"jsonrpc": "2.0"} | message
        request = {"subtype": "mcp_message", "server_name": self.name, "message": sent}
        return object_of((await self.link.ask(request)).get("mcp_response"))


def _words(error: dict[str, Any]) -> str:
    text = string_of(error.get("message")) or "it doesn't say why"
    data = error.get("data")
    return text if data is None else f"{text} ({json.dumps(data, ensure_ascii=False)})"


def _block(block: dict[str, Any]) -> Block:
    """A block of a result as one of a message."""
    match block.get("type"):
        case "text":
            return text_block(string_of(block.get("text")))
        case "image" if block.get("mimeType") in MEDIA_TYPES:
            return image_block(block["mimeType"], block.get("data"))
        case kind:
            return text_block(f"[{kind}: {json.dumps(block, ensure_ascii=False)[:200]}]")
