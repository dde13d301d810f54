"""A tool's output, line by line. A frame costs the visible lines; memory is bounded."""

from __future__ import annotations

from typing import ClassVar

from rich.cells import cell_len, chop_cells
from rich.style import Style
from textual.selection import SELECT_ALL, Selection

from tui.app.dialog_data import ShownLine
from tui.ui.widgets.asked_line import numbered_line
from tui.ui.widgets.conversation import style
from tui.ui.widgets.diff import Diff
from tui.ui.widgets.line_view import place
from tui.ui.widgets.markdown.text import Line, Span, decoration, wrap
from tui.ui.widgets.output_lines import OutputLines
from tui.ui.widgets.text_view import TextView, coloured, plain

CELLS_MAX = 4_000
"""Most visible cells of a line."""

DIFF_ROWS_MAX = 20_000
"""Rows of a diff that are drawn; the rest is counted."""

_LOOKS = ("text", "note", "nothing")
_HEAD = 3
"""Lines after which a file's own have begun."""
_NOTHING = "No output yet"


class OutputView(TextView):
    """Text with the colors of its escape sequences; follows the end while it is at the end.

    Long lines continue outside the view, or `wrap`; those of a diff and of prose are always
    wrapped.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"output-view--{name}" for name in _LOOKS),
        *style.components(style.DIFF_RULES),
    }
    DEFAULT_CSS = """
    OutputView {
        & > .output-view--text { color: $text; }
        & > .output-view--note { color: $text-warning; }
        & > .output-view--nothing { color: $text-muted; }
    }
    """ + style.css("OutputView", style.DIFF_RULES)

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._output = OutputLines()
        self._viewport.lay(flat=True)
        self._diff: Diff | None = None
        self._prose = False
        self.title = ""

    @property
    def text(self) -> str:
        """The kept output, without escape sequences."""
        return self._between(0, len(self._output))

    @property
    def raw(self) -> str:
        """The kept output, with escape sequences."""
        return "\n".join(self._output)

    def show(self, title: str, text: str, *, diff: bool = False, prose: bool = False) -> None:
        """Show another output, from its end; a unified diff as one, from its beginning. With
        `prose`, it is sentences, not a command's output."""
        self.clear()
        self.title, self._prose = title, prose
        if diff:
            self._output.write(text)
            self._diff = Diff(text, rows_max=DIFF_ROWS_MAX)
            self._viewport.following = False
        self._lay()
        if not diff:
            self.write(text)

    def write(self, text: str) -> None:
        """Add text at the end, in pieces of any size. It is no longer shown as a diff."""
        if self._diff is not None:
            self._diff = None
            self._lay()
        output, known, dropped = self._output, len(self._output), self._output.dropped_lines
        first = output.write(text)
        if not known or output.dropped_lines != dropped:
            self._pictures.clear()
            moved = len(output) - known if known else 0
            self._viewport.replace(self._estimates(0), min(0, moved))
        else:
            for index in range(first, known):
                self._pictures.pop(index, None)
                self._viewport.estimate(index, self._estimate(output[index]))
            self._viewport.extend(self._estimates(known))
        self._stale = True
        self._soon()

    def clear(self) -> None:
        """Remove all lines, and the title."""
        self._output = OutputLines()
        self._diff = None
        self._prose = False
        self.title = ""
        self._viewport.clear()
        self._lay()
        self._unroll()
        self._stale = True
        self._soon()

    # Layout

    @property
    def _wraps(self) -> bool:
        return self.wrap or self._prose

    def _lay(self) -> None:
        self._viewport.lay(flat=not self._wraps and self._diff is None)
        self._viewport.replace(self._estimates(0))

    def _estimate(self, text: str) -> int:
        return 1 + len(text) // self._width if self._wraps and self._width else 1

    def _estimates(self, start: int) -> list[int]:
        if self._diff is not None:
            return [1] * len(self._diff)
        count = len(self._output) - start
        if not count and not start and self.title:
            return [1]  # one line says that there is nothing
        if not self._wraps:
            return [1] * count
        return [self._estimate(text) for text in self._output.between(start, len(self._output))]

    def _breadth(self) -> int:
        return super()._breadth() if self._diff is None else 1

    def _settled(self) -> None:
        if self._diff is None:
            super()._settled()

    # What it looks like

    def _styles(self) -> dict[str, Style]:
        own = {name: self.get_component_rich_style(f"output-view--{name}") for name in _LOOKS}
        return own | style.styles(self, style.DIFF_RULES)

    def _draw(self, index: int) -> list[Line]:
        looks, output = self._look, self._output
        if self._diff is not None:
            return self._diff.lines(index, self._width, looks)
        if not output:
            return [decoration([(_NOTHING, looks["nothing"])])]
        if index == output.gap:
            size = output.dropped_bytes / 1e6
            text = f"… {output.dropped_lines:,} lines ({size:.1f} MB) aren't kept here …"
            return [decoration([(text, looks["note"])])]
        spans = coloured(output[index], looks["text"])
        spans = _clipped(spans, output.over(index), looks["note"])
        return wrap(spans, self._width) if self._prose else self._laid(spans)

    # Asking about a line

    @property
    def has_lines(self) -> bool:
        """True if lines of a file are shown, which can be asked about."""
        first = range(min(_HEAD, len(self._output)))
        return (
            self._diff is not None
            or numbered_line(map(self._output.__getitem__, first)) is not None
        )

    def asked_line(self) -> ShownLine | None:
        """Return the line of a file that a person asks about who sees what is in sight."""
        shown = dict.fromkeys(index for index, _ in self._viewport.rows)
        if self._diff is not None:
            return self._diff.asked_line(shown)
        return numbered_line(self._output[index] for index in shown if index < len(self._output))

    # Copying

    def _between(self, start: int, stop: int) -> str:
        return plain(self._output.between(start, stop))

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        if self._diff is not None and selection != SELECT_ALL:
            return super().get_selection(selection)
        start, end = selection
        total = len(self._output)
        first = self._character(*place(start.y), start.x) if start else (0, 0)
        last = self._character(*place(end.y), end.x) if end else (total, 0)
        rows = self._between(first[0], min(last[0] + 1, total)).split("\n")
        if last[0] < total:
            rows[-1] = rows[-1][: last[1]]
        rows[0] = rows[0][first[1] :]
        return "\n".join(rows), "\n"

    def _character(self, index: int, row: int, x: int) -> tuple[int, int]:
        """Return (line, character in it) of a character in a row of the line."""
        if index >= len(self._output):
            return index, 0
        rows = self._picture(index).lines
        return index, x + sum(len(above.text) for above in rows[:row])


def _clipped(spans: list[Span], over: int, note: Style) -> list[Span]:
    """Return the spans up to CELLS_MAX; what is left out, and `over` before, is counted at the
    end."""
    if sum(cell_len(text) for text, _ in spans) <= CELLS_MAX and not over:
        return spans
    clipped: list[Span] = []
    room = CELLS_MAX
    for text, look in spans:
        size = cell_len(text)
        part = text if size <= room else chop_cells(text, room)[0] if room > 1 else ""
        room = max(0, room - size)
        over += len(text) - len(part)
        if part:
            clipped.append((part, look))
    return [*clipped, (f" … +{over:,}", note)]
