"""The channel of one session of this machine: its owner's lines, with what the session's file has
before them.

After `Watch` come `RecordLines`, then `RecordEnd`, then facts, as long as the session has an owner
that can be asked. Where it has none, or one that hangs or is of an older program, more
`RecordLines` come as the file grows. The channel outlives its owner: it says so by a `Hello`, and
continues with the next one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

import tui
from tui.app.door.lines import (
    Ended,
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
    StopTurn,
    ToOwner,
    UnsentLine,
    Watch,
    from_owner,
    line_of,
)
from tui.core.clock import Clock
from tui.core.errors import SessionError
from tui.core.process_birth import born
from tui.desk.door_watch import HELLO_S, KILLED, DoorSeen
from tui.desk.host import DeskRow
from tui.desk.record_lines import FilePart, grown, part_after, texts
from tui.desk.sockets import ForeignSocketError, LineProtocol, LineTaker
from tui.session.reader import read_ends

GROWTH_S: Final = 0.4
"""Seconds between two looks at a file that somebody writes who does not tell it."""
_RECONNECT_S: Final = 0.2
_MOST_WAITING: Final = 64
"""Messages that wait for the watcher; then the owner is not read from."""
_MOST_LINES: Final = 512

log = logging.getLogger(__name__)

_Request = SendPrompt | GiveAnswer | StopTurn


class ChannelHost(Protocol):
    """The machine, as its channels need it."""

    clock: Clock

    def row(self, session: str) -> DeskRow | None: ...
    def door(self, session: str) -> DoorSeen | None: ...
    def connect(self, door: DoorSeen, taker: LineTaker) -> asyncio.Task[LineProtocol]: ...
    async def send_prompt(self, session: str, path: str, request: SendPrompt) -> RequestOutcome: ...
    def closed(self, channel: LocalChannel) -> None: ...


class _Owner:
    """A connection to the owner: its lines, as they wait to be passed on."""

    def __init__(self) -> None:
        self.protocol: LineProtocol | None = None
        self._waiting: list[bytes] = []
        self._came = asyncio.Event()
        self._over = False

    def lines(self, lines: Sequence[bytes]) -> None:
        self._waiting += lines
        if len(self._waiting) > _MOST_LINES and self.protocol is not None:
            self.protocol.hold(on=True)
        self._came.set()

    def ended(self) -> None:
        self._over = True
        self._came.set()

    async def next_lines(self) -> list[bytes]:
        """The lines that have come, at least one; none at the end."""
        while not (self._waiting or self._over):
            self._came.clear()
            await self._came.wait()
        lines, self._waiting = self._waiting, []
        if self.protocol is not None and not self._over:
            self.protocol.hold(on=False)
        return lines

    def write(self, message: ToOwner) -> None:
        if self.protocol is not None:
            self.protocol.write(line_of(message))

    def close(self) -> None:
        if self.protocol is not None:
            self.protocol.close()


class LocalChannel:
    """A channel. Made by `LocalHost.open`; `path` is the session's file, "" for none."""

    def __init__(self, host: ChannelHost, session: str, path: str) -> None:
        self.session = session
        self._host = host
        self._path = path
        self._queue: asyncio.Queue[FromOwner | LineError | None] = asyncio.Queue(_MOST_WAITING)
        self._closed = False
        self._woken = asyncio.Event()
        self._owner: _Owner | None = None
        self._status = SessionStatus()
        self._watch: Watch | None = None
        """The last wish to watch, with what the watcher has by now."""
        self._watch_due = False
        self._requests: dict[str, _Request] = {}
        """Requests that wait for somebody who can be asked, by number."""
        self._part: FilePart | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._work = self._begun(self._run())

    async def receive(self) -> FromOwner | None:
        """The next message; None once the channel is closed. Raises LineError for a line that isn't
        understood."""
        if self._closed and self._queue.empty():
            return None
        message = await self._queue.get()
        if isinstance(message, LineError):
            raise message
        return message

    def send(self, message: ToOwner) -> None:
        """Send a message. Does nothing once the channel is closed."""
        if self._closed:
            return
        if isinstance(message, Watch):
            self._watch, self._watch_due = message, True
        else:
            self._requests[message.number] = message
        self._pass_on()
        self._woken.set()

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._host.closed(self)
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._owner is not None:
            self._owner.close()
        if self._queue.full():
            self._queue.get_nowait()
        self._queue.put_nowait(None)

    def wake(self) -> None:
        """The session's row or door has changed."""
        self._woken.set()

    def _begun(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name="channel")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _tell(self, message: FromOwner | LineError) -> None:
        if isinstance(message, SessionStatus):
            self._status = message
        await self._queue.put(message)

    # Who has the session

    async def _run(self) -> None:
        try:
            await self._go_on()
        except Exception:  # the boundary: whoever watches may open the session again
            log.exception("the channel of session %s broke", self.session)
            await self._queue.put(None)

    async def _go_on(self) -> None:
        while True:
            door = self._host.door(self.session)
            if door is not None and door.is_silent:  # until it says who it is, or it hangs
                self._woken.clear()
                await self._woken.wait()
            elif door is None or not door.usable or not await self._with_owner(door):
                await self._without_owner()

    async def _with_owner(self, door: DoorSeen) -> bool:
        """Pass the owner's lines on until it is gone. False if it can't be reached."""
        owner = _Owner()
        try:
            owner.protocol = await self._host.connect(door, owner)
        except (OSError, ForeignSocketError):
            await self._host.clock.sleep(_RECONNECT_S)
            return False
        minding: asyncio.Task[None] | None = None
        try:
            first = await self._first_lines(owner)
            if first is None:
                return False
            if b'"session":' not in first[0]:  # it names none to whom it refuses
                await self._host.clock.sleep(_RECONNECT_S)
                return False
            self._owner = owner
            self._watch_due = self._watch is not None
            minding = self._begun(self._mind_silence(owner))
            self._pass_on()
            lines, last = first, None
            while lines:
                for line in lines:
                    last = await self._pass_line(line)
                lines = await owner.next_lines()
        finally:
            self._owner = None
            owner.close()
            if minding is not None:
                minding.cancel()
        assert door.hello is not None
        if not isinstance(last, Ended) and not await asyncio.to_thread(born, door.hello.pid):
            await self._tell(Ended(state="interrupted", detail=KILLED))
        return True

    async def _first_lines(self, owner: _Owner) -> list[bytes] | None:
        """The first lines of an owner; None where they do not come."""
        reading = asyncio.ensure_future(owner.next_lines())
        waiting = asyncio.ensure_future(self._host.clock.sleep(HELLO_S))
        try:
            await asyncio.wait((reading, waiting), return_when=asyncio.FIRST_COMPLETED)
            return (reading.result() or None) if reading.done() else None
        finally:
            reading.cancel()
            waiting.cancel()

    async def _pass_line(self, line: bytes) -> FromOwner | None:
        try:
            message = from_owner(line)
        except LineError as error:
            await self._tell(error)
            return None
        match message:
            case Hello(path=path):
                self._path = path
            case RecordEnd(last=last):
                await self._tell_record(last)
            case _:
                pass
        await self._tell(message)
        return message

    async def _mind_silence(self, owner: _Owner) -> None:
        """Say so while the owner hangs, and refuse what it can't do."""
        told = ""
        while self._owner is owner:
            row = self._host.row(self.session)
            problem = row.problem if row is not None else ""
            if problem != told:
                told = problem
                detail = "; ".join(filter(None, (self._status.detail, problem)))
                await self._queue.put(msgspec.structs.replace(self._status, detail=detail))
            if problem:
                self._refuse_all(problem)
            else:
                self._pass_on()
            self._woken.clear()
            await self._woken.wait()

    # Requests

    def _pass_on(self) -> None:
        """Send the owner what waits for it."""
        if self._owner is None:
            return
        row = self._host.row(self.session)
        if self._watch_due and self._watch is not None:
            self._watch_due = False
            self._owner.write(self._watch)
        if row is not None and row.problem:
            return
        for request in self._requests.values():
            self._owner.write(request)
        self._requests.clear()

    def _refuse_all(self, problem: str) -> None:
        row = self._host.row(self.session)
        for number, request in [*self._requests.items()]:
            hint = "Try again once it answers."
            if row is not None and isinstance(request, StopTurn):
                hint = f"`holdfast stop {self.session}` ends its process."
                if row.kind != "background":
                    hint = f"Stop it where it runs: it is process {row.pid}."
            self._refuse(number, f"That can't be done now: {problem}.", hint)

    def _refuse(self, number: str, text: str, hint: str = "") -> None:
        del self._requests[number]
        outcome = RequestOutcome(number=number, outcome="refused", text=text, hint=hint)
        self._begun(self._tell(outcome))

    async def _send_prompt(self, request: SendPrompt) -> None:
        await self._tell(await self._host.send_prompt(self.session, self._path, request))

    # Without an owner

    async def _without_owner(self) -> None:
        """Tell what the files say, until a door opens."""
        row = self._host.row(self.session)
        self._path = (row.path if row is not None else "") or self._path
        hello = Hello(version=tui.__version__, session=self.session, path=self._path)
        await self._tell(msgspec.structs.replace(hello, cwd=row.cwd if row is not None else ""))
        told = SessionStatus()
        self._part = None
        self._watch_due = self._watch is not None
        while True:
            row = self._host.row(self.session)
            status = _status_of(row)
            if status != told:
                told = status
                await self._tell(status)
            self._take_requests(row)
            if self._watch_due and self._watch is not None:
                self._watch_due = False
                await self._tell_record(None)
                assert self._watch is not None
                await self._tell(RecordEnd(last=self._watch.after))
                await self._tell_unsent(row)
            elif self._part is not None:
                await self._tell_growth()
            door = self._host.door(self.session)
            if door is not None and door.usable:
                return
            await self._wait(grows=row is not None and bool(row.problem or row.pid))

    async def _wait(self, *, grows: bool) -> None:
        """Wait until something changes, or until it is time to look at the file."""
        self._woken.clear()
        waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._woken.wait())]
        if grows and self._part is not None:
            waits.append(asyncio.ensure_future(self._host.clock.sleep(GROWTH_S)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()

    def _take_requests(self, row: DeskRow | None) -> None:
        """Do what can be done without an owner, and refuse the rest."""
        for number, request in [*self._requests.items()]:
            if row is not None and row.problem:
                self._refuse_all(row.problem)
                return
            if isinstance(request, GiveAnswer):
                self._refuse(number, "The question is void: nobody has the session open.")
            elif isinstance(request, StopTurn):
                self._refuse(number, "Nothing runs: nobody has the session open.")
            else:
                del self._requests[number]
                self._begun(self._send_prompt(request))

    # The record

    async def _tell_record(self, last: str | None) -> None:
        """Tell the records that the watcher lacks, up to the record `last`, or all."""
        after = self._watch.after if self._watch is not None else ""
        path = Path(self._path)
        if not self._path or last == "":
            if after:
                await self._tell(RecordLines(afresh=True))
            self._has(last or "")
            return
        try:
            part = await asyncio.to_thread(part_after, path, after, last)
            await self._tell_part(path, part)
        except SessionError as error:
            await self._warn(error)
            return
        if not part.whole:
            text = "Some of what this session did isn't in its file: its disk may be full."
            await self._tell(OwnerNotice(text=text, level="warning"))
        self._part = part
        self._has(last or part.last)

    async def _tell_unsent(self, row: DeskRow | None) -> None:
        """Tell what an owner that has ended left unsent; one that hangs still has it."""
        if not self._path or (row is not None and (row.problem or row.pid)):
            return
        try:
            work = (await asyncio.to_thread(read_ends, Path(self._path))).unsent
        except SessionError:
            return  # said of the record
        texts = tuple(text for text in (*work.queue, work.prompt) if text.strip())
        if work:
            await self._tell(UnsentLine(texts=texts, commands=work.commands, answer=work.answer))

    async def _tell_growth(self) -> None:
        """Tell what the file has gained."""
        path = Path(self._path)
        before = self._part
        assert before is not None
        try:
            part = await asyncio.to_thread(grown, path, before)
            if part.end == before.end and not part.afresh:
                return
            self._part = part
            await self._tell_part(path, part)
        except SessionError as error:
            self._part = None
            await self._warn(error)
            return
        self._has(part.last)

    async def _tell_part(self, path: Path, part: FilePart) -> None:
        at, afresh = part.start, part.afresh
        while at < part.end or afresh:
            lines, stop = await asyncio.to_thread(texts, path, at, part.end)
            if lines or afresh:
                await self._tell(RecordLines(lines=lines, afresh=afresh))
            at, afresh = max(stop, at + 1), False

    def _has(self, last: str) -> None:
        """The watcher has the records up to this one now."""
        self._watch = Watch(after=last)

    async def _warn(self, error: SessionError) -> None:
        await self._tell(OwnerNotice(text=error.message, level="error", hint=error.hint))


def _status_of(row: DeskRow | None) -> SessionStatus:
    """The state of a session that nobody tells about."""
    if row is None:
        return SessionStatus(state="saved")
    return SessionStatus(
        state=row.state,
        detail="; ".join(filter(None, (row.detail, row.problem))),
        since=row.since,
        title=row.title,
        model=row.model,
        profile=row.profile,
        branch=row.branch,
        cost_usd=row.cost_usd,
    )
