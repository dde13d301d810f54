"""The conversation without a toolkit: the open session, its turns, and what waits to be sent.

The full screen and plain lines are front ends of it (`tui.app.frontend`): they hand on what the
person does, show what happens, and put the questions.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
)
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tui.agent.interrupted_work import turn_is_open
from tui.agent.prompts import CommandTurn, GoalWish, ParsedPrompt, parse
from tui.app import user_shell
from tui.app.attachments import PromptImages
from tui.app.commands import TAKEN
from tui.app.commands.own import user_commands
from tui.app.door.owner import SessionDoor
from tui.app.drafts import DraftSaver
from tui.app.frontend import Frontend, Submitted
from tui.app.port_watch import say_new_ports
from tui.app.send_queue import SendQueue
from tui.app.services import AppServices, SessionChoice
from tui.app.work import RepeatedPrompt, TurnProgress, Work, follow
from tui.context.interrupted_calls import open_calls
from tui.core import facts
from tui.core.errors import StorageError
from tui.core.facts import Fact
from tui.core.formatting import plural
from tui.core.gc_pause import collect, gc_pause

if TYPE_CHECKING:
    from tui.agent.agent import Agent

SIGN_S = 0.3
"""Seconds that work may take without anything to see."""
SAVE_LIMIT_S = 10.0
"""After this many seconds nobody waits for the model's notes any longer."""


class Conversation:
    """Holds the agent of the session that is open, and runs one thing at a time.

    `queue` keeps what cannot be sent at once, `drafts` what a crash would take, `images` what
    goes along with a prompt. `opening`: a session is being opened, and prompts wait for it. `door`
    is what other processes see and do.
    """

    def __init__(self, services: AppServices, frontend: Frontend) -> None:
        self.services = services
        self.frontend = frontend
        self.agent: Agent | None = None
        self.opening = False
        self.queue = SendQueue(self)
        self.images = PromptImages(services, frontend, self)
        self.drafts = DraftSaver(frontend, self.queue, self.images)
        self.user_commands = user_commands(
            services.folders, services.workspace, services.trust, TAKEN, bare=services.bare
        )
        self._work = Work()
        self._without_session = False  # none could be opened
        self._settled = asyncio.Event()
        self.given_up = 0  # sessions that were wanted and not opened: what waits was meant for them
        self._ports: asyncio.Task[None] | None = None
        self._ports_said = set[int]()
        self._leave_requests = 0
        self._saving = False
        self._resting: list[Callable[[], None]] = []
        self.door = SessionDoor(self)
        self.repetition: RepeatedPrompt | None = None  # in the background
        services.settings.follow(lambda now: (now.permissions, now.redact), self._take_up_rules)

    def _take_up_rules(self, _: object) -> None:
        if self.agent is not None:
            self.agent.permissions.take_up(self.services.settings.now)

    @property
    def busy(self) -> bool:
        """True while a turn, work between the turns, or a command of the person's runs."""
        return self._work.busy

    @property
    def in_turn(self) -> bool:
        """True while a turn runs that nobody has stopped."""
        return self._work.accepts_prompts

    @property
    def settled(self) -> bool:
        """True once a session is open, or none could be opened, and no other one is on its way."""
        return not self.opening and (self.agent is not None or self._without_session)

    async def settle(self) -> bool:
        """Wait until what was pressed before a session was open can act. False where it was meant
        for one that isn't opened after all."""
        given_up = self.given_up
        await self._settled.wait()
        return given_up == self.given_up

    def open_agent(self, *, to_write: bool = False) -> Agent | None:
        """The agent of the open session, and if that is `to_write`, only of one that takes it; else
        a message says why there is none."""
        if self.agent is None:
            self.frontend.say("No session is open yet.")
        elif to_write and self.agent.session.read_only:
            why = self.agent.session.lost or "This session is read-only."
            self.frontend.say(why, "warning", hint="Use /fork to continue in a copy.")
            return None
        return self.agent

    def idle_agent(self) -> Agent | None:
        """The agent, while it does nothing and may write; else a message says why not."""
        if self.open_agent() is None or not self.says_idle():
            return None
        return self.open_agent(to_write=True)

    def says_idle(self) -> bool:
        """True if nothing runs; else a message says so."""
        if self.busy:
            stop = f"Press {self.frontend.stop_key} to stop it."
            self.frontend.say("The agent is working.", "warning", hint=stop)
        return not self.busy

    # Sessions

    async def open(
        self, choice: SessionChoice, accept: Callable[[Agent], Awaitable[SessionChoice | None]]
    ) -> SessionChoice | None:
        """Open a session and show it; what was typed before it was open is sent then.

        Raises what `make_agent` raises; the session that was open stays then, unless it is the
        same one. So it does where `accept`, asked before anything is shown, names another choice
        or none: that is returned, else the choice itself.
        """
        self.opening = True
        self._settled.clear()
        try:
            await self.frontend.opening(choice)
            if self.agent and self.agent.session.path == choice.path is not None:
                await self.close(typed=False, leave=True)  # opened again, here
            with gc_pause(loading=True):
                agent = await self.services.make_agent(choice, self.door.approver)
            wanted = None
            try:
                wanted = await accept(agent)
            finally:
                if wanted != choice:
                    await agent.close()
            if wanted != choice:
                return wanted
            before, running = self.agent, self._jobs_that_stay()
            try:
                await self.close(typed=False, leave=bool(running))
            except StorageError as error:  # that session stays as far as it could be saved
                self.frontend.say(error.message, "warning", hint=error.hint)
            await self.frontend.show_session(agent, choice)
            self.agent = agent
            self.door.begin(agent)
            self.frontend.refresh()
            if before:
                collect()
            if before and running:
                self._say_running(running, before.session.id)
            with gc_pause(loading=True):
                first = await agent.start()
            for event in first:
                self.frontend.show(event)
            agent.watch(self._show_aside)
            agent.count_tokens()
            agent.title_session()
            agent.models.keep_cache_warm()
        finally:
            self.opening = False
            self.frontend.ended()
        await self.drafts.restore(agent.session)
        if self.frontend.prompt_text:
            self.expect_prompt()
        if any(isinstance(event, facts.Parked) for event in first):
            self.resume_turn()  # it waits for the time that the server named
        self._send_waiting()
        self.door.open()
        self._settled.set()
        return choice

    def _jobs_that_stay(self) -> int:
        """Count the commands that run on when another session is opened: those of one that is
        saved."""
        agent = self.agent
        if agent is None or agent.session.path is None or agent.session.read_only:
            return 0
        return agent.jobs.running

    def _say_running(self, count: int, session: str) -> None:
        """Say that commands of another session run on, and how to end them."""
        verb, them = ("is", "it") if count == 1 else ("are", "them")
        text = f"{plural(count, 'background command')} of the other session {verb} still running."
        self.frontend.say(text, hint=f"`holdfast stop {session}` ends {them}.")

    def opening_failed(self) -> None:
        """No session is open after all: what waits for one goes back to the prompt."""
        self._without_session = self.agent is None
        self._settled.set()
        if self.busy:
            return
        self._run_waiting()
        if waiting := self.queue.take_prompts():
            self.frontend.put_prompt("\n".join(prompt.typed for prompt in waiting))
        self._queue_changed()

    async def close(self, *, typed: bool = True, leave: bool = False) -> None:
        """Stop what runs and let the agent go. With `typed`, what is in the prompt is kept
        for when the session is opened again. With `leave`, commands run on for whoever opens it
        next."""
        self._settled.clear()
        self.door.let_go()
        self.drafts.leave(typed=typed)
        if self.agent is not None and leave:
            await self.agent.leave()
        elif self.agent is not None:
            self.agent.jobs.stay()
        agent, self.agent = self.agent, None
        self._cancel_ports()
        self._work.stop(None)
        if agent is not None:
            agent.cancel()
            await agent.close()
        self.may_rest()

    @property
    def leaving(self) -> bool:
        """True while memory is being saved because the person leaves."""
        return self._saving

    async def save_memory_first(self) -> bool:
        """Before the session is left: let the model keep what is worth it, within bounds.

        Stopping it skips it, and so does asking to leave once more. Returns whether the caller is
        to continue: False where another way to leave was chosen meanwhile.
        """
        self._leave_requests += 1
        request, agent = self._leave_requests, self.agent
        if self._saving:
            self.cancel()
            await self.at_rest()
        elif agent and agent.context.memory_pending and not agent.session.read_only:
            phase = f"saving memory before quitting; {self.frontend.stop_key.lower()} quits now"
            if self.start_side_work(phase, _flush_once(agent)):
                self._saving = True
                timer = asyncio.get_running_loop().call_later(SAVE_LIMIT_S, self.cancel)
                try:
                    await self.at_rest()
                finally:
                    timer.cancel()
                    self._saving = False
        return request == self._leave_requests

    def rename(self, title: str) -> None:
        """Give the session that is open another title, by a record."""
        if self.agent is not None:
            self.agent.rename(" ".join(title.split()))
            self.frontend.refresh()

    def to_background(self) -> bool:
        """Move the command that runs in front to the background, the person's own too. False where
        there is none, which is said."""
        moved = bool(self.agent and self.agent.jobs.move_to_background())
        if not moved:
            self.frontend.say("No command is running in the foreground.")
        return moved

    def _show_aside(self, event: Fact) -> None:
        """Show what comes while no turn runs; the end of a background command may wake the
        agent."""
        self.frontend.show(event)
        match event:
            case facts.TitleChanged():
                self.frontend.refresh()
            case facts.JobStarted() | facts.JobFinished():
                self._wake()
            case _:
                pass

    def _wake(self) -> None:
        """Let an idle agent continue where a command has ended and it is to know at once."""
        agent = self.agent
        if agent and agent.jobs.wakes and not self.busy and not agent.session.read_only:
            self.resume_turn()

    # At rest

    def may_rest(self) -> None:
        """Something has ended; those that wait for the end of all work hear of it."""
        asyncio.get_running_loop().call_soon(self._rests)

    def _rests(self) -> None:
        if not self.busy and not self.opening and not self.queue.texts:
            waiting, self._resting = self._resting, []
            for call in waiting:
                call()

    async def quiet(self) -> None:
        """Wait until nothing runs or waits any more in a headless conversation, or it is closed."""
        rests = asyncio.Event()
        self._resting.append(rests.set)
        self.may_rest()
        await rests.wait()

    # What is sent

    def expect_prompt(self) -> None:
        """Begin to load what only a request needs, because one is being written or will be: a third
        of a second and 17 MB, which who only reads does without."""
        if self.agent is not None:
            self.agent.models.load()

    async def load_request(self) -> None:
        """Load that, and wait until it is done."""
        if self.agent is not None:
            await self.agent.models.loaded()

    def submit(self, text: str, attached: str = "", *, waits: bool = False) -> Submitted:
        """Send a prompt, or queue it. `attached` goes after it and switches nothing; what its
        directives cost `waits` for the next break.

        It joins the turn that runs. While there is none to join it waits for a turn of its own,
        see `SendQueue`.
        """
        return self._submit(replace(parse(text, attached), waits=waits))

    def submit_command(self, typed: str, command: CommandTurn) -> Submitted:
        """Send a command that the person wrote, in a turn of its own."""
        return self._submit(replace(parse(typed, command.text), command=command))

    def submit_parsed(self, prompt: ParsedPrompt) -> Submitted:
        """Send a prompt that was read already, such as one that sets a goal."""
        return self._submit(prompt)

    def _submit(self, prompt: ParsedPrompt) -> Submitted:
        say, agent = self.frontend.say, self.agent
        if prompt.pasted:
            say(f"{prompt.pasted} was pasted, so it's sent as text and switches nothing.")
        if agent and self.open_agent(to_write=True) is None:
            return "refused"
        if not self.images.fits(prompt.typed):
            return "refused"
        prompt = replace(prompt, images=self.images.of(prompt.typed))
        free = agent is not None and not self.opening
        if agent and free and not self.busy:
            if prompt.text or prompt.attached:  # else it only switches something
                prompt = replace(prompt, attached=self.queue.along(prompt.attached))
            self._begin_turn(agent, agent.send(prompt), prompt.typed)
            return "sent"
        if agent and free and self._work.accepts_prompts and not prompt.attached:
            agent.steer(prompt)
            self._queue_changed()
            return "joined"
        self.queue.add(prompt)
        self._queue_changed()
        return "queued"

    def run_shell(self, command: str) -> Submitted:
        """Run the person's own command. The model sees its output with the next prompt, unless
        another ! comes before it.

        It waits for the session that is about to be opened, and for what runs.
        """
        at_once = not self.busy and not self.opening
        self.queue.add_command(command)
        self._queue_changed()
        if not self.opening and (self.agent or self._without_session):
            self._run_waiting()
        return "sent" if at_once else "queued"

    def resume_turn(
        self, again: Collection[str] = (), *, repeat: bool = False, goal: GoalWish | None = None
    ) -> bool:
        """Go on with the turn that stopped, without a prompt; `again` are calls without a result
        that get it first, as `Agent.go_on` has it. With a `goal`, which takes a person's word, that
        of the session goes on, too. False where that cannot be now."""
        agent = self.agent
        if agent is None or self.busy or self.opening:
            return False
        self._begin_turn(agent, agent.go_on(again, repeat=repeat, goal=goal))
        return True

    def pause(self) -> None:
        """Let the turn that runs end where it can be continued, here or in another process; see
        `Agent.pause`."""
        if self.agent is not None:
            self.agent.pause()

    def continue_turn(self) -> bool:
        """Go on with a turn that was paused or stopped: the calls that it left are made now.
        False where there is none, or not now."""
        records = self.agent.session.records if self.agent else ()
        left = [str(call.get("id")) for call in open_calls(records)]
        return turn_is_open(records) and self.resume_turn(left, goal=GoalWish())

    def start_side_work(self, phase: str, stream: AsyncIterator[Fact]) -> bool:
        """Follow what happens between the turns, such as a compaction. False where that cannot be
        now."""
        if self.agent is None or self.busy or self.opening:
            return False
        self._work.begin("side", self._follow_side_work(phase, stream), self._between_turns)
        self.frontend.began("side", phase)
        self.door.changed(phase)
        return True

    async def run_reading(self, phase: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Carry out a command that only reads and may take a while, beside what runs. Where nothing
        does, `phase` is shown if it takes long, and what stops the agent stops it."""
        if self.busy:
            await work()
            return
        self._work.begin("shell", self._reading(phase, work), self._between_turns)
        await self._work.at_rest()

    async def _reading(self, phase: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        async def sign() -> None:
            await self.services.clock.sleep(SIGN_S)
            self.frontend.began("side", phase)
            self.door.changed(phase)

        signing = asyncio.create_task(sign(), name="sign")
        try:
            await work()
        finally:
            signing.cancel()

    def cancel(self) -> bool:
        """Stop what runs; a side question only where nothing else does. False when nothing did."""
        stopped = self._work.stop(self.agent)
        return stopped or (self.agent is not None and self.agent.side_questions.stop())

    async def at_rest(self) -> None:
        """Wait until what runs now is over, however it ends."""
        await self._work.at_rest()

    def take_back(self) -> str:
        """Take back what waits to be sent from the queue; "" where nothing does."""
        text = self.queue.take_back()
        if text:
            self._queue_changed()
        return text

    # Turns

    def _begin_turn(self, agent: Agent, stream: AsyncIterator[Fact], text: str = "") -> None:
        """A turn, of the prompt `text` if any."""
        progress = TurnProgress(recorded=not text)
        over = partial(self._turn_over, agent, progress, text)
        self._work.begin("turn", self._turn(progress, stream), over)
        self.frontend.began("turn", "starting")
        self.door.changed("starting")

    async def _turn(self, progress: TurnProgress, stream: AsyncIterator[Fact]) -> None:
        def show(event: Fact) -> None:
            self.frontend.show(event)
            progress.see(event)
            self.drafts.see(event)
            if isinstance(event, facts.QueueChanged):
                self.frontend.refresh()

        if self._work.stopping:
            progress.outcome, progress.finished = "interrupted", True
            self.frontend.say("Stopped before it was sent.")
        else:
            await follow(stream, show, "turn")

    def _turn_over(self, agent: Agent, progress: TurnProgress, text: str) -> None:
        if agent is not self.agent:
            self.may_rest()
            return
        if not progress.finished:
            self.frontend.show(facts.TurnFinished("failed"))
        unsent = () if progress.recorded else (text,)
        unsent += self.queue.after_turn(done=progress.outcome == "done")
        if unsent:
            self.frontend.put_prompt("\n".join(unsent))
        self.frontend.ended(progress.result)
        self.door.changed("")
        if agent.jobs.own_run:
            self._cancel_ports()
            clock, say = self.services.clock, self.frontend.say
            watch = say_new_ports(agent, clock, say, self._ports_said)
            self._ports = asyncio.create_task(watch, name="ports")
        self._send_waiting()
        if progress.outcome == "done":
            self._wake()

    def _cancel_ports(self) -> None:
        if self._ports is not None:
            self._ports.cancel()

    async def _follow_side_work(self, phase: str, stream: AsyncIterator[Fact]) -> None:
        if not self._work.stopping:
            await follow(stream, self.frontend.show, phase)

    # The person's own commands

    async def _shell(self, command: str) -> None:
        services, shared = self.services, not command.startswith("!")
        command = command.removeprefix("!").strip()
        keeping = self.agent.jobs.output if self.agent else None
        where, clock, show = services.workspace, services.clock, self.frontend.show
        output = await user_shell.run(command, where, clock, show, shared=shared, keeping=keeping)
        if shared:
            self.queue.hear(user_shell.attachment(command, output))

    def _between_turns(self) -> None:
        """Side work or a command is over."""
        self.frontend.ended()
        self.door.changed("")
        if self.agent:
            self._send_waiting()
        elif self._without_session:
            self._run_waiting()

    # What waits

    def _send_waiting(self) -> None:
        """Go on with what waited: a command first; what is more than one prompt joins the turn."""
        self._run_waiting()
        for prompt in self.queue.take_prompts():
            if self._submit(prompt) == "refused":
                self.frontend.put_prompt(prompt.typed)
        self._queue_changed()

    def _run_waiting(self) -> None:
        """Run the command that waits longest, unless something runs."""
        if not self.busy and (command := self.queue.take_command()) is not None:
            self._work.begin("shell", self._shell(command), self._between_turns)
            self.frontend.began("shell", "")
            self.door.changed("")
            self._queue_changed()

    def _queue_changed(self) -> None:
        self.frontend.refresh()
        self.drafts.queued()


async def _flush_once(agent: Agent) -> AsyncGenerator[Fact]:
    """Save to the memory, without sending a request again that has failed: who leaves does not
    wait for a server that cannot be reached."""
    async for event in agent.context.flush_memory():
        if isinstance(event, facts.RetryScheduled):
            agent.cancel()
        else:
            yield event
