"""/mcp: the MCP servers, as lines."""

from __future__ import annotations

import asyncio
from typing import Final

from tui.core.errors import UsageError
from tui.core.formatting import plural
from tui.plain.conversation import Talk, opened
from tui.plain.speech_text import said, sentence, shown
from tui.tools.mcp import Server

_LOG_LINES: Final = 20
_LOG_BYTES: Final = 20_000
_MCP: Final = "/mcp, /mcp restart NAME, /mcp off NAME TOOL, /mcp on NAME TOOL, or /mcp log NAME"


async def mcp(talk: Talk, argument: str) -> None:
    """The MCP servers: how they stand; restart one, switch a tool, read its log."""
    agent = opened(talk)
    if not agent.servers:
        talk.face.say("No MCP server is configured: [mcp.NAME] in config.toml adds one.")
        return
    verb, *rest = argument.split()[:3] or [""]
    if not verb:
        for server in agent.servers:
            talk.face.say(*server_lines(server))
        talk.face.say(sentence(_MCP))
        return
    server = next((one for one in agent.servers if rest and one.name == rest[0]), None)
    if server is None:
        raise UsageError("Which server?", hint=_MCP)
    match verb, rest[1:]:
        case "restart", []:
            await server.restart()
            talk.face.say(f"{server.name} is being started again.")
        case (("on" | "off"), [tool]) if any(one.own_name == tool for one in server.tools):
            agent.switch_tool(server, tool, on=verb == "on")
            now = "offered to the model" if verb == "on" else "kept from the model"
            talk.face.say(f"{tool} is {now} from the next request on.")
        case "log", []:
            lines = await asyncio.to_thread(_end_of, server)
            talk.face.say(*lines)
        case _:
            raise UsageError(f"/mcp {argument} is not known.", hint=_MCP)


def server_lines(server: Server) -> list[str]:
    """A server, and below it its tools."""
    detail = f": {said(server.detail)}" if server.detail else ""
    return [
        f"Server {server.name}, {server.state}, {plural(len(server.tools), 'tool')}{detail}.",
        *(
            f"  {tool.own_name}{', off' if tool.own_name in server.switched_off else ''}:"
            f" {said(tool.description)[:120]}"
            for tool in server.tools
        ),
    ]


def _end_of(server: Server) -> list[str]:
    try:
        data = server.log_file.read_bytes()[-_LOG_BYTES:]
    except OSError:
        data = b""
    lines = shown(data.decode("utf-8", "replace").rstrip("\n"))[-_LOG_LINES:] if data else []
    return lines or ["The server has written nothing."]
