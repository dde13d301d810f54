"""The door itself: a server on a session's socket, for the watchers of one open session.

With nobody there it costs nothing. A fact is encoded once for all who watch, and those of one
moment go out together. A watcher that does not read is cut off: it comes again and starts from the
record. Nothing that a watcher does slows the owner down or makes it hold more.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, cast

import msgspec

from tui.app.door.lines import (
    MAX_LINE,
    AskedLine,
    Ended,
    FactLine,
    FromOwner,
    GiveAnswer,
    Hello,
    LineError,
    RequestOutcome,
    SendPrompt,
    SessionStatus,
    StopTurn,
    Watch,
    line_of,
    to_owner,
)
from tui.app.door.live_state import joined
from tui.app.door.sockets import DoorListener
from tui.core import facts
from tui.core.dataclass import dataclass
from tui.core.facts import Fact
from tui.core.facts.lines import plain_of

if TYPE_CHECKING:
    from tui.app.door.peer import RefusedPeerError

log = logging.getLogger(__name__)

BACKLOG: Final = 8_000_000
"""Bytes that may wait for a watcher to read them."""
MOST: Final = 64
"""Connections at the same time."""
REMEMBERED: Final = 512
"""Requests whose outcome is remembered, in case they are sent again."""
AT_WORK: Final = 256
"""Requests that may be at work at the same time, at least."""
BURST_S: Final = 0.04
"""Seconds for which what streams is gathered."""
_STREAMED: Final = (
    *(facts.TextDelta, facts.ThinkingDelta, facts.ToolInputDelta, facts.ToolOutputChunk),
    *(facts.CompactionDelta, facts.Alive),
)

Request: TypeAlias = SendPrompt | GiveAnswer | StopTurn


@dataclass(frozen=True, slots=True)
class WatchStart:
    """The begin of the conversation for one watcher: the messages, and facts that come yet though
    these have them. `saved` is done once the session's file has all that they build on."""

    messages: Sequence[FromOwner]
    known: Sequence[Fact]
    """Facts of the record that are shown in a moment."""
    saved: Awaitable[Sequence[FromOwner]]
    """Its result are the messages that come first."""


class KnownFacts:
    """Facts that come yet though somebody has them from the record, and what leads to them."""

    def __init__(self, known: Sequence[Fact]) -> None:
        self._known = list(known)

    def has(self, fact: Fact) -> bool:
        """True if a fact that comes is known; each is so once."""
        if not self._known:
            return False
        if isinstance(fact, facts.TurnFinished):
            self._known.clear()
        elif fact in self._known:
            self._known.remove(fact)
            return True
        return any(_leads_to(fact, one) for one in self._known)


def _leads_to(fact: Fact, known: object) -> bool:
    match known, fact:
        case facts.AssistantMessage() | facts.TurnInterrupted(), (
            facts.RequestSent() | facts.TextDelta() | facts.ThinkingDelta() | facts.ToolInputDelta()
        ):
            return True
        case facts.ToolFinished(id_), (
            facts.ToolStarted(own)
            | facts.ToolOutputChunk(own)
            | facts.PermissionAsked(own)
            | facts.PermissionAnswered(own)
            | facts.QuestionAsked(own)
            | facts.QuestionAnswered(own)
        ):
            return own == id_
        case _:
            return False


class SessionOwner(Protocol):
    """The port of a door to the session's owner."""

    def hello(self) -> Hello: ...

    def status(self) -> SessionStatus: ...

    def questions(self) -> Sequence[AskedLine]:
        """The open ones."""
        ...

    def start(self) -> WatchStart:
        """The conversation as it is now."""
        ...

    async def take(self, request: Request) -> RequestOutcome:
        """Do what a watcher asks. Never raises, but for CancelledError."""
        ...


@dataclass(slots=True)
class _Known:
    """A request by its digest, who waits for its outcome, and that; None while it is at work."""

    digest: bytes
    asking: set[Watcher]
    outcome: RequestOutcome | None = None


class Door:
    """Serves the watchers of one session, in the event loop. Close it."""

    def __init__(self, owner: SessionOwner, listener: DoorListener) -> None:
        self._owner, self._listener = owner, listener
        self._watchers: set[Watcher] = set()
        self._out: list[tuple[Fact, frozenset[Watcher]]] = []
        """Facts that are to be sent, each with those that have it already."""
        self._status: SessionStatus | None = None
        self._due: asyncio.TimerHandle | None = None
        self._requests: dict[str, _Known] = {}
        """The outcomes by number, the oldest first."""
        self._works: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(listener.fd, self._accept)

    @property
    def occupied(self) -> bool:
        """True while somebody is there."""
        return bool(self._watchers)

    def show(self, fact: Fact) -> None:
        """Tell a fact to those who watch."""
        watching = [one for one in self._watchers if one.watching]
        if not watching:
            return
        self._out.append((fact, frozenset(one for one in watching if one.known.has(fact))))
        self._flush_in(BURST_S if isinstance(fact, _STREAMED) else 0.0)

    def tell(self, message: FromOwner, *, conversation: bool = False) -> None:
        """Tell a message to all, or to those that watch the conversation."""
        if self._watchers:
            self._flush()
            data = _line(message)
            for watcher in tuple(self._watchers):
                if watcher.watching or not conversation:
                    watcher.write(data)

    def status_changed(self) -> None:
        """Tell how it is with the session, if that is not as it was."""
        if self._watchers:
            self._flush_in(BURST_S)

    def close(self, end: Ended) -> None:
        """Say how the session ended, and let everybody go."""
        if self._listener.fd >= 0:
            self._loop.remove_reader(self._listener.fd)
        self._listener.close()
        self.tell(end)
        if self._due is not None:
            self._due.cancel()
        for work in self._works:
            work.cancel()
        for watcher in tuple(self._watchers):
            watcher.close()

    # Connections

    def _accept(self) -> None:
        from tui.app.door.peer import RefusedPeerError, admit  # noqa: PLC0415 - once somebody comes

        try:
            connection = self._listener.accept()
        except OSError:
            return  # it has gone again, or there are too many files
        connection.setblocking(False)
        try:
            admit(connection)
        except RefusedPeerError as error:
            log.warning("A connection was refused. %s", error.message)
            _refuse(connection, error)
            return
        if len(self._watchers) >= MOST:
            _refuse(connection, RefusedPeerError("Too many programs watch this session."))
            return
        work = self._loop.connect_accepted_socket(lambda: Watcher(self), connection)
        self._begin(self._connect(work))

    async def _connect(self, work: Awaitable[object]) -> None:
        await work

    def _begin(self, work: Any) -> None:
        task = self._loop.create_task(work, name="door")
        self._works.add(task)
        task.add_done_callback(self._works.discard)

    def came(self, watcher: Watcher) -> None:
        """Greet a watcher."""
        self._flush()
        self._watchers.add(watcher)
        greeting = [self._owner.hello(), self._owner.status(), *self._owner.questions()]
        self._status = cast("SessionStatus", greeting[1])
        watcher.write(b"".join(map(_line, greeting)))

    def forget(self, watcher: Watcher) -> None:
        """Forget a watcher."""
        self._watchers.discard(watcher)

    # Requests

    def hear(self, watcher: Watcher, line: bytes) -> None:
        """Take a line of a watcher's."""
        try:
            message = to_owner(line)
        except LineError as error:
            log.warning("%s", error.message)
            watcher.write(_line(RequestOutcome(number="", outcome="refused", text=error.message)))
            return
        if isinstance(message, Watch):
            if not watcher.begins:  # else what it asks for is about to come
                self.watch(watcher)
            return
        number, digest = message.number, sha256(line_of(message)).digest()
        known = self._requests.get(number)
        refusal = ""
        if known is None and len(self._requests) >= REMEMBERED + AT_WORK:
            refusal = "Too many requests wait already."
        elif known is not None and known.digest != digest:
            refusal = "Another request had this number."
        if refusal:
            outcome = RequestOutcome(number=number, outcome="refused", text=refusal)
            watcher.write(_line(outcome))
        elif known is None:
            known = self._requests[number] = _Known(digest, {watcher})
            self._begin(self._work(message, known))
        elif known.outcome is None:
            known.asking.add(watcher)
        else:
            watcher.write(_line(known.outcome))

    async def _work(self, request: Request, known: _Known) -> None:
        known.outcome = await self._owner.take(request)
        done = [number for number, one in self._requests.items() if one.outcome is not None]
        for number in done[: max(0, len(done) - REMEMBERED)]:
            del self._requests[number]
        asking, known.asking = known.asking, set[Watcher]()
        self._flush()
        for watcher in asking & self._watchers:
            watcher.write(_line(known.outcome))

    def watch(self, watcher: Watcher) -> None:
        """Begin to tell the conversation to a watcher."""
        self._flush()
        start = self._owner.start()
        watcher.begin(start)
        self._begin(self._save_first(watcher, start))

    async def _save_first(self, watcher: Watcher, start: WatchStart) -> None:
        """Let the file have what the messages build on before they are sent."""
        first = await start.saved
        watcher.release(start, b"".join(map(_line, first)))

    # Sending

    def _flush_in(self, seconds: float) -> None:
        until = self._loop.time() + seconds
        if self._due is not None:
            if self._due.when() <= until:
                return
            self._due.cancel()
        self._due = self._loop.call_at(until, self._flush)

    def _flush(self) -> None:
        """Send what waits."""
        if self._due is not None:
            self._due.cancel()
            self._due = None
        out, self._out = self._out, []
        watchers = [one for one in self._watchers if one.watching]
        if out and watchers:
            if any(known for _, known in out):
                for watcher in watchers:
                    own = [fact for fact, known in out if watcher not in known]
                    watcher.write(_fact_lines(own))
            else:
                data = _fact_lines([fact for fact, _ in out])
                for watcher in watchers:
                    watcher.write(data)
        if self._watchers and (status := self._owner.status()) != self._status:
            self._status = status
            data = _line(status)
            for watcher in tuple(self._watchers):
                watcher.write(data)


class Watcher(asyncio.Protocol):
    """One connection."""

    def __init__(self, door: Door) -> None:
        self.watching = False
        self._door = door
        self._transport: asyncio.Transport | None = None
        self._read = bytearray()
        self._seen = 0
        """Bytes of what was read in which there is no end of a line."""
        self.known = KnownFacts(())
        self._held: list[bytes] | None = None
        """Lines that wait until the file has all before them; None while none do."""
        self._held_size = 0
        self._start: WatchStart | None = None

    # From the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._door.came(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - as the port has it
        self._transport = None
        self._door.forget(self)

    def data_received(self, data: bytes) -> None:
        self._read += data
        while self._transport is not None:
            end = self._read.find(b"\n", self._seen)
            if end < 0:
                break
            line = bytes(self._read[:end])
            del self._read[: end + 1]
            self._seen = 0
            if line:
                self._door.hear(self, line)
        self._seen = len(self._read)
        if self._seen > MAX_LINE:
            self.cut()

    # To it

    def begin(self, start: WatchStart) -> None:
        """Hold back what comes until `release`."""
        self.watching, self._start = True, start
        self.known = KnownFacts(start.known)
        self._held, self._held_size = [b"".join(map(_line, start.messages))], 0

    @property
    def begins(self) -> bool:
        """True while the begin of the conversation is held back."""
        return self._start is not None

    def release(self, start: WatchStart, first: bytes) -> None:
        """Send what was held back, after `first`; unless the conversation began again meanwhile."""
        if self._start is not start or self._held is None:
            return
        held, self._held, self._start = self._held, None, None
        self.write(first + b"".join(held))

    def write(self, data: bytes) -> None:
        """Send lines. Who doesn't read them is cut off."""
        if self._transport is None or not data:
            return
        if self._held is not None:
            waiting = self._held_size
            self._held.append(data)
            self._held_size += len(data)
        else:
            waiting = self._transport.get_write_buffer_size()
            self._transport.write(data)
        if waiting > BACKLOG:
            log.warning("A watcher doesn't read what it asked for, so it was cut off.")
            self.cut()

    def close(self) -> None:
        """Send what waits, and close."""
        if self._transport is not None:
            if self._held:
                self._transport.write(b"".join(self._held[1:]))
            self._transport.close()

    def cut(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()
            self._transport = None
            self._door.forget(self)


def _fact_lines(told: Sequence[Fact]) -> bytes:
    return b"".join([_line(FactLine(fact=plain_of(one))) for one in joined(told)])


def _line(message: FromOwner) -> bytes:
    """The line of a message, whatever a tool printed: half a character is none."""
    try:
        return line_of(message)
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(message, enc_hook=str, str_keys=True)
        return msgspec.json.encode(_whole(plain)) + b"\n"


def _whole(value: Any) -> Any:
    """Data without halves of characters."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_whole(one) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {_whole(key): _whole(one) for key, one in cast("dict[Any, Any]", value).items()}
    return value


def _refuse(connection: socket.socket, error: RefusedPeerError) -> None:
    """Say why, if the other end takes it at once."""
    outcome = RequestOutcome(number="", outcome="refused", text=error.message, hint=error.hint)
    try:
        connection.send(line_of(Hello(pid=os.getpid())) + line_of(outcome))
    except OSError:
        pass
    finally:
        connection.close()
