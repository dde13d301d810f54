"""A text area that keeps what its keys cut, as the line of a shell does."""

from __future__ import annotations

from tui.ui.widgets.placeholder_area import PlaceholderArea


class KillRingArea(PlaceholderArea):
    """What Ctrl+W, Ctrl+U, Ctrl+K and Alt+D delete can be put back in with `action_yank`.

    Cuts that follow each other without anything between them are one.
    """

    _cut = ""
    _cut_at: tuple[str, int] | None = None  # how the text and the cursor stood after it

    def get_cursor_line_start_location(self, smart_home: bool = False) -> tuple[int, int]:  # noqa: ARG002 - as Textual has it
        """A line is a line of the text, however many rows of the screen it takes."""
        return self.cursor_location[0], 0

    def get_cursor_line_end_location(self) -> tuple[int, int]:
        row = self.cursor_location[0]
        return row, len(self.document.get_line(row))

    def action_delete_word_left(self) -> None:
        before = self._now()
        super().action_delete_word_left()
        self._keep(*before)

    def action_delete_word_right(self) -> None:
        before = self._now()
        super().action_delete_word_right()
        self._keep(*before)

    def action_delete_to_start_of_line(self) -> None:
        before = self._now()
        super().action_delete_to_start_of_line()
        self._keep(*before)

    async def action_delete_to_end_of_line_or_delete_line(self) -> None:
        before = self._now()
        await super().action_delete_to_end_of_line_or_delete_line()
        self._keep(*before)

    def action_yank(self) -> None:
        """Put what was cut last in at the cursor. Where nothing was, redo what was undone: the
        key for both is the same in different programs."""
        if not self._cut:
            self.action_redo()
        else:
            self.insert_at_cursor(self.folded(self._cut))

    @property
    def _cursor(self) -> int:
        """How many characters stand before the cursor."""
        row, column = self.cursor_location
        return sum(len(self.document.get_line(n)) + 1 for n in range(row)) + column

    def _now(self) -> tuple[str, int]:
        return self.text, self._cursor

    def _keep(self, text: str, at: int) -> None:
        """Keep what is gone of a text in which the cursor stood at `at`."""
        left, start = self._now()
        gone = self.unfolded(text[start : start + len(text) - len(left)])
        if not gone:
            return
        if self._cut_at != (text, at):
            self._cut = gone
        else:
            self._cut = gone + self._cut if start < at else self._cut + gone
        self._cut_at = left, start
