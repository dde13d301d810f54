"""Tools of configured MCP servers. The SDK is imported when the first server is started."""

from tui.tools.mcp.servers import Server, Servers, State

__all__ = ["Server", "Servers", "State"]
