"""The column of a new session: the name, what this folder offers, the keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from rich.cells import cell_len, set_cell_size
from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.style import Style

from tui.core.dataclass import dataclass
from tui.ui.start.first_frame import COLUMN, TAGLINE, welcome_place
from tui.ui.widgets.keys import fitting
from tui.ui.widgets.notices import NoticeText, notice_lines
from tui.ui.widgets.panes import CachedRender, TextLines

if TYPE_CHECKING:
    from tui.app.start_rows import StartRow

ROWS: Final = 3
INDENT: Final = 3
"""Cells before the text of the prompt; the column is aligned with it."""
_LABEL: Final = 20
"""Cells that a label keeps beside its detail."""
_TALL: Final = 11
"""Rows from which there is room for the large name and for blank rows."""

_NAME: Final = (
    "█ █ █▀█ █   █▀▄ █▀▀ ▄▀█ █▀▀ ▀█▀",
    "█▀█ █▄█ █▄▄ █▄▀ █▀  █▀█ ▄▄█  █ ",
)
_KEYS: Final = (
    ("tab", "choose"),
    ("↑", "earlier prompts"),
    ("shift+tab", "mode"),
    ("f3", "sessions"),
    ("?", "help"),
)


def intro(
    version: str, width: int, height: int, rows: Sequence[StartRow] | None = (), cursor: int = -1
) -> Content:
    """Return the column in `width` cells, at the foot of `height` rows. If there is little room,
    the rows stay.

    Args:
        rows: Rows to offer. Their places are empty until they are known, so that nothing moves when
            they come; None if there will be none.
        cursor: The row with the focus, -1 for none.
    """
    cells = max(8, min(width, COLUMN) - 2 * INDENT)
    blank = Content("")
    name = Content.styled("holdfast", "bold $text-primary")
    shown = [
        _row(rows[at], at, cells, chosen=at == cursor) if at < len(rows) else blank
        for at in range(ROWS)
        if rows is not None
    ]
    suffix = f" {version}" if version else ""
    if height >= _TALL and cells > len(_NAME[0]) + len(suffix):
        large = [Content.styled(line, "$text-primary") for line in _NAME]
        head = [large[0], Content.assemble(large[1], (suffix, "$text-muted")), blank]
    else:
        head = [Content.assemble(name, (suffix, "$text-muted"))]
    keys = fitting(_KEYS if shown else _KEYS[1:], cells)
    lines = [*head, *shown, *([blank] if shown else []), keys, blank]
    # Blank rows go first, then the head and the keys.
    if height < len(lines):
        lines = [*head, *shown, keys]
    if height < len(lines):
        lines = shown
    margin = Content(" " * (INDENT + max(0, (width - COLUMN) // 2)))
    above = [blank] * max(0, height - len(lines))
    return Content("\n").join([*above, *(Content.assemble(margin, line) for line in lines)])


def _row(row: StartRow, at: int, cells: int, *, chosen: bool) -> Content:
    """Return one row: its number, what it does, and the parts of the detail that have room. A label
    that is too long anyway leaves them some."""
    room = cells - 3
    least = len(row.label) if len(row.label) <= room else _LABEL
    parts = row.detail.split(" · ") if row.detail else []
    while parts and cell_len("".join(f" · {part}" for part in parts)) > room - least:
        parts.pop()
    more = Content.styled("".join(f" · {part}" for part in parts), "$text-muted")
    label = Content(_fitted(row.label, room - more.cell_length))
    line = Content.assemble((f"{at + 1}  ", "$text-accent"), label, more)
    if chosen:
        line = line.stylize("bold $text-primary").stylize("reverse", 0, 1)
    return line.stylize(Style.from_meta({"row": at}))


def _fitted(label: str, room: int) -> str:
    """Return a label in that many cells, cut after a word if that leaves half of it."""
    if cell_len(label) <= room:
        return label
    end = "…”" if label.endswith("”") else "…"
    cut = set_cell_size(label, room - len(end)).rstrip()
    words = cut if label[len(cut) :].startswith(" ") else cut.rpartition(" ")[0]
    return (words if cell_len(words) * 2 >= room else cut).rstrip(" ,;:.–—-“") + end


class Cover(CachedRender):
    """Covers the screen with the head of the welcome screen, in its place, until it is known
    whether that is needed."""

    DEFAULT_CSS = "Cover { layer: cover; width: 100%; height: 100%; background: $background; }"

    def render(self) -> Content:
        width, height = self.size
        column, above, page = welcome_place(width, height)
        margin = " " * (column + 2)
        lines = [Content("")] * above
        lines += [Content.assemble(margin, line) for line in head().wrap(max(8, page - 4))]
        lines += [Content("")] * (height - 1 - len(lines))
        return Content("\n").join([*lines, Content.styled(" opening …", "$text-muted")])


def head() -> Content:
    """Return the name of the program and what it is, as the welcome screen begins."""
    return Content.assemble(("holdfast", "bold $text-primary"), (f"\n{TAGLINE}", "$text-muted"))


class StartNotices(TextLines):
    """Shows what there is to say at the start, above the first screen and as wide."""

    DEFAULT_CSS = "StartNotices { height: auto; max-height: 40%; width: 100%; margin: 1 0 0 0; }"

    notices: reactive[tuple[NoticeText, ...]] = reactive((), layout=True)

    def lines(self, width: int) -> list[Content]:
        margin = Content(" " * (INDENT + max(0, (width - COLUMN) // 2)))
        cells = max(8, min(width, COLUMN) - 2 * INDENT)
        rows = (row for notice in self.notices for row in notice_lines(notice, cells))
        return [Content.assemble(margin, row) for row in rows]


class Intro(CachedRender, can_focus=True):
    """As high as there is room. `rows` can be chosen once they are known; None if there will be
    none."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("enter", "choose", show=False),
    ]

    @dataclass
    class RowChosen(Message):
        """A row was chosen, by its key, Enter or a click."""

        row: StartRow

    rows: reactive[Sequence[StartRow] | None] = reactive[Sequence["StartRow"] | None](())
    cursor: reactive[int] = reactive(0)

    def __init__(self, version: str, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._version = version

    def render(self) -> Content:
        width, height = self.content_size
        cursor = self.cursor if self.has_focus else -1
        return intro(self._version, width, height, self.rows, cursor)

    def watch_rows(self) -> None:
        self.cursor = 0

    def choose(self, at: int) -> bool:
        """Choose a row. False if there is no such row."""
        rows = self.rows or ()
        if at < len(rows):
            self.post_message(self.RowChosen(rows[at]))
        return at < len(rows)

    def action_move(self, step: int) -> None:
        self.cursor = max(0, min(self.cursor + step, len(self.rows or ()) - 1))

    def action_choose(self) -> None:
        self.choose(self.cursor)

    def on_click(self, event: events.Click) -> None:
        if (at := event.style.meta.get("row")) is not None:
            self.choose(int(at))
