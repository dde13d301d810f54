"""A request as it was sent, to read: rebuilt from the record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from tui.context import request_assembly
from tui.context.past_context import UNTOLD
from tui.context.request_replay import RequestReplay
from tui.core.text_cleaning import one_line
from tui.session.records import Record
from tui.ui.toolkit.base_screen import BaseScreen
from tui.ui.widgets.file_viewer.line_file import LineFile
from tui.ui.widgets.file_viewer.pane import FilePane
from tui.ui.widgets.keys import Keys, in_rows
from tui.ui.widgets.panes import PaneRule

_KEYS: Final[Keys] = (("/", "find"), ("w", "wrap"), ("y", "copy"), ("esc", "back"))


class SentRequestScreen(BaseScreen, Screen[None]):  # pyright: ignore[reportIncompatibleMethodOverride] - Textual's own arrange
    """A request as it was sent, to read and to search."""

    DEFAULT_CSS = """
    SentRequestScreen { background: $background; color: $foreground; }
    SentRequestScreen #title {
        height: 1; padding: 0 1; background: $panel; text-wrap: nowrap; text-overflow: ellipsis;
    }
    SentRequestScreen FilePane { height: 1fr; padding: 0 1; background: $background; }
    SentRequestScreen #keys { height: 1; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "dismiss", "back", show=False)]
    AUTO_FOCUS: ClassVar[str | None] = None

    def __init__(self, title: str, text: str, *, wrap: bool = False) -> None:
        super().__init__()
        self._title, self._text, self._wrap = title, text, wrap

    def compose(self) -> ComposeResult:
        yield Static(Content.styled(self._title, "bold"), id="title")
        yield FilePane(id="sent")
        yield PaneRule(id="keys-rule")
        yield Static(id="keys", markup=False)

    def on_mount(self) -> None:
        pane = self.query_one(FilePane)
        pane.view.wrap = self._wrap
        pane.show(LineFile(self._text))
        pane.view.focus()

    def on_resize(self) -> None:
        self.query_one("#keys", Static).update(in_rows(_KEYS, self.size.width - 2, rows=1))


def sent_request(record: str, records: Sequence[Record]) -> tuple[str, str] | None:
    """Rebuild a request, by the id of its record, or of its answer where that is all there is: what
    it is, and its text; None where there is neither. Blocks."""
    replay = RequestReplay(records)
    number = replay.number_of(record)
    if number is None:
        if (told := replay.messages_before(record)) is None:
            return None
        view, _, model = told
        lines = [*UNTOLD.split("\n"), *request_assembly.printed_messages(view.messages)]
        return f"Request to {one_line(model) or 'a model'}, by its messages", "\n".join(lines)
    replayed = replay.at(number)
    if replayed.request is None:
        return f"Request {number}", f"It can't be rebuilt: {replayed.problem}."
    how = f"not as sent: {replayed.problem}" if replayed.problem else "exactly as it was sent"
    return f"Request {number}, {how}", request_assembly.printed(replayed.request)
