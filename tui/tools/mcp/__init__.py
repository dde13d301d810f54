"""Tools of configured MCP servers. The SDK is imported when the first server is started."""

from tui.tools.mcp.servers import PATIENCE_S, SETTLED_S, Server, Servers, ServerState

__all__ = ["PATIENCE_S", "SETTLED_S", "Server", "ServerState", "Servers"]
