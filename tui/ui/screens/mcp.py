"""/mcp: the MCP servers, their state, and which of their tools the model gets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from textual import work
from textual.binding import BindingType
from textual.content import Content

from tui.agent.request.break_cost import SwitchPrice
from tui.app.dialog_data import YesNoQuestion
from tui.app.mcp_offers import tools_of
from tui.app.reports import Row
from tui.core.errors import HoldfastError
from tui.core.paths import shorten
from tui.core.text_cleaning import clean, one_line
from tui.ui.screens.panel import Panel
from tui.ui.screens.read_screen import ReadScreen
from tui.ui.widgets.dialog import Key
from tui.ui.widgets.keys import MCP_KEYS, bindings

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.core.facts import Fact
    from tui.tools.mcp import Server
    from tui.tools.mcp.tool import McpTool

LOG_BYTES: Final = 65_536
"""Bytes shown from the end of a log."""

_MARKS: Final = {
    "ready": ("●", "success"),
    "starting": ("◌", "warning"),
    "failed": ("✗", "error"),
    "needs sign-in": ("◍", "warning"),
    "off": ("○", "muted"),
}
_RELOAD: Final = (("n", "now"), ("w", "later"))


class McpScreen(Panel[None]):
    """A row for each server, and below an opened one a row for each of its tools.

    `tell` gets the events of changes made here.
    """

    NAME = "MCP servers"
    NONE = (
        "MCP servers give the model more tools. Add one:\n"
        "holdfast mcp add time -- uvx mcp-server-time"
    )
    KEYS: ClassVar[Mapping[str, str]] = {
        "sign in": "l",
        "sign out": "L",
        "tools": "enter",
        "hide": "space",
        "offer": "space",
        "restart": "r",
        "log": "o",
        "copy": "y",
    }
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(MCP_KEYS)]

    def __init__(self, agent: Agent, tell: Callable[[Fact], None]) -> None:
        super().__init__()
        self._agent, self._tell = agent, tell
        self._opened: set[str] = set()
        self._price: tuple[str, SwitchPrice] = "", SwitchPrice("…")
        """The price of switching the tool of a row, by its key."""

    def rows_now(self) -> Sequence[Row]:
        rows: list[Row] = []
        for server in self._agent.mcp.all:
            opened = server.name in self._opened
            rows.append(server_row(self._agent, server, opened=opened))
            rows += [tool_row(server, tool) for tool in server.tools if opened]
        return rows

    def about(self, row: Row) -> Sequence[str]:
        """Explain a tool with the price of switching it, which is worked out for the one under the
        cursor only."""
        if not row.depth:
            return row.about
        price, does = self._price_of(row), "offer" in row.actions
        now = [f"n switches it in the cached part too: {price.reload}."]
        first, *rest = row.about
        does_what = f"space {'offers' if does else 'hides'} it: {price.text}."
        return [first, does_what, *(now if price.reload else []), *rest]

    def keys(self, row: Row) -> Iterable[Key]:
        reload = row.depth and self._price_of(row).reload
        return [*super().keys(row), *(_RELOAD if reload else ())]

    def _price_of(self, row: Row) -> SwitchPrice:
        return self._price[1] if self._price[0] == row.key else SwitchPrice("…")

    def explain(self) -> None:
        super().explain()
        self.work_out()

    def follow(self) -> None:
        super().follow()
        self.work_out()

    @work(group="price", exclusive=True)
    async def work_out(self) -> None:
        """Work out the price of switching the tool under the cursor, and show it."""
        row, found = self.row, self._chosen
        if row is None or found is None or found[1] is None:
            return
        price = row.key, await self._agent.mcp.price_of_switch(found[1])
        if price != self._price and row == self.row:
            self._price = price
            super().explain()

    @property
    def _chosen(self) -> tuple[Server, McpTool | None] | None:
        """The server and the tool under the cursor."""
        key = self.row.key if self.row else ""
        for server in self._agent.mcp.all:
            if key == _key(server):
                return server, None
            for tool in server.tools:
                if key == _key(server, tool):
                    return server, tool
        return None

    @work(group="restart")
    async def action_restart(self) -> None:
        """Stop the server under the cursor and start it again."""
        if (found := self._chosen) is not None:
            await found[0].restart()
            self.draw()

    def action_sign_in(self) -> None:
        """Sign in to the server under the cursor."""
        from tui.ui.screens.mcp_sign_in import McpSignInDialog  # noqa: PLC0415 - on demand

        if (found := self._chosen) is not None and found[0].config.url:
            dialog = McpSignInDialog(found[0])
            self.app.push_screen(dialog, lambda _: self.draw())  # pyright: ignore[reportUnknownMemberType]

    @work(group="sign out")
    async def action_sign_out(self) -> None:
        """Forget the sign-in to the server under the cursor, if the person confirms."""
        from tui.ui.widgets.questions import Confirmation  # noqa: PLC0415 - on demand

        found = self._chosen
        if found is None or not (server := found[0]).has_tokens:
            return
        question = YesNoQuestion(
            f"Sign out of {one_line(server.name)}?",
            "Holdfast forgets its tokens and starts the server again. It needs a new sign-in then.",
            yes="Sign out",
            no="Cancel",
        )
        if not await self.app.push_screen_wait(Confirmation(question)):  # pyright: ignore[reportUnknownMemberType]
            return
        try:
            await server.sign_out()
        except HoldfastError as error:
            self.put("about", Content(clean(str(error))))
        else:
            self.draw()

    def action_switch(self) -> None:
        """Switch the tool under the cursor off or on; open or close a server."""
        found = self._chosen
        if found is None:
            return
        server, tool = found
        if tool is None:
            self._opened ^= {server.name}
        else:
            on_ = tool.own_name in server.switched_off
            for event in self._agent.mcp.switch_tool(server, tool.own_name, on=on_):
                self._tell(event)
        self.draw()

    @work(group="reload")
    async def action_reload(self, when: str) -> None:
        """Switch the tool under the cursor and rebuild the frame of the requests for it, now or, to
        "wait", with the next break."""
        found = self._chosen
        tool = found[1] if found else None
        if tool is None or not (await self._agent.mcp.price_of_switch(tool)).reload:
            return
        self.action_switch()
        self._agent.context.reload(wait=when == "wait")

    @work(group="log", exclusive=True)
    async def action_log(self) -> None:
        """Show what the server under the cursor wrote to its standard error."""
        if (found := self._chosen) is not None:
            text = (await found[0].log_end(LOG_BYTES)).rstrip()
            name = shorten(found[0].log_file)
            self.app.push_screen(ReadScreen(name, text, at_end=True))  # pyright: ignore[reportUnknownMemberType]

    def row_chosen(self, index: int) -> None:  # noqa: ARG002 - the cursor is there
        self.action_switch()


def server_row(agent: Agent, server: Server, *, opened: bool) -> Row:
    """Make the row of a server: its state, its tools, and what it says."""
    glyph, look = _MARKS[server.state]
    found = agent.mcp.searched_tools(server)
    by_search = f"The model finds {found} of its tools by search." if found else ""
    about = (
        server.address,
        server.detail or server.state,
        server.left_out,
        by_search,
        server.offers,
        f"log: {shorten(server.log_file)}",
    )
    actions = {"tools", "restart", "log", "copy"}
    actions |= {"sign in"} if server.state == "needs sign-in" else set()
    actions |= {"sign out"} if server.has_tokens else set()
    return Row(
        f"{'▾' if opened else '▸'} {one_line(server.name)}",
        (server.state, tools_of(agent, server), one_line(server.detail)),
        _key(server),
        glyph,
        look,
        tuple(filter(None, about)),
        frozenset(actions),
    )


def tool_row(server: Server, tool: McpTool) -> Row:
    """Make the row of a tool, which may be hidden from the model."""
    off = tool.own_name in server.switched_off
    state = "hidden from the model in this session" if off else "available to the model"
    return Row(
        one_line(tool.own_name),
        (one_line(tool.description),),
        _key(server, tool),
        *(("○", "muted") if off else ("●", "success")),
        (f"{tool.name}: {state}", tool.description),
        frozenset({"offer" if off else "hide", "restart", "log"}),
        depth=1,
        dim=off,
    )


def _key(server: Server, tool: McpTool | None = None) -> str:
    return f"{server.name}\n{tool.name}" if tool else server.name
