"""Between the agent and the screen: one worker iterates a turn, questions become modals."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from textual.app import App
from textual.message import Message
from textual.worker import Worker, WorkerError

from tui.agent import directives, events
from tui.agent.events import Event
from tui.errors import HoldfastError
from tui.live import shell
from tui.live.attaching import Attaching
from tui.live.attention import Attention, attention
from tui.live.drafting import Drafting, State
from tui.live.past import end_of, past_of, warm
from tui.live.services import Agent, AppServices, Session, SessionChoice
from tui.presenter import Presenter
from tui.screens.asking import ModalApprover
from tui.screens.chat import ChatScreen
from tui.smooth import smooth
from tui.widgets.event_log import EventLog
from tui.workspace import branch_of

log = logging.getLogger(__name__)

BURST = 64
"""So many events are drawn before the loop gets a turn."""


@dataclass
class TurnEnded(Message):
    """A turn is over, told to the app. `error` is what it failed with, where that was told."""

    outcome: str
    error: events.ErrorRaised | None = None


@dataclass(slots=True)
class Bridge:
    """Holds the agent that the chat screen shows, and runs its turns."""

    app: App[Any]
    chat: ChatScreen
    services: AppServices
    agent: Agent | None = None
    log: EventLog = field(init=False)
    presenter: Presenter = field(init=False)
    attention: Attention = field(init=False)
    drafting: Drafting = field(init=False)
    attaching: Attaching = field(init=False)
    opening: bool = False
    _worker: Worker[None] | None = None
    _stopping: bool = False
    _waiting: list[str] = field(default_factory=list[str])
    """Sent as turns of their own, as soon as one can begin."""
    _attached: dict[str, str] = field(default_factory=dict[str, str])
    """By a text that waits: what goes along with it."""
    _heard: list[str] = field(default_factory=list[str])
    """What the person's own commands printed, for the model to see with the next prompt."""
    _commands: list[str] = field(default_factory=list[str])
    """The person's own, run when a session stands (opening it clears the screen) and nothing
    else runs."""
    _alone: bool = False  # no session could be opened

    def __post_init__(self) -> None:
        self.log = EventLog(self.services.clock)
        self.attention = attention(self.app, self.services.clock, wanted=self.services.notify)
        self.chat.calm = self.services.calm
        self.presenter = Presenter(self.chat, self.log)
        self.drafting = Drafting(self.app, self._unsent)
        self.attaching = Attaching(self.app, self.chat, self.services, lambda: self.agent)
        self.chat.prompt.take_back = self.take_back

    @property
    def busy(self) -> bool:
        """Whether a turn or a shell command runs."""
        return self._worker is not None

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
            with smooth():
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
        with smooth():
            first = await agent.start()
        for event in first:
            self.presenter.show(event)
        await self.attaching.bring_back(agent.session.left_behind.images)
        self._bring_back(agent.session)
        if any(isinstance(event, events.Parked) for event in first):
            self.go_on()  # it waits for the time that the server named
        self._send_waiting()
        with smooth():
            await asyncio.to_thread(warm)
        return True

    def submit(self, text: str, attached: str = "") -> None:
        """Send a prompt, or queue it. `attached` goes behind it and switches nothing (K33).

        It joins the turn that runs. While there is none to join (no session stands yet, the
        person has stopped the turn, a shell command runs) it waits for a turn of its own.
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
            self._run("turn", self._turn(self.agent, self._sent(self.agent, text, attached), text))
        elif self.agent and free and self._in_turn and not self._stopping and not attached:
            images = self.attaching.of(text)
            self.agent.steer(text, images) if images else self.agent.steer(text)
            self._show_queue()
        else:
            self._waiting.append(text)
            if attached:
                self._attached[text] = attached
            self._show_queue()

    def go_on(self, again: Collection[str] = ()) -> bool:
        """Go on with the turn that stopped, without a prompt, calls without a result first.

        False where that cannot be now.
        """
        if self.agent is None or self.busy or self.opening:
            return False
        self.chat.follow()
        self._run("turn", self._turn(self.agent, self.agent.go_on(again)))
        return True

    def give_back(self) -> None:
        """Put what waits for a session back into the prompt: none could be opened."""
        self._alone = self.agent is None
        if self.busy:
            return
        if self._commands:
            self._run("shell", self._shell(self._commands.pop(0)))
        waiting, self._waiting = self._waiting, []
        if waiting:
            self.chat.prompt.put_back("\n".join(waiting))
        self._show_queue()

    def take_back(self) -> str:
        """What waits to be sent, out of the queue again; "" where nothing does.

        Prompts come together; then commands, one at a time, as another text at either end of one
        would make something else of it.
        """
        texts = list(self.agent.unqueue() if self.agent else ())
        texts += [text for text in self._waiting if text not in self._attached]
        self._waiting = [text for text in self._waiting if text in self._attached]
        if not texts and self._waiting:
            texts = [self._waiting.pop()]
            del self._attached[texts[0]]
        elif not texts and self._commands:
            texts = [f"!{self._commands.pop()}"]
        if texts:
            self._show_queue()
        return "\n".join(texts)

    def run_shell(self, command: str) -> None:
        """Run the person's own command. The model sees its output with the next prompt, unless
        another ! stands before it.

        It waits for the session that is about to be opened, and for what runs.
        """
        self.chat.follow()
        if self.opening or self.busy or not (self.agent or self._alone):
            self._commands.append(command)
            self._show_queue()
        else:
            self._run("shell", self._shell(command))

    def cancel(self) -> bool:
        """Stop what runs. False when nothing did."""
        if self._worker is None:
            return False
        if self.agent and self._worker.name in {"turn", "beside"}:
            self._stopping = True
            self.agent.cancel()
        else:
            self._worker.cancel()
        return True

    async def at_rest(self) -> None:
        """Wait until what runs now is over, however it ends."""
        if self._worker is not None:
            with suppress(WorkerError):
                await self._worker.wait()

    async def use_model(self, name: str) -> None:
        """Ask another model from the next request on."""
        if self.agent:
            self.agent.use_model(await self.services.model_info(name))
            self.presenter.name_model(self.agent.model)

    async def close(self, *, typed: bool = True) -> None:
        """Stop what runs and let the agent go. With `typed`, what stands in the prompt is kept
        for when the session is opened again."""
        self.drafting.leave(typed=typed)
        agent, self.agent = self.agent, None
        self.cancel()
        if agent is not None:
            agent.cancel()
            await agent.close()

    @property
    def _in_turn(self) -> bool:
        return self._worker is not None and self._worker.name == "turn"

    def _send_waiting(self) -> None:
        """Begin a turn with what waited; what is more than one text joins it."""
        if self._commands and not self.busy:
            self._run("shell", self._shell(self._commands.pop(0)))
        waiting, self._waiting = self._waiting, []
        for text in waiting:
            self.submit(text, self._attached.pop(text, ""))
        self._show_queue()

    def _show_queue(self) -> None:
        self.chat.queued.texts = (*(f"!{command}" for command in self._commands), *self._queue)
        self.drafting.touch()

    @property
    def _queue(self) -> tuple[str, ...]:
        return (*(self.agent.queue if self.agent else ()), *self._waiting)

    def _unsent(self) -> State:
        """What is typed, queued and streamed, and no record has yet."""
        prompt, queue = self.chat.prompt.value, self._queue
        return prompt, queue, self.presenter.answer, self.attaching.kept((prompt, *queue))

    def _bring_back(self, session: Session) -> None:
        """Show what an earlier run left behind; what was typed and queued can be sent again."""
        left = session.left_behind
        if left.answer.strip():
            self.presenter.show_unfinished(left.answer)
        if texts := [text for text in (*left.queue, left.prompt) if text.strip()]:
            self.chat.prompt.put_back("\n".join(texts))
        self.drafting.follow(session)
        self.drafting.touch()

    async def _show_end(self, path: Path) -> None:
        """Show the end of a session that is about to be read, where it has one that can be."""
        with suppress(HoldfastError), smooth():
            self.chat.fill(await asyncio.to_thread(end_of, path))

    def _run(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        self.chat.query("ResumeCard").remove()
        self._worker = self.app.run_worker(work, name=name, group="work", exit_on_error=False)

    async def _turn(self, agent: Agent, told: AsyncIterator[Event], text: str = "") -> None:
        """One turn, of the prompt `text` if any. The boundary: whatever fails inside, the screen
        stays and says so."""
        presenter, failed = self.presenter, None
        self.chat.retry.other = self._other_model()
        self.chat.work("starting")
        recorded, outcome, seen = not text, "failed", 0
        self.attention.begin()
        try:
            async for event in told:
                seen += 1
                if seen % BURST == 0:
                    await asyncio.sleep(0)
                recorded |= isinstance(event, events.UserMessage | events.DirectivesChanged)
                outcome = event.outcome if isinstance(event, events.TurnFinished) else outcome
                failed = event if isinstance(event, events.ErrorRaised) else failed
                presenter.show(event)
                self.attention.see(event)
                self.drafting.touch()
        except Exception as error:
            log.exception("the turn failed")
            self._explain(error)
        finally:
            self._worker, self._stopping = None, False
        if agent is not self.agent:
            return
        if self.chat.busy:
            presenter.show(events.TurnFinished("failed"))
        self._retitle()
        left = agent.unqueue() if agent.queue else ()
        again = [] if recorded else [text]
        if outcome == "done":
            self._waiting[:0] = left
        else:
            again += left
        if again:
            self.chat.prompt.put_back("\n".join(again))
        self.app.post_message(TurnEnded(outcome, failed))
        self._send_waiting()

    def beside(self, phase: str, told: AsyncIterator[Event]) -> bool:
        """Show what happens beside the turns, such as a compaction; Esc stops it.

        False where that cannot be now.
        """
        if self.agent is None or self.busy or self.opening:
            return False
        self._run("beside", self._beside(phase, told))
        return True

    async def _beside(self, phase: str, told: AsyncIterator[Event]) -> None:
        presenter = self.presenter
        self.chat.work(phase)
        try:
            async for event in told:
                presenter.show(event)
        except Exception as error:
            log.exception("%s failed", phase)
            self._explain(error)
        finally:
            self._worker, self._stopping = None, False
            self.chat.idle()
        self._send_waiting()

    def _sent(self, agent: Agent, text: str, attached: str) -> AsyncIterator[Event]:
        """A turn of a prompt. What was heard goes along, unless it only switches something."""
        if directives.parse(text).text or attached:
            attached = "\n\n".join(filter(None, (attached, *self._heard)))
            self._heard.clear()
        return agent.send(text, attached=attached, images=self.attaching.of(text))

    def _other_model(self) -> str:
        """The model that is asked where the one in use cannot answer, "" for none."""
        ranked = sorted((row.fallback, row.name) for row in self.services.models() if row.fallback)
        return next((name for _, name in ranked if self.agent and name != self.agent.model), "")

    def _explain(self, error: Exception) -> None:
        known = isinstance(error, HoldfastError)
        message = error.message if known else f"Something went wrong ({type(error).__name__})."
        hint = error.hint if known else "Nothing is lost. The details are in the log file."
        self.presenter.show(events.ErrorRaised("unknown", message, True, hint))

    async def _shell(self, command: str) -> None:
        services, told = self.services, not command.startswith("!")
        command = command.removeprefix("!").strip()
        try:
            heard = await shell.run(
                command, services.workspace, services.clock, self.presenter.show, told=told
            )
            if told:
                self._heard.append(shell.attachment(command, heard))
        finally:
            self._worker = None
            self.chat.idle()
            if self.agent or self._commands:
                self._send_waiting()

    def rename(self, title: str) -> None:
        """Give the session that is open another title, by a record."""
        if self.agent is not None:
            self.agent.session.append("title", title=" ".join(title.split()))
            self._retitle()

    def _retitle(self) -> None:
        title = self.agent.session.title if self.agent else ""
        self.presenter.retitle(title, branch_of(self.services.workspace))
