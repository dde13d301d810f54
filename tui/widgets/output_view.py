"""A tool's output, line by line. A frame costs the lines in sight; memory is bounded."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from time import monotonic
from typing import ClassVar

from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.timer import Timer

from tui.widgets import ansi, scrolling
from tui.widgets.conversation.strips import paint
from tui.widgets.keys import PANE_KEYS, bindings
from tui.widgets.output_lines import OutputLines
from tui.widgets.plain import clean

CELLS_MAX = 4_000
"""Cells of a line that can be seen."""
STRIPS_KEPT = 512
FRAME_S = 1 / 25

_LOOKS = ("text", "note", "added", "removed", "hunk")
_DIFF = {"+": "added", "-": "removed", "@": "hunk"}


def _diff_kind(lines: Sequence[str], index: int) -> str | None:
    """What a line of a unified diff is; the pair of lines that names the files is no change."""
    line = lines[index]
    after = lines[index + 1] if index + 1 < len(lines) else ""
    if line.startswith("--- ") and after.startswith("+++ "):
        return "hunk"
    if line.startswith("+++ ") and index and lines[index - 1].startswith("--- "):
        return "hunk"
    return _DIFF.get(line[:1])


class OutputView(ScrollView, can_focus=True):
    """Text with the colours of its escape sequences; follows the end while it is at the end.

    The title is shown in the border.
    """

    ALLOW_SELECT = True
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"output-view--{name}" for name in _LOOKS}
    DEFAULT_CSS = """
    OutputView {
        height: 1fr;
        background: $background;
        color: $text;
        overflow-x: auto;
        overflow-y: auto;
        scrollbar-size: 1 1;
        & > .output-view--text { color: $text; }
        & > .output-view--note { color: $text-warning; }
        & > .output-view--added { color: $text-success; background: $success 12%; }
        & > .output-view--removed { color: $text-error; background: $error 12%; }
        & > .output-view--hunk { color: $text-muted; }
        &:ansi > .output-view--added, &:ansi > .output-view--removed { background: transparent; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home,g", "edge(-1)", "Top", show=False),
        Binding("end,G", "edge(1)", "End", show=False),
        Binding("up,k", "rows(-1)", "Up", show=False),
        Binding("down,j", "rows(1)", "Down", show=False),
        Binding("left,h", "columns(-1)", "Left", show=False),
        Binding("right,l", "columns(1)", "Right", show=False),
        Binding("y", "copy_all", "Copy", show=False),
        *bindings(PANE_KEYS),
    ]

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self._output = OutputLines()
        self._strips: OrderedDict[int, Strip] = OrderedDict()
        self._look: dict[str, Style] = {}
        self._diff = False
        self._following = True
        self._timer: Timer | None = None
        self._settled_at = 0.0
        self._stale = False
        self._painting = False
        self._wide = 0
        self.title = ""

    @property
    def text(self) -> str:
        """What is kept of the output, without escape sequences."""
        return self._between(0, len(self._output))

    @property
    def following(self) -> bool:
        """Whether the end is in sight and stays there."""
        return self._following

    def show(self, title: str, text: str, *, diff: bool = False) -> None:
        """Show another output, from its end; a unified diff in its colours, from its beginning."""
        self.clear()
        self._diff = diff
        self._following = not diff
        if diff:
            scrolling.jump(self, 0)
        self.title = title
        bare = clean(title[:500]).replace("\n", " ")
        self.border_title = Content(bare)  # pyright: ignore[reportAttributeAccessIssue]
        self.write(text)

    def write(self, text: str) -> None:
        """Add text at the end, in whatever pieces it comes."""
        first = self._output.write(text)
        if first < len(self._output):
            for index in [index for index in self._strips if index >= first]:
                del self._strips[index]
        self._touch()

    def clear(self) -> None:
        """Take all lines out, and the title."""
        self._output = OutputLines()
        self._strips.clear()
        self._following = True
        self._wide = 0
        self.title = ""
        self.border_title = None
        scrolling.reset_x(self)
        self._touch()

    # Layout

    def _touch(self) -> None:
        self._stale = True
        if self._timer is None and self.is_running:
            due = self._settled_at + FRAME_S - monotonic()
            self._timer = self.set_timer(max(0.001, due), self._settle)

    def _settle(self) -> None:
        """Bring scroll position and scroll bars up to date, and repaint."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        size = self.scrollable_content_region.size
        if not size.width or not size.height:
            return
        self._stale = False
        self._settled_at = monotonic()
        total = len(self._output)
        y = max(0, total - size.height) if self._following else round(self.scroll_y)
        y = max(0, min(y, total - size.height))
        for index in range(y, min(y + size.height, total)):
            self._wide = max(self._wide, self._strip(index).cell_length)
        scrolling.resize(self, Size(self._wide, total))
        scrolling.jump(self, y)
        self.refresh()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._following = round(new_value) >= self.max_scroll_y
        self._settle()

    def on_resize(self) -> None:
        self._settle()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._look = {}
        self._strips.clear()
        self._touch()

    # Painting

    def render_lines(self, crop: Region) -> list[Strip]:
        if self._stale:
            self._settle()
        self._painting = True
        try:
            return super().render_lines(crop)
        finally:
            self._painting = False

    def render_line(self, y: int) -> Strip:
        """A row: with the offsets that selecting needs, except when it is painted."""
        x, top = self.scroll_offset
        index, width = top + y, self.size.width
        plain = self._styles()["text"]
        if index >= len(self._output):
            return Strip.blank(width, plain)
        strip = self._strip(index)
        selection = self.text_selection
        span = None if selection is None else selection.get_span(index)
        if span is not None:
            stop = len(strip.text) if span[1] < 0 else span[1]
            marked = paint(list(strip), span[0], stop, self.selection_style)
            strip = Strip(marked, strip.cell_length)
        cut = strip.crop_extend(x, x + width, plain)
        if self._painting:
            return cut
        return cut.apply_offsets(len(strip.crop(0, x).text) if x else 0, index)

    def _styles(self) -> dict[str, Style]:
        if not self._look:
            self._look = {
                name: self.get_component_rich_style(f"output-view--{name}") for name in _LOOKS
            }
        return self._look

    def _strip(self, index: int) -> Strip:
        strip = self._strips.get(index)
        if strip is None:
            strip = self._strips[index] = self._draw(index)
            if len(self._strips) > STRIPS_KEPT:
                self._strips.popitem(last=False)
        return strip

    def _draw(self, index: int) -> Strip:
        looks, output = self._styles(), self._output
        note = looks["note"]
        kind = _diff_kind(output.lines, index) if self._diff else None
        plain = looks[kind or "text"]
        if index == output.gap:
            size = output.dropped_chars / 1e6
            text = f"… {output.dropped_lines:,} lines ({size:.1f} MB) are not kept here …"
            return Strip([Segment(text, note)], cell_len(text))
        spans = ansi.spans(output.lines[index], plain)
        over = output.over(index)
        cells = sum(cell_len(text) for text, _ in spans)
        if cells <= CELLS_MAX and not over:
            return Strip([Segment(text, style) for text, style in spans], cells)
        segments: list[Segment] = []
        room = CELLS_MAX
        for text, style in spans:
            size = cell_len(text)
            kept = text if size <= room else chop_cells(text, room)[0] if room > 1 else ""
            room = max(0, room - size)
            over += len(text) - len(kept)
            if kept:
                segments.append(Segment(kept, style))
        return Strip([*segments, Segment(f" … +{over:,}", note)])

    # Copying

    def _between(self, start: int, stop: int) -> str:
        base = Style.null()
        return "\n".join(
            "".join(text for text, _ in ansi.spans(line, base))
            for line in self._output.lines[start:stop]
        )

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        start, end = selection
        first = start.y if start else 0
        last = min(end.y if end else len(self._output) - 1, len(self._output) - 1)
        rows = self._between(first, last + 1).split("\n")
        if end is not None and end.y == last:
            rows[-1] = rows[-1][: end.x]
        if start is not None:
            rows[0] = rows[0][start.x :]
        return "\n".join(rows), "\n"

    def action_copy_all(self) -> None:
        """Copy what is kept of the output."""
        self.app.copy_to_clipboard(self.text)  # pyright: ignore[reportUnknownMemberType]

    # Scrolling

    def action_rows(self, step: int) -> None:
        """A row up or down."""
        self.scroll_to(y=self.scroll_y + step, animate=False)

    def action_columns(self, step: int) -> None:
        """Eight columns to the side."""
        self.scroll_to(x=self.scroll_x + 8 * step, animate=False)

    def action_page(self, step: int) -> None:
        """A screen up or down, with a row in common."""
        room = max(1, self.scrollable_content_region.height - 1)
        self.scroll_to(y=self.scroll_y + step * room, animate=False)

    def action_edge(self, step: int) -> None:
        """To the first or the last line."""
        self.scroll_to(y=0 if step < 0 else self.max_scroll_y, animate=False)
