"""The base of all text areas: whole characters, as `tui.core.characters` has them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rich.cells import cell_len
from rich.style import StyleType
from rich.text import Text
from textual import events
from textual._wrap import chunks
from textual.document._document import Location
from textual.document._document_navigator import DocumentNavigator
from textual.document._wrapped_document import WrappedDocument
from textual.widgets import TextArea

from tui.core.characters import (
    all_single,
    boundaries,
    clusters,
    next_end,
    previous_start,
    skeleton,
    whole_after,
)
from tui.core.terminal_input import is_text
from tui.ui.toolkit.base_screen import BaseScreen

_WORD_AHEAD = re.compile(r"\s*\w+")


class CharacterText(Text):
    """A text in which a style for one code point, as a cursor's is, covers the whole character."""

    def stylize(self, style: StyleType, start: int = 0, end: int | None = None) -> None:
        if end == start + 1:
            end = next_end(self.plain, start)
        super().stylize(style, start, end)


class CharacterWrap(WrappedDocument):
    """Breaks lines, and finds places, between characters."""

    def wrap(self, width: int, tab_width: int | None = None) -> None:
        super().wrap(width, tab_width)
        self._keep_whole(range(self.document.line_count))

    def wrap_range(self, start: Location, old_end: Location, new_end: Location) -> None:
        super().wrap_range(start, old_end, new_end)
        self._keep_whole(range(start[0], new_end[0] + 1))

    def _keep_whole(self, rows: Iterable[int]) -> None:
        """Break again the lines that were broken by code points."""
        changed = False
        for row in rows:
            line, before = self.document.get_line(row), self._wrap_offsets[row]
            if before and not all_single(line):
                self._wrap_offsets[row] = _breaks(line, self._width, self.get_tab_widths(row))
                changed |= self._wrap_offsets[row] != before
        if changed:
            sections = [range(len(offsets) + 1) for offsets in self._wrap_offsets]
            self._offset_to_line_info = [
                (row, section) for row, parts in enumerate(sections) for section in parts
            ]
            self._line_index_to_offsets = [[] for _ in sections]
            for y, (row, _) in enumerate(self._offset_to_line_info):
                self._line_index_to_offsets[row].append(y)

    def get_target_document_column(self, line_index: int, x_offset: int, y_offset: int) -> int:
        line = self.document.get_line(line_index)
        if all_single(line):
            return super().get_target_document_column(line_index, x_offset, y_offset)
        sections = self.get_sections(line_index)
        section = sections[y_offset]
        start, column, x = sum(map(len, sections[:y_offset])), 0, 0
        while column < len(section):
            end = next_end(section, column)
            x += self._tab_width - x % self._tab_width if section[column] == "\t" else 0
            x += cell_len(section[column:end])
            last = y_offset not in {-1, len(sections) - 1} and end == len(section)
            if x > x_offset or last:
                break
            column = end
        return start + column


def _breaks(line: str, width: int, tabs: list[int]) -> list[int]:
    """Return where a line is broken to fit into a width, as Textual does: before a word; a word
    that is too long for any row begins one, and is broken where the row is full."""
    places, used, tab = list[int](), 0, iter(tabs)
    ends = boundaries(line)
    cells = [next(tab) if one == "\t" else cell_len(one) for one in clusters(line)]
    for start, end, _ in chunks(skeleton(line)):
        if used + sum(cells[start:end]) <= width:
            used += sum(cells[start:end])
            continue
        if start:
            places.append(ends[start])
        used = 0
        for at in range(start, end):
            if used and used + cells[at] > width:
                places.append(ends[at])
                used = 0
            used += cells[at]
    return places


class CharacterNavigator(DocumentNavigator):
    """Moves by characters."""

    def get_location_left(self, location: Location) -> Location:
        row, column = location
        if not column:
            return super().get_location_left(location)
        return row, previous_start(self._document.get_line(row), column)

    def get_location_right(self, location: Location) -> Location:
        row, column = location
        if column >= len(line := self._document.get_line(row)):
            return super().get_location_right(location)
        return row, next_end(line, column)


class CharacterArea(TextArea):
    """A text area that moves over whole characters and deletes them; its cursor is in none."""

    def _set_document(self, text: str, language: str | None) -> None:
        super()._set_document(text, language)
        self.wrapped_document = CharacterWrap(self.document, tab_width=self.indent_width)
        self.navigator = CharacterNavigator(self.wrapped_document)
        self._rewrap_and_refresh_virtual_size()

    async def on_event(self, event: events.Event) -> None:
        """Draw what a key has changed before anybody hears of it, unless it needs more room."""
        await super().on_event(event)
        changed = self._repaint_required and not self._layout_required
        if changed and isinstance(event, events.Key) and isinstance(self.screen, BaseScreen):
            self.screen.echo(self)

    def check_consume_key(self, key: str, character: str | None = None) -> bool:
        typed = character is not None and is_text(character) and not self.read_only
        return typed or super().check_consume_key(key, character)

    def clamp_visitable(self, location: Location) -> Location:
        row, column = super().clamp_visitable(location)
        return row, whole_after(self.document.get_line(row), column)

    def _recompute_cursor_offset(self) -> None:
        """Find the cursor's cell. In the middle of an undo, which may change the scrollbar, Textual
        has the cursor still in a line that has gone."""
        place = self.clamp_visitable(self.cursor_location)
        self._cursor_offset = self.wrapped_document.location_to_offset(place)

    def get_line(self, line_index: int) -> Text:
        line = super().get_line(line_index)
        if all_single(line.plain):
            return line
        return CharacterText(line.plain, end="", no_wrap=True)

    def get_cursor_word_left_location(self) -> Location:
        row, column = self.cursor_location
        line = self.document.get_line(row)[:column]
        if not column or all_single(line):
            return super().get_cursor_word_left_location()
        edges = list(self._word_pattern.finditer(skeleton(line).rstrip()))
        return row, boundaries(line)[edges[-1].start()] if edges else 0

    def get_cursor_word_right_location(self) -> Location:
        row, column = self.selection.end
        line = self.document.get_line(row)[column:]
        if all_single(line):
            return super().get_cursor_word_right_location()
        letters = skeleton(line)
        blanks = len(letters) - len(letters.lstrip())
        edge = self._word_pattern.search(letters.lstrip())
        place = blanks + edge.start() if edge else len(letters)
        return row, column + boundaries(line)[place]

    def action_delete_word_right(self) -> None:
        row, column = self.selection.end
        line = self.document.get_line(row)[column:]
        if not self.selection.is_empty or all_single(line):
            super().action_delete_word_right()
            return
        word = _WORD_AHEAD.search(skeleton(line))
        end = boundaries(line)[word.end()] if word else len(line)
        self._delete_via_keyboard((row, column), (row, column + end))
