"""A terminal as the program reaches it: its screen, its keyboard, and whoever watches it.

The terminal itself is the keeper's (`tui.keeper.terminal`): it lives on without the program.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

from tui.core.terminal_screen import TerminalScreen

Typist: TypeAlias = Literal["model", "person", "secret"]
"""The one whose input it is; a secret is the person's answer to a question of a program."""

Refusal: TypeAlias = Literal["", "secret", "keyboard", "full", "ended"]
"""The reason why input was not written: the program reads a secret, the person has the keyboard,
the program doesn't read its input, or it has ended."""


class TerminalWatcher(Protocol):
    """Hears of changes, several times a second at most, in the event loop."""

    def terminal_changed(self, terminal: Terminal) -> None: ...


class Terminal:
    """A terminal of this session. Everything is for the event loop's thread.

    `screen` is the last one that is known: as of the last `look`, or of the last change while
    somebody watches. After the program's end it is the final one.
    """

    screen: TerminalScreen

    @property
    def ended(self) -> bool:
        """True if the program in it has ended: nothing can be typed any more."""
        raise NotImplementedError

    @property
    def held(self) -> bool:
        """True if the person has the keyboard: the model's input is refused."""
        raise NotImplementedError

    async def look(self, *, since: int | None = None) -> TerminalScreen:
        """Return the screen as it is now. With `since`, `recent` has the lines that have left at
        the top since that many had (`gone`), the newest if there are too many."""
        raise NotImplementedError

    def watch(self, watcher: TerminalWatcher) -> None:
        """Let somebody hear of changes; `screen` follows from now on."""
        raise NotImplementedError

    def unwatch(self, watcher: TerminalWatcher) -> None:
        """Undo `watch`; does nothing for one that doesn't watch."""
        raise NotImplementedError

    async def type(self, data: bytes | bytearray, by: Typist) -> Refusal:
        """Write input, as the bytes that a terminal sends; "" if it was written. That of the model
        is refused while the program reads a secret, which the keeper checks as it writes. Neither
        the person's nor a secret is in the recording."""
        raise NotImplementedError

    async def hold(self, *, held: bool) -> None:
        """Let the person have the keyboard, or give it back. The model hears of it with its next
        result, without what was typed."""
        raise NotImplementedError

    async def resize(self, rows: int, cols: int) -> None:
        """Give it another size; the program in it gets SIGWINCH."""
        raise NotImplementedError
