"""F12: every event with its time, over the current screen; filtered, paused, copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Static

from tui.core.formatting import plural
from tui.core.text_cleaning import clean, one_line
from tui.ui.screens.table_screen import TableDialog
from tui.ui.widgets.dialog import SCROLL, TextField
from tui.ui.widgets.fact_log import FactLog, LogEntry
from tui.ui.widgets.keys import VERBOSE_KEYS, bindings
from tui.ui.widgets.row_list import Part, RowList

FOLLOW_S = 0.25
"""Seconds until new events are shown."""
NAME = 20
_ROOMY = 50
"""Cells of a row from which there is room for milliseconds."""
_CLOSE = ("esc, f12", "close")
_EMPTY = (
    "No events yet. Requests, retries, decisions and measurements appear here with their times."
)


async def toggle_debug_log(app: App[Any], log: FactLog) -> None:
    """Show the log over the current screen; close it if it is open."""
    if isinstance(app.screen, DebugLogScreen):
        app.screen.dismiss()
    elif not any(isinstance(screen, DebugLogScreen) for screen in app.screen_stack):
        await app.push_screen(DebugLogScreen(log))


class DebugLogScreen(TableDialog[None]):
    """Shows `log`; follows its end until the cursor leaves it or the person pauses."""

    CSS_PATH = "debug_log.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(VERBOSE_KEYS),
        Binding("escape", "close", "close", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#events"

    def __init__(self, log: FactLog) -> None:
        super().__init__()
        self._log = log
        self.shown: Sequence[LogEntry] = []
        """The entries in the table."""
        self._paused = False
        self._seen = -1
        self._words = ""

    def compose(self) -> ComposeResult:
        with self.framed(Vertical(), "debug view"):
            with Horizontal(id="words-row"):
                yield Static("/", id="slash", markup=False)
                yield TextField(placeholder="name, id or text of an event", id="words")
            yield RowList(id="events")
            yield Static(id="nothing", markup=False)
            with VerticalScroll(id="whole"):
                yield Static(id="json", markup=False)

    def on_mount(self) -> None:
        self._load(follow=True)
        self.set_interval(FOLLOW_S, self.follow)

    def action_pause(self) -> None:
        """Pause the table, or let it follow again."""
        self._paused = not self._paused
        self._load(follow=not self._paused)

    def action_filter(self) -> None:
        self.add_class("-filter")
        self.query_one("#words", Input).focus()

    def action_copy(self) -> None:
        """Copy the event under the cursor, or all shown ones while a filter is on."""
        chosen = self.shown if self._words else self.shown[self.rows.cursor :][:1]
        if chosen:
            self.app.copy_to_clipboard("\n".join(entry.whole for entry in chosen))  # pyright: ignore[reportUnknownMemberType]
            self._say(f"Copied {plural(len(chosen), 'event')}.")

    def action_close(self) -> None:
        if self.has_class("-whole"):
            self.remove_class("-whole")
            self.rows.focus()
            self._say("")
        elif self.has_class("-filter"):
            self.remove_class("-filter")
            self.query_one("#words", Input).value = ""
            self.rows.focus()
        else:
            self.dismiss()

    @on(Input.Changed)
    def _narrow(self, event: Input.Changed) -> None:
        event.stop()
        self._words = event.value
        self._load(follow=True)

    def on_descendant_focus(self) -> None:
        self._say("")

    @on(Input.Submitted)
    def _narrowed(self, event: Input.Submitted) -> None:
        event.stop()
        self.rows.focus()

    def row_chosen(self, index: int) -> None:
        self.put("json", Content(clean(self.shown[index].whole)))
        self.add_class("-whole")
        self.query_one("#whole").focus()
        self._say("")

    def follow(self) -> None:
        """Show new events, unless paused."""
        if not self._paused and self._log.version != self._seen:
            at_end = self.rows.cursor >= len(self.shown) - 1
            self._load(follow=at_end)

    def _load(self, *, follow: bool) -> None:
        self._seen = self._log.version
        cursor = self.rows.cursor
        self.shown = self._log.entries(self._words)
        self.set_class(not self.shown, "-empty")
        why = f"No event matches “{one_line(self._words)}”." if self._words else _EMPTY
        self.put("nothing", Content(why))
        end = len(self.shown) - 1
        self.rows.show(len(self.shown), self._draw, cursor=end if follow else cursor)
        if follow:
            self.rows.scroll_end(animate=False, force=True)
        self._say("")

    def _draw(self, index: int, width: int) -> Sequence[Part]:
        entry = self.shown[index]
        thousandths = f".{entry.at.microsecond // 1000:03d}" if width >= _ROOMY else ""
        name = (entry.kind.ljust(NAME)[:NAME] + "  ", entry.style)
        line = (one_line(entry.line[:10_000]), "text")
        return [(f"{entry.at:%H:%M:%S}{thousandths}  ", "muted"), name, line]

    def _say(self, state: str) -> None:
        """Show the state beside the title, and what the keys do now."""
        state = state or ("paused" if self._paused else "")
        count = plural(len(self.shown), "event")
        title = " · ".join(filter(None, ("debug view", count, state)))
        self.query_one("#box").border_title = Content(title)
        if self.has_class("-whole"):
            self.show_keys(SCROLL, ("y", "copy"), ("esc", "back"))
        elif self.query_one("#words", Input).has_focus:
            self.show_keys(("enter", "back to the events"), ("esc", "all events"))
        else:
            pause = ("space", "continue" if self._paused else "pause")
            self.show_keys(("enter", "open"), ("/", "filter"), pause, ("y", "copy"), _CLOSE)
