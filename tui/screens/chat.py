"""The screen of a session: conversation, output, context, prompt. It lays out and routes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Static

from tui.clock import Clock
from tui.widgets.context_meter import ContextMeter, MeterState
from tui.widgets.figures import duration
from tui.widgets.header import HeaderBar
from tui.widgets.keys import CHAT_KEYS, bindings
from tui.widgets.notice import NoticeLine
from tui.widgets.plain import one_line
from tui.widgets.prompt import Prompt
from tui.widgets.prompt_history import PromptHistory
from tui.widgets.queued import Queued
from tui.widgets.retry_banner import RetryBanner
from tui.widgets.rule import PaneRule
from tui.widgets.status_line import Hint, StatusLine
from tui.widgets.todos import TodoList

if TYPE_CHECKING:
    from tui.permissions.base import Mode
    from tui.widgets.conversation.items import Item
    from tui.widgets.conversation.view import Conversation
    from tui.widgets.output_view import OutputView

Place: TypeAlias = Literal["page_up", "page_down", "home", "end"]

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
FRAMES_PER_S = 4

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
_NO_OUTPUT = """\
What tools print appears here while they run.
Enter on a tool call in the conversation shows its output again."""


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

    `conversation` and `output` exist after `furnish`: the first frame does without them.
    """

    conversation: Conversation
    output: OutputView

    class StopAsked(Message):
        """Esc, with nothing open that it could close."""

    BINDINGS = bindings(CHAT_KEYS)  # pyright: ignore[reportAssignmentType]
    AUTO_FOCUS: ClassVar[str | None] = "#prompt"

    def __init__(
        self, clock: Clock, history: PromptHistory | None = None, *, version: str = ""
    ) -> None:
        super().__init__(classes="-fresh -no-output")
        self._version = version
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]
        self.VERTICAL_BREAKPOINTS = [(0, "-short"), (22, "-tall")]
        self.clock = clock
        self.header = HeaderBar(id="header")
        self.todos = TodoList(id="todos")
        self.queued = Queued(id="queued")
        self.retry = RetryBanner(clock, id="retry")
        self.notice = NoticeLine(id="notice")
        self.output_rule = PaneRule("output", start="┬", id="output-rule")
        self.meter_rule = PaneRule("context", start="├", id="meter-rule")
        self.prompt_rule = PaneRule(id="prompt-rule")
        self.prompt = Prompt(history, id="prompt")
        self.status = StatusLine(id="status")
        self._meters = (ContextMeter(id="meter"), ContextMeter(compact=True, id="meter-line"))
        self._phase = ""
        self._since = 0.0
        self._spin: Timer | None = None

    def compose(self) -> ComposeResult:
        meter, meter_line = self._meters
        yield self.header
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield PaneRule("conversation", id="conversation-rule")
                yield Static(_intro(self._version), id="intro", markup=False)
                yield self.todos
                yield self.queued
                yield self.retry
                yield self.notice
                yield meter_line
            with Vertical(id="side"):
                yield self.output_rule
                yield Static(_NO_OUTPUT, id="no-output", markup=False)
                yield self.meter_rule
                yield meter
        yield self.prompt_rule
        with Horizontal(id="prompt-row"):
            yield Static("❯", id="caret", markup=False)
            yield self.prompt
        yield PaneRule(id="foot-rule")
        yield self.status

    def on_mount(self) -> None:
        self._spin = self.set_interval(1 / FRAMES_PER_S, self._draw_phase, pause=True)
        self.idle()
        self.show_mode("ask")

    async def furnish(self) -> None:
        """Add what the first frame does without. Called once, before a session is shown."""
        from tui.widgets.conversation.view import Conversation  # noqa: PLC0415
        from tui.widgets.output_view import OutputView  # noqa: PLC0415

        self.conversation = Conversation(id="conversation")
        self.output = OutputView(id="output")
        with self.app.batch_update():  # pyright: ignore[reportUnknownMemberType]
            await self.query_one("#left").mount(self.conversation, after="#intro")
            await self.query_one("#side").mount(self.output, after="#no-output")

    def on_resize(self) -> None:
        self.call_after_refresh(self._join_rules)

    @property
    def busy(self) -> bool:
        return bool(self._phase)

    def work(self, phase: str) -> None:
        """Something is going on: say what, and since when."""
        if phase == self._phase:
            return
        if not self._phase:
            self._since = self.clock.monotonic()
            self._hints(BUSY_HINTS, "Type ahead: it is sent when the agent can take it")
            if self._spin:
                self._spin.resume()
        self._phase = phase
        self._draw_phase()

    def idle(self) -> None:
        """Nothing is going on any more."""
        self._phase = ""
        if self._spin:
            self._spin.pause()
        self.prompt_rule.title = Content("")
        self._hints(IDLE_HINTS, "What shall be done?  / for commands, ! for the shell")

    def measure(self, state: MeterState) -> None:
        for meter in self._meters:
            meter.state = state

    def show_mode(self, mode: Mode) -> None:
        text, style = MODES[mode]
        self.prompt_rule.right = Content.styled(text, style)

    def add(self, item: Item) -> None:
        self.remove_class("-fresh")
        self.conversation.append(item)

    def follow(self) -> None:
        """To the end of the conversation, and along with it."""
        self.conversation.action_edge(1)

    def show_output(self, title: str, text: str) -> None:
        self.remove_class("-no-output")
        self.output_rule.title = Content.assemble(
            ("output · ", "$text-muted"), (one_line(title), "$foreground")
        )
        self.output.show(title, text)

    def toggle_output(self) -> None:
        self.toggle_class("-over" if self.has_class("-narrow") else "-side-closed")
        self.call_after_refresh(self._join_rules)

    def fill(self, items: list[Item]) -> None:
        """Show another session from its beginning."""
        self.conversation.clear()
        self.conversation.extend(items)
        self.set_class(not items, "-fresh")
        self.add_class("-no-output")
        self.output.clear()
        self.output_rule.title = Content.styled("output", "$text-muted")
        self.measure(MeterState())
        self.todos.todos = ()
        self.queued.texts = ()
        self.retry.done()

    def action_stop_or_close(self) -> None:
        """Esc: what covers the conversation, else the agent."""
        if self.has_class("-narrow") and self.has_class("-over"):
            self.toggle_output()
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

    def _draw_phase(self) -> None:
        if not self._phase:
            return
        now = self.clock.monotonic()
        glyph = SPINNER[int(now * FRAMES_PER_S) % len(SPINNER)]
        self.prompt_rule.title = Content.assemble(
            (f"{glyph} ", "bold $text-primary"),
            (self._phase, "$foreground"),
            (f"  {duration(now - self._since)}", "$text-muted"),
        )

    def _join_rules(self) -> None:
        side = self.query_one("#side")
        shown = side.display and not self.has_class("-narrow")
        self.prompt_rule.joint = side.region.x if shown else None
        self.output_rule.start = "┬" if shown else "─"
        self.meter_rule.start = "├" if shown else "─"
