"""The list of the desk: its cursor stays on its session wherever that goes, and only lines that
changed are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from textual.geometry import Region, Size
from textual.message import Message

from tui.core.dataclass import dataclass
from tui.desk.host import DeskRow
from tui.ui.desk.desk_rows import DeskLine, SessionKey, key_of
from tui.ui.widgets.row_list import Part, RowList


class LinePainter(Protocol):
    """Knows what a line shows now."""

    def paint_line(self, line: DeskLine, width: int) -> Sequence[Part]:
        """Return a line in `width` cells."""
        ...


class DeskList(RowList):
    """Lists sessions with their questions, under the titles of their groups.

    The cursor is on a session. A session that moves takes it along; what came or went elsewhere
    leaves it in its place on the screen, unless the top of the list is in sight with it.
    """

    @dataclass
    class FoldAsked(Message):
        """The title of a folded group was clicked."""

    def __init__(self, painter: LinePainter) -> None:
        super().__init__(id="rows")
        self._painter = painter
        self._lines: Sequence[DeskLine] = ()
        self._cells: dict[tuple[str, str, str], tuple[DeskLine, int, Sequence[Part]]] = {}
        self._draw = self._parts

    @property
    def row(self) -> DeskRow | None:
        """The session under the cursor."""
        return self._lines[self._cursor].row if self._cursor < len(self._lines) else None

    def place(self, lines: Sequence[DeskLine], *, to: SessionKey | None = None) -> None:
        """Show other lines, with the cursor on the session that it was on, or on session `to`."""
        before, top, at = self._lines, round(self.scroll_y), self._cursor
        row = self.row
        wanted = to or (key_of(row) if row is not None else None)
        self._lines, self._count = lines, len(lines)
        self._cursor = self._place_of(wanted, at)
        if [line.name for line in before] == [line.name for line in lines]:
            self._redraw(before)
            if self._cursor != at:
                self.refresh()
                self._reveal()
            return
        names = {line.name for line in lines}
        self._cells = {name: drawn for name, drawn in self._cells.items() if name in names}
        self.virtual_size = Size(0, self._count)
        in_sight = self._cursor + self._height_of(self._cursor) <= self.size.height
        if to is None and not (top == 0 and in_sight):
            self.scroll_to(y=max(0, top + self._cursor - at), animate=False, force=True)
        self._reveal(heading=to is not None)
        self.refresh()

    def forget(self) -> None:
        """Draw every line again, since the columns have changed."""
        self._cells.clear()
        self.refresh()

    def tick(self) -> None:
        """Draw the lines in sight whose time has moved on."""
        width, top = self.row_width, round(self.scroll_y)
        for index in range(top, min(self._count, top + self.size.height)):
            line = self._lines[index]
            known = self._cells.get(line.name)
            parts = self._painter.paint_line(line, width)
            if known is None or list(known[2]) != list(parts):
                self._cells[line.name] = line, width, parts
                self.refresh_line(index)

    def _redraw(self, before: Sequence[DeskLine]) -> None:
        """Draw the lines in sight that show something else than those before, in whose place they
        are."""
        top = round(self.scroll_y)
        for index in range(top, min(self._count, top + self.size.height)):
            if not self._lines[index].same(before[index]):
                self.refresh_line(index)

    def _parts(self, index: int, width: int) -> Sequence[Part]:
        line = self._lines[index]
        known = self._cells.get(line.name)
        if known is None or known[1] != width or not known[0].same(line):
            known = self._cells[line.name] = line, width, self._painter.paint_line(line, width)
        return known[2]

    def _place_of(self, wanted: SessionKey | None, otherwise: int) -> int:
        """Return the index of a session; of one that isn't listed, that of the nearest to where the
        cursor was."""
        sessions = [at for at, line in enumerate(self._lines) if line.kind == "session"]
        for at in sessions:
            row = self._lines[at].row
            if row is not None and key_of(row) == wanted:
                return at
        return min(sessions, key=lambda at: abs(at - otherwise), default=0)

    def _height_of(self, index: int) -> int:
        """Return how many lines the session at an index has."""
        after = self._lines[index + 1 : index + 2]
        return 2 if after and after[0].kind == "question" else 1

    def _is_session(self, index: int) -> bool:
        return 0 <= index < self._count and self._lines[index].kind == "session"

    def covers(self, index: int) -> bool:
        cursor = self._cursor
        return self._is_session(cursor) and cursor <= index < cursor + self._height_of(cursor)

    def row_at(self, index: int) -> int | None:
        if index >= self._count:
            return None
        line = self._lines[index]
        if line.folded:
            self.post_message(self.FoldAsked())
        at = index - 1 if line.kind == "question" else index
        return at if self._is_session(at) else None

    def move_to(self, index: int) -> None:
        """Move the cursor to the session at an index; if there is none, to the next one in the same
        direction, or the last."""
        step = 1 if index > self._cursor else -1
        index = max(0, min(index, self._count - 1))
        onward = range(index, self._count if step > 0 else -1, step)
        back = range(index, self._cursor, -step)
        target = next((at for at in (*onward, *back) if self._is_session(at)), self._cursor)
        before = self._cursor
        if target == before:
            self._reveal()
            return
        for at in (before, target):
            self.refresh_lines(at, self._height_of(at))
        self._cursor = target
        self._reveal()
        self.post_message(self.Moved(target))

    def move_to_session(self, key: SessionKey) -> None:
        """Move the cursor to a session, if it is listed."""
        self.move_to(self._place_of(key, self._cursor))

    def move_to_group(self, step: int) -> None:
        """Move the cursor to the first session of the next group, or of the one before."""
        firsts = [
            at
            for at in range(1, self._count)
            if self._is_session(at) and self._lines[at - 1].kind == "group"
        ]
        later = [at for at in firsts if at > self._cursor]
        earlier = [at for at in firsts if at < self._cursor]
        if firsts and step > 0:
            self.move_to((later or firsts)[0])
        elif firsts:
            self.move_to((earlier or firsts)[-1])

    def _reveal(self, *, heading: bool = True) -> None:
        """Bring the session under the cursor into view, with the title of its group if it is the
        first there."""
        if not (self._count and self.size.height and self._is_session(self._cursor)):
            return
        first = self._cursor
        while heading and first and self._lines[first - 1].kind in {"group", "space"}:
            first -= 1
        below = self._height_of(self._cursor)
        lead = min(self._cursor - first, max(0, self.size.height - below))
        region = Region(0, self._cursor - lead, 1, lead + below)
        self.scroll_to_region(region, animate=False, force=True)
