"""The table of the settings: a cursor that passes over the headings."""

from __future__ import annotations

from collections.abc import Sequence

from textual.geometry import Region

from tui.settings.schema import Setting
from tui.ui.screens.settings.rows import Heading, Line, line_parts
from tui.ui.widgets.row_list import Part, Rows


class SettingRows(Rows):
    """Rows whose cursor passes over the headings."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._lines: Sequence[Line] = ()

    def show_lines(self, lines: Sequence[Line], cursor: int) -> None:
        """Show other lines, the cursor on one of them or the next setting."""
        self._lines = lines
        self.show(len(lines), self._parts, cursor=self._near(cursor, 1))
        self._reveal_heading()

    def move_to(self, index: int) -> None:
        super().move_to(self._near(index, 1 if index >= self.cursor else -1))
        self._reveal_heading()

    def _parts(self, index: int, width: int) -> Sequence[Part]:
        return line_parts(self._lines[index], width)

    def _near(self, index: int, step: int) -> int:
        index = max(0, min(index, len(self._lines) - 1))
        for way in (step, -step):
            at = index
            while 0 <= at < len(self._lines):
                if isinstance(self._lines[at], Setting):
                    return at
                at += way
        return 0

    def _reveal_heading(self) -> None:
        above = self.cursor - 1
        if self.size.height > 1 and above >= 0 and isinstance(self._lines[above], Heading):
            self.scroll_to_region(Region(0, above, 1, 2), animate=False, force=True)
