"""A real MCP server that says which session it was started for, and which one calls it:
`python -m tests.tools.mcp.session_server`."""

from __future__ import annotations

import json
import os

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("sessions", version="1")


@server.tool()
def session(ctx: Context) -> str:
    """What is known of the session."""
    names = ("HOLDFAST_SESSION_ID", "CLAUDE_CODE_SESSION_ID", "MINE")
    meta = ctx.request_context.meta or {}
    return json.dumps([*map(os.environ.get, names), meta.get("sessionID"), meta.get("traceparent")])


@server.resource("session://{what}")
def resource(what: str, ctx: Context) -> str:
    """What is known of it where a resource is read."""
    return json.dumps([what, (ctx.request_context.meta or {}).get("sessionID")])


@server.prompt()
def asked(ctx: Context) -> str:
    """What is known of it where a prompt is asked for."""
    return json.dumps((ctx.request_context.meta or {}).get("sessionID"))


if __name__ == "__main__":
    server.run("stdio")
