"""A text in a dialog, only to be read."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from rich.cells import cell_len
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from tui.app.dialog_data import ShownLine
from tui.core.files import read_small
from tui.core.paths import shorten
from tui.core.text_cleaning import clean, one_line, visible
from tui.ui.widgets.asked_line import LineAsked
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
        Binding("B", "ask_line", show=False),
    ]
    KEYS: ClassVar[Sequence[tuple[str, str]]] = (("y", "copy"), ("esc", "close"))
    AUTO_FOCUS: ClassVar[str | None] = "#box"

    def __init__(self, title: str, text: str, *, at_end: bool = False) -> None:
        super().__init__()
        self._title, self.text, self._at_end = title, text, at_end

    def on_mount(self) -> None:
        if self._at_end:
            self.call_after_refresh(self.query_one("#box").scroll_end, animate=False)

    def compose(self) -> ComposeResult:
        box = VerticalScroll(can_focus=True)
        with self.framed(box, self._title, SCROLL, *self.KEYS):
            yield self.body()

    def body(self) -> Widget:
        """Return what shows the text."""
        return Static(clean(self.text), classes="text", markup=False)

    def action_scroll(self, rows: int) -> None:
        self.query_one("#box").scroll_relative(y=rows, animate=False)

    def asked_line(self) -> ShownLine | None:
        """Return the line of a file that a person asks about who sees what is in sight."""
        return None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        return action != "ask_line" or ("B", "why") in self.KEYS

    def action_ask_line(self) -> None:
        """Ask where the line comes from that is at the top of what is in sight."""
        self.post_message(LineAsked(self.asked_line()))

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self.text)  # pyright: ignore[reportUnknownMemberType]
        self.show_keys(("y", "copied"), *(key for key in self.KEYS if key[0] != "y"))


class FileScreen(ReadScreen):
    """The text of a file to read; `B` asks where a line comes from. `text` is as the file's lines
    are, one by one."""

    KEYS = (("B", "why"), *ReadScreen.KEYS)

    def __init__(self, title: str, text: str, path: Path, lines: int) -> None:
        super().__init__(title, text)
        self._path, self._count = path, lines

    def asked_line(self) -> ShownLine | None:
        box, width = self.query_one("#box"), self.query_one(".text").size.width
        row, rows = 0, round(box.scroll_y)
        for number, line in enumerate(self.text.split("\n")[: self._count], 1):
            fits = cell_len(line) <= width
            row += 1 if fits else len(Content(line).wrap(max(1, width)))
            if row > rows and line.strip():
                return ShownLine(str(self._path), number)
        return None


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
        text = visible(data.decode(errors="replace").rstrip("\n"))
        lines = text.count("\n") + 1
        if (more := state.st_size - len(data)) > 0:
            text += f"\n\n… {more:,} more bytes aren't shown"
        app.push_screen(FileScreen(one_line(visible(shorten(path))), text, path, lines))
