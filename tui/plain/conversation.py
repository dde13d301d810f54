"""One conversation: the session that is open, what is sent to it, what comes of that.

Everything that knows a conversation imports this; it knows no command and no question.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from tui.agent import directives, events
from tui.agent.events import Event
from tui.app import user_shell
from tui.app.commands.user_commands import own_commands
from tui.app.ports import Agent, AppServices
from tui.app.send_queue import Outbox, Waiting
from tui.core.errors import HoldfastError, UsageError
from tui.plain.drafts import Drafts, Unsent
from tui.plain.event_speaker import Teller
from tui.plain.questions import Asker
from tui.plain.speech_text import sentence, shown
from tui.plain.terminal_port import Face
from tui.plain.worker import Doing
from tui.settings.user_commands import UserCommands

log = logging.getLogger(__name__)

LONG_S: Final = 20.0
"""A turn that took longer rings when it ends."""
LIMIT_S: Final = 15.0
"""After so many seconds nobody waits for the model's notes any longer."""
AT_WORK: Final = "The agent is at work. Ctrl+C stops it."
LATER: Final = "Queued: it is sent when what runs is over."


@dataclass(slots=True)
class Talk:
    """`heard` holds what was typed while nothing was asked; `failed` the error of a turn that
    nobody has spoken of yet; `begin_with` is what the next prompt begins with."""

    services: AppServices
    face: Face
    agent: Agent | None = None
    asker: Asker = field(init=False)
    teller: Teller = field(init=False)
    drafts: Drafts = field(init=False)
    own: UserCommands = field(init=False)
    heard: asyncio.Queue[str] = field(default_factory=asyncio.Queue[str])
    failed: events.ErrorRaised | None = None
    begin_with: str = ""
    leaving: bool = False
    opening: bool = True
    """The first session is not open yet."""
    _prompting: bool = False
    _doing: Doing = field(default_factory=Doing)
    _outbox: Outbox = field(init=False)
    _again: list[Collection[str]] = field(default_factory=list[Collection[str]])
    _come: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.asker = Asker(self.face, self.heard.put_nowait, self._bell)
        self.teller = Teller(self.services.clock, self.face.say)
        self.drafts = Drafts(self._unsent)
        self.own = own_commands(self.services)
        self._outbox = Outbox(lambda: self.agent)
        self.face.listen(self.heard.put_nowait, self.interrupt, self.leave)

    # What is to be done

    @property
    def busy(self) -> bool:
        """Whether a turn, something beside it or a command of the person's runs."""
        return self._doing.busy

    def at_rest(self) -> bool:
        """Whether nothing runs; else it is said."""
        if self.busy:
            self.face.say(AT_WORK)
        return not self.busy

    def submit(self, text: str, attached: str = "") -> None:
        """Send a text as soon as a turn can begin. `attached` switches nothing (K33)."""
        self._outbox.add(Waiting(text, attached))
        self._something()

    def prompt(self, text: str, attached: str = "") -> None:
        """Send what the person typed: into the turn that runs, or as one of its own."""
        if self.agent is None:
            self._give_back(text, "No session is open: /new begins one. Your text is kept.")
        elif self.agent.session.read_only:
            why = self.agent.session.lost or "This session is open read-only."
            self._give_back(text, f"{why} /fork goes on with a copy.")
        elif self._doing.joinable and not attached:
            self.agent.steer(text)
            self.face.say("Queued: it is sent when the agent can take it.")
            self.drafts.touch()
        else:
            if self.busy:
                self.face.say(LATER)
            else:
                self.teller.typed.append(text)
            self.submit(text, attached)

    def run_shell(self, command: str) -> None:
        """Run the person's own command, as soon as nothing else runs. The model sees its output
        with the next prompt, unless another ! stands before it."""
        if self.busy:
            self.face.say("Queued: it is run when what runs is over.")
        else:
            self.teller.typed.append(command.removeprefix("!").strip())
        self._outbox.add_command(command)
        self._something()

    def go_on(self, again: Collection[str] = ()) -> None:
        """Go on with the turn that stopped, without a prompt; some calls first."""
        self._again.append(again)
        self._something()

    def prompts(self, *, on: bool) -> None:
        """Nothing runs, and the person is asked what to do; or is no longer."""
        self._prompting = on
        if on:
            self._doing.stopping = False

    async def come(self) -> None:
        """Wait until something is to be done."""
        await self._come.wait()

    async def do_next(self) -> bool:
        """Do what is to be done next. False where there is nothing."""
        self._come.clear()
        if (command := self._outbox.take_command()) is not None:
            await self._doing.do(self._shell(command))
        elif self.agent is None:
            return False
        elif self._again:
            await self._turn(self.agent, self.agent.go_on(self._again.pop(0)))
        elif prompts := self._outbox.take_prompts():
            for later in prompts[1:]:
                self._outbox.add(later)
            await self._send(self.agent, prompts[0])
        else:
            return False
        return True

    async def beside(self, told: AsyncIterator[Event]) -> None:
        """Say what happens beside the turns, such as a compaction; Ctrl+C stops it."""
        await self._doing.do(self._told(told), self._cancel)

    def interrupt(self) -> bool:
        """Ctrl+C: stop what runs, or is about to. False where nothing is."""
        if self.busy:
            self._doing.stop()
        elif self._prompting or self.asker.asking:
            return False
        elif self.opening:
            self.leaving = True
        else:
            self._doing.stop()
        return True

    def leave(self) -> None:
        """The end: what runs is stopped."""
        self.leaving = True
        if self.busy:
            self._doing.stop()

    def explain(self, error: Exception) -> None:
        """Say an error, and what can be done."""
        if isinstance(error, HoldfastError):
            self.face.say(sentence(f"Error: {error.message}", error.hint))
        else:
            self.face.say(
                f"Error: something went wrong ({type(error).__name__}). Nothing is lost; the"
                " details are in the log file."
            )

    # The session

    def bring_back(self) -> None:
        """Say what an earlier run left behind; what was typed and queued can be sent again."""
        if self.agent is None:
            return
        left = self.agent.session.unsent
        if left.answer.strip():
            self.face.say("Holdfast, unfinished:", *shown(left.answer))
            self.face.say(
                "The program ended here, before the answer did. The model does not know this part."
            )
        for command in left.commands:
            self.face.say(f"Not run, as the program ended before: {command}")
        if left.commands:
            self.face.say("The program ended before this could run:", *left.commands)
        texts = [text for text in (*left.queue, left.prompt) if text.strip()]
        self.begin_with = "\n".join(filter(None, (self.begin_with, *texts)))
        self.drafts.follow(self.agent.session)

    async def save_first(self) -> None:
        """Let the model keep what is worth it before the session is left (R26)."""
        agent = self.agent
        if agent is None or agent.session.read_only or not agent.memory_pending:
            return
        self.face.say("Saving to memory first. Ctrl+C skips it.")
        timer = asyncio.get_running_loop().call_later(LIMIT_S, self.interrupt)
        try:
            await self.beside(agent.flush_memory())
        finally:
            timer.cancel()

    async def let_go(self, *, typed: bool = True) -> None:
        """Close the session; with `typed`, what is not sent yet is kept in it."""
        self.drafts.leave(typed=typed)
        self.teller.stop()
        self._again.clear()
        agent, self.agent = self.agent, None
        if agent is not None:
            await agent.close()

    async def close(self) -> None:
        """Everything ends: notes are saved unless the terminal has gone, then the session."""
        self._doing.stopping = False
        if not (self.face.gone or self.face.ended):
            with suppress(HoldfastError):
                await self.save_first()
        await self.let_go()

    # Turns and commands

    async def _send(self, agent: Agent, prompt: Waiting) -> None:
        text, attached = prompt.text, prompt.attached
        if directives.parse(text).text or attached:
            attached = self._outbox.along(attached)
        told = agent.send(text, attached=attached) if attached else agent.send(text)
        await self._turn(agent, told, text)

    async def _turn(self, agent: Agent, told: AsyncIterator[Event], text: str = "") -> None:
        """A turn, of the prompt `text` if any."""
        await self._doing.do(self._follow(agent, told, text), self._cancel, joinable=True)

    async def _follow(self, agent: Agent, told: AsyncIterator[Event], text: str) -> None:
        """The boundary: whatever fails inside, the conversation goes on and says so."""
        recorded, outcome, failed = not text, "failed", None
        began = self.services.clock.monotonic()
        try:
            if self._doing.stopping:
                outcome = "interrupted"
                self.face.say("Stopped before it was sent.")
            else:
                async for event in told:
                    recorded |= isinstance(event, events.UserMessage | events.DirectivesChanged)
                    outcome = event.outcome if isinstance(event, events.TurnFinished) else outcome
                    failed = event if isinstance(event, events.ErrorRaised) else failed
                    self.teller.tell(event)
                    self.drafts.touch()
        except Exception as error:
            log.exception("the turn failed")
            self.explain(error)
        finally:
            self.teller.stop()
        if agent is not self.agent:
            return
        left = self._outbox.after_turn(done=outcome == "done")
        texts = ("" if recorded else text, *left, self.begin_with)
        self.begin_with = "\n".join(filter(None, texts))
        if self.services.clock.monotonic() - began > LONG_S and outcome != "interrupted":
            self._bell()
        self.failed = failed if outcome == "failed" else None

    async def _told(self, told: AsyncIterator[Event]) -> None:
        try:
            if not self._doing.stopping:
                async for event in told:
                    self.teller.tell(event)
        finally:
            self.teller.stop()

    async def _shell(self, command: str) -> None:
        services, told = self.services, not command.startswith("!")
        command = command.removeprefix("!").strip()
        heard = await user_shell.run(
            command, services.workspace, services.clock, self.teller.tell, told=told
        )
        if told:
            self._outbox.hear(user_shell.attachment(command, heard))

    def _cancel(self) -> None:
        if self.agent is not None:
            self.agent.cancel()

    def _something(self) -> None:
        self._come.set()
        self.drafts.touch()

    def _give_back(self, text: str, why: str) -> None:
        self.face.say(why)
        self.begin_with = text

    def _unsent(self) -> Unsent:
        typed = "\n".join(filter(None, (self.begin_with, self.face.begun())))
        return Unsent(typed, self._outbox.prompts, self._outbox.commands, self.teller.answer)

    def _bell(self) -> None:
        if self.services.notify:
            self.face.bell()


def opened(talk: Talk) -> Agent:
    """The agent. Raises UsageError where no session is open."""
    if talk.agent is None:
        raise UsageError("No session is open yet.", hint="/new begins one.")
    return talk.agent


def free(talk: Talk) -> Agent | None:
    """The agent, while it does nothing and may write; else it is said why not."""
    agent = opened(talk)
    if not talk.at_rest():
        return None
    if agent.session.read_only:
        talk.face.say("This session is open read-only. /fork goes on with a copy.")
        return None
    return agent
