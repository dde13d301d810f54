"""The conversation in plain lines: prompts in, turns out, one after the other.

What is typed while a turn runs joins it; a command is carried out at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from tui.agent import directives, events
from tui.agent.events import Event
from tui.commands import find, split, unknown
from tui.commands.own import own_commands
from tui.commands.table import ELSEWHERE
from tui.configuration.user_commands import OwnCommands
from tui.errors import HoldfastError
from tui.live import shell
from tui.live.services import Agent, AppServices, SessionChoice
from tui.plain.asking import Asker
from tui.plain.drafts import Drafts
from tui.plain.face import Face
from tui.plain.spoken import sentence, shown
from tui.plain.teller import Teller

log = logging.getLogger(__name__)

LONG_S: Final = 20.0
"""A turn that took longer rings when it ends."""
LIMIT_S: Final = 15.0
"""After so many seconds nobody waits for the model's notes any longer."""
AT_WORK: Final = "The agent is at work. Ctrl+C stops it."

Commands = Callable[["Talk", str, str], Awaitable[None]]
"""Carries out a command: its name and what stood behind it."""


@dataclass(slots=True)
class Talk:
    """One conversation. `command` carries out what has a name of the program's own; `change`
    leads to another session."""

    services: AppServices
    face: Face
    command: Commands
    change: Callable[[Talk, SessionChoice], Awaitable[None]]
    agent: Agent | None = None
    asker: Asker = field(init=False)
    teller: Teller = field(init=False)
    drafts: Drafts = field(init=False)
    own: OwnCommands = field(init=False)
    leaving: bool = False
    begin_with: str = ""
    """What the next prompt begins with."""
    listed: list[str] = field(default_factory=list[str])
    """Ids of what was listed last, for commands that take a number of it."""
    _waiting: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Sent as turns of their own: a text, and what goes along with it."""
    _heard: list[str] = field(default_factory=list[str])
    _running: bool = False
    _stopping: bool = False
    _failed: events.ErrorRaised | None = None
    _come: asyncio.Event = field(default_factory=asyncio.Event)
    """Something waits to be sent."""
    _work: asyncio.Task[None] | None = None
    _beside: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    def __post_init__(self) -> None:
        self.asker = Asker(self.face, self._typed, self._bell)
        self.teller = Teller(self.services.clock, self.face.say)
        self.drafts = Drafts(self._unsent)
        self.own = own_commands(self.services)
        self.face.listen(self._typed, self.interrupt, self.leave)

    @property
    def busy(self) -> bool:
        """Whether a turn or a command of the person's runs."""
        return self._work is not None

    async def run(self) -> None:
        """Until the person leaves. A session is open, or could not be opened."""
        while not self.leaving:
            if self._waiting and self.agent:
                await self._send(*self._waiting.pop(0))
                continue
            typed = await self._next()
            if typed is not None:
                await self.take(typed)

    async def _next(self) -> str | None:
        """What is typed next. None where something else comes first, or the person leaves."""
        begin_with, self.begin_with = self.begin_with, ""
        self._come.clear()
        prompt = asyncio.create_task(self.face.prompt(begin_with), name="prompt")
        come = asyncio.create_task(self._come.wait(), name="something waits")
        try:
            await asyncio.wait({prompt, come}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            come.cancel()
            if not prompt.done():
                prompt.cancel()
                self.begin_with = begin_with
        if prompt.done() and prompt.result() is None:
            self.leaving = True
        return prompt.result() if prompt.done() else None

    async def take(self, text: str) -> None:
        """Do what was typed at the prompt: a command, a shell line, or a prompt."""
        try:
            await self._route(text)
        except HoldfastError as error:
            self.explain(error)
        except Exception as error:
            log.exception("a command failed")
            self.explain(error)

    async def turn(self, told: AsyncIterator[Event], text: str = "") -> None:
        """Run a turn, of the prompt `text` if any, and say what comes of it."""
        self._failed = None
        await self._doing(self._turn(told, text))
        if (failed := self._failed) and not self.leaving:
            from tui.plain import ways  # noqa: PLC0415 - only where something failed

            await ways.after(self, failed)

    async def beside(self, told: AsyncIterator[Event]) -> None:
        """Say what happens beside the turns, such as a compaction; Ctrl+C stops it."""
        await self._doing(self._told(told))

    async def go_on(self, again: Collection[str] = ()) -> None:
        """Go on with the turn that stopped, without a prompt; some calls first."""
        if self.agent and self.at_rest():
            await self.turn(self.agent.go_on(again))

    def submit(self, text: str, attached: str = "") -> None:
        """Send a text as soon as a turn can begin."""
        self._waiting.append((text, attached))
        self._come.set()

    def at_rest(self) -> bool:
        """Whether nothing runs; else it is said."""
        if self.busy:
            self.face.say(AT_WORK)
        return not self.busy

    def interrupt(self) -> None:
        """Ctrl+C: stop what runs."""
        if self._work is None:
            return
        self._stopping = True
        if self.agent and self._running:
            self.agent.cancel()
        else:
            self._work.cancel()

    def leave(self) -> None:
        """The end: what runs is stopped."""
        self.leaving = True
        self.interrupt()

    def explain(self, error: Exception) -> None:
        """Say an error, and what can be done."""
        if isinstance(error, HoldfastError):
            self.face.say(sentence(f"Error: {error.message}", error.hint))
        else:
            self.face.say(
                f"Error: something went wrong ({type(error).__name__}). Nothing is lost; the"
                " details are in the log file."
            )

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
        agent, self.agent = self.agent, None
        if agent is not None:
            await agent.close()

    async def _route(self, text: str) -> None:
        if text.startswith("!") and text.lstrip("!").strip():
            if self.at_rest():
                await self._doing(self._shell(text[1:].strip()))
            return
        named = split(text)
        command = find(named[0]) if named else None
        if named is None or (command is not None and not command.place):
            self._prompt(text)
        elif command is not None:
            await self.command(self, command.name, named[1])
        else:
            await self._own(text, *named)

    async def _own(self, text: str, name: str, argument: str) -> None:
        """A command that the person wrote: its text goes along with what was typed (K33). Else
        one that has another name here."""
        await asyncio.to_thread(self.own.load)
        command = self.own.found.get(name)
        if command is None and name in ELSEWHERE:
            await self._route(f"/{ELSEWHERE[name]} {argument}".rstrip())
            return
        if command is None:
            what, hint = unknown(name, tuple(self.own.found))
            self.face.say(f"{what} {hint}")
            return
        self._prompt(text.strip(), command.prompt(argument))

    def _prompt(self, text: str, attached: str = "") -> None:
        """Send a prompt, or queue it."""
        if self.agent is None:
            self.face.say("No session is open: /new begins one. Your text is kept.")
            self.begin_with = text
        elif self.agent.session.read_only:
            why = self.agent.session.lost or "This session is open read-only."
            self.face.say(f"{why} /fork goes on with a copy.")
            self.begin_with = text
        elif self._running and not self._stopping and not attached:
            self.agent.steer(text)
            self.face.say("Queued: it is sent when the agent can take it.")
            self.drafts.touch()
        else:
            if not self.busy:
                self.teller.typed.append(text)
            else:
                self.face.say("Queued: it is sent when what runs is over.")
            self.submit(text, attached)

    def _typed(self, text: str) -> None:
        """Something was typed while nothing was asked."""
        task = asyncio.create_task(self.take(text), name="typed ahead")
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    async def _send(self, text: str, attached: str) -> None:
        agent = self.agent
        assert agent is not None
        if directives.parse(text).text or attached:
            attached = "\n\n".join(filter(None, (attached, *self._heard)))
            self._heard.clear()
        told = agent.send(text, attached=attached) if attached else agent.send(text)
        await self.turn(told, text)

    async def _doing(self, work: Awaitable[None]) -> None:
        """Do one thing at a time, which Ctrl+C stops."""

        async def done() -> None:
            await work

        task = self._work = asyncio.create_task(done(), name="work")
        try:
            await asyncio.wait({task})
            if not task.cancelled() and (error := task.exception()):
                raise error
        finally:
            self._work, self._stopping = None, False

    async def _turn(self, told: AsyncIterator[Event], text: str) -> None:
        """The boundary: whatever fails inside, the conversation goes on and says so."""
        agent, began = self.agent, self.services.clock.monotonic()
        recorded, outcome, failed = not text, "failed", None
        self._running = True
        try:
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
            self._running = False
            self.teller.stop()
        if agent is None or agent is not self.agent:
            return
        self._take_back(agent.unqueue() if agent.queue else (), outcome)
        if not recorded:
            self.begin_with = "\n".join(filter(None, (text, self.begin_with)))
        if self.services.clock.monotonic() - began > LONG_S and outcome != "interrupted":
            self._bell()
        self._failed = failed if outcome == "failed" else None

    def _take_back(self, left: tuple[str, ...], outcome: str) -> None:
        """What is left of the queue: turns of their own, or back to the prompt."""
        if outcome == "done":
            self._waiting[:0] = [(text, "") for text in left]
        elif left:
            self.begin_with = "\n".join(left)

    async def _told(self, told: AsyncIterator[Event]) -> None:
        self._running = True
        try:
            async for event in told:
                self.teller.tell(event)
        finally:
            self._running = False
            self.teller.stop()

    async def _shell(self, command: str) -> None:
        services, told = self.services, not command.startswith("!")
        command = command.removeprefix("!").strip()
        heard = await shell.run(
            command, services.workspace, services.clock, self.teller.tell, told=told
        )
        if told:
            self._heard.append(shell.attachment(command, heard))

    def _unsent(self) -> tuple[str, tuple[str, ...], str]:
        """What is typed, queued and streamed, and no record has yet."""
        queue = (*(self.agent.queue if self.agent else ()), *(text for text, _ in self._waiting))
        begun = "\n".join(filter(None, (self.begin_with, self.face.begun())))
        return begun, queue, self.teller.answer

    def _bell(self) -> None:
        if self.services.notify:
            self.face.bell()

    def bring_back(self) -> None:
        """Say what an earlier run left behind; what was typed and queued can be sent again."""
        if self.agent is None:
            return
        left = self.agent.session.left_behind
        if left.answer.strip():
            self.face.say("Holdfast, unfinished:", *shown(left.answer))
            self.face.say(
                "The program ended here, before the answer did. The model does not know this part."
            )
        texts = [text for text in (*left.queue, left.prompt) if text.strip()]
        self.begin_with = "\n".join(filter(None, (self.begin_with, *texts)))
        self.drafts.follow(self.agent.session)

    async def close(self) -> None:
        """Everything ends: notes are saved unless the terminal has gone, then the session."""
        if not (self.face.gone or self.face.ended):
            with suppress(HoldfastError):
                await self.save_first()
        for task in list(self._beside):
            task.cancel()
        await self.let_go()
