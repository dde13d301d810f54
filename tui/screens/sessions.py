"""F3: the sessions of this folder, newest first; typing filters, Enter goes on with one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from tui.clock import Clock
from tui.errors import HoldfastError
from tui.screens.choices import SessionRow
from tui.widgets.figures import age, plural, size
from tui.widgets.plain import one_line
from tui.widgets.rule import PaneRule

_STATES = {
    "ok": ("", ""),
    "interrupted": ("interrupted", "$text-warning"),
    "parked": ("parked", "$text-secondary"),
    "needs_repair": ("needs repair", "$text-error"),
    "unreadable": ("unreadable", "$text-error"),
}
_FIXED = 12 + 10 + 10 + 14
NARROW = 76


def row_line(row: SessionRow, now: datetime, width: int, *, current: bool = False) -> Content:
    """One session in `width` cells: title, age, messages, size, state."""
    state, style = (
        ("open here", "$text-success") if current else _STATES.get(row.state, (row.state, ""))
    )
    when = age(row.updated, now)
    if width < NARROW:
        state = state if width >= 40 else ""
        room = max(8, width - 13 - (len(state) + 2 if state else 0))
        parts = [(f"{when:>12}", "$text-muted"), (f"  {state}" if state else "", style)]
    else:
        room = width - _FIXED
        parts = [
            (f"{when:>12}", "$text-muted"),
            (f"{row.messages:>10,}", "$text-muted"),
            (f"{size(row.size):>10}", "$text-muted"),
            ("  ", ""),
            (f"{state:<12}", style),
        ]
    title = Content.styled(one_line(row.title) or "(no title)", "$foreground")
    return Content.assemble(title.truncate(room, ellipsis=True, pad=True), *parts)


def columns(width: int) -> str:
    """The heading over `row_line`."""
    if width < NARROW:
        return f"{'title':<{max(8, width - 13)}}{'age':>12}"
    return f"{'title':<{width - _FIXED}}{'age':>12}{'messages':>10}{'size':>10}  state"


def matches(row: SessionRow, words: str) -> bool:
    """Whether every word of the filter occurs in the title, the id or the state."""
    text = f"{row.title} {row.id} {row.state}".casefold()
    return all(word in text for word in words.casefold().split())


class SessionsScreen(Screen[SessionRow | None]):
    """Dismissed with the chosen session, or None. `current` is the one that is open."""

    CSS_PATH = "sessions.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f3", "close", "back", show=False),
        Binding("down", "move(1)", show=False),
        Binding("up", "move(-1)", show=False),
        Binding("pagedown", "move(10)", show=False),
        Binding("pageup", "move(-10)", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#filter"

    def __init__(
        self,
        list_sessions: Callable[[], Awaitable[Sequence[SessionRow]]],
        clock: Clock,
        *,
        current: Path | None = None,
    ) -> None:
        super().__init__()
        self._list = list_sessions
        self._clock = clock
        self._current = current
        self._rows: Sequence[SessionRow] = ()
        self._shown: list[SessionRow] = []
        self._loaded = False

    def compose(self) -> ComposeResult:
        yield Static(Content.styled("sessions", "bold $text-primary"), id="title", markup=False)
        with Horizontal(id="filter-row"):
            yield Static("❯", id="caret", markup=False)
            words = Input(placeholder="Type to filter", id="filter")
            words.cursor_blink = False
            yield words
        yield PaneRule()
        yield Static(id="columns", markup=False)
        listing = OptionList(id="list", compact=True)
        listing.can_focus = False
        yield listing
        yield Static("Looking for sessions …", id="empty", markup=False)
        yield PaneRule()
        yield Static(_keys(), id="keys", markup=False)

    def on_mount(self) -> None:
        self.add_class("-empty")
        self.load()

    def on_resize(self) -> None:
        self._draw()

    @work(exclusive=True)
    async def load(self) -> None:
        try:
            self._rows = await self._list()
        except HoldfastError as error:
            self.query_one("#empty", Static).update(Content(str(error)))
            return
        self._loaded = True
        self._draw()

    def action_close(self) -> None:
        words = self.query_one("#filter", Input)
        if words.value:
            words.value = ""
        else:
            self.dismiss(None)

    def action_move(self, rows: int) -> None:
        listing = self.query_one("#list", OptionList)
        if self._shown:
            at = (listing.highlighted or 0) + rows
            listing.highlighted = max(0, min(len(self._shown) - 1, at))

    @on(Input.Changed, "#filter")
    def _filter(self) -> None:
        self._draw()

    @on(Input.Submitted, "#filter")
    def _enter(self) -> None:
        at = self.query_one("#list", OptionList).highlighted
        if at is not None and at < len(self._shown):
            self.dismiss(self._shown[at])

    @on(OptionList.OptionSelected, "#list")
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._shown[event.option_index])

    def _draw(self) -> None:
        if not self._loaded:
            return
        words = self.query_one("#filter", Input).value
        self._shown = [row for row in self._rows if matches(row, words)]
        width, now = max(20, self.size.width - 3), self._clock.now()
        listing = self.query_one("#list", OptionList)
        kept = listing.highlighted or 0
        listing.clear_options()
        listing.add_options(
            Option(row_line(row, now, width, current=row.path == self._current))
            for row in self._shown
        )
        self.set_class(not self._shown, "-empty")
        if self._shown:
            listing.highlighted = min(kept, len(self._shown) - 1)
        self.query_one("#columns", Static).update(Content(columns(width)))
        self.query_one("#empty", Static).update(Content(self._nothing(words)))
        self.query_one("#title", Static).update(
            Content.assemble(
                ("sessions", "bold $text-primary"),
                (f"   {plural(len(self._rows), 'session')} of this folder", "$text-muted"),
            )
        )

    def _nothing(self, words: str) -> str:
        if words:
            return f"No session matches “{words}”.\nEsc clears the filter."
        return "No sessions here yet.\nEvery conversation in this folder is kept and listed here."


def _keys() -> Content:
    keys = (("enter", "go on with it"), ("↑ ↓", "choose"), ("esc", "back"))
    return Content("   ").join(
        [Content.assemble((key, "$text-accent"), (f" {text}", "$text-muted")) for key, text in keys]
    )
