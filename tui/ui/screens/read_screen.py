"""A text in a dialog, only to be read."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, ClassVar, Final

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from tui.core.files import read_small
from tui.core.paths import shorten
from tui.core.text_cleaning import clean, one_line, visible
from tui.ui.widgets.dialog import SCROLL, Dialog

_BYTES_MAX: Final = 200_000
"""Most bytes of a file that are shown."""


class ReadScreen(Dialog[None]):
    """A text to read. Closed by Esc, q or Enter; `y` copies it."""

    DEFAULT_CSS = "ReadScreen #box { width: 112; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,ctrl+c", "dismiss", "close", show=False),
        Binding("y", "copy", "copy", show=False),
        Binding("j", "scroll(1)", show=False),
        Binding("k", "scroll(-1)", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#box"

    def __init__(self, title: str, text: str, *, at_end: bool = False) -> None:
        super().__init__()
        self._title, self.text, self._at_end = title, text, at_end

    def on_mount(self) -> None:
        if self._at_end:
            self.call_after_refresh(self.query_one("#box").scroll_end, animate=False)

    def compose(self) -> ComposeResult:
        box = VerticalScroll(can_focus=True)
        with self.framed(box, self._title, SCROLL, ("y", "copy"), ("esc", "close")):
            yield self.body()

    def body(self) -> Widget:
        """Return what shows the text."""
        return Static(clean(self.text), classes="text", markup=False)

    def action_scroll(self, rows: int) -> None:
        self.query_one("#box").scroll_relative(y=rows, animate=False)

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self.text)  # pyright: ignore[reportUnknownMemberType]
        self.show_keys(("y", "copied"), ("esc", "close"))


def show_file(app: App[Any], path: Path) -> None:
    """Show the text of a file; what hides in it is spelled out, since someone may decide by it."""
    app.run_worker(_show_file(app, path), group="text", exclusive=True)


async def _show_file(app: App[Any], path: Path) -> None:
    try:
        data, state = await asyncio.to_thread(read_small, path, limit=_BYTES_MAX, whole=False)
    except OSError as error:
        problem = f"Can't read {shorten(path)}: {error.strerror or error}."
        app.notify(problem, severity="error", markup=False)
    else:
        text = visible(data.decode(errors="replace").strip("\n"))
        if (more := state.st_size - len(data)) > 0:
            text += f"\n\n… {more:,} more bytes aren't shown"
        app.push_screen(ReadScreen(one_line(visible(shorten(path))), text))
