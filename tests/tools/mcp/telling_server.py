"""A server that tells and asks on its own: `python -m tests.tools.mcp.telling_server`."""

from __future__ import annotations

import sys

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from pydantic import BaseModel

server = MCPServer("telling", version="1")


class Choice(BaseModel):
    """What it asks for."""

    name: str


@server.tool()
async def grow_others(ctx: Context) -> str:
    """Offers one more prompt and resource from now on, and tells of it."""

    @server.prompt()
    def later() -> str:  # pyright: ignore[reportUnusedFunction] - it is registered
        """Came later."""
        return "yes"

    await ctx.notify_prompts_changed()
    return "grown"


@server.tool()
async def asks(ctx: Context) -> str | InputRequiredResult:
    """Asks the person something, by the newer protocol."""
    given = (ctx.input_responses or {}).get("which")
    if isinstance(given, ElicitResult):
        return f"{given.action} {given.content}"
    params = ElicitRequestFormParams(
        message="Which one?", requested_schema=Choice.model_json_schema()
    )
    return InputRequiredResult(input_requests={"which": ElicitRequest(params=params)})


@server.tool()
async def tells(ctx: Context) -> str:
    """Tells something by the protocol, and floods its standard error."""
    await ctx.session.send_log_message(level="warning", data="careful now")  # pyright: ignore[reportDeprecated] - servers send it
    for _ in range(50):
        print("e" * 100_000, file=sys.stderr)
    return "told"


if __name__ == "__main__":
    server.run("stdio")
