"""Tools of configured MCP servers. The SDK is imported when the first server is started."""

from tui.tools.mcp.catalogue import McpPrompt, McpResource
from tui.tools.mcp.connection import SETTLED_S, ServerState
from tui.tools.mcp.endpoint import address_of
from tui.tools.mcp.server import Server
from tui.tools.mcp.servers import PATIENCE_S, Servers

__all__ = [
    "PATIENCE_S",
    "SETTLED_S",
    "McpPrompt",
    "McpResource",
    "Server",
    "ServerState",
    "Servers",
    "address_of",
]
