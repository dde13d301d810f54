"""A session that another process has, live: its conversation as it comes, its questions, and a
prompt that goes to that process. Leaving ends nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, cast

from textual import events, on
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Static

from tui.app.commands import find as find_command
from tui.app.door.lines import (
    AskedLine,
    Ended,
    Hello,
    OwnerNotice,
    RequestOutcome,
    SessionStatus,
    UnsentLine,
)
from tui.core import facts
from tui.core.clock import Clock
from tui.core.errors import UsageError
from tui.core.facts import Fact
from tui.core.formatting import moment_of, plural
from tui.core.gc_pause import gc_pause
from tui.core.paths import Folders, shorten
from tui.core.text_cleaning import one_line
from tui.desk.drafts import draft_of, keep_draft
from tui.desk.host import DeskHost
from tui.desk.watched_session import WatchedSession
from tui.permissions.asked import Answered
from tui.session.records import Record
from tui.ui.desk.question_dialogs import QuestionDialogs
from tui.ui.desk.session_words import busy, cut_words, is_open, place_words, state_words
from tui.ui.fact_renderer import FactRenderer
from tui.ui.screens.chat import ChatScreen
from tui.ui.screens.footer import OUTPUT, QUEUE, RECIPIENTS, SEND, VIM_MODES
from tui.ui.toolkit.answer_guard import SEND_AGAIN, Draft, guard_of
from tui.ui.toolkit.base_app import ThemedApp
from tui.ui.toolkit.key_sequencer import DoublePress
from tui.ui.widgets.asked_line import LineAsked
from tui.ui.widgets.bars import KeyHint
from tui.ui.widgets.conversation.items import NoticeItem
from tui.ui.widgets.conversation.view import ConversationView
from tui.ui.widgets.fact_log import FactLog
from tui.ui.widgets.keys import ONLY_ITS_OWN_KEYS, WATCH_KEYS, bindings, keys_for
from tui.ui.widgets.prompt import Prompt
from tui.ui.widgets.record_items import restored, result_text, unfinished_items, warm
from tui.ui.widgets.retry_banner import RetryBanner

if TYPE_CHECKING:
    from textual.timer import Timer

    from tui.permissions.types import Mode

AGAIN_S: Final = 2.0
"""Seconds within which a second Esc or Ctrl+C leaves."""
SILENT_S: Final = 5.0
"""Seconds after which it is said that the owner hasn't answered."""
_ROWS_S: Final = 2.0
_COUNT_S: Final = 0.5

_ONLY_ITS_OWN: Final = "Only the session's own screen has this."
_OPENING: Final = "opening the session"
_KEPT: Final = "This was typed here before and not sent."
_NOT_RUN: Final = "Its process ended before this could run:"
_LEFT_UNSENT: Final = "Its process ended before this was sent."
_OWN_KEYS: Final = tuple(
    key
    for key in (*ONLY_ITS_OWN_KEYS, *WATCH_KEYS)
    if key.action not in {"", "interrupt", "screen.stop_or_close"}
)
_HERE: Final = frozenset({"help", "quit", "find", "output", "copy"})
"""Commands about what is seen here."""
_NOTHING: Final = "Nothing has been said in this session yet."
_TO_CONTINUE: Final = "Ask for anything; it works in the background · Esc leaves"
_TO_JOIN: Final = "Type to join in · Esc leaves, it runs on"
_LEAVE: Final = KeyHint("esc", "leave", "screen.stop_or_close")
_STOP: Final = KeyHint("ctrl+c", "stop", "screen.interrupt")
_TAKE: Final = KeyHint("ctrl+t", "take over", "screen.take_over")
_HELP: Final = KeyHint("f1", "help", "app.help", "help")
_SHOWS_OUTPUT: Final = KeyHint(OUTPUT.key, OUTPUT.text, "screen.show_output", OUTPUT.name)


class SessionPlace(Protocol):
    """The place that a session is watched from: the chat, the desk, or a program of its own."""

    def leave(self, screen: Screen[None]) -> None:
        """Stop watching. The screen has said goodbye to the session."""

    def take_over(self, screen: Screen[None], hello: Hello) -> str:
        """Continue a session of this machine here, in the place of the screen. Returns why that
        can't be; "" if it is done."""
        ...

    def follow(self, hello: Hello | None, status: SessionStatus) -> None:
        """The state of the session has changed."""


class SessionScreen(ChatScreen):
    """Watches `session` on `host`.

    `home` holds what was typed and not sent until the next look. `fact_log` has all facts since the
    screen opened.
    """

    shows_others = True
    BINDINGS: ClassVar[list[BindingType]] = [  # pyright: ignore[reportIncompatibleVariableOverride]
        *bindings(ONLY_ITS_OWN_KEYS),
        *bindings(WATCH_KEYS),
    ]

    def __init__(
        self,
        host: DeskHost,
        session: str,
        clock: Clock,
        *,
        place: SessionPlace,
        home: Folders,
        layout: bool = True,
    ) -> None:
        super().__init__(
            clock,
            intro=Static(id="intro", markup=False),
            layout_file=home.data / "screen.json" if layout else None,
        )
        self.host, self.session = host, session
        self._place, self._home = place, home
        self.fact_log = self.watched_log = FactLog(clock)
        self.watched = WatchedSession(host, session, self, clock)
        self._renderer = FactRenderer(self, self.fact_log, self._result)
        self._restored = False
        self._problem = ""
        self._again_at: float | None = None
        self._escape, self._interrupt = DoublePress(clock, AGAIN_S), DoublePress(clock, AGAIN_S)
        self._unkept = False
        """True once it was said that what is typed can't be kept."""
        self._questions = QuestionDialogs(self, self)
        self._going: list[str] = []
        self._draft_before: Draft | None = None
        self._countdown: Timer | None = None

    # Beginning and leaving

    def on_mount(self) -> None:
        self.queued.key = False
        self.prompt.leads_by = "screen.lead_to"
        app = cast("ThemedApp", self.app)  # pyright: ignore[reportUnknownMemberType] - Textual's App
        self.use_keys(app.own_keys)
        self._draft_before, app.guard.draft = app.guard.draft, self.prompt
        self.run_worker(self._watch(), group="watch")  # pyright: ignore[reportUnknownMemberType]

    def on_unmount(self) -> None:
        guard = guard_of(self)
        if guard.draft is self.prompt:
            guard.draft = self._draft_before

    async def _watch(self) -> None:
        await self.furnish()
        self.set_interval(_ROWS_S, self._see_problem)
        self._countdown = self.set_interval(_COUNT_S, self._show_state, pause=True)
        draft = await asyncio.to_thread(draft_of, self._home, self.host.name, self.session)
        if draft:
            self.prompt.put_back(draft)
            self.notice.say(_KEPT)
        self._show_state()
        await self.watched.run()

    def action_leave(self) -> None:
        """Leave the session as it is, a question unanswered."""
        self.run_worker(self._leave(), group="leave", exclusive=True)  # pyright: ignore[reportUnknownMemberType]

    async def _leave(self) -> None:
        """Keep what is typed for the next look, and leave."""
        if not await self._keep_draft():
            return
        await self._questions.close()
        self._place.leave(self)

    async def _keep_draft(self) -> bool:
        """Keep what is typed and what could not be sent. False where that failed and the person has
        to know it first."""
        text = "\n".join(filter(None, (*self.watched.unsent, self.prompt.value)))
        try:
            await asyncio.to_thread(keep_draft, self._home, self.host.name, self.session, text)
        except OSError as error:
            first, self._unkept = bool(text) and not self._unkept, True
            if first:
                why = f"What you typed can't be kept: {error.strerror or error}."
                self.notice.say(why, "error", hint="Copy it; the next try leaves without it.")
            return not first
        return True

    @property
    def name_of_session(self) -> str:
        return self.watched.status.title or self.session

    # What the session shows: SessionView

    def greet(self, hello: Hello) -> None:
        folder = f"{self.host.name}:{hello.cwd}" if self.host.name else shorten(hello.cwd)
        mark = "" if hello.kind == "none" else "live"
        self._renderer.head(folder=folder, mark=mark)
        self.show_mode()
        self._state_changed()

    async def restore(self, records: Sequence[Record], damaged: int) -> None:
        with gc_pause(loading=True):
            past = await asyncio.to_thread(restored, records)
            prepared = await asyncio.to_thread(self.conversation.prepare, past.items)
            if past.items and not self._restored:
                await asyncio.to_thread(warm, past.items)
        self._renderer = FactRenderer(self, self.fact_log, self._result)
        self._renderer.resume(past, prepared, again=self._restored)
        self._restored = True
        self.query_one("#intro", Static).update(_NOTHING)
        self.idle()
        self.activity.earlier = self._worked_before()
        self._state_changed()
        if damaged:
            hint = f"Repair it with: holdfast sessions repair {self.session}"
            text = f"{plural(damaged, 'line')} of its file can't be read."
            self.notice.say(text, "warning", hint=hint)

    def _worked_before(self) -> float:
        """Return the seconds for which the session has been at work already."""
        status = self.watched.status
        since = moment_of(status.since) if busy(status) else None
        return (self.clock.now() - since).total_seconds() if since is not None else 0.0

    def show(self, fact: Fact) -> None:
        self._renderer.show(fact)
        match fact:
            case facts.QueueChanged(texts):
                self.queued.texts = texts
            case facts.TitleChanged(title=title):
                self._renderer.head(title=title)
            case _:
                pass

    def asked(self, line: AskedLine) -> None:
        self._questions.ask(line)

    async def answer(self, to: str, answer: Answered) -> RequestOutcome:
        return await self.watched.answer(to, answer)

    def settle(self, number: str, why: str) -> None:
        self._questions.settle(number, why)

    def state_changed(self, status: SessionStatus) -> None:
        head = {"title": status.title, "model": status.model, "branch": status.branch}
        head["profile"] = status.profile
        self._renderer.head(**{name: text for name, text in head.items() if text})
        if status.unsaved != self.status.state.trouble:
            self._renderer.show(facts.StorageChanged(not status.unsaved, status.unsaved))
        self._state_changed()

    def say(self, notice: OwnerNotice) -> None:
        self.notice.say(notice.text, notice.level, hint=notice.hint)

    def restore_unsent(self, work: UnsentLine) -> None:
        """Show the answer that was cut off, and put back what was typed, which is sent with the
        next prompt."""
        if work.answer.strip():
            self.conversation.extend(unfinished_items(work.answer))
        if work.commands:
            commands = "\n".join(work.commands)
            self.conversation.extend([NoticeItem(_NOT_RUN, "warning", commands, folded=False)])
        text = "\n".join(work.texts)
        if text and text not in self.prompt.value:
            self.prompt.put_back(text)
            self.notice.say(_LEFT_UNSENT)

    def line_cut(self, reason: str, again_at: float) -> None:  # noqa: ARG002 - the session has it
        self._again_at = again_at
        if self._countdown is not None:
            self._countdown.resume()
        self.show_mode()
        self._show_state()

    def line_back(self) -> None:
        self._again_at = None
        if self._countdown is not None:
            self._countdown.pause()
        self.show_mode()
        self.notice.say("The line is back.", "success")
        self._state_changed()

    def ended(self, line: Ended) -> None:
        """Say nothing: the state that follows says how it ended."""

    # The line over the prompt, and the footer

    def _state_changed(self) -> None:
        """Show the state where no fact shows it: nobody tells facts, or they don't yet."""
        status, hello = self.watched.status, self.watched.hello
        silent = hello is None or hello.kind == "none"
        if self._restored and busy(status) and (silent or not self.busy):
            self.work(state_words(status))
        elif self.busy and not busy(status):
            self.idle()
        self._hints((), "")
        self._show_state()
        self._place.follow(hello, status)

    def _see_problem(self) -> None:
        """Show why the owner can't be asked, if the host knows a reason."""
        rows = (row.problem for row in self.host.rows if row.id == self.session)
        problem = next(rows, "")
        if problem != self._problem:
            self._problem = problem
            if problem:  # a question hides the line over the prompt
                self.notice.say(f"Its process can't be asked: {one_line(problem)}.", "warning")
            self._show_state()

    def _show_state(self) -> None:
        if self._again_at is not None:
            seconds = self._again_at - self.clock.monotonic()
            words = cut_words(self.watched.cut, seconds)
            self.prompt_rule.title = Content.styled(words, "$text-warning")
        elif self._problem:
            self.prompt_rule.title = Content.styled(one_line(self._problem), "$text-warning")
        elif self.busy:
            self.activity.draw()
        else:
            words = state_words(self.watched.status) if self._restored else _OPENING
            self.prompt_rule.title = Content.styled(words, "$text-muted")

    def work(
        self,
        phase: str,
        *,
        listening: bool = False,
        streamed: str = "",
        since: float | None = None,
        counts: bool = True,
        movable: bool = False,  # noqa: ARG002 - only the owner moves a command
    ) -> None:
        super().work(phase, listening=listening, streamed=streamed, since=since, counts=counts)

    def idle(self) -> None:
        super().idle()
        self._show_state()

    def _tick(self) -> None:
        super()._tick()
        if self._again_at is not None or self._problem:
            self._show_state()

    def show_mode(self, mode: Mode | None = None, allowed: int | None = None) -> None:
        """Show over the prompt where the session is open, or for whom a text is."""
        super().show_mode(mode, allowed)
        cut = self._again_at is not None  # then the line over the prompt needs the room
        words = "" if cut else place_words(self.watched.hello, self.size.width)
        text, style = RECIPIENTS.get(self._to, (words, "$text-muted"))
        vim = (f"{self._vim_mode} · ", VIM_MODES[self._vim_mode]) if self._vim_mode else ""
        self.prompt_rule.right = Content.assemble(vim, (text, style))

    def _hints(self, hints: tuple[KeyHint, ...], placeholder: str) -> None:  # noqa: ARG002 - its own
        runs = busy(self.watched.status) or self.busy
        own = (QUEUE if runs else SEND, _LEAVE, *((_STOP,) if runs else ()))
        own = (*own, _SHOWS_OUTPUT, _TAKE, _HELP)
        restarts = self._restored and not is_open(self.watched.status)
        super()._hints(own, _TO_CONTINUE if restarts else _TO_JOIN)

    # Keys

    def takes(self, event: events.Key | events.Paste) -> bool:
        """Take the keys that would act on the app's own session: the prompt binds them."""
        if not isinstance(event, events.Key):
            return False
        self.claim(event)
        in_prompt = self.focused is self.prompt
        if event.key in self._keymap["to_background"]:
            if self.busy:
                self.action_not_here("to_background")
            elif in_prompt:
                self.prompt.action_cursor_left()
            return True
        for row in _OWN_KEYS:
            if event.key in keys_for(row, self._keymap):
                self.call_later(self.run_action, row.action)
                return True
        return False

    async def action_lead_to(self, name: str) -> None:
        """Open the help; the sub-agents are not here."""
        if name == "help":
            await self._help()
        else:
            self.action_not_here(name)

    async def _help(self) -> None:
        await self.app.run_action("help")  # pyright: ignore[reportUnknownMemberType] - Textual's App

    def action_not_here(self, what: str) -> None:  # noqa: ARG002 - for its binding
        """Say who has what a key is for."""
        self.notice.say(_ONLY_ITS_OWN, hint=self._how_to_take_over)

    @property
    def _how_to_take_over(self) -> str:
        if self.host.name:
            return f"There: ssh -t {self.host.name} holdfast -r {self.session}"
        return "Ctrl+T takes the session over."

    def action_show_output(self) -> None:
        self.panes.toggle()

    def action_edit_prompt(self) -> None:
        """Edit the prompt in the person's own editor."""
        from tui.ui.screens.external_programs import edit_prompt  # noqa: PLC0415 - on demand

        app = cast("ThemedApp", self.app)  # pyright: ignore[reportUnknownMemberType] - Textual's App
        work = edit_prompt(app, self.prompt, self.notice)
        self.run_worker(work, group="editor", exclusive=True)  # pyright: ignore[reportUnknownMemberType]

    def action_take_over(self) -> None:
        """Ctrl+T: continue the session here, in the place of the process that has it."""
        self.run_worker(self._take_over(), group="leave", exclusive=True)  # pyright: ignore[reportUnknownMemberType]

    async def _take_over(self) -> None:
        hello = self.watched.hello
        if self.host.name:
            text = f"The session is on {self.host.name}: it is taken over there."
            self.notice.say(text, hint=self._how_to_take_over)
        elif hello is None:
            self.notice.say("The session isn't open here yet.", hint="Wait a moment.")
        elif await self._keep_draft():
            await self._questions.close()
            if why := self._place.take_over(self, hello):
                self.notice.say(why, "warning")

    def action_interrupt(self) -> None:
        """Ctrl+C: stop what the session does, else clear the prompt, else leave at the second
        press."""
        if busy(self.watched.status) or self.busy:
            self.notice.say("Stopping its turn.")
            self.run_worker(self._stop(), group="stop", exclusive=True)  # pyright: ignore[reportUnknownMemberType]
        elif self.prompt.text:
            self.prompt.accept()
            self.notice.say("Cleared. Up brings it back.")
        elif self._interrupt.asked():
            self.action_leave()
        else:
            self.notice.say("Press Ctrl+C again to leave; the session stays as it is.")

    def takes_interrupt(self) -> bool:
        """Ctrl+C over a question of the session is its key, too."""
        self.action_interrupt()
        return True

    async def _stop(self) -> None:
        outcome = await self.watched.stop()
        if outcome.outcome == "refused":
            self.notice.say(outcome.text, "error", hint=outcome.hint)
        elif self.notice.text.startswith("Stopping"):
            self.notice.clear()

    @on(ChatScreen.StopAsked)
    def _escaped(self, event: ChatScreen.StopAsked) -> None:
        """Esc: leave; with something typed, at the second press."""
        event.stop()
        if self.prompt.text and not self._escape.asked():
            self.notice.say("Press Esc again to leave: what you typed is kept for the next time.")
        else:
            self.action_leave()

    @on(Prompt.Edited)
    def _typed_here(self, event: Prompt.Edited) -> None:
        event.stop()
        self._escape.forget()
        self._interrupt.forget()

    # Prompts

    @on(Prompt.Submitted)
    def _submitted(self, event: Prompt.Submitted) -> None:
        event.stop()
        app = cast("ThemedApp", self.app)  # pyright: ignore[reportUnknownMemberType] - Textual's App
        if not app.guard.sends(app.arrived_at):
            self.note(SEND_AGAIN)
            return
        text = str(event.text)
        if why := self._refusal(text):
            self.notice.say(why, "warning", hint=self._how_to_take_over)
            return
        from tui.app.router import require_typed  # noqa: PLC0415 - for what is sent

        try:
            require_typed(event.text)
        except UsageError as error:
            self.notice.say(error.message, "warning", hint=error.hint)
            return
        event.prompt.accept(event.text)
        if not self._does_here(text):
            self.conversation.follow()
            self.run_worker(self._send(text), group="send")  # pyright: ignore[reportUnknownMemberType]

    def _refusal(self, text: str) -> str:
        """Say why a text can't start the session again; "" where it can, or goes to its owner."""
        hello = self.watched.hello
        if hello is not None and hello.kind != "none":
            return ""
        if text.startswith(("!", "# ")):
            return "Nobody has the session open who could do that."
        name, _, argument = text.removeprefix("/").strip().partition(" ")
        command = find_command(name) if text.startswith("/") and name else None
        if command is None or command.directive or command.name in _HERE:
            return ""
        if command.name == "goal" and argument not in {"", "stop"}:
            return ""
        return f"/{name} needs a process that has the session open."

    def _does_here(self, text: str) -> bool:
        """Carry out a command that is about what is seen here. True if it was one."""
        name, _, argument = text.removeprefix("/").strip().partition(" ")
        command = find_command(name) if text.startswith("/") else None
        match command.name if command else "":
            case "help":
                self.run_worker(self._help(), group="help")  # pyright: ignore[reportUnknownMemberType]
            case "quit":
                self.action_leave()
            case "find":
                self.run_worker(self.action_find(argument), group="find")  # pyright: ignore[reportUnknownMemberType]
            case "output":
                self.panes.toggle()
            case "copy" if not argument:
                self.app.copy_to_clipboard(self._renderer.last_answer)  # pyright: ignore[reportUnknownMemberType]
                self.notice.say("Copied the last answer.", "success")
            case _:
                return False
        return True

    async def _send(self, text: str) -> None:
        """Send a prompt; one that wasn't taken is typed again."""
        self._going.append(text)
        self.queued.going = tuple(self._going)
        silence = self.set_timer(SILENT_S, self._say_silent)
        try:
            outcome = await self.watched.prompt(text)
        finally:
            silence.stop()
            self._going.remove(text)
            self.queued.going = tuple(self._going)
        if outcome.outcome == "refused":
            self.prompt.put_back(text)
            self.notice.say(outcome.text, "error", hint=outcome.hint)

    def _say_silent(self) -> None:
        if self._again_at is not None:
            self.notice.say("The line is cut: the prompt is sent once it's back.", "warning")
        else:
            text = "Its process hasn't answered yet: it gets the prompt once it does."
            self.notice.say(text, "warning")

    # What the widgets ask of the app is asked of this screen

    def _result(self, id_: str) -> str:
        return result_text(self.watched.branch, id_)

    @on(ConversationView.ItemSelected)
    def _selected(self, event: ConversationView.ItemSelected) -> None:
        event.stop()
        self._renderer.open_output(event.item)

    @on(ConversationView.ItemOpened)
    @on(ConversationView.UndoAsked)
    @on(LineAsked)
    def _needs_its_own(self, event: Message) -> None:
        event.stop()
        self.action_not_here("")

    @on(RetryBanner.Asked)
    def _retry_asked(self, event: RetryBanner.Asked) -> None:
        event.stop()
        command = "/retry" if event.wish == "now" else "/retry other"
        self.run_worker(self._command(command), group="send")  # pyright: ignore[reportUnknownMemberType]

    async def _command(self, text: str) -> None:
        outcome = await self.watched.prompt(text)
        if outcome.outcome == "refused":
            self.notice.say(outcome.text, "error", hint=outcome.hint)
