"""The screen of a session: conversation, output, context, prompt. It lays out and routes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import constants, events, on
from textual.app import ComposeResult
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget

from tui.core.clock import Clock
from tui.core.formatting import plural
from tui.core.keymap import DEFAULT_KEYS, Keymap, shown
from tui.ui.screens import footer
from tui.ui.screens.conversation_side import ConversationSide
from tui.ui.screens.footer import ActivityIndicator
from tui.ui.screens.output_side import OutputSide
from tui.ui.screens.pane_layout import TALL, WIDE, Panes
from tui.ui.screens.prompt_side import PromptSide
from tui.ui.start.first_frame import prompt_place
from tui.ui.toolkit.answer_guard import writes
from tui.ui.toolkit.base_screen import BaseScreen
from tui.ui.widgets.bars import HeaderBar, KeyHint, StatusLine
from tui.ui.widgets.keys import CHAT_KEYS, PROMPT_KEYS, bindings
from tui.ui.widgets.panes import (
    CachedHorizontal,
    CachedRender,
    PaneRule,
    Splitter,
)
from tui.ui.widgets.prompt import Prompt
from tui.ui.widgets.welcome_text import INDENT, Cover, Intro

if TYPE_CHECKING:
    from tui.core.facts import ContextMeasured
    from tui.permissions.types import Mode
    from tui.ui.widgets.conversation.items import Item
    from tui.ui.widgets.conversation.items_view import PreparedItems
    from tui.ui.widgets.conversation.view import ConversationView
    from tui.ui.widgets.fact_log import FactLog
    from tui.ui.widgets.notices import NoticeText, TodoList
    from tui.ui.widgets.output_view import OutputView
    from tui.ui.widgets.retry_banner import RetryBanner
    from tui.ui.widgets.search_bars import SearchBar


_AROUND_PROMPT = 5
"""Cells beside the typed text: the caret, the padding, the cursor after it."""

_LOW = 14
"""With fewer rows than this, everything above the prompt gets one row each."""


class ChatScreen(BaseScreen, Screen[None], CachedRender):  # pyright: ignore[reportIncompatibleMethodOverride] - Textual's own arrange
    """Holds the widgets of a session and none of its state. The app loads its style sheet.

    What the first frame does without exists after `furnish`; the conversation exists earlier if the
    `end` of one is known.

    Args:
        intro: Shown, under the id "intro", while nothing has been said; by default the program's
            own with its `version`, and the prompt right below it until the first message.
        fresh: True if the session will probably be one without messages.
        end: The last items of the session that will be opened.
        covered: True if the head of the welcome screen hides everything until `uncover`.
    """

    class StopAsked(Message):
        """Esc was pressed, with nothing open that it could close."""

    watched_log: FactLog | None = None
    """The facts of a session that another process has; None where it is the app's own."""

    BINDINGS = bindings(CHAT_KEYS)  # pyright: ignore[reportAssignmentType]
    AUTO_FOCUS: ClassVar[str | None] = "#prompt"

    conversation: ConversationView
    todos: TodoList
    retry: RetryBanner
    output: OutputView

    def __init__(
        self,
        clock: Clock,
        *,
        version: str = "",
        intro: Widget | None = None,
        layout_file: Path | None = None,
        fresh: bool = True,
        covered: bool = False,
        end: Sequence[Item] = (),
    ) -> None:
        super().__init__(classes="" if intro else "-start")
        self.set_class(fresh, "-fresh")
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]
        self.VERTICAL_BREAKPOINTS = [(0, "-short"), (TALL, "-tall")]
        self.clock = clock
        self.header = HeaderBar(id="header")
        first = intro or Intro(version, id="intro")
        self.start = first if isinstance(first, Intro) else None
        self.left = ConversationSide(first, end, id="left")
        if end:
            self.conversation = self.left.conversation
        self.queued, self.notice = self.left.queued, self.left.notice
        self.splitter = Splitter(id="splitter")
        self.side = OutputSide(id="side")
        self.prompt_rule = PaneRule(id="prompt-rule")
        self.prompt = Prompt(id="prompt")
        self.ask = PromptSide(self.prompt_rule, self.prompt, id="ask")
        self.status = StatusLine(id="status")
        self.activity = ActivityIndicator(clock, self.prompt_rule)
        self._keys, self._placeholder = footer.IDLE_HINTS, footer.TO_ASK
        self._keymap: Keymap = DEFAULT_KEYS
        self._mode: Mode = "ask"
        self._vim_mode = ""
        self._allowed = 0
        self._to = ""
        self._read_only = False
        self._typed = False
        self._covered = covered
        self._end_shown = bool(end)
        self._spin: Timer | None = None
        self._question_top: int | None = None
        self.panes = Panes(self, self.side, self.splitter, self.prompt_rule, layout_file)

    def compose(self) -> ComposeResult:
        width, height = self.app.size  # pyright: ignore[reportUnknownMemberType]
        self.add_class(
            "-narrow" if width < WIDE else "-wide", "-short" if height < TALL else "-tall"
        )
        self.panes.begin(width)
        yield self.header
        with CachedHorizontal(id="body"):
            yield self.left
            yield self.splitter
            yield self.side
        self._place_ask()
        yield self.ask
        yield self.status
        if self._covered:
            yield Cover(id="cover")

    def note(self, text: str) -> None:
        if text:
            self.notice.say(text, "warning")
        else:
            self.notice.clear()

    def uncover(self) -> None:
        """Remove the cover: it is known by now what comes first."""
        self.query("#cover").remove()

    def leave_room(self, top: int | None) -> None:
        """End the conversation above the row at which a question begins, so that what it is about
        stays visible; None once it is answered."""
        self._question_top = top
        self._make_room()

    def _make_room(self) -> None:
        """Leave the room for a question; again where the prompt behind it takes more rows."""
        top = self._question_top
        for body in self.query("#body"):  # none while the program ends
            # A question that grows tells its row again before the room for the last one is there:
            # only the rows around the body hold.
            rows = 0 if top is None else max(0, self.ask.region.y - max(top, body.region.y))
            body.styles.margin = (0, 0, rows, 0)

    def _ask_grew(self) -> None:
        self.call_later(self._make_room)  # once it is laid out

    def _place_ask(self) -> None:
        """Place the prompt, and notices above it: in a new session in the middle of the screen."""
        beside = below = indent = 0
        if self.has_class("-fresh"):
            beside, below = prompt_place(*self.app.size)  # pyright: ignore[reportUnknownMemberType]
            indent = beside + INDENT - 1
        self.ask.styles.padding = (0, beside, below, beside)
        self.notice.styles.padding = (0, 1 + indent)

    def _set_fresh(self, fresh: bool) -> None:
        """Move the prompt to its place for a session without messages, or with some."""
        self._typed = not fresh
        # Restyling the whole screen would take 18 ms, between Enter and the prompt's own line.
        self.set_class(fresh, "-fresh", update=False)
        self.left.end_start()
        for other in self.query("#intro, #conversation, #conversation-rule, #meter"):
            other.update_node_styles()
        self._lay_out()

    def _lay_out(self) -> None:
        """Arrange what depends on the size and on whether anything was said."""
        self.set_class(self.size.height < _LOW, "-low")
        self._place_ask()
        self._show_begun()
        self._show_placeholder()
        self.panes.arrange()

    def _show_begun(self) -> None:
        begun = self.start is None or not self.has_class("-fresh")
        self.status.state = replace(self.status.state, begun=begun)

    def on_mount(self) -> None:
        self.watch(self.ask, "virtual_size", self._ask_grew, init=False)
        self._show_begun()
        self._spin = self.set_interval(1 / footer.FRAMES_PER_S, self._tick, pause=True)
        self.idle()
        if self.left.begun:
            self.work("opening the session")
        self.show_mode()

    async def furnish(self) -> None:
        """Add what the first frame does without. Called once, before a session is shown."""
        with self.app.batch_update():  # pyright: ignore[reportUnknownMemberType]
            await self.left.furnish(self.clock)
            await self.side.furnish()
        self.conversation, self.todos = self.left.conversation, self.left.todos
        self.retry, self.output = self.left.retry, self.side.output

    def use_keys(self, keymap: Keymap) -> None:
        """Send by these keys, and name them in the footer."""
        self._keymap = keymap
        self.prompt.keymap = keymap
        self._show_keys()

    def on_resize(self) -> None:
        self._lay_out()
        self._show_keys()

    @property
    def busy(self) -> bool:
        return bool(self.activity.what)

    @property
    def calm(self) -> bool:
        """True if nothing moves by itself (`motion = "reduced"`). Seconds are still counted."""
        return self.activity.calm

    @calm.setter
    def calm(self, calm: bool) -> None:
        self.activity.calm = calm
        level = "none" if calm else constants.TEXTUAL_ANIMATIONS
        self.app.animation_level = level  # pyright: ignore[reportUnknownMemberType]

    def work(
        self,
        phase: str,
        *,
        listening: bool = False,
        streamed: str = "",
        since: float | None = None,
        counts: bool = True,
        movable: bool = False,
    ) -> None:
        """Show what is going on, and since when.

        Args:
            streamed: The piece of an answer that has just come.
            movable: True for a command that can go to the background.

        The other arguments are those of `ActivityIndicator.enter`.
        """
        if not self.busy:
            self._hints(footer.BUSY_HINTS, "Type to queue a message")
            if self._spin:
                self._spin.resume()
        keys = self._keymap.get("to_background", ()) if movable else ()
        offer = f"{shown(keys[0])}: to the background" if keys else ""
        entered = self.activity.enter(
            phase, listening=listening, since=since, counts=counts, offer=offer
        )
        self.activity.stream(streamed)
        if entered:
            self._tick()

    def idle(self) -> None:
        """Show that nothing is going on any more."""
        self.activity.leave()
        if self._spin:
            self._spin.pause()
        self._hints(footer.IDLE_HINTS, footer.TO_READ if self._read_only else footer.TO_ASK)

    def measure(self, state: ContextMeasured | None, goal: str | None = None) -> None:
        """Show how full the context is, and how far a goal is, if that has changed."""
        self.left.meter.state = state
        if goal is not None or state is None:
            self.left.meter.goal = goal or ""

    def show_mode(self, mode: Mode | None = None, allowed: int | None = None) -> None:
        """Show over the prompt what is asked, by `mode` or the one shown before.

        Elevated counts only outside plan mode. `allowed` is the number of rules that do not ask.
        """
        self._mode = mode or self._mode
        self._allowed = self._allowed if allowed is None else allowed
        elevated = self.header.state.elevated and self._mode != "plan"
        text, style = footer.ELEVATED if elevated else footer.MODES[self._mode]
        if self._allowed and not elevated and self._mode != "plan":
            text += f", with {plural(self._allowed, 'exception')}"
        text, style = footer.READ_ONLY if self._read_only else (text, style)
        text, style = footer.RECIPIENTS.get(self._to, (text, style))
        vim = (f"{self._vim_mode} · ", footer.VIM_MODES[self._vim_mode]) if self._vim_mode else ""
        self.prompt_rule.right = Content.assemble(vim, (text, style))

    def show_saving(self, trouble: str) -> None:
        """Show why nothing is saved, until it is again."""
        if trouble and not self._read_only:
            self.notice.say(f"Not saved: {trouble.rstrip('.')}.", "error", hint=footer.UNSAVED)
        elif self.notice.text.startswith(footer.NOT_SAVED):
            self.notice.say("Everything is saved again.", "success")

    def show_read_only(self, read_only: bool) -> None:
        """Show at the prompt whether the session can be continued."""
        self._read_only = read_only
        if read_only and self.notice.text.startswith(footer.NOT_SAVED):
            self.notice.clear()  # it never will be; the prompt says so in other words
        self.show_mode()
        if not self.busy:
            self.idle()

    def add(self, item: Item, *, at_start: NoticeText | None = None) -> None:
        """Add an item. A new session still begins with its first screen if the item is a notice
        that can be said beside it, `at_start`."""
        if at_start and self.start is not None and self.has_class("-fresh"):
            self.left.say_at_start(at_start)
        elif self.has_class("-fresh"):
            self._set_fresh(False)
        self.conversation.append(item)

    def action_widen(self, cells: int) -> None:
        self.panes.widen(cells)

    def fill(
        self, items: Sequence[Item] | PreparedItems, *, end: bool = False, again: bool = False
    ) -> None:
        """Show another session: all of it, or its `end` until the next `fill` brings the rest; with
        `again`, the same one as it was read again."""
        if isinstance(items, Sequence):
            items = self.conversation.prepare(items)
        if again:
            self.conversation.renew(items)
        else:
            if not self._end_shown:
                self.conversation.clear()
            self.conversation.complete(items)
        self._end_shown = end
        if self.has_class("-fresh") == bool(items.items):
            self._set_fresh(not items.items)
        self.uncover()
        self.side.clear()
        self.measure(None)
        self.todos.todos = ()
        self.queued.texts = ()
        self.retry.done()

    def action_stop_or_close(self) -> None:
        """Esc: close what covers the conversation, otherwise stop the agent."""
        if self.has_class("-narrow") and self.has_class("-over"):
            self.panes.toggle()
        elif self.left.finding:
            self.left.end_find()
        elif self.side.has_focus_within and self.panes.opened:
            self.panes.toggle()
        else:
            self.notice.clear()
            self.post_message(self.StopAsked())
        self.prompt.focus()

    def action_next_pane(self) -> None:
        """Tab: from the prompt to what waits for the person, otherwise to the next pane."""
        waits = self.query("RetryBanner.-counts, ResumeCard Choice")
        if waits and self.focused is self.prompt:
            waits.first().focus()
        else:
            self.focus_next()

    def action_page(self, step: int) -> None:
        self.conversation.action_page(step)

    def action_edge(self, step: int) -> None:
        self.conversation.action_edge(step)

    def action_fold_tools(self) -> None:
        self.conversation.action_fold_tools()

    async def action_find(self, text: str = "") -> None:
        """Search the conversation for a text."""
        self.remove_class("-over")
        self._show_keys()
        await self.left.find(text)

    async def action_search_history(self) -> None:
        if not await self.ask.search():
            self.notice.say("No prompts in this folder yet.")

    def on_search_bar_closed(self, event: SearchBar.Closed) -> None:
        event.stop()
        self.prompt.focus()

    @on(OutputSide.Resized)
    def _side_sized(self) -> None:
        self.panes.arrange()
        self._show_keys()

    @on(Splitter.Dragged)
    def _dragged(self, event: Splitter.Dragged) -> None:
        self.panes.drag(event.x)

    @on(Splitter.Dropped)
    def _dropped(self) -> None:
        self.panes.drop()

    def claim(self, event: events.Key, *, settled: bool = True) -> bool:
        """Send typing to the prompt before the focused widget gets it, unless the key means
        something.

        True if the key is done with. If not `settled`, it chooses nothing.
        """
        focused, key = self.focused, event.key
        if not event.is_printable:
            return False
        first, self._typed = not self._typed, True
        if settled and first and self.start and self._offers_rows and key in {"1", "2", "3"}:
            return self.start.choose(int(key) - 1)
        if focused is self.prompt or (focused and focused.check_consume_key(key, event.character)):
            return False
        if not self.active_bindings.keys() & {key, event.character}:
            self.set_focus(self.prompt)
        return False

    @property
    def _offers_rows(self) -> bool:
        """True if a digit means one of the rows of a new session."""
        at_rows = self.focused in {self.prompt, self.start}
        return at_rows and self.has_class("-fresh") and not self.prompt.text

    def on_paste(self, event: events.Paste) -> None:
        if not self.prompt.has_focus:
            event.stop()
            self.prompt.focus()
            self.prompt.add_paste(event.text)

    @on(events.Key)
    def _give_to_prompt(self, event: events.Key) -> None:
        """Focus the prompt for a key of its own that the focused pane has not taken; the app then
        looks for its binding there."""
        if writes(self.focused) or event.key in self.active_bindings:
            return
        keymap = self.prompt.keymap
        if any(event.key in keymap[key.name] for key in PROMPT_KEYS if key.name and key.action):
            self.set_focus(self.prompt)

    @on(Prompt.Edited)
    def _typed_on(self) -> None:
        self._typed = True
        self.notice.clear()
        self.show_saving(self.status.state.trouble)

    @on(Prompt.ModeChanged)
    def _mode_changed(self, event: Prompt.ModeChanged) -> None:
        self._vim_mode = event.mode
        self.show_mode()

    @on(Prompt.Addressed)
    def _addressed(self, event: Prompt.Addressed) -> None:
        self._to = event.to
        self.ask.address(event.to)
        self.show_mode()
        self._show_keys()

    def _hints(self, hints: tuple[KeyHint, ...], placeholder: str) -> None:
        self._keys, self._placeholder = hints, placeholder
        self._show_placeholder()
        self._show_keys()

    def _show_placeholder(self) -> None:
        """Show as much of the empty prompt's text as there is room for."""
        parts = self._placeholder.split(" · ")
        while len(parts) > 1 and len(" · ".join(parts)) > self.size.width - _AROUND_PROMPT:
            parts.pop()
        self.prompt.placeholder = " · ".join(parts)

    def on_descendant_focus(self) -> None:
        self._show_keys()

    def _on_conversation_view_item_selected(self) -> None:
        self._show_keys()

    def _show_keys(self) -> None:
        """Show what the keys do; while the output covers the conversation, Esc leads back."""
        keys = footer.footer(self.focused, self._keys)
        if self._to:
            enter = footer.SAVE if self._to == "#" else footer.RUN
            keys = tuple(enter if hint == footer.SEND else hint for hint in keys)
        if self.has_class("-narrow") and self.has_class("-over"):
            keys = (
                footer.BACK,
                *(hint for hint in keys if hint.key not in {footer.BACK.key, footer.OUTPUT.key}),
            )
        keys = footer.with_own_keys(keys, self._keymap)
        self.status.state = replace(self.status.state, hints=keys)

    def _tick(self) -> None:
        if self._question_top is None or self._question_top > self.prompt_rule.region.y:
            self.activity.draw()
        if self.busy and self.left.query_children("#conversation"):
            self.conversation.tick(self.clock.monotonic())
