"""Plain lines as a front end of the conversation: events are said, questions are answered by
numbers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from tui.agent.interrupted_work import InterruptedWork
from tui.app.conversation import Conversation
from tui.app.dialog_data import ChoiceQuestion, Question, SetupQuestion, YesNoQuestion
from tui.app.frontend import Kind, Level, Submitted, TurnResult
from tui.app.interruption import act_on_interruption, take_over
from tui.app.quitting import Quit
from tui.app.reports import Report
from tui.app.router import route_from_afar
from tui.app.services import AppServices, SessionChoice
from tui.core import facts
from tui.core.errors import HoldfastError
from tui.core.fact_words import words
from tui.core.facts import ErrorRaised, Fact, Told
from tui.core.formatting import plural
from tui.core.retold import retold
from tui.core.text_cleaning import visible
from tui.plain.fact_lines import sentence_lines
from tui.plain.fact_speaker import FactSpeaker
from tui.plain.markdown_to_speech import read
from tui.plain.questions import (
    Asker,
    interruption_lines,
    plan_lines,
    question_lines,
    session_choices,
)
from tui.plain.speech_text import sentence, shown, spoken
from tui.plain.terminal import Terminal
from tui.session.records import Record

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.agent.plans import ApprovedPlan

LONG_S: Final = 20.0
"""A turn that took longer rings the bell when it ends."""

_LAST_DONE: Final = 5
_OF_THE_CONTEXT: Final = frozenset(
    {"break", "break_billed", "compaction", "exam", "memory", "overlay", "uncompaction"}
)
_WORDS: Final = 300
_AT_ITS_END: Final = (
    "Plain lines continue a session at its end, not at a message."
    " /rewind goes back; --fork begins a copy that ends there."
)

FindView: TypeAlias = Callable[["PlainFrontend", str, str], Coroutine[Any, Any, None] | None]
"""Returns the coroutine for a command that only plain lines have, by name and argument; None for a
command with a shared handler."""


class PlainFrontend:
    """Implements `Frontend` with a terminal, and owns the one conversation.

    `heard` are lines that were typed while nothing was asked; `begin_with` is the start of the next
    prompt. Two questions come before it: `failed`, the error of the last turn, and `interrupted`,
    the open work of an earlier run.
    """

    stop_key = "Ctrl+C"

    def __init__(self, services: AppServices, terminal: Terminal, find_view: FindView) -> None:
        self.terminal = terminal
        self._find_view = find_view
        self.heard = asyncio.Queue[str]()
        self.approver = Asker(terminal, self)
        self.speaker = FactSpeaker(services.clock, terminal.say)
        self.conversation = Conversation(services, self)
        self.conversation.door.kind = "plain"
        self.began_work = asyncio.Event()
        self.failed: ErrorRaised | None = None
        self.interrupted: InterruptedWork | None = None
        self.begin_with = ""
        self.leaving = False
        self.quitting: Quit | None = None
        self.ready = False
        """True once the first session is open, or could not be opened."""
        self._at_prompt = False
        self._stop_next = False
        self._turn_began = 0.0
        terminal.listen(self)

    @property
    def services(self) -> AppServices:
        return self.conversation.services

    @property
    def prompt_text(self) -> str:
        return "\n".join(filter(None, (self.begin_with, self.terminal.begun())))

    def put_prompt(self, text: str, *, replace: bool = False) -> None:
        before = "" if replace else self.begin_with
        self.begin_with = "\n".join(filter(None, (text, before)))

    async def take_line(self, text: str) -> Submitted | None:
        return await route_from_afar(self.conversation, text)

    async def next_prompt(self) -> str | None:
        """Return what is typed at the prompt; None if something begins meanwhile, or the person
        leaves."""
        begin_with, self.begin_with = self.begin_with, ""
        self.began_work.clear()
        self._at_prompt, self._stop_next = True, False
        prompt = asyncio.create_task(self.terminal.prompt(begin_with), name="prompt")
        began = asyncio.create_task(self.began_work.wait(), name="something begins")
        try:
            await asyncio.wait({prompt, began}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._at_prompt = False
            began.cancel()
            if not prompt.done():
                prompt.cancel()
                self.put_prompt(begin_with)
        if not prompt.done():
            return None
        typed = prompt.result()
        self.leaving = self.leaving or typed is None
        return typed

    def typed(self, text: str) -> None:
        """Take what was typed while nothing was asked."""
        self.heard.put_nowait(text)

    def interrupt(self) -> bool:
        """Ctrl+C: stop what runs, or is about to. False if nothing is."""
        if self.conversation.cancel():
            return True
        if self._at_prompt or self.approver.asking:
            return False
        if self.ready:
            self._stop_next = True
        else:
            self.leaving = True
        return True

    def leave(self) -> None:
        """Leave, and stop what runs."""
        self.leaving = True
        self.conversation.cancel()
        self.began_work.set()

    # What is spoken

    def say(self, text: str, level: Level = "info", *, hint: str = "") -> None:
        self.terminal.say(sentence(f"Error: {text}" if level == "error" else text, hint))
        self.conversation.door.say(text, level, hint)

    def report(self, report: Report) -> None:
        self.terminal.say(sentence(report.title), *report_lines(report))

    def show(self, event: Fact) -> None:
        self.speaker.speak(event)
        self.conversation.door.see(event)

    def show_unfinished(self, answer: str) -> None:
        self.terminal.say("Holdfast, unfinished:", *shown(answer))
        self.say(
            "Holdfast closed here before the answer was complete. The model hasn't seen this part."
        )

    def refresh(self) -> None:
        """Do nothing: the terminal shows no state."""

    def view(self, name: str, argument: str) -> Coroutine[Any, Any, None] | None:
        return self._find_view(self, name, argument)

    async def show_file(self, path: Path) -> None:
        text = await asyncio.to_thread(path.read_text, encoding="utf-8", errors="replace")
        self.terminal.say(f"The file {path}:", *shown(text.rstrip()), "End of the file.")

    async def show_plan(self, plan: ApprovedPlan) -> None:
        self.terminal.say(*plan_lines(plan.title, plan.text))
        if plan.path:
            self.terminal.say(f"It is kept in {plan.path}.")

    # What runs

    def began(self, kind: Kind, phase: str) -> None:
        self.began_work.set()
        self._turn_began = self.services.clock.monotonic()
        if kind == "side" and phase.startswith(("saving", "reading")):
            self.say(f"{phase.capitalize()}.", hint=f"{self.stop_key} stops it.")
        if self._stop_next:
            self._stop_next = False
            self.conversation.cancel()

    def ended(self, result: TurnResult | None = None) -> None:
        self.speaker.stop()
        if result is None:
            return
        seconds = self.services.clock.monotonic() - self._turn_began
        if seconds > LONG_S and result.outcome != "interrupted":
            self.call()
        self.failed = result.error if result.outcome == "failed" else None

    async def run_command(self, work: Coroutine[Any, Any, None]) -> None:
        await work

    async def painted(self) -> None:
        """Do nothing: lines are there once they are written."""

    # Sessions

    async def opening(self, choice: SessionChoice) -> None:
        if choice.path is not None:
            self.say("Opening the session.")

    async def show_session(self, agent: Agent, choice: SessionChoice) -> None:
        """Say the session's title and the last messages, and that it is at its end."""
        self.failed = self.interrupted = None
        session = agent.session
        if any(record.type == "user" for record in session.records):
            self.terminal.say(*_last_words(session.records, session.title))
        if choice.message:
            self.say(_AT_ITS_END)

    async def pick_session(self) -> SessionChoice | None:
        rows = await self.services.list_sessions()
        if not rows:
            self.say("No session in this folder yet.")
            return None
        agent = self.conversation.agent
        lines, labels = session_choices(rows, agent.session.id if agent else "")
        id_ = await self.approver.choose(lines, labels)
        return next((SessionChoice(row.path) for row in rows if row.id == id_), None)

    # Questions

    async def choose(self, question: Question) -> str | None:
        if isinstance(question, ChoiceQuestion):
            question = await question.complete()
        return await self.approver.choose(*question_lines(question))

    async def confirm(self, question: YesNoQuestion) -> bool:
        lines = [spoken(visible(question.title)), spoken(visible(question.text))]
        lines += [f"File: {spoken(visible(name))}" for name in question.details]
        labels = [("yes", question.yes), ("no", question.no)]
        return await self.approver.choose(lines, labels) == "yes"

    async def ask_setup(self, question: SetupQuestion) -> str | None:
        servers = await self.services.probe_servers()
        while (setup := await self.approver.setup(question, servers)) is not None:
            if isinstance(setup, str):
                return setup
            try:
                return await self.services.set_up(setup)
            except HoldfastError as error:
                self.say(error.message, "error", hint=error.hint)
        return None

    async def offer_interrupted_work(self, work: InterruptedWork) -> None:
        """Keep the work for before the next prompt, once all other questions of the opening are
        answered."""
        self.interrupted = await take_over(self.conversation, work)

    async def ask_about_interrupted_work(self, work: InterruptedWork) -> None:
        """Say what is known of the work, and do what is chosen."""
        remaining: InterruptedWork | None = work
        while remaining is not None:
            answer = await self.approver.choose(*interruption_lines(remaining))
            if answer is None:
                return
            remaining = await act_on_interruption(self.conversation, remaining, answer)

    def call(self) -> None:
        """Call a person who is elsewhere; the prompt gives way to the question."""
        self.began_work.set()
        if self.services.settings.now.notify == "auto":
            self.terminal.bell()


def _last_words(records: Sequence[Record], title: str) -> list[str]:
    told = [*retold(records)]
    prompts = [one.typed for _, one in told if isinstance(one, facts.UserMessage) and one.typed]
    answers = (one.text for _, one in reversed(told) if isinstance(one, facts.AssistantMessage))
    answer = next((text for text in answers if text.strip()), "")
    lines = [sentence(f"Session: {title or 'untitled'}, {plural(len(prompts), 'prompt')}")]
    if prompts:
        lines.append(f"You said last: {_short(prompts[-1])}")
    if answer:
        lines.append(f"Holdfast said last: {_short(' '.join(read(answer)))}")
    return [*lines, *_done_to_the_context(told)]


def _done_to_the_context(told: Sequence[tuple[Record, Told | None]]) -> list[str]:
    """Return the last changes to what the model sees."""
    changes = [
        line
        for record, fact in told
        if record.type in _OF_THE_CONTEXT
        for line in sentence_lines(words(fact) if fact else None)[:1]
    ]
    if not changes:
        return []
    more = len(changes) - _LAST_DONE
    head = f"Done to the context, the last {_LAST_DONE} of {len(changes)}" if more > 0 else ""
    return [f"{head or 'Done to the context'}:", *(f"  {line}" for line in changes[-_LAST_DONE:])]


def _short(text: str) -> str:
    text = spoken(text)
    return text if len(text) <= _WORDS else f"{text[:_WORDS].rstrip()} ..."


def report_lines(report: Report) -> Iterator[str]:
    """The rows as sentences: a name, and its values with the names of their columns."""
    for row in report.rows:
        if isinstance(row, str):
            yield spoken(row)
            continue
        values = ("not known" if value == "—" else value for value in row.values)
        columns = report.columns or ("",) * len(row.values)
        told = (f"{column} {value}".strip() for column, value in zip(columns, values, strict=True))
        yield sentence(f"{row.name.capitalize()}: {', '.join(told)}")
    yield from map(spoken, report.notes)
