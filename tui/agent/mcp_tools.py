"""The tools of MCP servers as one agent has them: they join and leave, with the reasons in words.

A change of the tools is a change of the cached prefix, so it happens between requests only, and
only where something really changed: a server that died keeps its tools, and is started again by
the next call of one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, cast

from tui.agent.agent_context import AgentContext
from tui.agent.request.state import RequestState
from tui.core.dataclass import dataclass, field
from tui.core.facts import Notice, ToolsAwaited, ToolsChanged, ToolsSwitched
from tui.core.formatting import plural, tokens
from tui.core.messages import CALL_TOOL
from tui.tokens import estimate
from tui.tools.base import Tool

if TYPE_CHECKING:
    from tui.tools.mcp import Server, Servers
    from tui.tools.mcp.tool import McpTool

SEARCH_TOOLS: Final = ("search_tools", CALL_TOOL)
"""The tools that find and call those that no request lists."""


@dataclass
class McpTools:
    """The tools of MCP servers among those of one agent."""

    ctx: AgentContext
    requests: RequestState
    _offered: dict[str, dict[str, McpTool]] = field(default_factory=dict[str, "dict[str, McpTool]"])
    _direct: set[str] = field(default_factory=set[str])
    """Servers whose tools stand in the requests: that stays so."""
    _searched: set[str] = field(default_factory=set[str])
    """Those whose tools are found by search."""
    _waited: bool = False
    _complained: dict[str, str] = field(default_factory=dict[str, str])

    def begin(self) -> None:
        """Begin to start the servers; what an earlier run switched off stays off."""
        if self.ctx.toolbox.servers is None:
            return
        for record in reversed(self.ctx.records):
            if record.type == "mcp":
                self._switch_off(record.data.get("off"))
                break
        self.ctx.toolbox.servers.start()

    def switch(self, server: Server, tool: str, *, on: bool) -> None:
        """Offer a tool of a server to the model, or keep it from it, in this session."""
        (server.switched_off.discard if on else server.switched_off.add)(tool)
        servers = self.ctx.toolbox.servers.all if self.ctx.toolbox.servers else ()
        off = {one.name: sorted(one.switched_off) for one in servers if one.switched_off}
        self.ctx.record(ToolsSwitched(off))

    async def before_request(self) -> None:
        """Take over what changed. The first time, wait a little for what is still starting."""
        if self.ctx.toolbox.servers is None:
            return
        first = not self._waited
        if first:
            self._waited = True
            await self._wait(self.ctx.toolbox.servers)
        for server in self.ctx.toolbox.servers.all:
            self._complain(server)
        self._take(self.ctx.toolbox.servers, first=first)

    def is_searched(self, tool: str) -> bool:
        """True if a tool is one that the model finds by search, if it is offered at all."""
        servers = self.ctx.toolbox.servers.all if self.ctx.toolbox.servers else ()
        owner = next((one.name for one in servers if tool in {t.name for t in one.tools}), "")
        return tool in self.ctx.toolbox.deferred or owner in self._searched

    async def close(self) -> None:
        """Leave the servers, unless they are shared."""
        if self.ctx.toolbox.servers is not None and not self.ctx.toolbox.servers_shared:
            await self.ctx.toolbox.servers.close()

    def _switch_off(self, off: object) -> None:
        named = cast("dict[str, object]", off) if isinstance(off, dict) else {}
        for server in self.ctx.toolbox.servers.all if self.ctx.toolbox.servers else ():
            names = named.get(server.name)
            if isinstance(names, list):
                server.switched_off.update(map(str, cast("list[object]", names)))

    async def _wait(self, servers: Servers) -> None:
        starting = tuple(one.name for one in servers.all if one.state == "starting")
        if not starting:
            return
        self.ctx.publish(ToolsAwaited(starting, servers.patience_s))
        settled = asyncio.ensure_future(servers.settled())
        patience = asyncio.ensure_future(self.ctx.clock.sleep(servers.patience_s))
        try:
            await asyncio.wait({settled, patience}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            settled.cancel()
            patience.cancel()

    def _complain(self, server: Server) -> None:
        """Say once that a server does not work, and that it is late."""
        if server.state == "failed":
            text = (
                f"MCP server {server.name} failed: {server.detail}. Restart it with /mcp; to work "
                "without any: holdfast --bare."
            )
        elif server.state == "needs sign-in":
            text = f"MCP server {server.name} needs you to sign in: use /mcp."
        elif server.state == "starting" and not server.tools:
            text = f"MCP server {server.name} is still starting. Its tools join once it is ready."
        elif server.state == "ready" and server.left_out:
            text = f"MCP server {server.name}: {server.left_out}."
        else:
            text = ""
        if text and self._complained.get(server.name) != text:
            self.ctx.publish(Notice(text))
        self._complained[server.name] = text

    def _take(self, servers: Servers, *, first: bool) -> None:
        now: dict[str, dict[str, McpTool]] = {server.name: {} for server in servers.all}
        for tool in servers.tools().values():
            if self.ctx.toolbox.may_have(tool.name):
                now[tool.server][tool.name] = tool
        before, self._offered = self._offered, now
        changes = [
            change
            for server in servers.all
            if (change := _change(server, before.get(server.name, {}), now[server.name]))
        ]
        if not changes:
            return
        direct = self._place(now)
        # tools that stay are exchanged, too: their schemas may differ
        old_names = {name for tools in before.values() for name in tools}
        for name in old_names:
            self.ctx.toolbox.tools.pop(name, None)
        fresh = {name: tool for tools in now.values() for name, tool in tools.items()}
        listed: dict[str, Tool[Any]] = {name: fresh[name] for name in fresh if name in direct}
        self.ctx.toolbox.deferred = {name: fresh[name] for name in fresh if name not in direct}
        # once the search is in the frame it stays, so that the frame does not change
        if self.ctx.toolbox.deferred or SEARCH_TOOLS[0] in self.ctx.toolbox.tools:
            listed |= {
                name: self.ctx.toolbox.tools.get(name, tool) for name, tool in self._search.items()
            }
        self.ctx.toolbox.tools.update(listed)
        self.requests.exchange(old_names, listed.values())
        summary = " and ".join(change.text.rstrip(".") for change in changes)
        self.ctx.debug(f"[DEBUG] Tools: {summary}")
        for change in changes:
            if not first:
                self.ctx.publish(change)

    @cached_property
    def _search(self) -> dict[str, Tool[Any]]:
        """The tools that find and call the others."""
        from tui.tools.mcp.call_tool import CallTool  # noqa: PLC0415 - if there are any
        from tui.tools.mcp.search_tools import SearchTools  # noqa: PLC0415 - as above

        search = SearchTools(lambda: cast("dict[str, McpTool]", self.ctx.toolbox.deferred))
        return {search.name: search, CallTool.name: CallTool()}

    def _place(self, now: Mapping[str, Mapping[str, McpTool]]) -> frozenset[str]:
        """The tools that stand in the requests. Where a server was put once it stays, so that
        requests only grow; its tools beyond a number are found by search all the same."""
        from tui.tools.mcp.tool_search import DIRECT_MAX, chosen  # noqa: PLC0415 - as above

        framed = self.requests.frame.known_tools()
        fresh = {
            name: tuple(tools.values())
            for name, tools in now.items()
            if tools and name not in self._searched
        }
        weights = {
            name: sum(estimate.json_weight(tool.schema()) for tool in tools)
            for name, tools in fresh.items()
        }
        # servers that are in the frame stay in it: moving them out would break the cache
        sent = {name for name in fresh if not framed.isdisjoint(now[name])}
        budget = self.ctx.config.tool_search_tokens
        self._direct |= chosen(fresh, weights, budget, self._direct | sent)
        for name in fresh.keys() - self._direct:
            self._searched.add(name)
            text = (
                f"MCP server {name}: its {plural(len(fresh[name]), 'tool')} would take"
                f" {tokens(round(weights[name]))} tokens in every request, so the model finds them"
                " by search (tool_search_tokens)."
            )
            self.ctx.publish(Notice(text))
        return frozenset(
            tool
            for name in self._direct & now.keys()
            for tool in [
                # sent tools come first, so that the limit drops only new ones
                *(one for one in now[name] if one in framed),
                *(one for one in now[name] if one not in framed),
            ][:DIRECT_MAX]
        )


def _change(
    server: Server, before: Mapping[str, Tool[Any]], after: Mapping[str, Tool[Any]]
) -> ToolsChanged | None:
    """Compare a server's tools; None where its model-facing schemas are the same."""
    joined, left = after.keys() - before.keys(), before.keys() - after.keys()
    changed = {
        name
        for name in before.keys() & after.keys()
        if before[name] is not after[name] and before[name].schema() != after[name].schema()
    }
    if not (joined or left or changed):
        return None
    parts = [
        f"{plural(len(names), 'tool')} {word}"
        for names, word in ((joined, "joined"), (left, "left"), (changed, "changed"))
        if names
    ]
    why = f" ({server.detail})" if left and server.state == "failed" else ""
    text = f"MCP server {server.name}: {', '.join(parts)}{why}."
    return ToolsChanged(server.name, _names(joined), _names(left), text)


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names))
