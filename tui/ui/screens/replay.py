"""The replay of a terminal: its recording, played on the same view."""

from __future__ import annotations

import asyncio
import shlex
from bisect import bisect_right
from pathlib import Path
from typing import Any, ClassVar, Final, cast

from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from tui.core.errors import HoldfastError
from tui.core.paths import shorten
from tui.core.text_cleaning import one_line, visible
from tui.ui.screens.panel import copy
from tui.ui.screens.replay_frames import ReplayFrame, frames_of
from tui.ui.screens.table_screen import whole_words
from tui.ui.toolkit.base_app import ThemedApp
from tui.ui.toolkit.base_screen import BaseScreen
from tui.ui.widgets.keys import REPLAY_KEYS, Keys, bindings, in_rows
from tui.ui.widgets.panes import PaneRule
from tui.ui.widgets.terminal_view import TerminalView

TICK_S: Final = 0.05
_SPEEDS: Final = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
_NOTE_S: Final = 3.0
"""Seconds for which what was noted in the recording is shown."""
_BATCH: Final = 50
"""Frames that are handed over together while the recording is read."""


class ReplayScreen(BaseScreen, Screen[None]):  # pyright: ignore[reportIncompatibleMethodOverride] - Textual's own arrange
    """Plays the recording of a terminal; waits of more than two seconds are shortened."""

    CSS_PATH = "terminal.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(REPLAY_KEYS),
        Binding("escape,q", "dismiss", "back", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = None

    def __init__(self, path: Path, name: str) -> None:
        super().__init__()
        self._path, self._name = path, name
        self._frames: list[ReplayFrame] = []
        self.whole = False
        """True once the recording is read to its end."""
        self._trouble = ""
        self._playing = True
        self._speed = _SPEEDS.index(1.0)
        self._position, self._ticked = 0.0, 0.0
        self._index = -1

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        yield TerminalView(id="terminal")
        yield Static(id="waits", markup=False)
        yield PaneRule(id="keys-rule")
        yield Static(id="keys", markup=False)

    def on_mount(self) -> None:
        self._ticked = self._now
        self._load()
        self.set_interval(TICK_S, self._tick)

    def on_resize(self) -> None:
        self._draw()

    @property
    def _now(self) -> float:
        return cast("ThemedApp", self.app).clock.monotonic()  # pyright: ignore[reportUnknownMemberType]

    @property
    def _length(self) -> float:
        return self._frames[-1].at if self._frames else 0.0

    @work(group="recording", exclusive=True)
    async def _load(self) -> None:
        """Read the recording; what is read can be played meanwhile."""
        frames = frames_of(self._path)

        def some() -> list[ReplayFrame]:
            return [one for one, _ in zip(frames, range(_BATCH), strict=False)]

        try:
            while batch := await asyncio.to_thread(some):
                self._frames += batch
        except OSError as error:
            self._trouble = f"Can't read {shorten(self._path)}: {error.strerror or error}."
        except HoldfastError as error:
            self._trouble = error.message
        self.whole = True
        self._draw()

    def _tick(self) -> None:
        now = self._now
        passed, self._ticked = now - self._ticked, now
        if self._playing and self._frames:
            self._position += passed * _SPEEDS[self._speed]
            if self._position >= self._length:
                self._position = self._length
                self._playing = not self.whole
        self._draw()

    def _draw(self) -> None:
        """Show the frame at the position, and where that is."""
        if not self.is_mounted or not self.query(TerminalView):
            return
        index = bisect_right(self._frames, self._position, key=lambda frame: frame.at) - 1
        if index >= 0 and index != self._index:
            self._index = index
            self.query_one(TerminalView).show(self._frames[index].screen)
        frame = self._frames[index] if index >= 0 else None
        noted = self._note_at(index)
        text = self._trouble or noted or ("" if self._playing else self._player)
        self.set_class(bool(text), "-waits")
        self._put("waits", Content(one_line(visible(text))))
        width = self.size.width
        place = f"{_clock(frame.since if frame else 0)} of {_clock(self._last)}"
        state = "" if self._playing else "paused · "
        about = f"{state}{place} · {_SPEEDS[self._speed]:g}×{'' if self.whole else ' · reading'}"
        name = whole_words(
            f"Replay of {one_line(visible(self._name))}", max(12, width - len(about) - 4)
        )
        self._put("title", Content.assemble((name, "bold"), (f"  {about}", "$text-muted")))
        keys: Keys = (
            ("space", "pause" if self._playing else "play"),
            ("← →", "5 s"),
            ("n N", "step"),
            ("↑ ↓", "speed"),
            ("c", "copy command"),
            ("esc", "back"),
        )
        self._put("keys", in_rows(keys, width - 2, rows=1))

    @property
    def _last(self) -> float:
        return self._frames[-1].since if self._frames else 0.0

    def _note_at(self, index: int) -> str:
        """Return what was noted a moment before the frame."""
        at = self._position
        while index >= 0 and at - self._frames[index].at <= _NOTE_S:
            if self._frames[index].note:
                return self._frames[index].note
            index -= 1
        return ""

    def _put(self, id_: str, content: Content) -> None:
        part = self.query_one(f"#{id_}", Static)
        if part.content != content:
            part.update(content)

    # Keys

    def action_pause(self) -> None:
        """Pause or play; at the end, play from the beginning."""
        if not self._playing and self._position >= self._length:
            self._position = 0.0
        self._playing = not self._playing
        self._draw()

    def action_seek(self, seconds: float) -> None:
        """Go back or forward by so many seconds."""
        self._position = max(0.0, min(self._position + seconds, self._length))
        self._draw()

    def action_edge(self, side: int) -> None:
        """Go to the beginning or to the end."""
        self._position = self._length if side > 0 else 0.0
        self._playing = self._playing and side < 0
        self._draw()

    def action_step(self, step: int) -> None:
        """Pause, and show the frame before or after."""
        self._playing = False
        if self._frames:
            index = max(0, min(max(self._index, 0) + step, len(self._frames) - 1))
            self._position = self._frames[index].at
        self._draw()

    def action_speed(self, step: int) -> None:
        """Play slower or faster."""
        self._speed = max(0, min(self._speed + step, len(_SPEEDS) - 1))
        self._draw()

    def action_command(self) -> None:
        """Copy the command that plays the recording elsewhere."""
        copy(cast("App[Any]", self.app), self._player)

    @property
    def _player(self) -> str:
        return f"asciinema play {shlex.quote(str(self._path))}"

    def action_copy(self) -> None:
        """Copy the screen's text."""
        if self._index >= 0 and (text := self._frames[self._index].screen.text):
            copy(cast("App[Any]", self.app), text)


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
