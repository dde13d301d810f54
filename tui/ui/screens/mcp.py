"""/mcp: the MCP servers, their state, and which of their tools the model gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from rich.cells import cell_len, set_cell_size
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from tui.app.dialog_data import YesNoQuestion
from tui.app.mcp_offers import tools_of
from tui.core.errors import HoldfastError
from tui.core.formatting import plural
from tui.core.paths import shorten
from tui.core.text_cleaning import clean, one_line
from tui.ui.screens.table_screen import TableDialog, whole_words
from tui.ui.widgets.dialog import SCROLL
from tui.ui.widgets.keys import MCP_KEYS, Keys, bindings
from tui.ui.widgets.row_list import Part, RowList

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.core.facts import Fact
    from tui.tools.mcp import Server
    from tui.tools.mcp.tool import McpTool

LOOK_S: Final = 0.5
"""Seconds between looks at the servers."""
LOG_BYTES: Final = 65_536
"""Bytes shown from the end of a log."""

_MARKS: Final = {
    "ready": ("●", "success"),
    "starting": ("◌", "warning"),
    "failed": ("✗", "error"),
    "needs sign-in": ("◍", "warning"),
    "off": ("○", "muted"),
}
_SHORT: Final = {"needs sign-in": "sign in"}
"""Short names for states whose name is too long for their column."""
_OF_SERVER: Final = (("enter", "tools"), ("r", "restart"), ("o", "log"))
_OF_TOOL: Final = (("space", "on, off"), *_OF_SERVER[1:])
_SIGN_IN: Final = (("l", "sign in"),)
_SIGN_OUT: Final = (("L", "sign out"),)
_RELOAD: Final = (("n", "now"), ("w", "later"))
_NONE: Final = """\
No MCP servers configured. Add one with holdfast mcp add, or to config.toml:

    [mcp.time]
    command = ["uvx", "mcp-server-time"]

    [mcp.docs]
    url = "http://127.0.0.1:3911/mcp"

They start with your next session. A folder's own config needs trust first."""


class McpScreen(TableDialog[None]):
    """A row for each server, and below an opened one a row for each of its tools.

    `tell` gets the events of changes made here.
    """

    CSS_PATH = "mcp.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(MCP_KEYS),
        Binding("escape,q,ctrl+c", "close", "close", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#servers"

    def __init__(self, agent: Agent, tell: Callable[[Fact], None]) -> None:
        super().__init__(classes="-table")
        self._agent, self._tell = agent, tell
        self._opened: set[str] = set()
        self._shown: list[tuple[Server, McpTool | None]] = []
        self._drawn: object = None

    def compose(self) -> ComposeResult:
        with self.framed(Vertical(), "MCP servers"):
            yield RowList(id="servers")
            yield Static(_NONE, id="none", markup=False)
            yield Static("", id="about", markup=False)
            with VerticalScroll(id="log", can_focus=True):
                yield Static(id="log-text", markup=False)

    def on_mount(self) -> None:
        self.set_class(not self._agent.mcp.all, "-none")
        self.refresh_servers()
        self.set_interval(LOOK_S, self.follow)

    def follow(self) -> None:
        """Draw the servers again if anything shown of them has changed."""
        if self._state() != self._drawn:
            self.refresh_servers()

    def _state(self) -> object:
        """Return everything that is drawn: equal states look the same."""
        tool = self._row[1] if self._row else None
        price = self._agent.mcp.price_of_switch(tool) if tool else None
        servers = [
            (one.name, one.state, one.detail, one.left_out, *one.tools, frozenset(one.switched_off))
            for one in self._agent.mcp.all
        ]
        return servers, price, [self._agent.mcp.searched_tools(one) for one in self._agent.mcp.all]

    def refresh_servers(self) -> None:
        """Show the current state of the servers."""
        chosen = self._shown[self.rows.cursor] if self._shown else None
        self._shown = []
        for server in self._agent.mcp.all:
            self._shown.append((server, None))
            if server.name in self._opened:
                self._shown += [(server, tool) for tool in server.tools]
        places = {_key(row): place for place, row in enumerate(self._shown)}
        cursor = self.rows.cursor
        if chosen is not None:
            cursor = places.get(_key(chosen), places.get(_key((chosen[0], None)), cursor))
        self.rows.show(len(self._shown), self._draw, cursor=cursor)
        self._explain()
        self._drawn = self._state()

    @work(group="restart")
    async def action_restart(self) -> None:
        """Stop the server under the cursor and start it again."""
        if (row := self._row) is not None:
            await row[0].restart()
            self.refresh_servers()

    def action_sign_in(self) -> None:
        """Sign in to the server under the cursor."""
        from tui.ui.screens.mcp_sign_in import McpSignInDialog  # noqa: PLC0415 - on demand

        if (row := self._row) is not None and row[0].config.url:
            dialog = McpSignInDialog(row[0])
            self.app.push_screen(dialog, lambda _: self.refresh_servers())  # pyright: ignore[reportUnknownMemberType]

    @work(group="sign out")
    async def action_sign_out(self) -> None:
        """Forget the sign-in to the server under the cursor, if the person confirms."""
        from tui.ui.widgets.questions import Confirmation  # noqa: PLC0415 - on demand

        row = self._row
        if row is None or not (server := row[0]).has_tokens:
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
            self.refresh_servers()

    def action_switch(self) -> None:
        """Switch the tool under the cursor off or on; open or close a server."""
        if self._row is None:
            return
        server, tool = self._row
        if tool is None:
            self._opened ^= {server.name}
        else:
            on_ = tool.own_name in server.switched_off
            for event in self._agent.mcp.switch_tool(server, tool.own_name, on=on_):
                self._tell(event)
        self.refresh_servers()

    def action_reload(self, when: str) -> None:
        """Switch the tool under the cursor and rebuild the frame of the requests for it, now or, to
        "wait", with the next break."""
        tool = self._row[1] if self._row else None
        if tool is None or not self._agent.mcp.price_of_switch(tool).reload:
            return
        self.action_switch()
        self._agent.context.reload(wait=when == "wait")

    @work(group="log", exclusive=True)
    async def action_log(self) -> None:
        """Show what the server under the cursor wrote to its standard error."""
        if (row := self._row) is None:
            return
        server = row[0]
        self.put("log-text", Content(clean(await server.log_end(LOG_BYTES))))
        self.add_class("-log")
        pane = self.query_one("#log", VerticalScroll)
        pane.focus()
        pane.scroll_end(animate=False)
        self.query_one("#box").border_title = Content(f"MCP servers · {shorten(server.log_file)}")
        self.show_keys(SCROLL, ("esc", "back"))

    def action_close(self) -> None:
        if self.has_class("-log"):
            self.remove_class("-log")
            self.query_one("#box").border_title = Content("MCP servers")
            self.rows.focus()
            self._explain()
        else:
            self.dismiss()

    def row_chosen(self, index: int) -> None:  # noqa: ARG002 - the cursor is there
        self.action_switch()

    def row_moved(self, index: int) -> None:  # noqa: ARG002
        self._explain()

    @property
    def _row(self) -> tuple[Server, McpTool | None] | None:
        return self._shown[self.rows.cursor] if self._shown else None

    def _draw(self, index: int, width: int) -> Sequence[Part]:
        server, tool = self._shown[index]
        # A tool's row; the rest is for servers.
        if tool is not None:
            off = tool.own_name in server.switched_off
            mark: Part = ("    ○ ", "muted") if off else ("    ● ", "success")
            column = max(cell_len(one_line(other.own_name)) for other in server.tools)
            name = set_cell_size(one_line(tool.own_name), min(column, width // 2))
            room = width - 8 - cell_len(name)
            about = whole_words(one_line(tool.description[:width]), max(8, room))
            return [mark, (name, "muted" if off else "text"), (f"  {about}", "muted")]
        glyph, look = _MARKS[server.state]
        fold = "▾" if server.name in self._opened else "▸"
        tools = tools_of(self._agent, server)
        names = (cell_len(one_line(other.name)) for other in self._agent.mcp.all)
        column = max(10, min(max(names), width // 3))
        name = Content(one_line(server.name)).truncate(column, ellipsis=True, pad=True)
        room = width - 4 - column - 11 - cell_len(tools) - 2
        detail = whole_words(one_line(server.detail[:width]), room) if room >= 8 else ""
        return [
            (f"{fold} ", "muted"),
            (f"{glyph} ", look),
            (f"{name} ", "text"),
            (f"{_SHORT.get(server.state, server.state):<9}", look),
            (f" {tools}", "text"),
            (f"  {detail}", "muted"),
        ]

    def _explain(self) -> None:
        """Show the details of the row under the cursor, and the keys."""
        row, text = self._row, ""
        reload: Keys = ()
        if row is not None:
            server, tool = row
            if tool is not None:
                off = tool.own_name in server.switched_off
                state = "hidden from the model in this session" if off else "available to the model"
                price = self._agent.mcp.price_of_switch(tool)
                costs = (
                    f"\nn switches it in the cached part too: {price.reload}."
                    if price.reload
                    else ""
                )
                does = f"space {'offers' if off else 'hides'} it: {price.text}."
                text = f"{tool.name}: {state}\n{does}{costs}\n{tool.description}"
                reload = _RELOAD if price.reload else ()
            else:
                where = server.address
                more = f"\n{server.left_out}" if server.left_out else ""
                if found_count := self._agent.mcp.searched_tools(server):
                    more += f"\nThe model finds {plural(found_count, 'tool')} of it by search."
                state = server.detail or server.state
                more += f"\n{offers}" if (offers := server.offers) else ""
                text = f"{where}\n{state}{more}\nlog: {shorten(server.log_file)}"
        self.put("about", Content(clean(text)))
        if not self.has_class("-log"):
            keys = () if row is None else _OF_SERVER if row[1] is None else (*_OF_TOOL, *reload)
            sign_in = _SIGN_IN if row is not None and row[0].state == "needs sign-in" else ()
            sign_in = _SIGN_OUT if row is not None and row[0].has_tokens else sign_in
            self.show_keys(*sign_in, *keys, ("esc", "close"))


def _key(row: tuple[Server, McpTool | None]) -> tuple[str, str]:
    return row[0].name, row[1].name if row[1] else ""
