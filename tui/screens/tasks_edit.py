"""The task file, edited while the run goes on: what has begun stays as it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static, TextArea

from tui.errors import HoldfastError

_HELP = "A line `- …` is a task, `## …` begins a group. Tasks that have begun must stay."


class EditTasks(ModalScreen[bool]):
    """Dismissed with True once `save` has taken the text over; what it raises is shown."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "save", "save", show=False, priority=True),
        Binding("escape", "close", "back", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#text"

    def __init__(self, name: str, text: str, save: Callable[[bytes], Awaitable[None]]) -> None:
        super().__init__()
        self._title = name
        self._text = text
        self._save = save

    def compose(self) -> ComposeResult:
        with Vertical(id="box") as box:
            box.border_title = Content(f"edit {self._title}")
            box.border_subtitle = Content("ctrl+s save · esc leave it")
            yield Static(_HELP, id="what", markup=False)
            area = TextArea(self._text, id="text", soft_wrap=True)
            area.cursor_blink = False
            yield area
            yield Static("", id="problem", markup=False)

    def action_close(self) -> None:
        self.dismiss(False)

    @work(exclusive=True)
    async def action_save(self) -> None:
        try:
            await self._save(self.query_one("#text", TextArea).text.encode())
        except HoldfastError as error:
            self.query_one("#problem", Static).update(Content(str(error)))
        else:
            self.dismiss(True)
