"""The offers of a session's MCP servers to the person: prompts as commands, and resources."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tui.core.formatting import plural

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.app.conversation import Conversation
    from tui.tools.mcp import McpPrompt, Server


def tools_of(agent: Agent, server: Server) -> str:
    """Say how many tools a server has, how many are off, and how many the model finds by search."""
    off = sum(tool.own_name in server.switched_off for tool in server.tools)
    searched, count = agent.mcp.searched_tools(server), len(server.tools)
    by_search = "by search" if searched == count - off else f"{searched:,} by search"
    parts = [plural(count, "tool"), f"{off:,} off" if off else "", by_search if searched else ""]
    return ", ".join(filter(None, parts))


def prompts_of(conversation: Conversation) -> dict[str, tuple[Server, McpPrompt]]:
    """The prompts by the name of their command, `mcp__server__prompt`."""
    servers = conversation.agent.mcp.all if conversation.agent else ()
    if not servers:
        return {}
    from tui.tools.mcp.tool import tool_name  # noqa: PLC0415 - if there are any

    return {
        tool_name(server.name, prompt.name).lower(): (server, prompt)
        for server in servers
        for prompt in server.prompts
    }


async def all_known(agent: Agent) -> None:
    """Wait until every server has said what it offers, or has failed."""
    await asyncio.gather(*(server.connection.settled() for server in agent.mcp.all))


def may_come(conversation: Conversation, name: str) -> bool:
    """True if a command may be a prompt of a server that is still being started."""
    servers = conversation.agent.mcp.all if conversation.agent else ()
    return name.lower().startswith("mcp__") and any(one.state == "starting" for one in servers)


def resources_of(conversation: Conversation) -> list[str]:
    """The resources as a prompt names them, `server:uri`; what has blanks cannot be named."""
    servers = conversation.agent.mcp.all if conversation.agent else ()
    return [
        f"{server.name}:{resource.uri}"
        for server in servers
        for resource in server.resources
        if not any(letter.isspace() for letter in f"{server.name}{resource.uri}")
    ]
