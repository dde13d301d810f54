"""Between the agent and the screen: one worker iterates a turn, questions become modals."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from textual.app import App
from textual.message import Message

from tui.agent import directives, events
from tui.agent.events import Event
from tui.app import user_shell
from tui.app.ports import Agent, AppServices, SessionChoice
from tui.app.send_queue import Outbox, Waiting
from tui.core.errors import HoldfastError
from tui.core.gc_pause import gc_pause
from tui.core.workspace import branch_of
from tui.ui.event_renderer import Presenter
from tui.ui.screens.chat import ChatScreen
from tui.ui.screens.modal_approver import ModalApprover
from tui.ui.turn.attachments import Attaching
from tui.ui.turn.draft_saver import Drafting
from tui.ui.turn.notifications import Attention, attention
from tui.ui.turn.session_items import end_of, past_of, warm
from tui.ui.turn.turn_worker import Course, Kind, Work, follow
from tui.ui.widgets.event_log import EventLog


@dataclass
class TurnEnded(Message):
    """A turn is over, told to the app. `error` is what it failed with, where that was told."""

    outcome: str
    error: events.ErrorRaised | None = None


@dataclass(slots=True)
class Bridge:
    """Holds the agent that the chat screen shows, and runs its turns.

    `outbox` keeps what cannot be sent at once, `drafting` what a crash would take.
    """

    app: App[Any]
    chat: ChatScreen
    services: AppServices
    agent: Agent | None = None
    log: EventLog = field(init=False)
    presenter: Presenter = field(init=False)
    attention: Attention = field(init=False)
    drafting: Drafting = field(init=False)
    attaching: Attaching = field(init=False)
    outbox: Outbox = field(init=False)
    opening: bool = False
    _work: Work = field(init=False)
    _alone: bool = False  # no session could be opened

    def __post_init__(self) -> None:
        self.log = EventLog(self.services.clock)
        self.attention = attention(self.app, self.services.clock, wanted=self.services.notify)
        self.chat.calm = self.services.calm
        self.presenter = Presenter(self.chat, self.log)
        self.outbox = Outbox(lambda: self.agent)
        self.attaching = Attaching(self.app, self.chat, self.services, lambda: self.agent)
        self.drafting = Drafting(
            self.chat, self.outbox, self.attaching, lambda: self.presenter.answer
        )
        self._work = Work(self.app)
        self.chat.prompt.take_back = self.take_back

    @property
    def busy(self) -> bool:
        """Whether a turn or a shell command runs."""
        return self._work.busy

    async def open(
        self,
        choice: SessionChoice,
        accept: Callable[[Agent], Awaitable[bool]] | None = None,
    ) -> bool:
        """Open a session and show it; what was typed before it stood is sent then.

        Its end is shown while the rest is read. Raises what `make_agent` raises; the session
        that was open stays then. So it does where `accept`, asked before anything is shown,
        says no: False is returned.
        """
        self.opening = True
        self.chat.work("opening the session")
        try:
            if choice.path is not None and self.agent is None:
                await self._show_end(choice.path)
            with gc_pause():
                approver = ModalApprover(self.app, self.chat)
                agent = await self.services.make_agent(choice, approver)
                past = await asyncio.to_thread(past_of, agent.session.records)
        finally:
            self.opening = False
            self.chat.idle()
        if accept is not None and not await accept(agent):
            await agent.close()
            return False
        await self.close(typed=False)
        self.agent = agent
        self.presenter = Presenter(self.chat, self.log)
        self.presenter.resume(past)
        await asyncio.sleep(0)  # a key may be waiting
        self.chat.show_mode(agent.mode)
        self._retitle()
        with gc_pause():
            first = await agent.start()
        for event in first:
            self.presenter.show(event)
        await self.drafting.bring_back(agent.session)
        if any(isinstance(event, events.Parked) for event in first):
            self.go_on()  # it waits for the time that the server named
        self._send_waiting()
        with gc_pause():
            await asyncio.to_thread(warm)
        return True

    async def close(self, *, typed: bool = True) -> None:
        """Stop what runs and let the agent go. With `typed`, what stands in the prompt is kept
        for when the session is opened again."""
        self.drafting.leave(typed=typed)
        agent, self.agent = self.agent, None
        self.cancel()
        if agent is not None:
            agent.cancel()
            await agent.close()

    def submit(self, text: str, attached: str = "") -> None:
        """Send a prompt, or queue it. `attached` goes behind it and switches nothing (K33).

        It joins the turn that runs. While there is none to join it waits for a turn of its own,
        see `Outbox`.
        """
        if self.agent and self.agent.session.read_only:
            self.app.call_later(self.chat.prompt.put_back, text)  # once the prompt let it go
            why = self.agent.session.lost or "This session is open read-only."
            self.chat.notice.say(why, "warning", hint="/fork goes on with a copy.")
            return
        if not self.attaching.fits(text):
            self.app.call_later(self.chat.prompt.put_back, text)
            return
        self.chat.follow()
        free = self.agent is not None and not self.opening
        if self.agent and free and not self.busy:
            told = self._sent(self.agent, text, attached)
            self._begin("turn", self._turn(self.agent, told, text))
        elif self.agent and free and self._work.listens and not attached:
            images = self.attaching.of(text)
            self.agent.steer(text, images) if images else self.agent.steer(text)
            self._show_queue()
        else:
            self.outbox.add(Waiting(text, attached))
            self._show_queue()

    def run_shell(self, command: str) -> None:
        """Run the person's own command. The model sees its output with the next prompt, unless
        another ! stands before it.

        It waits for the session that is about to be opened (opening it clears the screen), and
        for what runs.
        """
        self.chat.follow()
        self.outbox.add_command(command)
        self._show_queue()
        if not self.opening and (self.agent or self._alone):
            self._run_waiting()

    def go_on(self, again: Collection[str] = ()) -> bool:
        """Go on with the turn that stopped, without a prompt, calls without a result first.

        False where that cannot be now.
        """
        if self.agent is None or self.busy or self.opening:
            return False
        self.chat.follow()
        self._begin("turn", self._turn(self.agent, self.agent.go_on(again)))
        return True

    def beside(self, phase: str, told: AsyncIterator[Event]) -> bool:
        """Show what happens beside the turns, such as a compaction; Esc stops it.

        False where that cannot be now.
        """
        if self.agent is None or self.busy or self.opening:
            return False
        self._begin("beside", self._beside(phase, told))
        return True

    def cancel(self) -> bool:
        """Stop what runs. False when nothing did."""
        return self._work.stop(self.agent)

    async def at_rest(self) -> None:
        """Wait until what runs now is over, however it ends."""
        await self._work.at_rest()

    def give_back(self) -> None:
        """Put what waits for a session back into the prompt: none could be opened."""
        self._alone = self.agent is None
        if self.busy:
            return
        self._run_waiting()
        if waiting := self.outbox.take_prompts():
            self.chat.prompt.put_back("\n".join(prompt.text for prompt in waiting))
        self._show_queue()

    def take_back(self) -> str:
        """What waits to be sent, out of the outbox again; "" where nothing does."""
        text = self.outbox.take_back()
        if text:
            self._show_queue()
        return text

    async def use_model(self, name: str) -> None:
        """Ask another model from the next request on."""
        if self.agent:
            self.agent.use_model(await self.services.model_info(name))
            self.presenter.name_model(self.agent.model)

    def rename(self, title: str) -> None:
        """Give the session that is open another title, by a record."""
        if self.agent is not None:
            self.agent.session.append("title", title=" ".join(title.split()))
            self._retitle()

    def _begin(self, kind: Kind, work: Coroutine[Any, Any, None]) -> None:
        self.chat.query("ResumeCard").remove()
        self._work.begin(kind, work)

    async def _turn(self, agent: Agent, told: AsyncIterator[Event], text: str = "") -> None:
        """One turn, of the prompt `text` if any."""
        course, presenter = Course(recorded=not text), self.presenter
        self.chat.retry.other = self.services.other_model(agent.model)

        def show(event: Event) -> None:
            presenter.show(event)
            course.see(event)
            self.attention.see(event)
            if isinstance(event, events.QueueChanged):
                self._show_queue()
            self.drafting.touch()

        self.attention.begin()
        try:
            self.chat.work("starting")
            await follow(told, show, "the turn")
        finally:
            self._work.over()
        if agent is not self.agent:
            return
        if self.chat.busy:
            presenter.show(events.TurnFinished("failed"))
        self._retitle()
        again = () if course.recorded else (text,)
        again += self.outbox.after_turn(done=course.outcome == "done")
        if again:
            self.chat.prompt.put_back("\n".join(again))
        self.app.post_message(TurnEnded(course.outcome, course.error))
        self._send_waiting()

    async def _beside(self, phase: str, told: AsyncIterator[Event]) -> None:
        self.chat.work(phase)
        try:
            await follow(told, self.presenter.show, phase)
        finally:
            self._work.over()
            self.chat.idle()
        self._send_waiting()

    async def _shell(self, command: str) -> None:
        services, told = self.services, not command.startswith("!")
        command = command.removeprefix("!").strip()
        try:
            heard = await user_shell.run(
                command,
                services.workspace,
                services.clock,
                self.presenter.show,
                told=told,
                keeping=self.agent.keeping if self.agent else None,
            )
            if told:
                self.outbox.hear(user_shell.attachment(command, heard))
        finally:
            self._work.over()
            self.chat.idle()
            if self.agent:
                self._send_waiting()
            elif self._alone:
                self._run_waiting()

    def _send_waiting(self) -> None:
        """Go on with what waited: a command first; what is more than one prompt joins the turn."""
        self._run_waiting()
        for prompt in self.outbox.take_prompts():
            self.submit(prompt.text, prompt.attached)
        self._show_queue()

    def _run_waiting(self) -> None:
        """Run the command that waits longest, unless something runs."""
        if not self.busy and (command := self.outbox.take_command()) is not None:
            self._begin("shell", self._shell(command))
            self._show_queue()

    def _sent(self, agent: Agent, text: str, attached: str) -> AsyncIterator[Event]:
        """A turn of a prompt. What was heard goes along, unless it only switches something."""
        if directives.parse(text).text or attached:
            attached = self.outbox.along(attached)
        return agent.send(text, attached=attached, images=self.attaching.of(text))

    def _show_queue(self) -> None:
        self.chat.queued.texts = self.outbox.texts
        self.drafting.touch()

    async def _show_end(self, path: Path) -> None:
        """Show the end of a session that is about to be read, where it has one that can be."""
        with suppress(HoldfastError), gc_pause():
            self.chat.fill(await asyncio.to_thread(end_of, path))

    def _retitle(self) -> None:
        title = self.agent.session.title if self.agent else ""
        self.presenter.retitle(title, branch_of(self.services.workspace))
