"""A terminal without a program: keeps what was typed in it, and shows what a test draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tui.core.terminal_screen import ScreenRun, TerminalScreen
from tui.tools.terminal_link import Refusal, TerminalLink, TerminalWatcher, Typist


def screen_of(*lines: str | Sequence[ScreenRun], rows: int = 24, cols: int = 80) -> TerminalScreen:
    """A screen with these lines at its top, and the cursor behind the last of them."""
    runs = tuple((ScreenRun(one),) if isinstance(one, str) else tuple(one) for one in lines)
    last = sum(len(run.text) for run in runs[-1]) if runs else 0
    return TerminalScreen(rows, cols, runs, cursor=(max(0, len(runs) - 1), last))


class FakeTerminal(TerminalLink):
    """Keeps in `done` what was done at it, in order. `past` are the lines above its screen."""

    def __init__(self, screen: TerminalScreen) -> None:
        super().__init__(Path())
        self.screen = screen
        self.done: list[bytes | str] = []
        self.refuses: Refusal = ""
        self.past: tuple[str, ...] = ()

    @property
    def input(self) -> bytes:
        """All that was typed."""
        return b"".join(one for one in self.done if isinstance(one, bytes))

    def draw(self, screen: TerminalScreen) -> None:
        """Show another screen to all who watch."""
        self.screen = replace(screen, version=self.screen.version + 1)
        self._tell()

    def end(self) -> None:
        """The program ends."""
        self._end()

    def watch(self, watcher: TerminalWatcher) -> None:
        self._watchers.append(watcher)

    async def refresh(self, *, since: int | None = None) -> TerminalScreen:
        return self.screen if since is None else replace(self.screen, recent=self.past[since:])

    async def type(self, data: bytes | bytearray, by: Typist, *, call_id: str = "") -> Refusal:
        del by, call_id
        if not self.refuses:
            self.done.append(bytes(data))
        return self.refuses

    async def hold(self, *, held: bool) -> None:
        self._held = held
        self.done.append("hold" if held else "release")

    async def resize(self, rows: int, cols: int) -> None:
        self.done.append(f"{cols}x{rows}")
        self.draw(replace(self.screen, rows=rows, cols=cols))
