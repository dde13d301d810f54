"""The MCP servers of a session.

If a server cannot be started, or dies, only its tools are missing: its `detail` says why, and it
is started again when one of its tools is called or the person asks for it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui.core.config import McpServer
from tui.tools.mcp.endpoint import ServerSandbox
from tui.tools.mcp.server import Server
from tui.tools.mcp.tool import McpTool

if TYPE_CHECKING:
    from tui.tools.mcp.token_store import TokenVault

PATIENCE_S: Final = 10.0
"""Seconds that the first request of a person waits for servers that are still starting."""


class Servers:
    """All configured servers. `tools()` is what the model may use now.

    `patience_s` is how long the first request waits for those that are still starting.
    """

    def __init__(
        self,
        configured: Mapping[str, McpServer],
        *,
        cwd: Path,
        log_folder: Path,
        patience_s: float = PATIENCE_S,
        environment: Mapping[str, str] | None = None,
        sandbox: ServerSandbox | None = None,
        vault: TokenVault | None = None,
        cache: Path | None = None,
        session: str = "",
    ) -> None:
        self.patience_s = patience_s
        self._sandbox = sandbox
        self.all = tuple(
            Server(
                name,
                config,
                cwd,
                log_folder / _log_name(name),
                environment,
                sandbox,
                vault,
                cache,
                session,
            )
            for name, config in sorted(configured.items())
        )

    def start(self) -> None:
        """Begin to start all of them."""
        for server in self.all:
            server.connection.start()

    async def settled(self) -> None:
        """Wait until each is ready or has failed."""
        await asyncio.gather(*(server.connection.settled() for server in self.all))

    def tools(self) -> dict[str, McpTool]:
        """The tools that are switched on, by server and name: the order is a steady one.

        Those of a server that died stay: calling one starts it again.
        """
        return {
            tool.name: tool
            for server in self.all
            for tool in server.tools
            if tool.own_name not in server.switched_off
        }

    async def close(self) -> None:
        """Leave all of them."""
        await asyncio.gather(*(server.stop() for server in self.all))
        if self._sandbox is not None:
            await self._sandbox.close()


def _log_name(server: str) -> str:
    return f"mcp-{re.sub(r'[^A-Za-z0-9_.-]', '_', server)[:100]}.log"
