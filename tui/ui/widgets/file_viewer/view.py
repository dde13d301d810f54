"""Shows the full copy of an output page by page: what is not visible is neither read nor kept."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from rich.cells import cell_len
from rich.style import Style
from textual.selection import Selection
from textual.worker import Worker

from tui.app.dialog_data import ShownLine
from tui.ui.widgets.asked_line import numbered_line
from tui.ui.widgets.file_viewer.file_viewport import FileViewport
from tui.ui.widgets.file_viewer.line_file import WINDOW, LineFile, LinePart, Needle, part_of
from tui.ui.widgets.line_view import place, strips
from tui.ui.widgets.markdown.text import Line, Span, line
from tui.ui.widgets.text_view import TextView, coloured, plain

STEP = WINDOW - 512
"""Bytes by which a long line is paged sideways."""
COPY_MAX = 1 << 20
"""Most bytes that are put on the clipboard."""
_SLICE_S = 0.1
_LOOKS = ("text", "note", "found", "here")


class FileView(TextView):
    """Shows a `LineFile`, which it closes. A carriage return starts its line again.

    Only a part of a line longer than WINDOW is shown, with the sizes before and after it; scrolling
    sideways beyond the columns shows the next part.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"copy-view--{name}" for name in _LOOKS}
    DEFAULT_CSS = """
    FileView {
        & > .copy-view--text { color: $text; }
        & > .copy-view--note { color: $text-warning; }
        & > .copy-view--found { background: $warning 35%; }
        & > .copy-view--here { color: $background; background: $warning; text-style: bold; }
        &:nocolor > .copy-view--found {
            background: transparent; text-style: underline;
        }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._port = FileViewport(self._measure)
        self._viewport = self._port
        self._endless: set[int] = set()
        self._shift = 0
        self._needle = Needle()
        self._here = -1
        self._counting: Worker[None] | None = None

    @property
    def file(self) -> LineFile:
        """The file that is shown."""
        return self._port.file

    @property
    def follows(self) -> bool:
        """True if the end is visible, and nothing is selected."""
        return self._port.at_end and not self.selected_text

    @property
    def top(self) -> int:
        """The byte with which the first visible line begins."""
        return self._port.top[0]

    def show(self, file: LineFile, *, at_end: bool = False) -> None:
        """Show another file, from its beginning or its end. Its lines are counted meanwhile."""
        self.clear()
        self._port.use(file)
        self._port.following = at_end
        file.lines.go_on(0)
        self._settle()
        if self.is_attached and file.lines.unfinished:
            self._counting = self.run_worker(self._count(), group="lines", exclusive=True)

    def clear(self) -> None:
        """Show nothing, and close the file."""
        if self._counting:
            self._counting.cancel()
            self._counting = None
        self.mark(b"")
        self._port.file.close()
        self._port.use(LineFile(b""))
        self._shift = 0
        self._unroll()
        self._soon()

    def on_unmount(self) -> None:
        self._port.file.close()

    async def _count(self) -> None:
        lines = self.file.lines
        more = True
        while more:
            more = await asyncio.to_thread(lines.go_on, _SLICE_S)
            self._counted()

    def _counted(self) -> None:
        """Redraw lines whose end was unknown, now that more is known."""
        for start in self._endless:
            self._pictures.pop(start, None)
        self._endless.clear()
        self._settle()

    # Searching

    def mark(self, needle: bytes, *, fold: bool = False, at: int = -1) -> None:
        """Mark visible matches; a match at byte `at` is brought into view."""
        self._needle, self._here = Needle(needle, fold), at
        if at >= 0:
            self._reveal(at)
        self._shown = []
        self.refresh()

    def _reveal(self, at: int) -> None:
        if not self._look:
            return
        start = self.file.start(at)
        offset = at - start
        end = self.file.end(start)
        long = end is None or end - start > WINDOW
        shift = max(0, offset - WINDOW // 4) if long else self._shift
        if shift != self._shift:
            self._turn_to(shift)
        row, column, size = self._spot(start, at)
        if (start, row) not in self._port.rows:
            self._port.go(start)
            self._port.move(row - self._port.height // 3)
        self._apply()
        width, x = self._width, self.scroll_offset.x
        if not self.wrap and not x <= column <= x + width - size:
            self.scroll_to(x=max(0, column - width // 3), animate=False)

    def _spot(self, start: int, at: int) -> tuple[int, int, int]:
        """Return (row, column, cells) of the match at byte `at` of a line."""
        part = self._part(start)
        number = self._needle.count(part.data[: max(0, at - part.first)])
        for row, drawn in enumerate(self._picture(start).lines):
            spots = self._needle.spots(drawn)
            if number < len(spots):
                low, high = spots[number]
                return row, cell_len(drawn.text[:low]), cell_len(drawn.text[low:high])
            number -= len(spots)
        return 0, 0, 0

    def _overlay(self, index: int, row: int, line: Line) -> Line:
        spots = self._needle.spots(line)
        if not spots:
            return line
        line = strips.marked(line, spots, self._look["found"])
        if self._here >= 0 and self.file.start(self._here) == index:
            at, column, _ = self._spot(index, self._here)
            if at == row:
                current = [each for each in spots if cell_len(line.text[: each[0]]) == column]
                line = strips.marked(line, current, self._look["here"])
        return line

    def asked_line(self) -> ShownLine | None:
        """Return the line of a file that a person asks about who sees what is in sight, where the
        lines have their numbers."""
        starts = dict.fromkeys(start for start, _ in self._port.rows)
        return numbered_line(self._part(start).data.decode(errors="replace") for start in starts)

    # What it looks like

    def _styles(self) -> dict[str, Style]:
        return {
            name: self.get_component_rich_style(
                f"copy-view--{name}", partial=name in {"found", "here"}
            )
            for name in _LOOKS
        }

    def _apply(self) -> None:
        self._settled()  # the width of what has become visible
        super()._apply()

    def _part(self, start: int) -> LinePart:
        return part_of(self.file, start, self._shift)

    def _draw(self, index: int) -> list[Line]:
        data, before, behind, _ = self._part(index)
        if behind is None:
            self._endless.add(index)
            data = data.rstrip(b"\r").rpartition(b"\r")[2]
        drawn = coloured(data.decode("utf-8", "replace"), self._look["text"])
        note = self._look["note"]
        spans: list[Span] = [(f"{before:,}+ … ", note)] if before else []
        spans += drawn
        if behind is None or behind:
            spans.append((" …" if behind is None else f" … +{behind:,}", note))
        return self._laid(spans) or [line([])]

    # Copying

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        first, last = selection
        start, row = place(first.y) if first else (0, 0)
        text: list[str] = []
        size = 0
        stop = place(last.y) if last else (self.file.size, 0)
        while start <= stop[0] and start < self.file.size and size < COPY_MAX:
            lines = self._picture(start).lines
            upto = len(lines) if start < stop[0] else stop[1] + 1
            rows = [drawn.text for drawn in lines[row:upto]]
            if last and start == stop[0] and rows:
                rows[-1] = rows[-1][: last.x if last.x >= 0 else None]
            if first and not text and rows:
                rows[0] = rows[0][first.x :]
            text.append("".join(rows))
            size += len(text[-1])
            end = self.file.end(start)
            if end is None:
                break
            start, row = end + 1, 0
        return "\n".join(text), "\n"

    def text(self, most: int = COPY_MAX) -> str:
        """Return the text of the first `most` bytes, without escape sequences."""
        rows = self.file.read(0, most).decode("utf-8", "replace").split("\n")
        bare = (row.rstrip("\r").rpartition("\r")[2] for row in rows)
        return plain(bare).removesuffix("\n")

    # Scrolling

    def action_edge(self, step: int) -> None:
        """Go to the first or the last row."""
        if step < 0:
            self._port.go(0)
        else:
            self._port.following = True
            self._port.settle()
        self._apply()

    def action_page(self, step: int) -> None:
        self.action_rows(step * max(1, self._port.height - 1))

    def action_rows(self, step: int) -> None:
        """Scroll rows up or down."""
        self._port.move(step)
        self._apply()

    def action_columns(self, step: int) -> None:
        """Scroll eight columns sideways; beyond the last, to the next part of the visible lines."""
        room = 0 if self.wrap else max(0, self._wide - self._width)
        x = round(self.scroll_x)
        behind = (self._part(start).behind for start, _ in self._port.rows)
        if step > 0 and x >= room and any(size != 0 for size in behind):
            self._turn_to(self._shift + STEP)
        elif step < 0 and x <= 0 and self._shift:
            self._turn_to(max(0, self._shift - STEP))
            self.scroll_to(x=max(0, self._wide - self._width), animate=False)
        else:
            super().action_columns(step)

    def _turn_to(self, shift: int) -> None:
        """Draw long lines from another byte on."""
        self._shift = shift
        self._unroll()
        self._settle()
