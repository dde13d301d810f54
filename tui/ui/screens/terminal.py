"""The live screen of a terminal in which the model runs a program. The person can take its
keyboard.

While they have it, every key goes to the program in the terminal, as the bytes that a terminal
sends, and none does anything else: not even a question that comes meanwhile gets one. It waits, and
the foot says so. The mouse over its screen goes to it as far as it asked for that. One key pressed
twice gives the keyboard back; pressed once, it goes to the program with the next key, or after a
moment.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias, cast

from textual import events, on, work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Static

from tui.app.reports.jobs import state_of
from tui.core.dataclass import dataclass
from tui.core.keymap import shown
from tui.core.text_cleaning import one_line, visible
from tui.ui.screens.job_stopping import stop_asked
from tui.ui.screens.panel import copy
from tui.ui.screens.table_screen import whole_words
from tui.ui.toolkit.answer_guard import QUIET_S
from tui.ui.toolkit.base_app import ThemedApp
from tui.ui.toolkit.base_screen import BaseScreen
from tui.ui.toolkit.terminal_keys import key_bytes, paste_bytes
from tui.ui.toolkit.terminal_mouse import mouse_bytes
from tui.ui.widgets.keys import TERMINAL_KEYS, Keys, bindings, in_rows
from tui.ui.widgets.panes import PaneRule
from tui.ui.widgets.terminal_view import TerminalView

if TYPE_CHECKING:
    from tui.agent.background_jobs import OwnedJob
    from tui.tools.terminal_link import Refusal, TerminalLink

AGAIN_S: Final = 1.0
"""Seconds within which a second press of the key gives the keyboard back."""
STATE_S: Final = 0.5
"""Seconds between updates of the state."""
_LEAST: Final = Size(20, 5)
"""Columns and rows that a program gets at least, however small the view is."""
_REFUSED: Final[dict[Refusal, str]] = {
    "full": "Not sent: the program doesn't read its input.",
    "ended": "Not sent: the program has ended.",
    "keyboard": "Not sent: the keyboard isn't yours.",
    "secret": "Not sent: the program reads a secret.",
}

Act: TypeAlias = bytes | Size | Literal["hold", "release"]
"""A step at the terminal: input, another size, the keyboard taken or given back."""


class TerminalWatchScreen(BaseScreen, Screen[None]):  # pyright: ignore[reportIncompatibleMethodOverride] - Textual's own arrange
    """Follows a terminal. What was scrolled back to stays still until End."""

    CSS_PATH = "terminal.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(TERMINAL_KEYS),
        Binding("escape,q", "dismiss", "back", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "TerminalView"

    @dataclass
    class PersonTyped(Message):
        """Sent to the app: the person had the keyboard of a job, and typed."""

        job: str

    def __init__(self, owned: OwnedJob, terminal: TerminalLink) -> None:
        super().__init__()
        self.owned, self._terminal = owned, terminal
        self.typing = False
        """True while the person's keys go to the program."""
        self._held_key = b""
        """The first press of the key that gives the keyboard back."""
        self._again: Timer | None = None
        self._acts: deque[Act] = deque()
        self._doing = False
        self._typed = False
        """True if anything was typed since the keyboard was taken."""
        self._size_before: Size | None = None
        self._questions: list[str] = []
        self._free = asyncio.Event()
        self._free.set()
        self._swallow_from = float("-inf")
        self._said = ""

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        yield TerminalView(id="terminal")
        yield PaneRule(id="keys-rule")
        yield Static(id="keys", markup=False)

    @property
    def view(self) -> TerminalView:
        return self.query_one(TerminalView)

    def on_mount(self) -> None:
        self._terminal.watch(self)
        self._see()
        self.set_interval(STATE_S, self._show_state)

    def on_unmount(self) -> None:
        self._terminal.unwatch(self)
        if self.typing:
            self._let_go()

    def on_resize(self) -> None:
        self._show_state()

    # What it shows

    @work(group="look", exclusive=True)
    async def _see(self) -> None:
        """Show the screen as it is now."""
        self.view.show(await self._terminal.refresh())
        self._show_state()

    def terminal_changed(self, terminal: TerminalLink) -> None:
        """Show a changed screen, unless the person has scrolled back."""
        if not self._in_sight:
            return
        if self.view.following:
            self.view.show(terminal.screen)
        if terminal.ended and self.typing:
            self._swallow_from = self._app.arrived_at
            self._release()
        self._show_state()

    @on(TerminalView.PastAsked)
    @work(group="look", exclusive=True)
    async def _show_past(self, event: TerminalView.PastAsked) -> None:
        """Show the lines above the screen, too."""
        self.view.show_past(await self._terminal.refresh(since=0), event.rows)

    @on(TerminalView.NowAsked)
    def _show_now(self) -> None:
        self.view.show(self._terminal.screen)

    def note(self, text: str) -> None:
        self._said = text
        self._show_state()

    @property
    def _in_sight(self) -> bool:
        return self.is_mounted and bool(self.query(TerminalView))

    def _show_state(self) -> None:
        if not self._in_sight:
            return
        job, screen, width = self.owned.job, self._terminal.screen, self.size.width
        facts = [state_of(job), f"{screen.cols} × {screen.rows}"]
        facts += ["waits for a secret"] if screen.secret and not job.ended else []
        facts += ["scrolled back"] if not self.view.following else []
        title = one_line(visible(screen.title))
        facts += [whole_words(title, 24)] if title and title not in job.command else []
        about = " · ".join(facts)
        about = about if len(about) < width - 16 else " · ".join(facts[:2])
        name = whole_words(
            one_line(visible(f"{job.id} {job.command}")), max(12, width - len(about) - 4)
        )
        muted = "" if self.typing else "$text-muted"
        self._put("title", Content.assemble((name, "bold"), (f"  {about}", muted)))
        self.set_class(bool(self._questions or self._said), "-waits")
        self._put("keys", self._foot(width - 2))

    def _foot(self, width: int) -> Content:
        """Return what the foot says: it is one row whatever it says, since each row that the view
        loses is one that the program loses."""
        back = f"{self._key} {self._key} gives it back."
        if self.typing and self._held_key:
            return Content(f"{self._key} again gives the keyboard back.").truncate(width)
        if self.typing and self._questions:
            back = f"{self._key} {self._key} to answer"
            return Content(
                f"{whole_words(self._questions[0], max(1, width - len(back) - 2))}  {back}"
            )
        if self._said:
            return Content(self._said).truncate(width, ellipsis=True)
        if self.typing:
            whole = f"You have the keyboard: all keys go to the program.   {back}"
            heads = (whole, f"You have the keyboard.   {back}", back)
            return Content(next((one for one in heads if len(one) <= width), back))
        ended = self.owned.job.ended
        keys: Keys = (
            *(() if ended else (("t", "take the keyboard"), ("x", "stop"))),
            ("pgup", "scroll back"),
            ("end", "follow"),
            ("r", "replay"),
            ("y", "copy"),
            ("esc", "back"),
        )
        return in_rows(keys, width, rows=1)

    def _put(self, id_: str, content: Content) -> None:
        shown_now = self.query_one(f"#{id_}", Static)
        if shown_now.content != content:
            shown_now.update(content)

    # The keyboard

    @property
    def _app(self) -> ThemedApp:
        return cast("ThemedApp", self.app)  # pyright: ignore[reportUnknownMemberType] - Textual's

    @property
    def _leave_keys(self) -> tuple[str, ...]:
        return self._app.own_keys["give_back"]

    @property
    def _key(self) -> str:
        return shown(self._leave_keys[0]) if self._leave_keys else ""

    def action_take(self) -> None:
        """Give the person the keyboard: from now on all keys go to the program."""
        if self.typing or self.owned.job.ended or not self._leave_keys:
            return
        self._said = ""
        self.typing = True
        self._free.clear()
        screen = self._terminal.screen
        self._size_before = Size(screen.cols, screen.rows)
        self.add_class("-typing")
        self._do("hold")
        self.view.show(screen)
        self.view.type_here(True)
        self._take_size()
        self._show_state()

    def takes(self, event: events.Key | events.Paste) -> bool:
        if not self.typing:
            return self._swallows()
        if isinstance(event, events.Paste):
            self._flush()
            self._do(
                paste_bytes(event.text, bracketed=bool(self._terminal.modes.get("bracketed_paste")))
            )
        elif event.key not in self._leave_keys:
            self._flush()
            application = bool(self._terminal.modes.get("application_cursor"))
            self._do(key_bytes(event, application=application))
        elif self._held_key:
            self._forget_key()
            self._release()
        else:
            self._held_key = key_bytes(event)
            self._again = self.set_timer(AGAIN_S, self._flush)
            self._show_state()
        return True

    @on(TerminalView.Pointed)
    def _point(self, pointed: TerminalView.Pointed) -> None:
        """Send what the program asked for of the mouse."""
        if not self.typing:
            return
        terminal, event = self._terminal, pointed.event
        alternate = terminal.screen.alternate
        data = mouse_bytes(event, pointed.place, terminal.modes, alternate=alternate)
        if data and not isinstance(event, events.MouseMove):  # between two presses it may move
            self._flush()
        self._do(data)

    def _swallows(self) -> bool:
        """True for a key that was still meant for a program that has just ended."""
        now = self._app.arrived_at
        meant = now - self._swallow_from < QUIET_S
        if meant:
            self._swallow_from = now
        return meant

    def _forget_key(self) -> None:
        self._held_key = b""
        if self._again is not None:
            self._again.stop()
            self._again = None

    def _flush(self) -> None:
        """Send the key that gives the keyboard back, since it wasn't pressed twice."""
        held = self._held_key
        self._forget_key()
        if held and self.typing:
            self._do(held)
            self._show_state()

    def _release(self) -> None:
        """Give the keyboard back, and show that."""
        self._let_go()
        self.remove_class("-typing")
        self.view.type_here(False)
        self._show_state()

    def _let_go(self) -> None:
        """Give the keyboard back, and the terminal its size."""
        self._forget_key()
        self.typing = False
        if self._size_before is not None and not self._terminal.ended:
            self._do(self._size_before)
        self._do("release")
        self._free.set()

    def on_screen_suspend(self) -> None:
        """Give the keyboard back where another screen covers this one: nobody types unseen."""
        if self.typing and self._app.screen is not self:
            self._release()

    async def lets_cover(self, question: str) -> None:
        if not self.typing:
            return
        self._questions.append(question)
        self._show_state()
        try:
            await self._free.wait()
        finally:
            self._questions.remove(question)
            self._show_state()

    @on(TerminalView.RoomChanged)
    def _take_size(self) -> None:
        """Give the terminal the size of the view while the person types in it."""
        room = self.view.whole
        size = Size(max(room.width, _LEAST.width), max(room.height, _LEAST.height))
        screen = self._terminal.screen
        if self.typing and size != Size(screen.cols, screen.rows):
            self._do(size)

    def _do(self, act: Act) -> None:
        """Carry out a step at the terminal, in the order of the keys."""
        if act == b"":
            return
        self._acts.append(act)
        if not self._doing:
            self._doing = True
            self._app.run_worker(self._carry_out(), group="terminal keys")

    async def _carry_out(self) -> None:
        """Carry out the steps; what was typed meanwhile is written at once."""
        try:
            while self._acts:
                act = self._acts.popleft()
                if isinstance(act, bytes):
                    typed = [act]
                    while self._acts and isinstance(more := self._acts[0], bytes):
                        typed.append(more)
                        self._acts.popleft()
                    refused = await self._terminal.type(b"".join(typed), "person")
                    self._typed |= not refused
                    self._refused(refused)
                elif isinstance(act, Size):
                    await self._terminal.resize(act.height, act.width)
                else:
                    await self._terminal.hold(held=act == "hold")
                    if self._typed and act == "release":
                        self._typed = False
                        self._app.post_message(self.PersonTyped(self.owned.job.id))
        finally:
            self._doing = False

    def _refused(self, why: Refusal) -> None:
        said = _REFUSED.get(why, "")
        if said != self._said:
            self._said = said
            self._show_state()

    # Everything else

    @work(group="stop", exclusive=True)
    async def action_stop(self) -> None:
        """Stop the program, once the person has confirmed."""
        await stop_asked(cast("App[Any]", self.app), self.owned.job)
        self._show_state()

    def action_replay(self) -> None:
        """Play the recording from its beginning."""
        from tui.ui.screens.replay import ReplayScreen  # noqa: PLC0415 - on demand

        job = self.owned.job
        self._app.push_screen(ReplayScreen(job.path, f"{job.id} {job.command}"))  # pyright: ignore[reportUnknownMemberType]

    def action_copy(self) -> None:
        """Copy the screen's text."""
        if text := self._terminal.screen.text:
            copy(cast("App[Any]", self.app), text)
