"""read_mcp_resource: what an MCP server offers to be read, or the list of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from tui.core.errors import ToolError
from tui.core.messages import ToolOutput
from tui.tools.base import CallPreview, Effect, Params, Tool, ToolContext, about

if TYPE_CHECKING:
    from tui.tools.mcp.servers import Servers

LISTED_MAX = 200


class ReadMcpResourceParams(Params, frozen=True, kw_only=True):
    server: Annotated[str, about("The name of the MCP server.")]
    uri: Annotated[str, about("The resource's URI; leave it out to list the resources.")] = ""


class ReadMcpResource(Tool[ReadMcpResourceParams]):
    """Rules name a resource as `server:uri`."""

    name: ClassVar[str] = "read_mcp_resource"
    effect: ClassVar[Effect] = "read"
    params: ClassVar[type[Params]] = ReadMcpResourceParams

    def __init__(self, servers: Servers) -> None:
        self._servers = servers

    async def run(self, params: ReadMcpResourceParams, ctx: ToolContext) -> ToolOutput:
        server = next((one for one in self._servers.all if one.name == params.server), None)
        if server is None:
            names = ", ".join(one.name for one in self._servers.all)
            raise ToolError(f"No MCP server {params.server}.", hint=f"There are: {names}.")
        if params.uri:
            return await server.calls.read_resource(params.uri, ctx.host)
        await server.connection.client()
        resources = server.resources
        lines = [f"{one.uri}  {one.title}" for one in resources[:LISTED_MAX]]
        if more := len(resources) - len(lines):
            lines.append(f"[{more} more]")
        if patterns := server.templates[:LISTED_MAX]:
            lines += ["By pattern, with values for what is in braces:"]
            lines += [f"{one.uri}  {one.title}" for one in patterns]
        return ToolOutput.text("\n".join(lines) or "The server lists no resources.")

    def subject(self, params: ReadMcpResourceParams) -> str:
        return f"{params.server}:{params.uri}"

    async def preview(
        self,
        params: ReadMcpResourceParams,
        ctx: ToolContext,  # noqa: ARG002
    ) -> CallPreview:
        return CallPreview("text", self.subject(params))

    def label(self, params: ReadMcpResourceParams) -> str:
        return self.subject(params)
