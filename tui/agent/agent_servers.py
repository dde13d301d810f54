"""The MCP servers of one agent, for its front end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tui.agent.agent_context import AgentContext
from tui.agent.mcp_tools import McpTools
from tui.agent.request.break_cost import SwitchPrice, exchange_cost
from tui.agent.request.form import target_of
from tui.agent.request.state import RequestState
from tui.core.dataclass import dataclass, field
from tui.core.fact_words import price_before
from tui.core.facts import Fact
from tui.core.formatting import tokens
from tui.tokens import estimate
from tui.tools.base import Tool

if TYPE_CHECKING:
    from tui.tools.mcp import Server


@dataclass(frozen=True, slots=True)
class AgentServers:
    """Shows the MCP servers that are configured, and switches their tools."""

    _ctx: AgentContext
    _requests: RequestState
    _mcp: McpTools
    _prices: dict[str, tuple[object, SwitchPrice]] = field(
        default_factory=dict[str, tuple[object, SwitchPrice]], init=False
    )
    """Prices of switching tools, by name, with what they depend on."""

    @property
    def all(self) -> Sequence[Server]:
        servers = self._ctx.toolbox.servers
        return servers.all if servers else ()

    def searched_tools(self, server: Server) -> int:
        """Number of a server's tools that the model finds by search only."""
        return sum(tool.name in self._ctx.toolbox.deferred for tool in server.tools)

    def switch_tool(self, server: Server, tool: str, *, on: bool) -> Sequence[Fact]:
        """Offer a server's tool to the model, or keep it from it, from the next request on."""
        self._mcp.switch(server, tool, on=on)
        return self._ctx.events.take()

    async def price_of_switch(self, tool: Tool[Any]) -> SwitchPrice:
        """The price of offering a tool to the model, or of keeping it from it."""
        if self._mcp.is_searched(tool.name):
            return SwitchPrice("the model finds it by search only, at no cost")
        if not self._requests.frame.record:
            return SwitchPrice("applies from the first request on")
        framed = tool.name in {str(one.get("name")) for one in self._requests.frame.current.tools}
        if tool.name not in self._ctx.toolbox.tools and framed:
            return SwitchPrice("back again, at no cost")
        key = self._key(tool)
        if (known := self._prices.get(tool.name)) is None or known[0] != key:
            known = self._prices[tool.name] = key, await self._price(tool, framed=framed)
        return known[1]

    def _key(self, tool: Tool[Any]) -> object:
        """All that the price of a switch depends on; while it stays, the price does too."""
        ctx, now = self._ctx, self._ctx.clock.now().timestamp()
        warm = self._requests.sent.cached(ctx.link.model).warm(now)
        last = ctx.records[-1].id if ctx.records else ""
        return last, ctx.link.model.id, ctx.link.server, warm, tool.name in ctx.toolbox.tools

    async def _price(self, tool: Tool[Any], *, framed: bool) -> SwitchPrice:
        size = round(estimate.json_weight(tool.schema()) * self._ctx.ledger.ratio)
        per_request = f"{tokens(size)} tokens per request"
        if tool.name in self._ctx.toolbox.tools:
            if not framed:
                return SwitchPrice("calls to it are refused, nothing more is sent")
            again = await exchange_cost(self._requests, tool, joins=False)
            leaves = f"−{per_request}; {price_before(again)}"
            return SwitchPrice("calls to it are refused, at no cost", leaves)
        if target_of(self._requests, self._ctx.link.model).form.tool_additions:
            return SwitchPrice(f"added at the end: +{size:,} tokens, nothing is cached again")
        again = await exchange_cost(self._requests, tool, joins=True)
        return SwitchPrice(
            "waits until the cache restarts", f"+{per_request}; {price_before(again)}"
        )
