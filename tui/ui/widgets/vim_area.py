"""A text area with vim's modes, if the person wants them. `vim` defines the keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual import events
from textual.keys import key_to_character
from textual.message import Message

from tui.core.dataclass import dataclass, replace
from tui.core.keymap import DEFAULT_KEYS, Keymap
from tui.core.terminal_input import is_text
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
_NOT_TYPED: Final = frozenset({"p", "P", ".", "escape"})
"""Keys that insert, perhaps again, text that may have been pasted before."""


class VimArea(KillRingArea):
    """Without `use_vim`, an ordinary text area. A new text begins in insert mode."""

    @dataclass
    class ModeChanged(Message):
        """`mode` is NORMAL or INSERT, "" without vim's modes."""

        mode: str

    keymap: Keymap = DEFAULT_KEYS
    """The keys of the chat's actions, as the person has set them."""
    _vim: Vim | None = None

    def use_vim(self, on: bool) -> None:
        """Switch vim's modes on or off."""
        from tui.ui.widgets.vim import Vim  # noqa: PLC0415 - for those who want it

        if on != (self._vim is not None):
            self._vim = Vim() if on else None
            self.post_message(self.ModeChanged("INSERT" if on else ""))

    def begin_insert(self) -> None:
        """Return to insert mode, if there are modes."""
        if self._vim is not None and self._vim.mode != "INSERT":
            self._take_up(replace(self._vim, mode="INSERT", pending=""))

    @property
    def has_vim_keys(self) -> bool:
        return self._vim is not None

    @property
    def in_normal_mode(self) -> bool:
        return self._vim is not None and self._vim.mode == "NORMAL"

    def check_consume_key(self, key: str, character: str | None = None) -> bool:
        """Take a letter as a command in normal mode, not as text."""
        return not self.in_normal_mode and super().check_consume_key(key, character)

    async def vim_takes(self, event: events.Key) -> bool:
        """True if a key was one of vim's, which has then taken effect."""
        if self._vim is None:
            return False
        if not self.in_normal_mode and (letter := self._after_escape(event)):
            await self._press("escape", None)
            return await self._press(letter, letter)
        return await self._press(event.key, event.character)

    def _after_escape(self, event: events.Key) -> str:
        """Return the letter of a key with Alt that the person has not given to an action: terminals
        send Esc with a letter right after it as such a key."""
        name = event.key.removeprefix("alt+")
        if name == event.key or any(event.key in keys for keys in self.keymap.values()):
            return ""
        if name.startswith("shift+"):
            name = name.removeprefix("shift+").upper()
        letter = key_to_character(name) or ""
        return letter if is_text(letter) else ""

    async def _press(self, key: str, character: str | None) -> bool:
        """True if a key was one of vim's, which has then taken effect."""
        from tui.ui.widgets import vim  # noqa: PLC0415 - loaded by `use_vim`

        assert self._vim is not None
        before = replace(self._vim, text=self.text, cursor=self._cursor)
        if not vim.takes(before, key, character):
            return False
        after = vim.pressed(before, key, character)
        if after.text != before.text:
            self._edit_to(after.text, typed=(character or key) not in _NOT_TYPED)
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
        """Change the text in one edit, which undo reverts alone."""
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
