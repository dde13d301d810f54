"""One configured MCP server: its state, and its offers."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import TYPE_CHECKING, TypeVar

from tui.core.dataclass import dataclass, field
from tui.core.formatting import plural
from tui.tools.mcp.calls import Calls
from tui.tools.mcp.catalogue import (
    McpPrompt,
    McpResource,
    list_prompts,
    list_resources,
    list_templates,
    list_tools,
)
from tui.tools.mcp.connection import ServerLink, ServerState, error_line
from tui.tools.mcp.endpoint import Endpoint
from tui.tools.mcp.open_call import OpenCalls
from tui.tools.mcp.tool import McpTool

if TYPE_CHECKING:
    from mcp import Client

    from tui.tools.mcp.oauth import OpenPage
    from tui.tools.mcp.redirect import Paste
    from tui.tools.mcp.token_store import TokenWatch

log = logging.getLogger(__name__)

_Listed = TypeVar("_Listed")


@dataclass(eq=False)
class Server(Endpoint):
    """`detail` is its name and version when ready, the reason when failed.

    `tools` is what it offers, also while it is started again after it died; the model does not get
    those in `switched_off`, and `left_out` says which others it cannot get, and why.
    `templates` are patterns of URIs that can be read beside the listed `resources`.
    """

    state: ServerState = "off"
    detail: str = ""
    tools: tuple[McpTool, ...] = ()
    resources: tuple[McpResource, ...] = ()
    templates: tuple[McpResource, ...] = ()
    prompts: tuple[McpPrompt, ...] = ()
    left_out: str = ""
    switched_off: set[str] = field(default_factory=set[str])
    connection: ServerLink = field(init=False)
    calls: Calls = field(init=False)

    def __post_init__(self) -> None:
        open_calls = OpenCalls(self.name)
        self.connection = ServerLink(self, self, open_calls)
        self.calls = Calls(self.name, self.connection, open_calls)

    @property
    def has_tokens(self) -> bool:
        """True if it is reached with the tokens of a sign-in."""
        return self.connection.has_tokens

    @property
    def offers(self) -> str:
        """Its offers beside tools, and how the person names them; "" for nothing."""
        parts: list[str] = []
        if self.resources:
            parts.append(f"{plural(len(self.resources), 'resource')} (@{self.name}:…)")
        if self.prompts:
            parts.append(f"{plural(len(self.prompts), 'prompt')} (/mcp__{self.name}__…)")
        return ", ".join(parts)

    async def stop(self) -> None:
        """Stop it, and forget what it offers. Returns when its process is gone."""
        await self.connection.stop()
        self.tools, self.resources, self.templates, self.prompts = (), (), (), ()

    async def restart(self) -> None:
        """Stop it and begin to start it. Its tools stay meanwhile."""
        tools = self.tools
        await self.stop()
        self.tools = tools
        self.connection.start()

    async def sign_in(self, open_page: OpenPage, paste: Paste | None = None) -> None:
        """Let the person sign in, then begin to start it again. Raises ToolError."""
        from tui.tools.mcp import oauth  # noqa: PLC0415 - it loads the SDK

        await oauth.sign_in(self.sign_in_place, open_page, paste)
        await self.restart()

    def watch_tokens(self) -> TokenWatch:
        """Return what notices that another program signs in. Blocks; raises ToolError."""
        from tui.tools.mcp.token_store import TokenWatch  # noqa: PLC0415 - it loads the SDK

        return TokenWatch(self.sign_in_place)

    async def sign_out(self) -> None:
        """Forget the tokens of the sign-in, then begin to start it again. Raises a
        HoldfastError."""
        from tui.tools.mcp import oauth  # noqa: PLC0415 - as above

        await oauth.sign_out(self.sign_in_place)
        await self.restart()

    def set_state(self, state: ServerState, detail: str) -> None:
        """Take over the connection's state. A server that failed as it was started has no tools."""
        if state == "failed" and self.state == "starting":
            self.tools = ()
        self.state, self.detail = state, detail

    async def list_offers(self, client: Client) -> None:
        """List what it offers. One that cannot list its resources or prompts has none."""
        self.tools, self.left_out = await list_tools(
            client, self.name, self.config.tools, self.calls
        )
        self.calls.promised = {
            tool.own_name: tool.output_schema
            for tool in self.tools
            if tool.output_schema is not None
        }
        known = client.server_capabilities
        if known.resources:
            self.resources = await self._listed(list_resources(client), self.resources)
            self.templates = await self._listed(list_templates(client), self.templates)
        if known.prompts:
            self.prompts = await self._listed(list_prompts(client), self.prompts)

    async def _listed(
        self, listing: Awaitable[list[_Listed]], before: tuple[_Listed, ...]
    ) -> tuple[_Listed, ...]:
        try:
            return tuple(await listing)
        except Exception as error:  # noqa: BLE001 - its tools work all the same
            log.warning("the MCP server %s: %s", self.name, error_line(error))
            return before
