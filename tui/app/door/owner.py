"""The owner's part of a door: what is known of the session that a conversation has open, for
itself and for all who watch it.

A front end says here what it shows (`see`, `say`); the rest the conversation does.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol, cast

from tui.core import facts
from tui.core.clock import timestamp
from tui.core.errors import HoldfastError, StorageError, UsageError
from tui.core.facts import DurableFact, Fact, RecordFact

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.app.door.door import Door, Request, WatchStart
    from tui.app.door.lines import (
        AskedLine,
        FromOwner,
        Hello,
        OwnerKind,
        RequestOutcome,
        SessionStatus,
        State,
    )
    from tui.app.door.live_state import LiveState
    from tui.app.door.questions import OpenQuestion, SharedApprover
    from tui.app.frontend import Frontend
    from tui.app.reports import Level
    from tui.app.services import AppServices
    from tui.session.session import Session

log = logging.getLogger(__name__)

_DELTAS: Final = (facts.TextDelta, facts.ThinkingDelta, facts.ToolInputDelta)
"""Facts that come in runs, of which the first changes what is done."""
_QUIET: Final = (facts.ToolOutputChunk, facts.CompactionDelta, facts.Alive)
"""Facts that come in numbers and change nothing of it."""
_PAID: Final = (
    *(facts.CacheWarmed, facts.CompactionFinished, facts.GoalChanged, facts.RequestPaid),
    *(facts.SideQuestion, facts.SubAgentFinished, facts.TitleChanged),
)
_ENDS: Final = {"done": "done", "interrupted": "stopped", "failed": "failed", "limit": "failed"}


class WatchedConversation(Protocol):
    """The port of a door to its conversation."""

    services: AppServices
    frontend: Frontend
    agent: Agent | None

    @property
    def busy(self) -> bool: ...

    def cancel(self) -> bool: ...


class StatusFollower(Protocol):
    """Keeps the status of a session elsewhere."""

    def status_changed(self) -> None: ...


class SessionDoor:
    """The state of a conversation's session as others see it, and its door, while one is open.

    `kind` is that of the front end. `follower` hears of each change of the state, of what is done
    and of the cost.
    """

    def __init__(self, conversation: WatchedConversation) -> None:
        self.kind: OwnerKind = "program"
        self.follower: StatusFollower | None = None
        self.handed_over = False
        """True if another process continues the session once it is let go of."""
        self.live: LiveState | None = None
        """None while no session is open."""
        self._conversation = conversation
        self._agent: Agent | None = None
        self._door: Door | None = None
        self._approver: SharedApprover | None = None
        self._waits: dict[str, tuple[OpenQuestion, str]] = {}
        """The open questions, with the time of each."""
        self._shown = deque[DurableFact](maxlen=64)
        """Facts of the record that were shown, the newest last."""
        self._state: State = "idle"
        self._since = ""
        self._phase = ""
        self._cost: float | None = None
        self._branch = ""
        self._planned = ""
        """The time when it works again by itself, in words."""
        self._before: type[Fact] | None = None
        self._heard: list[str] | None = None
        """Texts that the front end says while a watcher's prompt is taken."""
        self._prompts = asyncio.Lock()

    @property
    def approver(self) -> SharedApprover:
        """Asks where the session is open, and all who watch it."""
        if self._approver is None:
            from tui.app.door.questions import SharedApprover  # noqa: PLC0415 - with a session

            inner = self._conversation.frontend.approver
            self._approver = SharedApprover(inner, self)
        return self._approver

    # From the conversation and its front end

    def begin(self, agent: Agent) -> None:
        """A session is open: its facts are told from now on."""
        from tui.app.door.live_state import LiveState  # noqa: PLC0415 - with a session

        self._agent, self.live = agent, LiveState(self._conversation.services.clock)
        self._shown.clear()
        self._state, self._since, self._phase = "idle", self._now(), ""
        self._price()

    def open(self) -> None:
        """Open the door of the session that has begun. Where that is impossible, work goes on
        without one."""
        agent = self._agent
        if agent is None or self._door is not None or agent.session.read_only:
            return
        from tui.app.door.door import Door  # noqa: PLC0415 - once a session is shown
        from tui.app.door.sockets import DoorListener  # noqa: PLC0415 - as above
        from tui.core.git.branch import branch_of  # noqa: PLC0415 - as above

        try:
            listener = DoorListener(self._conversation.services.folders, agent.session.id)
        except (OSError, ValueError) as error:
            log.warning("No other process can watch this session: %s", error)
            return
        self._branch = branch_of(self._conversation.services.workspace)
        self._door = Door(self, listener)

    def let_go(self) -> None:
        """The session is closed: say how it ended."""
        door, self._door = self._door, None
        if door is not None:
            from tui.app.door.lines import Ended  # noqa: PLC0415 - it is loaded

            state, detail = self.end
            door.close(Ended(state=state, detail=detail))
        self._agent = self.live = None

    def see(self, event: Fact) -> None:
        """Take into account what is shown, and tell it."""
        live = self.live
        if live is None:
            return
        live.see(event)
        if isinstance(event, DurableFact):
            self._shown.append(event)
        if self._door is not None:
            self._door.show(event)
        kind, before = type(event), self._before
        self._before = kind
        if kind in _QUIET or (kind is before and kind in _DELTAS):
            return
        if isinstance(event, _PAID):
            self._price()
        elif isinstance(event, facts.TurnFinished):
            self._phase = ""
            self._price()
            if self._door is not None:
                from tui.core.git.branch import branch_of  # noqa: PLC0415 - it is loaded

                self._branch = branch_of(self._conversation.services.workspace)
        elif isinstance(event, facts.StorageChanged) and self._lost:
            self.let_go()
            return
        self.changed()

    def say(self, text: str, level: Level = "info", hint: str = "") -> None:
        """Tell what the front end says."""
        if self._heard is not None:
            self._heard.append(" ".join(filter(None, (text, hint))))
        if self._door is not None and self._door.occupied:
            from tui.app.door.lines import OwnerNotice  # noqa: PLC0415 - it is loaded

            notice = OwnerNotice(text=text, level=level, hint=hint)
            self._door.tell(notice, conversation=True)

    def changed(self, phase: str | None = None) -> None:
        """Something began or ended; `phase` names it where no fact does."""
        if self.live is None:
            return
        if phase is not None:
            self._phase = phase
        state = self._current_state()
        if state != self._state:
            self._state, self._since = state, self._now()
        if self._door is not None:
            self._door.status_changed()
        if self.follower is not None:
            self.follower.status_changed()

    def plan(self, when: str) -> None:
        """The session works again by itself, and says when; "" where it doesn't."""
        self._planned = when
        self.changed()

    @property
    def end(self) -> tuple[State, str]:
        """The state in which the session is left, and what it came to."""
        from tui.app.door.live_state import short  # noqa: PLC0415 - it is loaded

        live = self.live
        if self.handed_over:
            return "saved", "another process has it now"
        if live is None or not live.outcome:
            return "saved", ""
        state = _ENDS[live.outcome]
        detail = {"done": live.answer, "stopped": ""}.get(state, live.error)
        return state, short(detail)  # pyright: ignore[reportReturnType] - one of them

    @property
    def _lost(self) -> bool:
        return self._agent is not None and bool(self._agent.session.lost)

    def asked(self, question: OpenQuestion) -> None:
        """A question waits: tell it."""
        self._waits[question.number] = question, self._now()
        if self._door is not None:
            self._door.tell(self.questions()[-1])
        self.changed()

    def settled(self, question: OpenQuestion) -> None:
        """A question no longer waits."""
        self._waits.pop(question.number, None)
        if self._door is not None:
            from tui.app.door.lines import Settled  # noqa: PLC0415 - it is loaded

            self._door.tell(Settled(number=question.number))
        self.changed()

    # For the door

    def hello(self) -> Hello:
        from tui.app.door.lines import Hello  # noqa: PLC0415 - it is loaded

        services, session = self._conversation.services, self._session
        return Hello(
            version=services.version,
            session=session.id,
            path=os.path.realpath(session.path) if session.path else "",
            cwd=str(services.workspace),
            pid=os.getpid(),
            kind=self.kind,
        )

    def status(self) -> SessionStatus:
        from tui.app.door.lines import SessionStatus  # noqa: PLC0415 - with a session

        agent = self._agent
        if agent is None:
            return SessionStatus(state="saved")
        session = agent.session
        return SessionStatus(
            state=self._state,
            detail=self._detail(),
            since=self._since,
            title=session.title,
            model=agent.models.current,
            branch=self._branch,
            cost_usd=self._cost,
            unsaved="" if session.saved or session.opened_to_read else session.problem,
            profile=agent.models.profile,
        )

    def questions(self) -> Sequence[AskedLine]:
        from tui.app.door.lines import AskedLine  # noqa: PLC0415 - with a question

        return [
            AskedLine(number=one.number, asked=one.asked, since=since)
            for one, since in self._waits.values()
        ]

    def start(self) -> WatchStart:
        from tui.app.door.door import WatchStart  # noqa: PLC0415 - it is loaded
        from tui.app.door.lines import FactLine, RecordEnd  # noqa: PLC0415 - it is loaded
        from tui.core.facts.lines import plain_of  # noqa: PLC0415 - as above

        session, live = self._session, self.live
        assert live is not None
        pending = self._pending(session)
        state = live.copy_with(pending) if pending else live
        last = session.records[-1].id if session.records else ""
        told: list[FromOwner] = [RecordEnd(last=last)]
        told += [FactLine(fact=plain_of(fact)) for fact in state.facts()]
        return WatchStart(told, pending, self._saved(session, len(session.records)))

    async def take(self, request: Request) -> RequestOutcome:
        from tui.app.door.lines import RequestOutcome  # noqa: PLC0415 - it is loaded

        number = request.number
        try:
            return await self._do(request)
        except HoldfastError as error:
            return RequestOutcome(
                number=number, outcome="refused", text=error.message, hint=error.hint
            )
        except Exception as error:
            log.exception("A request from another process failed")
            text = f"Something went wrong ({type(error).__name__}). Details are in the log file."
            return RequestOutcome(number=number, outcome="refused", text=text)

    async def _do(self, request: Request) -> RequestOutcome:
        """Do what a watcher asks. Raises HoldfastError where that is refused."""
        from tui.app.door.lines import (  # noqa: PLC0415 - it is loaded
            GiveAnswer,
            RequestOutcome,
            SendPrompt,
            StopTurn,
        )

        match request:
            case SendPrompt(text=text):
                return await self._take_prompt(request.number, text)
            case GiveAnswer(to=to, answer=answer):
                self.approver.answer(to, answer)
            case StopTurn():
                if not self._conversation.cancel():
                    raise UsageError("Nothing runs.")
        return RequestOutcome(number=request.number, outcome="done")

    async def _take_prompt(self, number: str, text: str) -> RequestOutcome:
        from tui.app.door.lines import RequestOutcome  # noqa: PLC0415 - it is loaded

        async with self._prompts:  # in their order
            heard: list[str] = []
            self._heard = heard
            try:
                fate = await self._conversation.frontend.take_line(text)
            finally:
                self._heard = None
        said = " ".join(heard) if fate == "refused" else ""
        return RequestOutcome(number=number, outcome=fate or "done", text=said)

    # Inside

    @property
    def _session(self) -> Session:
        assert self._agent is not None
        return self._agent.session

    def _pending(self, session: Session) -> list[Fact]:
        """The facts that are in the record and will be shown in a moment, when they are on the
        disk."""
        shown = list(self._shown)
        pending: list[Fact] = []
        for fact in reversed(session.recent):
            if isinstance(fact, RecordFact):
                if isinstance(fact, facts.TurnInterrupted):  # what streamed is recorded with it
                    pending.insert(0, cast("Fact", fact))
                continue  # nobody is shown it
            if fact in shown:
                break
            pending.insert(0, cast("Fact", fact))
        return pending

    async def _saved(self, session: Session, count: int) -> Sequence[FromOwner]:
        """Wait until the file has the first `count` records; where it can't, return their lines."""
        from tui.app.door.lines import RecordLines  # noqa: PLC0415 - it is loaded

        records = session.records[:count]
        try:
            await session.sync()
        except StorageError:
            pass
        else:
            if session.path is not None and await asyncio.to_thread(session.path.exists):
                return ()
        lines = [session.header.to_line(), *(one.to_line() for one in records)]
        texts = tuple(line.decode("utf-8", "replace").rstrip("\n") for line in lines)
        return [RecordLines(lines=texts, afresh=True)]

    def _current_state(self) -> State:
        if self._waits:
            return "waiting"
        if not self._conversation.busy:
            return "idle"
        return "parked" if self.live is not None and self.live.parked else "working"

    def _detail(self) -> str:
        from tui.app.door.live_state import short  # noqa: PLC0415 - it is loaded
        from tui.permissions.asked import summary_of  # noqa: PLC0415 - it is loaded

        if self._waits:
            first, *more = [one.asked for one, _ in self._waits.values()]
            who = getattr(first, "agent", "") or getattr(getattr(first, "call", None), "agent", "")
            text = f"{who}: {summary_of(first)}" if who else summary_of(first)
            return short(f"{text} and {len(more)} more" if more else text)
        if self._state == "idle" or self.live is None:
            return self._planned
        detail, goal = self.live.detail or self._phase, self.live.goal
        return short(f"{goal} · {detail}") if goal else detail

    def _price(self) -> None:
        if self._agent is not None:
            self._cost = self._agent.spending().session.usd or None

    def _now(self) -> str:
        return timestamp(self._conversation.services.clock.now())
