"""Some lines to edit: a task file, or a setting with a line for each entry."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static, TextArea

from tui.core.errors import HoldfastError
from tui.core.text_cleaning import visible
from tui.ui.widgets.dialog import Dialog

_KEYS = (("enter", "new line"), ("ctrl+s", "save"), ("esc", "back"))


class EditText(Dialog[bool]):
    """Dismissed with True once `save` has taken the text over; what it raises is shown.

    `what` says what may stand there. What was changed is given up only by a second Esc.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "save", "save", show=False, priority=True),
        Binding("escape", "leave", "back", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#text"

    DEFAULT_CSS = """
    EditText #what { height: auto; color: $text-muted; margin: 0 0 1 0; }
    EditText #text, EditText #text:focus {
        height: auto; min-height: 6; max-height: 50vh; border: none; padding: 0 1;
        background: $background; background-tint: $background 0%; scrollbar-size-vertical: 1;
    }
    EditText #problem { height: auto; color: $text-error; margin: 1 0 0 0; display: none; }
    EditText.-short #problem { margin: 0; }
    """

    def __init__(
        self, title: str, what: str, text: str, save: Callable[[str], Awaitable[object]]
    ) -> None:
        super().__init__(classes="-table")
        self._title, self._what, self._text = title, what, text
        self._save = save
        self._warned = False

    def compose(self) -> ComposeResult:
        with self.framed(Vertical(), visible(self._title), *_KEYS):
            yield Static(self._what, id="what", markup=False)
            area = TextArea(self._text, id="text", soft_wrap=True)
            area.cursor_blink = False
            yield area
            yield Static("", id="problem", markup=False)

    def on_mount(self) -> None:
        area = self.query_one("#text", TextArea)
        area.move_cursor(area.document.end)
        self.call_after_refresh(area.scroll_cursor_visible)  # once it has its height

    def action_leave(self) -> None:
        if self._warned or self.query_one("#text", TextArea).text == self._text:
            self.dismiss(False)
            return
        self._warned = True
        self._say("Not saved. Ctrl+S saves it, Esc again gives the changes up.")

    @on(TextArea.Changed)
    def _typed(self) -> None:
        if self._warned:
            self._warned = False
            self._say("")

    @work(exclusive=True)
    async def action_save(self) -> None:
        try:
            await self._save(self.query_one("#text", TextArea).text)
        except HoldfastError as error:
            self._say(str(error))
        else:
            self.dismiss(True)

    def _say(self, problem: str) -> None:
        line = self.query_one("#problem", Static)
        line.update(Content(visible(problem)))
        line.display = bool(problem)
