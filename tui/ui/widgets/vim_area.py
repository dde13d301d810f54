"""A text area with vim's modes, where the person wants them. What keys do is in `vim`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from textual import events
from textual.message import Message

from tui.ui.widgets.prompt_areas import KillRingArea

if TYPE_CHECKING:
    from tui.ui.widgets.vim import Vim, Wish

_ACTIONS: Final[dict[Wish, str]] = {
    "undo": "undo",
    "redo": "redo",
    "older": "cursor_up",
    "newer": "cursor_down",
    "search": "screen.search_history",
}
_NOT_TYPED: Final = frozenset({"p", "P", "full_stop", "escape"})
"""Keys that put in, perhaps again, what may have been pasted before."""


class VimArea(KillRingArea):
    """Without `use_vim` it is a text area as any other. A new text begins in insert mode."""

    @dataclass
    class ModeChanged(Message):
        """`mode` is NORMAL or INSERT, "" without vim's modes."""

        mode: str

    _vim: Vim | None = None

    def use_vim(self, on: bool) -> None:
        """Have vim's modes, or have them no more."""
        from tui.ui.widgets.vim import Vim  # noqa: PLC0415 - for those who want it

        if on != (self._vim is not None):
            self._vim = Vim() if on else None
            self.post_message(self.ModeChanged("INSERT" if on else ""))

    def begin_insert(self) -> None:
        """Back to insert mode, where there are modes."""
        if self._vim is not None and self._vim.mode != "INSERT":
            self._take_up(replace(self._vim, mode="INSERT", pending=""))

    @property
    def has_vim(self) -> bool:
        """Whether it has vim's modes."""
        return self._vim is not None

    @property
    def in_normal_mode(self) -> bool:
        return self._vim is not None and self._vim.mode == "NORMAL"

    def check_consume_key(self, key: str, character: str | None = None) -> bool:
        """In normal mode a letter is a command, not text."""
        return not self.in_normal_mode and super().check_consume_key(key, character)

    async def vim_takes(self, event: events.Key) -> bool:
        """Whether a key was one of vim's; it has done what it does then."""
        if self._vim is None:
            return False
        from tui.ui.widgets import vim  # noqa: PLC0415 - loaded by `use_vim`

        before = replace(self._vim, text=self.text, cursor=self._cursor)
        if not vim.takes(before, event.key, event.character):
            return False
        after = vim.pressed(before, event.key, event.character)
        if after.text != before.text:
            self._edit_to(after.text, typed=event.key not in _NOT_TYPED)
        self.move_cursor(self.location(after.cursor))
        self._take_up(after)
        if after.wish:
            for _ in range(min(after.times, 100)):
                await self.run_action(_ACTIONS[after.wish])
        return True

    def _take_up(self, state: Vim) -> None:
        before, self._vim = self._vim, state
        if before and before.mode != state.mode:
            self.history.checkpoint()
            self.post_message(self.ModeChanged(state.mode))

    def _edit_to(self, text: str, *, typed: bool) -> None:
        """Change what differs in one edit, which undo takes back alone."""
        old = self.text
        most = min(len(old), len(text))
        start = next((n for n in range(most) if old[n] != text[n]), most)
        same = next((n for n in range(most - start) if old[-1 - n] != text[-1 - n]), most - start)
        where = self.location(start), self.location(len(old) - same)
        new = text[start : len(text) - same]
        self.history.checkpoint()
        if typed:
            self._replace_via_keyboard(new, *where)
        else:
            with self._not_typed():
                self._replace_via_keyboard(new, *where)
