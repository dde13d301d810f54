"""One session watched from elsewhere: its record, what happens, its questions, and requests to it.

The line to it may be cut at any moment. It is then opened again until it holds; what has not
come by then comes again, and a request that was not answered is sent again to the same owner. An
owner that has ended answers no more: then the record tells what became of a prompt, or nobody can.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol, TypeAlias, cast

import msgspec

from tui.app.door.lines import (
    PROTOCOL,
    AskedLine,
    Ended,
    FactLine,
    FromOwner,
    GiveAnswer,
    Hello,
    LineError,
    OwnerNotice,
    RecordEnd,
    RecordLines,
    RequestOutcome,
    SendPrompt,
    SessionStatus,
    Settled,
    StopTurn,
    UnsentLine,
    Watch,
)
from tui.core.clock import Clock
from tui.core.dataclass import dataclass, field
from tui.core.errors import HoldfastError
from tui.core.facts import Fact, UserMessage
from tui.core.facts.lines import UnknownFactError, fact_of
from tui.core.gc_pause import gc_pause
from tui.desk.host import Channel, DeskHost
from tui.permissions.asked import Answered
from tui.session.reader import active_branch, grown
from tui.session.records import Record

log = logging.getLogger(__name__)

FIRST_WAIT_S: Final = 0.5
LONGEST_WAIT_S: Final = 5.0
"""Seconds between two attempts to open the line again; each wait is twice the one before."""
_POLL_S: Final = 0.25

ELSEWHERE: Final = "The question was answered elsewhere."
ENDED: Final = "Its process ended: nobody waits for that answer any more."
CUT: Final = "The line is cut: the question is put again once it's back."
UNKNOWN: Final = "Its process ended before it said that it had the prompt."
UNSAID: Final = "The line was cut before the other end said that it had sent the prompt."
CLOSED: Final = "You left before an answer came."

Request: TypeAlias = SendPrompt | GiveAnswer | StopTurn


class SessionView(Protocol):
    """Shows a watched session. All of it is called in the loop, in the order of what happens."""

    def greet(self, hello: Hello) -> None:
        """Another owner has the session, or the same one again."""

    async def restore(self, records: Sequence[Record], damaged: int) -> None:
        """Show the session's branch afresh. `damaged` lines of its file can't be read."""

    def show(self, fact: Fact) -> None:
        """Show what isn't in the record yet, or happens."""

    def asked(self, line: AskedLine) -> None:
        """Put a question to the person."""

    def settle(self, number: str, why: str) -> None:
        """A question no longer waits: put it no more."""

    def state_changed(self, status: SessionStatus) -> None: ...

    def say(self, notice: OwnerNotice) -> None: ...

    def restore_unsent(self, work: UnsentLine) -> None:
        """Show what an owner that has ended left unsent, after the record."""

    def line_cut(self, reason: str, again_at: float) -> None:
        """The line is cut, and opened again at a time of the monotonic clock."""

    def line_back(self) -> None: ...

    def ended(self, line: Ended) -> None:
        """The owner has let go of the session."""


@dataclass(slots=True)
class _Pending:
    """A request without its outcome. `owner` is the process that it went to, `channel` the line by
    which it went; None before it was sent. `same` counts equal prompts that were sent before."""

    request: Request
    outcome: asyncio.Future[RequestOutcome]
    same: int = 0
    owner: tuple[str, int] | None = None
    channel: Channel | None = None
    doubtful: bool = False


@dataclass(slots=True)
class _Record:
    """The record as it has come: its parsed records, and lines that are yet to be parsed."""

    records: list[Record] = field(default_factory=list[Record])
    lines: list[str] = field(default_factory=list[str])
    damaged: int = 0

    def add(self, came: RecordLines) -> None:
        if came.afresh:
            self.records, self.lines, self.damaged = [], [], 0
        self.lines += came.lines

    async def parse(self) -> tuple[list[Record], Counter[str]]:
        """Parse what came, in a thread, and return the active branch with its prompts."""
        lines, self.lines = self.lines, []
        self.records, unread = await asyncio.to_thread(_parsed, self.records, lines)
        self.damaged += unread
        return await asyncio.to_thread(_branch_of, self.records)


def _parsed(before: list[Record], lines: Sequence[str]) -> tuple[list[Record], int]:
    data = "\n".join(lines).encode(errors="replace")
    return grown(before, data) if lines else (before, 0)


def _branch_of(records: list[Record]) -> tuple[list[Record], Counter[str]]:
    branch = active_branch(records)
    return branch, Counter(_prompts_of(branch))


class WatchedSession:
    """Watches `session` on `host` for a view, while `run` runs.

    `hello` and `status` are the last ones that came, `questions` those that wait, by their numbers,
    `branch` the records as of the last `restore`. `damaged` counts lines of its file, `unread`
    those of its owner, that can't be read. `cut` says why there is no line now; "" where there is.
    """

    def __init__(self, host: DeskHost, session: str, view: SessionView, clock: Clock) -> None:
        self._host, self.session, self._view, self._clock = host, session, view, clock
        self.hello: Hello | None = None
        self.status = SessionStatus()
        self.questions: dict[str, AskedLine] = {}
        self.branch: list[Record] = []
        self.unread = 0
        self.cut = ""
        self._record = _Record()
        self._channel: Channel | None = None
        self._caught_up = False
        self._stale: set[str] = set()
        """Questions of an earlier line that were not put again yet."""
        self._pending: dict[str, _Pending] = {}
        self._prompts: Counter[str] = Counter()
        self._at_once = False
        self._met = False
        """True once the owner on this line has said who it is."""

    @property
    def unsent(self) -> list[str]:
        """The prompts that wait for a line."""
        requests = (one.request for one in self._pending.values() if one.owner is None)
        return [request.text for request in requests if isinstance(request, SendPrompt)]

    @property
    def damaged(self) -> int:
        return self._record.damaged

    async def run(self) -> None:
        """Watch until cancelled."""
        wait_s = FIRST_WAIT_S
        try:
            while True:
                held, reason = await self._once()
                wait_s = FIRST_WAIT_S if held else wait_s
                self._cut_off(reason, wait_s, first=held)
                await self._wait(wait_s)
                wait_s = min(LONGEST_WAIT_S, wait_s * 2)
        finally:
            for pending in self._pending.values():
                outcome = RequestOutcome(number="", outcome="refused", text=CLOSED)
                _settle(pending, outcome)
            self._pending.clear()

    def retry(self) -> None:
        """Open a line that is cut again at once."""
        self._at_once = True

    # Requests

    async def prompt(self, text: str) -> RequestOutcome:
        """Send a prompt, and return what became of it. One that was not taken, or of which nobody
        can say it, is refused with the reason."""
        return await self._ask(SendPrompt(number=_number(), text=text), self._prompts[text.strip()])

    async def answer(self, to: str, answer: Answered) -> RequestOutcome:
        """Answer a question by its number."""
        data = msgspec.to_builtins(answer, enc_hook=str)
        return await self._ask(GiveAnswer(number=_number(), to=to, answer=data))

    async def stop(self) -> RequestOutcome:
        """Stop the turn that runs."""
        return await self._ask(StopTurn(number=_number()))

    async def _ask(self, request: Request, same: int = 0) -> RequestOutcome:
        outcome: asyncio.Future[RequestOutcome] = asyncio.get_running_loop().create_future()
        pending = self._pending[request.number] = _Pending(request, outcome, same)
        if self._met:
            self._send(pending)
        try:
            return await outcome
        finally:
            self._pending.pop(request.number, None)

    def _send(self, pending: _Pending) -> None:
        assert self._channel is not None
        pending.owner, pending.channel = _owner(self.hello), self._channel
        self._channel.send(pending.request)

    # The line

    async def _once(self) -> tuple[bool, str]:
        """Watch on one line until it is cut. Returns True if the record came by it, and the reason
        for the cut."""
        try:
            channel = await self._host.open(self.session)
        except HoldfastError as error:
            return False, error.message
        self._channel, self._caught_up, self._met = channel, False, False
        try:
            channel.send(Watch(after=self._record.records[-1].id if self._record.records else ""))
            while True:
                try:
                    message = await channel.receive()
                except LineError as error:
                    self._misread(error.message)
                    continue
                if message is None:
                    where = f" to {self._host.name}" if self._host.name else ""
                    return self._caught_up, self._host.problem or f"The line{where} is cut."
                await self._take(message)
        finally:
            self._channel, self._met = None, False
            await channel.close()

    def _cut_off(self, reason: str, wait_s: float, *, first: bool) -> None:
        """Say that the line is cut. Questions stay in sight until it can't be opened at once."""
        self.cut = reason
        if not first:
            self._settle_all([*self.questions], CUT)
        self._view.line_cut(reason, self._clock.monotonic() + wait_s)

    async def _wait(self, seconds: float) -> None:
        """Wait before the next attempt; no longer than until the host can be reached again."""
        until, trouble = self._clock.monotonic() + seconds, bool(self._host.problem)
        self._at_once = False
        while self._clock.monotonic() < until and not self._at_once:
            await self._clock.sleep(min(_POLL_S, max(0.0, until - self._clock.monotonic())))
            if trouble and not self._host.problem:
                return
            trouble = trouble or bool(self._host.problem)

    # What comes

    async def _take(self, message: FromOwner) -> None:  # noqa: C901, PLR0912 - one case a message
        match message:
            case Hello():
                self._greeted(message)
            case SessionStatus():
                self.status = message
                self._view.state_changed(message)
            case AskedLine(number=number):
                self._stale.discard(number)
                if number not in self.questions:
                    self.questions[number] = message
                    self._view.asked(message)
            case Settled(number=number):
                self._settle_all([number], ELSEWHERE)
            case RecordLines():
                self._record.add(message)
                if self._caught_up and self._owner_is_silent:
                    await self._restore()
            case RecordEnd():
                await self._come_to_now()
            case FactLine(fact=data) if self._caught_up:
                self._tell(data)
            case FactLine():
                pass
            case UnsentLine():
                self._view.restore_unsent(message)
            case OwnerNotice():
                self._view.say(message)
            case RequestOutcome(number=number):
                if pending := self._pending.get(number):
                    _settle(pending, message)
            case Ended():
                self._settle_all([*self.questions], ENDED)
                self._view.ended(message)

    def _greeted(self, hello: Hello) -> None:
        """Meet an owner: what was sent to the same one and not answered is sent again."""
        self.hello, self._caught_up, self._met = hello, False, True
        self._stale = set(self.questions)
        for pending in self._pending.values():
            if pending.owner is None or (pending.owner == _owner(hello) and pending.owner[1]):
                self._send(pending)
            elif pending.owner[1] or pending.channel is not self._channel:
                pending.doubtful = True
        self._view.greet(hello)
        if hello.protocol > PROTOCOL:
            newer = f"Its process runs Holdfast {hello.version}, which speaks a newer protocol."
            notice = OwnerNotice(text=newer, level="warning", hint="Update this Holdfast.")
            self._view.say(notice)

    async def _come_to_now(self) -> None:
        """Show the record, which has come up to now; what follows is what happens."""
        await self._restore()
        self._caught_up = True
        self._settle_all([*self._stale], ENDED if self._owner_is_silent else ELSEWHERE)
        self._stale.clear()
        for pending in [*self._pending.values()]:
            if pending.doubtful:
                _settle(pending, self._fate(pending))
        if self.cut:
            self.cut = ""
            self._view.line_back()

    async def _restore(self) -> None:
        with gc_pause(loading=True):  # no collection between the two: it would walk all records
            self.branch, self._prompts = await self._record.parse()
            await self._view.restore(self.branch, self._record.damaged)

    @property
    def _owner_is_silent(self) -> bool:
        """True if nobody tells what happens, so that only the file shows it."""
        return self.hello is None or self.hello.kind == "none"

    def _fate(self, pending: _Pending) -> RequestOutcome:
        """Say what became of a request to an owner that has ended."""
        number = pending.request.number
        match pending.request:
            case SendPrompt(text=typed):
                if self._prompts[typed.strip()] > pending.same:
                    return RequestOutcome(number=number, outcome="sent")
                hint = "It may have been sent: check the conversation, then send it again."
                asked_nobody = pending.owner is not None and not pending.owner[1]
                text = UNSAID if asked_nobody else UNKNOWN
                return RequestOutcome(number=number, outcome="refused", text=text, hint=hint)
            case GiveAnswer():
                return RequestOutcome(number=number, outcome="refused", text=ENDED)
            case StopTurn():
                return RequestOutcome(number=number, outcome="done")

    def _settle_all(self, numbers: Iterable[str], why: str) -> None:
        for number in numbers:
            self._stale.discard(number)
            if self.questions.pop(number, None) is not None:
                self._view.settle(number, why)

    def _tell(self, data: dict[str, Any]) -> None:
        try:
            fact = cast("Fact", fact_of(data))
        except UnknownFactError as error:
            self._misread(error.message)
            return
        if isinstance(fact, UserMessage):
            self._prompts[fact.text.removesuffix(fact.attached).strip()] += 1
        try:
            self._view.show(fact)
        except Exception as error:  # the boundary: another program says what is in it
            log.exception("a fact of session %s can't be shown", self.session)
            self._misread(f"{type(error).__name__} at {data.get('type')!r:.60}")

    def _misread(self, why: str) -> None:
        self.unread += 1
        log.warning("a line of session %s can't be read: %s", self.session, why)
        if self.unread == 1:
            text = "Some of what its process tells can't be read here."
            hint = "Its Holdfast may be of another version. The record has everything."
            self._view.say(OwnerNotice(text=text, level="warning", hint=hint))


def _number() -> str:
    return secrets.token_hex(8)


def _owner(hello: Hello | None) -> tuple[str, int]:
    """The process of an owner, on its machine; 0 for nobody."""
    return ("none", 0) if hello is None or hello.kind == "none" else (hello.kind, hello.pid)


def _settle(pending: _Pending, outcome: RequestOutcome) -> None:
    if not pending.outcome.done():
        pending.outcome.set_result(outcome)


def _prompts_of(records: Iterable[Record]) -> Iterable[str]:
    for record in records:
        if record.type == "user" and isinstance(text := record.data.get("text"), str):
            yield text.strip()
