"""A list of the settings, with a line for each entry."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static, TextArea

from tui.errors import HoldfastError
from tui.widgets.dialog import Dialog
from tui.widgets.plain import visible


class EditLines(Dialog[bool]):
    """Dismissed with True once `save` has taken the text over; what it raises is shown."""

    CSS_PATH = "settings.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "save", "save", show=False, priority=True),
        Binding("escape,ctrl+c", "leave", "back", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#text"

    def __init__(
        self, name: str, what: str, text: str, save: Callable[[str], Awaitable[object]]
    ) -> None:
        super().__init__()
        self._title, self._what, self._text = name, what, text
        self._save = save

    def compose(self) -> ComposeResult:
        keys = (("enter", "new line"), ("ctrl+s", "save"), ("esc", "back"))
        with self.framed(Vertical(), visible(self._title), *keys):
            yield Static(Content(self._what), id="what", markup=False)
            area = TextArea(self._text, id="text", soft_wrap=True)
            area.cursor_blink = False
            yield area
            yield Static("", id="problem", markup=False)

    def on_mount(self) -> None:
        super().on_mount()
        area = self.query_one("#text", TextArea)
        area.move_cursor(area.document.end)

    def action_leave(self) -> None:
        self.dismiss(False)

    @work(exclusive=True)
    async def action_save(self) -> None:
        try:
            await self._save(self.query_one("#text", TextArea).text)
        except HoldfastError as error:
            self.query_one("#problem", Static).update(Content(visible(str(error))))
        else:
            self.dismiss(True)
