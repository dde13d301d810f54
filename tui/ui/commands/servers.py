"""Commands on the MCP servers."""

from __future__ import annotations

from tui.ui.session_flow.command_context import Desk


def mcp(desk: Desk, _: str) -> None:
    from tui.ui.screens.mcp import McpScreen  # noqa: PLC0415 - on demand

    if desk.bridge.agent is None:
        desk.bridge.chat.notice.say("No session is open yet.")
    else:
        desk.app.push_screen(McpScreen(desk.bridge.agent))
