"""The task file, edited while the run goes on: what has begun stays as it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static, TextArea

from tui.errors import HoldfastError
from tui.widgets.dialog import Dialog

_HELP = "A line `- …` is a task, `## …` begins a group. Tasks that have begun must stay."


class EditTasks(Dialog[bool]):
    """Dismissed with True once `save` has taken the text over; what it raises is shown."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "save", "save", show=False, priority=True),
        Binding("escape", "close", "back", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#text"

    def __init__(self, name: str, text: str, save: Callable[[bytes], Awaitable[None]]) -> None:
        super().__init__(classes="-table")
        self._title = name
        self._warned = False
        self._text = text
        self._save = save

    def compose(self) -> ComposeResult:
        with self.framed(Vertical(), f"edit {self._title}", ("ctrl+s", "save"), ("esc", "back")):
            yield Static(_HELP, id="what", markup=False)
            area = TextArea(self._text, id="text", soft_wrap=True)
            area.cursor_blink = False
            yield area
            yield Static("", id="problem", markup=False)

    def action_close(self) -> None:
        """Back; what was changed is given up only when it is pressed again."""
        if self._warned or self.query_one("#text", TextArea).text == self._text:
            self.dismiss(False)
            return
        self._warned = True
        said = "Not saved. Ctrl+S saves it, Esc again gives the changes up."
        self.query_one("#problem", Static).update(Content(said))

    @on(TextArea.Changed)
    def _typed(self) -> None:
        if self._warned:
            self._warned = False
            self.query_one("#problem", Static).update("")

    @work(exclusive=True)
    async def action_save(self) -> None:
        try:
            await self._save(self.query_one("#text", TextArea).text.encode())
        except HoldfastError as error:
            self.query_one("#problem", Static).update(Content(str(error)))
        else:
            self.dismiss(True)
