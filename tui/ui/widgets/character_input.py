"""The base of all fields of one line: whole characters, as `tui.core.characters` has them."""

from __future__ import annotations

import re

from rich.text import Text
from textual import events
from textual.widgets import Input
from textual.widgets.input import Selection

from tui.core.characters import boundaries, next_end, previous_start, skeleton, whole_after
from tui.core.terminal_input import is_text
from tui.ui.widgets.character_area import CharacterText

_WORD_START = re.compile(r"(?<=\W)\w")


class CharacterInput(Input):
    """An input that moves over whole characters and deletes them; its cursor is in none. Pasted
    lines are joined by blanks: Textual takes the first and leaves the others out."""

    def on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self.replace(" ".join(event.text.strip("\n").split("\n")), *self.selection)

    def check_consume_key(self, key: str, character: str | None) -> bool:  # noqa: ARG002
        return character is not None and is_text(character)

    def validate_selection(self, selection: Selection) -> Selection:
        return Selection(*(whole_after(self.value, at) for at in selection))

    @property
    def _value(self) -> Text:
        shown = super()._value
        if self.password:
            return shown
        return CharacterText(shown.plain, no_wrap=True, overflow="ignore", end="")

    def _cell_offset_to_index(self, offset: int) -> int:
        x = -self.scroll_offset.x
        for start, end in zip(places := boundaries(self.value), places[1:], strict=False):
            x += Text(self.value[start:end]).cell_len
            if offset < x:
                return start
        return len(self.value)

    def action_cursor_left(self, select: bool = False) -> None:
        if select or self.selection.is_empty:
            self._go(previous_start(self.value, self.cursor_position), select=select)
        else:
            super().action_cursor_left()

    def action_cursor_right(self, select: bool = False) -> None:
        if select or self.selection.is_empty:
            self._go(next_end(self.value, self.cursor_position), select=select)
        else:
            super().action_cursor_right()

    def action_delete_left(self) -> None:
        if self.selection.is_empty:
            self.action_cursor_left(select=True)
        self.delete_selection()

    def action_delete_right(self) -> None:
        if self.selection.is_empty:
            self.action_cursor_right(select=True)
        self.delete_selection()

    def action_cursor_left_word(self, select: bool = False) -> None:
        if self.password:
            super().action_cursor_left_word(select)
        else:
            self._go(self._previous_word(), select=select)

    def action_cursor_right_word(self, select: bool = False) -> None:
        if self.password:
            super().action_cursor_right_word(select)
        else:
            self._go(self._next_word(), select=select)

    def action_delete_left_word(self) -> None:
        if self.selection.is_empty:
            self.action_cursor_left_word(select=True)
        self.delete_selection()

    def action_delete_right_word(self) -> None:
        if self.selection.is_empty:
            self.action_cursor_right_word(select=True)
        self.delete_selection()

    def _go(self, place: int, *, select: bool) -> None:
        start = self.selection.start if select else place
        self.selection = Selection(start, place)

    def _previous_word(self) -> int:
        before = self.value[: self.cursor_position]
        starts = list(_WORD_START.finditer(skeleton(before)))
        return boundaries(before)[starts[-1].start()] if starts else 0

    def _next_word(self) -> int:
        after = self.value[self.cursor_position :]
        start = _WORD_START.search(skeleton(after))
        place = boundaries(after)[start.start()] if start else len(after)
        return self.cursor_position + place
