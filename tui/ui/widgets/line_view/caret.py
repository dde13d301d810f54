"""Selecting text by keys: where the moving end of a selection goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from textual.geometry import Offset
from textual.selection import Selection

from tui.ui.widgets.line_view.strips import extent
from tui.ui.widgets.markdown.text import Line


@dataclass(slots=True)
class Caret:
    """The moving end of a selection. `goal` is the column that it keeps to across short rows."""

    at: Offset | None = None
    goal: int = 0

    def begin(self, selection: Selection | None) -> Offset | None:
        """Take over the selection there is; returns its other end, None where there is none."""
        if selection is None or selection.start is None or selection.end is None:
            return None
        if self.at not in selection:
            self.at, self.goal = selection.end, selection.end.x
        return selection.start if self.at == selection.end else selection.end

    def across(self, rows: Sequence[tuple[Offset, Line]], at: int, columns: int) -> None:
        """Some characters to the side from row `at`; beyond its end lies the next row."""
        assert self.at is not None
        start, end = extent(rows[at][1])
        x = self.at.x + columns
        if x < start and at:
            at -= 1
            x = extent(rows[at][1])[1]
        elif x > end and at + 1 < len(rows):
            at += 1
            x = extent(rows[at][1])[0]
        else:
            x = max(start, min(x, end))
        self.at, self.goal = Offset(x, rows[at][0].y), x

    def along(self, rows: Sequence[tuple[Offset, Line]], at: int) -> None:
        """To a row; before the first and behind the last lie their beginning and end."""
        origin, line = rows[max(0, min(at, len(rows) - 1))]
        start, end = extent(line)
        x = max(start, min(self.goal, end))
        if not 0 <= at < len(rows):
            x = self.goal = start if at < 0 else end
        self.at = Offset(x, origin.y)


def move(
    caret: Caret,
    selection: Selection | None,
    step: tuple[int, int],
    rows: Callable[[], Sequence[tuple[Offset, Line]]],
    scroll: Callable[[int], None],
) -> Selection | None:
    """The selection after (rows, columns) more; `rows` are those in sight, by their keys.

    Where nothing is selected yet, it begins with the first row in sight, or backwards with the
    last.
    """
    seen, (down, right) = rows(), step
    if not seen:
        return None
    back = down < 0 or right < 0
    anchor = caret.begin(selection)
    if anchor is None or caret.at is None:
        origin, line = seen[-1 if back else 0]
        caret.goal = extent(line)[back]
        anchor = caret.at = Offset(caret.goal, origin.y)
    at = _row(seen, caret.at)
    beyond = min(0, at + down) + max(0, at + down - len(seen) + 1)
    if beyond:
        scroll(beyond)
        seen = rows()
        at = _row(seen, caret.at)
    if right:
        caret.across(seen, at, right)
    else:
        caret.along(seen, at + down)
    return Selection.from_offsets(anchor, caret.at)


def _row(seen: Sequence[tuple[Offset, Line]], at: Offset) -> int:
    """Where a position stands in what is in sight, or the end of it that is nearer."""
    return next((n for n, (origin, _) in enumerate(seen) if origin.y >= at.y), len(seen) - 1)
