"""Between the agent and the screen: one worker iterates a turn, questions become modals.

`AppServices` is everything that the full screen needs from the rest of the program; who starts
it wires them (the command line, or a test).
"""

from __future__ import annotations

import asyncio
import codecs
import itertools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from textual.app import App
from textual.worker import Worker

from tui import themes
from tui.agent import events
from tui.agent.events import Event
from tui.clock import Clock
from tui.errors import HoldfastError
from tui.paths import Folders
from tui.permissions.base import Answer, Approver, Call, Decision, Mode
from tui.presenter import Presenter
from tui.provider.base import ModelInfo
from tui.screens.chat import ChatScreen
from tui.screens.choices import SessionRow, Setup
from tui.servers import LocalServer
from tui.session.end import read_end
from tui.session.records import Record
from tui.widgets.conversation.items import ToolItem
from tui.widgets.transcript import items_of
from tui.workspace import branch_of

if TYPE_CHECKING:
    from tui.context.ledger import Ledger
    from tui.context.overlay import Overlay
    from tui.context.view import View
    from tui.provider.base import Request

log = logging.getLogger(__name__)

SHELL_TICK_S = 0.1
BURST = 64
"""So many events are drawn before the loop gets a turn."""

_shell_numbers = itertools.count(1)


class Session(Protocol):
    """What the screen reads of a session."""

    @property
    def id(self) -> str: ...
    @property
    def path(self) -> Path | None: ...
    @property
    def title(self) -> str: ...
    @property
    def records(self) -> Sequence[Record]: ...


class Agent(Protocol):
    """What the screen asks of an agent; `tui.agent.agent.Agent` says what each does."""

    @property
    def mode(self) -> Mode: ...
    @mode.setter
    def mode(self, mode: Mode) -> None: ...
    @property
    def session(self) -> Session: ...
    @property
    def queue(self) -> tuple[str, ...]: ...
    @property
    def model(self) -> str: ...
    @property
    def window(self) -> int: ...
    async def start(self) -> list[Event]: ...
    def send(self, text: str) -> AsyncIterator[Event]: ...
    def steer(self, text: str) -> None: ...
    def unqueue(self) -> tuple[str, ...]: ...
    def cancel(self) -> None: ...
    def use_model(self, info: ModelInfo) -> None: ...
    @property
    def ledger(self) -> Ledger: ...
    def view(self) -> View: ...
    def fixed_texts(self) -> Mapping[str, str]: ...
    def next_request(self, *, prompt_follows: bool = False) -> Request: ...
    async def overlay(self, changes: Sequence[Overlay]) -> Sequence[Event]: ...
    async def pin(self, pins: Mapping[str, bool]) -> Sequence[Event]: ...
    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class SessionChoice:
    """Which session to open: the file of an old one, or None for a new one."""

    path: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AppServices:
    """What the full screen asks of the rest of the program.

    `make_agent` raises CredentialsError when there is no key, SessionError when the session
    cannot be opened. `set_up` keeps what the welcome screen was told and says where, in a
    sentence; after it `make_agent` uses it. `untrusted` are the files that a folder brings along
    and nobody decided about yet.
    """

    clock: Clock
    folders: Folders
    workspace: Path
    make_agent: Callable[[SessionChoice, Approver], Awaitable[Agent]]
    list_sessions: Callable[[], Awaitable[Sequence[SessionRow]]]
    set_up: Callable[[Setup], Awaitable[str]]
    probe_servers: Callable[[], Awaitable[Sequence[LocalServer]]]
    model_info: Callable[[str], Awaitable[ModelInfo]]
    save_theme: Callable[[str], Awaitable[None]]
    decide_trust: Callable[[bool], Awaitable[None]]
    untrusted: tuple[str, ...] = ()
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What the screen opens with: `choice` is the session, None shows the browser first;
    `prompt` is sent as if it had been typed."""

    services: AppServices
    choice: SessionChoice | None = SessionChoice()
    prompt: str | None = None
    theme: str = themes.DEFAULT_DARK


class ModalApprover:
    """Asks the person by a modal, one question at a time."""

    def __init__(self, app: App[Any], chat: ChatScreen) -> None:
        self._app = app
        self._chat = chat
        self._asking = asyncio.Lock()

    async def ask(self, call: Call, decision: Decision) -> Answer:
        """Show the question and wait. Cancelling the wait takes the question away."""
        from tui.widgets.approval import ApprovalModal  # noqa: PLC0415 - not for the first frame

        async with self._asking:
            answered: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()

            def take(answer: Answer | None) -> None:
                if not answered.done():
                    answered.set_result(answer)

            modal = ApprovalModal(call, decision, self._chat.clock, self._chat.prompt.insert)
            self._app.push_screen(modal, take)
            try:
                return await answered or Answer("no")
            except asyncio.CancelledError:
                while modal in self._app.screen_stack:
                    await self._app.pop_screen()
                raise


@dataclass(slots=True)
class Bridge:
    """Holds the agent that the chat screen shows, and runs its turns."""

    app: App[Any]
    chat: ChatScreen
    services: AppServices
    agent: Agent | None = None
    presenter: Presenter = field(init=False)
    opening: bool = False
    _worker: Worker[None] | None = None
    _stopping: bool = False
    _waiting: list[str] = field(default_factory=list[str])
    """Sent as turns of their own, as soon as one can begin."""

    def __post_init__(self) -> None:
        self.presenter = Presenter(self.chat)

    @property
    def busy(self) -> bool:
        """Whether a turn or a shell command runs."""
        return self._worker is not None

    async def open(self, choice: SessionChoice) -> None:
        """Open a session and show it; what was typed before it stood is sent then.

        Its end is shown while the rest is read. Raises what `make_agent` raises; the session
        that was open stays then.
        """
        self.opening = True
        self.chat.work("opening the session")
        try:
            if choice.path is not None and self.agent is None:
                await self._show_end(choice.path)
            agent = await self.services.make_agent(choice, ModalApprover(self.app, self.chat))
        finally:
            self.opening = False
            self.chat.idle()
        await self.close()
        self.agent = agent
        self.presenter = Presenter(self.chat)
        self.presenter.resume(agent.session.records)
        self.chat.show_mode(agent.mode)
        self._retitle()
        for event in await agent.start():
            self.presenter.show(event)
        self._send_waiting()

    def submit(self, text: str) -> None:
        """Send a prompt, or queue it.

        It joins the turn that runs. While there is none to join (no session stands yet, the
        person has stopped the turn, a shell command runs) it waits for a turn of its own.
        """
        self.chat.follow()
        free = self.agent is not None and not self.opening
        if self.agent and free and not self.busy:
            self._run("turn", self._turn(self.agent, text))
        elif self.agent and free and self._in_turn and not self._stopping:
            self.agent.steer(text)
            self._show_queue()
        else:
            self._waiting.append(text)
            self._show_queue()

    def give_back(self) -> None:
        """Put what waits for a session back into the prompt: none could be opened."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            self.chat.prompt.put_back("\n".join(waiting))
        self._show_queue()

    def run_shell(self, command: str) -> None:
        """Run the person's own command. Its output is shown; the model does not see it."""
        if self.busy:
            self.chat.notice.say("The agent is at work.", "warning", hint="Esc stops it.")
        else:
            self._run("shell", self._shell(command))

    def cancel(self) -> bool:
        """Stop what runs. False when nothing did."""
        if self._worker is None:
            return False
        if self.agent and self._in_turn:
            self._stopping = True
            self.agent.cancel()
        else:
            self._worker.cancel()
        return True

    async def use_model(self, name: str) -> None:
        """Ask another model from the next request on."""
        if self.agent:
            self.agent.use_model(await self.services.model_info(name))
            self.presenter.name_model(self.agent.model)

    async def mark(self, what: Literal["mask", "pin"]) -> None:
        """Mask or pin the result of the tool call under the cursor, or undo that."""
        from tui.context.overlay import Overlay  # noqa: PLC0415 - not for the first frame

        item, say = self.chat.conversation.cursor, self.chat.notice.say
        if self.agent is None or not isinstance(item, ToolItem):
            say(
                f"There is no tool call here to {what}.",
                hint="Tab and ↑ ↓ choose one, F2 shows all.",
            )
            return
        records = reversed(self.agent.session.records)
        wanted = (
            r for r in records if r.type == "tool_result" and r.data.get("call_id") == item.id
        )
        record = next(wanted, None)
        if record is None:
            say("The model has no result of this call.")
            return
        if what == "mask":
            overlay = Overlay(record.id, "full" if item.masked else "masked")
            told = await self.agent.overlay([overlay])
        else:
            told = await self.agent.pin({record.id: not item.pinned})
        for event in told:
            self.presenter.show(event)

    async def close(self) -> None:
        """Stop what runs and let the agent go."""
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
        waiting, self._waiting = self._waiting, []
        for text in waiting:
            self.submit(text)
        self._show_queue()

    def _show_queue(self) -> None:
        queue = self.agent.queue if self.agent else ()
        self.chat.queued.texts = (*queue, *self._waiting)

    async def _show_end(self, path: Path) -> None:
        """Show the end of a session that is about to be read, where it has one that can be."""
        with suppress(HoldfastError):
            records = await asyncio.to_thread(read_end, path)
            self.chat.fill(items_of(records))

    def _run(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        self._worker = self.app.run_worker(work, name=name, group="work", exit_on_error=False)

    async def _turn(self, agent: Agent, text: str) -> None:
        """One turn. The boundary: whatever fails inside, the screen stays and says so."""
        presenter = self.presenter
        self.chat.work("starting")
        recorded, outcome, seen = False, "failed", 0
        try:
            async for event in agent.send(text):
                seen += 1
                if seen % BURST == 0:
                    await asyncio.sleep(0)
                recorded |= isinstance(event, events.UserMessage | events.DirectivesChanged)
                outcome = event.outcome if isinstance(event, events.TurnFinished) else outcome
                presenter.show(event)
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
        self._send_waiting()

    def _explain(self, error: Exception) -> None:
        known = isinstance(error, HoldfastError)
        message = error.message if known else f"Something went wrong ({type(error).__name__})."
        hint = error.hint if known else "Nothing is lost. The details are in the log file."
        self.presenter.show(events.ErrorRaised("unknown", message, True, hint))

    async def _shell(self, command: str) -> None:
        from tui.tools.process import Process, outcome  # noqa: PLC0415 - not for the first frame

        clock, id_ = self.services.clock, f"shell-{next(_shell_numbers)}"
        show, started = self.presenter.show, clock.monotonic()
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        heard: list[bytes] = []
        show(events.ToolStarted(id_, "shell", {"command": command}, command))
        code, words = 1, "stopped"
        text = ""
        try:
            process = await Process.start(command, cwd=self.services.workspace, sink=heard.append)
            try:
                while not await process.wait(SHELL_TICK_S):
                    text = self._hear(id_, decoder.decode(b"".join(heard)), text)
                    heard.clear()
                await process.drain()
            finally:
                process.close()
            code, words = outcome(process.returncode or 0)
        except HoldfastError as error:
            text = str(error)
        finally:
            text = self._hear(id_, decoder.decode(b"".join(heard), final=True), text)
            seconds = clock.monotonic() - started
            summary = f"{words} · not shown to the model"
            show(events.ToolFinished(id_, "shell", code != 0, seconds, None, summary, text))
            self._worker = None
            self.chat.idle()
            if self.agent:
                self._send_waiting()

    def _hear(self, id_: str, text: str, before: str) -> str:
        if text:
            self.presenter.show(events.ToolOutputChunk(id_, text))
        return (before + text)[-8000:]

    def _retitle(self) -> None:
        title = self.agent.session.title if self.agent else ""
        self.presenter.retitle(title, branch_of(self.services.workspace))
