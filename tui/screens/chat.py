"""The screen of a session: conversation, output, context, prompt. It lays out and routes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Static

from tui.clock import Clock
from tui.screens import layout
from tui.screens.output_side import OutputSide
from tui.screens.phase import FRAMES_PER_S, Phase
from tui.widgets.context_meter import ContextMeter, MeterState
from tui.widgets.header import HeaderBar
from tui.widgets.keys import CHAT_KEYS, bindings
from tui.widgets.notice import NoticeLine
from tui.widgets.prompt import Prompt
from tui.widgets.prompt_history import PromptHistory
from tui.widgets.queued import Queued
from tui.widgets.rule import PaneRule
from tui.widgets.splitter import Splitter
from tui.widgets.status_line import Hint, StatusLine

if TYPE_CHECKING:
    from tui.permissions.base import Mode
    from tui.widgets.conversation.items import Item
    from tui.widgets.conversation.view import Conversation
    from tui.widgets.find_bar import FindBar
    from tui.widgets.output_view import OutputView
    from tui.widgets.retry_banner import RetryBanner
    from tui.widgets.todos import TodoList

Place: TypeAlias = Literal["page_up", "page_down", "home", "end"]

WIDE = 100
TALL = 22
LEFT_MIN, SIDE_MIN = 40, 30
"""Cells that neither pane goes below."""

IDLE_HINTS = (
    Hint("enter", "send"),
    Hint("ctrl+p", "commands", "app.command_palette"),
    Hint("f1", "help", "app.command('help')"),
    Hint("f3", "sessions", "app.command('sessions')"),
    Hint("f4", "output", "app.command('output')"),
    Hint("shift+tab", "mode", "app.next_mode"),
)
BUSY_HINTS = (
    Hint("esc", "stop", "screen.stop_or_close"),
    Hint("enter", "queue"),
    *IDLE_HINTS[1:],
)
MODES: dict[Mode, tuple[str, str]] = {
    "ask": ("asks before changes", "$text-muted"),
    "accept_edits": ("accepts edits", "$text-accent"),
    "plan": ("plan: read only", "$text-secondary"),
}


_WHAT = (
    "Say what shall be done, in your own words. It reads, searches, edits and runs commands in"
    " this folder, and asks before it changes anything."
)


def _intro(version: str) -> Content:
    return Content.assemble(
        ("holdfast", "bold $text-primary"),
        (f" {version}\n\n", "$text-muted"),
        (f"{_WHAT}\n\n", "$foreground"),
        ("for instance\n", "$text-muted"),
        ("  read README.md and say what this project is about\n", "$text-secondary"),
        ("  run the tests and fix what fails\n\n", "$text-secondary"),
        ("f1", "$text-accent"),
        (" keys and commands     ", "$text-muted"),
        ("f3", "$text-accent"),
        (" earlier sessions", "$text-muted"),
    )


class ChatScreen(Screen[None]):
    """Holds the widgets of a session and nothing of its state. Its sheet is loaded by the app.

    What the first frame does without exists after `furnish`.
    """

    conversation: Conversation
    todos: TodoList
    retry: RetryBanner

    class StopAsked(Message):
        """Esc, with nothing open that it could close."""

    BINDINGS = bindings(CHAT_KEYS)  # pyright: ignore[reportAssignmentType]
    AUTO_FOCUS: ClassVar[str | None] = "#prompt"

    def __init__(
        self,
        clock: Clock,
        history: PromptHistory | None = None,
        *,
        version: str = "",
        layout_file: Path | None = None,
    ) -> None:
        super().__init__(classes="-fresh")
        self._version = version
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]
        self.VERTICAL_BREAKPOINTS = [(0, "-short"), (TALL, "-tall")]
        self.clock = clock
        self.header = HeaderBar(id="header")
        self.queued = Queued(id="queued")
        self.notice = NoticeLine(id="notice")
        self.splitter = Splitter(id="splitter")
        self.side = OutputSide(id="side")
        self.meter_line = ContextMeter(compact=True, id="meter-line")
        self.prompt_rule = PaneRule(id="prompt-rule")
        self.prompt = Prompt(history, id="prompt")
        self.status = StatusLine(id="status")
        self._phase = Phase(clock, self.prompt_rule)
        self._spin: Timer | None = None
        self._find: FindBar | None = None
        self._layout_file = layout_file
        self._layout = layout.load(layout_file) if layout_file else layout.Layout()
        self.set_class(not self._layout.open, "-side-closed")

    def compose(self) -> ComposeResult:
        width, height = self.app.size  # pyright: ignore[reportUnknownMemberType]
        self.add_class(
            "-narrow" if width < WIDE else "-wide", "-short" if height < TALL else "-tall"
        )
        yield self.header
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield PaneRule("conversation", id="conversation-rule")
                yield Static(_intro(self._version), id="intro", markup=False)
                yield self.queued
                yield self.notice
                yield self.meter_line
            yield self.splitter
            yield self.side
        yield self.prompt_rule
        with Horizontal(id="prompt-row"):
            yield Static("❯", id="caret", markup=False)
            yield self.prompt
        yield PaneRule(id="foot-rule")
        yield self.status

    def on_mount(self) -> None:
        self._spin = self.set_interval(1 / FRAMES_PER_S, self._tick, pause=True)
        self.idle()
        self.show_mode("ask")

    async def furnish(self) -> None:
        """Add what the first frame does without. Called once, before a session is shown."""
        from tui.widgets.conversation.view import Conversation  # noqa: PLC0415
        from tui.widgets.retry_banner import RetryBanner  # noqa: PLC0415
        from tui.widgets.todos import TodoList  # noqa: PLC0415

        self.conversation = Conversation(id="conversation")
        self.todos = TodoList(id="todos")
        self.retry = RetryBanner(self.clock, id="retry")
        with self.app.batch_update():  # pyright: ignore[reportUnknownMemberType]
            left = self.query_one("#left")
            await left.mount(self.conversation, self.todos, after="#intro")
            await left.mount(self.retry, after="#queued")
            await self.side.furnish()

    def on_resize(self) -> None:
        self._arrange()

    @property
    def busy(self) -> bool:
        return bool(self._phase.what)

    @property
    def output(self) -> OutputView:
        return self.side.output

    @property
    def output_rule(self) -> PaneRule:
        return self.side.rule

    def work(self, phase: str, *, listening: bool = False) -> None:
        """Something is going on: say what, and since when. `listening`: a byte of the model's
        answer has just come, or the wait for the first one has begun."""
        if not self.busy:
            self._hints(BUSY_HINTS, "Type ahead: it is sent when the agent can take it")
            if self._spin:
                self._spin.resume()
        if self._phase.enter(phase, listening=listening):
            self._tick()

    def idle(self) -> None:
        """Nothing is going on any more."""
        self._phase.leave()
        if self._spin:
            self._spin.pause()
        self._hints(IDLE_HINTS, "What shall be done?  / for commands, ! for the shell")

    def measure(self, state: MeterState) -> None:
        self.side.meter.state = self.meter_line.state = state

    def show_mode(self, mode: Mode) -> None:
        text, style = MODES[mode]
        self.prompt_rule.right = Content.styled(text, style)

    def add(self, item: Item) -> None:
        self.remove_class("-fresh")
        self.conversation.append(item)

    def follow(self) -> None:
        """To the end of the conversation, and along with it."""
        self.conversation.action_edge(1)

    def show_output(
        self,
        title: str,
        text: str,
        *,
        diff: bool = False,
        receipt: dict[str, Any] | None = None,
        whole: bool = False,
    ) -> None:
        """Show what a tool printed, or its diff. `whole`: all of it, where `receipt` knows."""
        self.side.show(title, text, diff=diff, receipt=receipt, whole=whole)

    def badge_output(self, receipt: dict[str, Any] | None) -> None:
        """Say what was cut of the output that is shown."""
        self.side.badge(receipt)

    def toggle_output(self) -> None:
        if self.has_class("-narrow"):
            self.toggle_class("-over")
        else:
            self._keep(replace(self._layout, open=not self._layout.open))

    def resize_side(self, share: float) -> None:
        """Give the side so much of the width, 0 to 1, and keep that."""
        self._keep(self._layout.resized(share))

    def action_widen(self, cells: int) -> None:
        """Make the conversation wider, by so many cells."""
        side = self.side
        if side.display and not self.has_class("-narrow"):
            self.resize_side((side.size.width - cells) / self.size.width)

    def fill(self, items: list[Item]) -> None:
        """Show another session from its beginning."""
        self.conversation.clear()
        self.conversation.extend(items)
        self.set_class(not items, "-fresh")
        self.side.clear()
        self.measure(MeterState())
        self.todos.todos = ()
        self.queued.texts = ()
        self.retry.done()

    def action_stop_or_close(self) -> None:
        """Esc: what covers the conversation, else the agent."""
        if self.has_class("-narrow") and self.has_class("-over"):
            self.toggle_output()
        elif self._find and self._find.opened:
            self._find.action_close()
        else:
            self.notice.clear()
            self.post_message(self.StopAsked())
        self.prompt.focus()

    def action_scroll(self, place: Place) -> None:
        match place:
            case "page_up" | "page_down":
                self.conversation.action_page(-1 if place == "page_up" else 1)
            case "home" | "end":
                self.conversation.action_edge(-1 if place == "home" else 1)

    def action_fold_tools(self) -> None:
        self.conversation.action_fold_tools()

    async def action_find(self, text: str = "") -> None:
        """Look for a text in the conversation."""
        from tui.widgets.find_bar import FindBar  # noqa: PLC0415 - only where it is asked for

        if self._find is None:
            self._find = FindBar(id="find")
            await self.query_one("#left").mount(self._find, before="#meter-line")
        self.remove_class("-over")
        self._find.open(text)

    def on_find_bar_wanted(self, event: FindBar.Wanted) -> None:
        event.stop()
        found = self.conversation.find(event.text, back=event.back, anew=event.anew)
        if self._find:
            self._find.say(found=found or not event.text)

    def on_find_bar_closed(self, event: FindBar.Closed) -> None:
        event.stop()
        self.conversation.end_find()
        self.prompt.focus()

    @on(Splitter.Dragged)
    def _dragged(self, event: Splitter.Dragged) -> None:
        self._layout = self._layout.resized((self.size.width - event.x - 1) / self.size.width)
        self._arrange()

    @on(Splitter.Dropped)
    def _dropped(self) -> None:
        self._keep(self._layout)

    def on_key(self, event: events.Key) -> None:
        """What is typed goes to the prompt, unless the key means something where the focus is."""
        if not event.is_printable or self.prompt.has_focus:
            return
        if event.character and not self.active_bindings.keys() & {event.key, event.character}:
            event.stop()
            self.prompt.focus()
            self.prompt.insert(event.character)

    def on_paste(self, event: events.Paste) -> None:
        if not self.prompt.has_focus:
            event.stop()
            self.prompt.focus()
            self.prompt.add_paste(event.text)

    @on(Prompt.Edited)
    def _typed_on(self) -> None:
        self.notice.clear()

    def _hints(self, hints: tuple[Hint, ...], placeholder: str) -> None:
        self.status.state = replace(self.status.state, hints=hints)
        self.prompt.placeholder = placeholder

    def _tick(self) -> None:
        self._phase.draw()
        if self.busy and self.query("#conversation"):
            self.conversation.tick(self.clock.monotonic())

    def _keep(self, wanted: layout.Layout) -> None:
        self._layout = wanted
        if self._layout_file:
            layout.save(self._layout_file, wanted)
        self._arrange()

    def _arrange(self) -> None:
        """Lay the panes out, and draw the lines between them to fit."""
        side, width = self.side, self.size.width
        if width >= WIDE:
            wanted = round(width * self._layout.side)
            side.styles.width = max(SIDE_MIN, min(wanted, width - LEFT_MIN - 1))
        else:
            side.styles.clear_rule("width")
        self.set_class(not self._layout.open, "-side-closed")
        self.call_after_refresh(self._join_rules)

    def _join_rules(self) -> None:
        shown = self.splitter.display
        self.prompt_rule.joint = self.splitter.region.x if shown else None
        self.splitter.joints = frozenset({self.side.meter_rule.region.y - self.splitter.region.y})
