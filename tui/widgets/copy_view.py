"""The full copy of an output, page by page: what is not in sight is neither read nor kept."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import ClassVar

from rich.cells import cell_len
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.selection import Selection
from textual.worker import Worker

from tui.widgets import ansi
from tui.widgets.copy_file import CopyFile
from tui.widgets.copy_port import CopyPort
from tui.widgets.line_view import LineView, Picture, place, scrolling, strips
from tui.widgets.markdown.text import Line, Span, chop, line

WINDOW = 1 << 14
"""Bytes of a line that are drawn at a time."""
STEP = WINDOW - 512
"""By so many bytes a long line is paged to the side."""
COPY_MAX = 1 << 20
"""Bytes that are put on the clipboard at most."""
_SLICE_S = 0.1
_PICTURES_KEPT = 256
_LOOKS = ("text", "note", "found", "here")


class CopyView(LineView):
    """Shows a `CopyFile`, which it closes. A carriage return starts its line again.

    Of a line longer than WINDOW a part is in sight, and how much stands before and behind it;
    further to the side than there are columns comes the next part.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"copy-view--{name}" for name in _LOOKS}
    DEFAULT_CSS = """
    CopyView {
        overflow-x: auto;
        & > .copy-view--text { color: $text; }
        & > .copy-view--note { color: $text-warning; }
        & > .copy-view--found { background: $warning 35%; }
        & > .copy-view--here { color: $background; background: $warning; text-style: bold; }
        &:ansi > .copy-view--found { background: transparent; text-style: underline; }
        &:ansi > .copy-view--here { text-style: reverse; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "rows(-1)", "Up", show=False),
        Binding("down,j", "rows(1)", "Down", show=False),
        Binding("left,h", "columns(-1)", "Left", show=False),
        Binding("right,l", "columns(1)", "Right", show=False),
        Binding("w", "wrap", "Wrap", show=False),
    ]

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self._port = CopyPort(self._measure)
        self._viewport = self._port
        self._pictures: OrderedDict[int, Picture] = OrderedDict()
        self._endless: set[int] = set()
        self._wide = 0
        self._shift = 0
        self._needle, self._fold = b"", False
        self._here = -1
        self._counting: Worker[None] | None = None
        self.wrap = False

    @property
    def file(self) -> CopyFile:
        """What is shown."""
        return self._port.file

    def rows(self) -> list[tuple[int, int]]:
        """What is in sight: the byte that each line begins with, and the row of it."""
        return list(self._port.rows)

    @property
    def top(self) -> int:
        """The byte with which the first line in sight begins."""
        return self._port.top[0]

    def show(self, file: CopyFile, *, at_end: bool = False) -> None:
        """Show another file, from its beginning or its end. Its lines are counted meanwhile."""
        self.clear()
        self._port.use(file)
        self._port.following = at_end
        file.lines.go_on(0)
        self._settle()
        if self.is_attached and file.lines.left:
            self._counting = self.run_worker(self._count(), group="lines", exclusive=True)

    def clear(self) -> None:
        """Show nothing, and close what was shown."""
        if self._counting:
            self._counting.cancel()
            self._counting = None
        self.mark(b"")
        self._port.file.close()
        self._port.use(CopyFile(b""))
        self._pictures.clear()
        self._wide = self._shift = 0
        scrolling.reset_x(self)
        self._soon()

    def on_unmount(self) -> None:
        self._port.file.close()

    async def _count(self) -> None:
        lines = self.file.lines
        while await asyncio.to_thread(lines.go_on, _SLICE_S):
            self._counted()
        self._counted()

    def _counted(self) -> None:
        """More is known: draw anew what was drawn without knowing where it ends."""
        for start in self._endless:
            self._pictures.pop(start, None)
        self._endless.clear()
        self._settle()

    # Searching

    def mark(self, needle: bytes, *, fold: bool = False, at: int = -1) -> None:
        """Mark what is found in sight; what stands at byte `at` is brought into sight."""
        self._needle, self._fold, self._here = needle, fold, at
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
        """(row, column, cells) of what was found at byte `at` of a line."""
        data, _, _, first = self._window(start)
        part = data[: max(0, at - first)]
        part = part.lower() if self._fold else part
        number = part.count(self._needle)
        for row, drawn in enumerate(self._picture(start).lines):
            spots = self._spots(drawn)
            if number < len(spots):
                low, high = spots[number]
                return row, cell_len(drawn.text[:low]), cell_len(drawn.text[low:high])
            number -= len(spots)
        return 0, 0, 0

    def _spots(self, drawn: Line) -> list[tuple[int, int]]:
        """Where what is searched for stands in a drawn line."""
        wanted = self._needle.decode("utf-8", "replace")
        text = drawn.text
        if self._fold:
            text = text.translate(_LOWER)
        found: list[tuple[int, int]] = []
        at = text.find(wanted)
        while at >= 0:
            found.append((at, at + len(wanted)))
            at = text.find(wanted, at + len(wanted))
        return found

    def _overlay(self, index: int, row: int, line: Line) -> Line:
        if not self._needle:
            return line
        spots = self._spots(line)
        if not spots:
            return line
        line = strips.marked(line, spots, self._look["found"])
        if self._here >= 0 and self.file.start(self._here) == index:
            at, column, _ = self._spot(index, self._here)
            if at == row:
                here = [each for each in spots if cell_len(line.text[: each[0]]) == column]
                line = strips.marked(line, here, self._look["here"])
        return line

    # What it looks like

    def _styles(self) -> dict[str, Style]:
        return {
            name: self.get_component_rich_style(
                f"copy-view--{name}", partial=name in {"found", "here"}
            )
            for name in _LOOKS
        }

    def _redraw(self) -> None:
        self._pictures.clear()

    def _apply(self) -> None:
        self._settled()  # the width of what has come into sight
        super()._apply()

    def _breadth(self) -> int:
        return self._width if self.wrap else self._wide

    def _settled(self) -> None:
        if not self.wrap:
            seen = (self._picture(start).lines[0].cells for start, _ in self._port.rows)
            self._wide = max(self._wide, *seen, 0)

    def watch_scroll_x(self, old_value: float, new_value: float) -> None:
        for picture in self._pictures.values():
            picture.strips.clear()
        super().watch_scroll_x(old_value, new_value)

    def _picture(self, index: int) -> Picture:
        picture = self._pictures.get(index)
        if picture is None:
            picture = self._pictures[index] = Picture(self._draw(index))
            if len(self._pictures) > _PICTURES_KEPT:
                self._pictures.popitem(last=False)
        return picture

    def _window(self, start: int) -> tuple[bytes, int, int | None, int]:
        """What is drawn of a line: the bytes, how many stand before and behind (None: not known
        yet), and where they begin in the file."""
        end = self.file.end(start)
        stop = self.file.size if end is None else end
        tail = self.file.read(max(start, stop - WINDOW), stop).rstrip(b"\r") if end else b""
        again = tail.rfind(b"\r")
        if again >= 0:  # all before it was overwritten
            first = max(start, stop - WINDOW) + again + 1
            return tail[again + 1 :], 0, 0, first
        if stop - start <= WINDOW:
            return tail, 0, 0, start
        first = start + min(self._shift, max(0, stop - start - WINDOW))
        data = self.file.read(first, first + WINDOW)
        if first > start:
            cut = next((n for n in range(4) if n >= len(data) or data[n] & 0xC0 != 0x80), 0)
            data, first = data[cut:], first + cut
        behind = None if end is None else max(0, stop - first - len(data))
        return data, first - start, behind, first

    def _draw(self, start: int) -> list[Line]:
        data, before, behind, _ = self._window(start)
        if behind is None:
            self._endless.add(start)
            data = data.rstrip(b"\r").rpartition(b"\r")[2]
        drawn = ansi.spans(data.decode("utf-8", "replace"), self._look["text"])
        note = self._look["note"]
        spans: list[Span] = [(f"{before:,}+ … ", note)] if before else []
        spans += drawn
        if behind is None or behind:
            spans.append((" …" if behind is None else f" … +{behind:,}", note))
        rows = chop(spans, self._width) if self.wrap else [line(spans)]
        return rows or [line([])]

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
        """The text without escape sequences, of the first `most` bytes."""
        base = Style.null()
        rows = self.file.read(0, most).decode("utf-8", "replace").split("\n")
        bare = (row.rstrip("\r").rpartition("\r")[2] for row in rows)
        plain = "\n".join("".join(text for text, _ in ansi.spans(row, base)) for row in bare)
        return plain.removesuffix("\n")

    # Scrolling

    def action_edge(self, step: int) -> None:
        """To the first or the last row."""
        if step < 0:
            self._port.go(0)
        else:
            self._port.following = True
            self._port.settle()
        self._apply()

    def action_page(self, step: int) -> None:
        self.action_rows(step * max(1, self._port.height - 1))

    def action_rows(self, step: int) -> None:
        """Rows up or down."""
        self._port.move(step)
        self._apply()

    def action_wrap(self) -> None:
        """Let long lines go on in the next row, or out of sight again."""
        self.wrap = not self.wrap
        self._pictures.clear()
        scrolling.reset_x(self)
        self._settle()

    def action_columns(self, step: int) -> None:
        """Eight columns to the side; beyond the last to the next part of the lines in sight."""
        room = 0 if self.wrap else max(0, self._wide - self._width)
        x = round(self.scroll_x)
        if step > 0 and x >= room and self._hidden():
            self._turn_to(self._shift + STEP)
        elif step < 0 and x <= 0 and self._shift:
            self._turn_to(max(0, self._shift - STEP))
            self.scroll_to(x=max(0, self._wide - self._width), animate=False)
        else:
            self.scroll_to(x=x + 8 * step, animate=False)

    def _hidden(self) -> bool:
        """Whether anything stands to the right of what is drawn of the lines in sight."""
        return any(self._window(start)[2] != 0 for start, _ in self._port.rows)

    def _turn_to(self, shift: int) -> None:
        """Draw long lines from another byte on."""
        self._shift, self._wide = shift, 0
        self._pictures.clear()
        scrolling.reset_x(self)
        self._settle()


_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
