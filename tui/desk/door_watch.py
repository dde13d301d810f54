"""Watches the doors of this machine's open sessions: who has each one, how it is with it, what it
asks.

Doors are sockets in one folder. A change of that folder is seen with the next `scan`, which costs
one look at it; what owners say comes by itself. One that hangs is named, and holds up no other.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from tui.app.door.lines import (
    PROTOCOL,
    AskedLine,
    Ended,
    FromOwner,
    Hello,
    LineError,
    OwnerNotice,
    RequestOutcome,
    SessionStatus,
    Settled,
    from_owner,
)
from tui.core.clock import Clock
from tui.core.process_birth import born, is_stopped
from tui.desk.sockets import (
    ForeignSocketError,
    LineProtocol,
    LineTaker,
    attached,
    connected,
    open_private,
)

HELLO_S: Final = 3.0
"""Seconds that an owner may take until it says who it is."""
SILENCE_S: Final = 10.0
"""Seconds without a word after which an owner is asked again who it is."""
_RETRY_S: Final = 2.0
"""Seconds until a socket is tried again at which nobody answered."""
_CHECKED_AT_ONCE: Final = 10
"""The part of the owners whose processes are looked at with each scan: one in so many."""
_SUFFIX: Final = ".sock"
_STEPS_S: Final = (3, 10, 30, 60, 300, 1800)

KILLED: Final = "its process was killed"
READ_ONLY: Final = "it can only be read"

log = logging.getLogger(__name__)


class DoorSeen(msgspec.Struct, frozen=True, kw_only=True):
    """An open session by what its owner said. Without `hello` it has said nothing yet, and the
    session is the one that its socket is named after. `problem`: why it can't be asked now."""

    name: str
    session: str
    hello: Hello | None = None
    status: SessionStatus | None = None
    asked: tuple[AskedLine, ...] = ()
    problem: str = ""

    @property
    def usable(self) -> bool:
        """True if its owner can be asked."""
        return self.hello is not None and not self.problem

    @property
    def is_silent(self) -> bool:
        """True if its owner has yet to say who it is, and there is time for that."""
        return (self.hello is None or self.status is None) and not self.problem


class DoorReader(Protocol):
    """The port to whoever is told what has changed."""

    def door_changed(self, session: str, *, asks: bool) -> None:
        """The door of a session came, went or said something; `asks`: a new question."""
        ...

    def door_ended(self, session: str, ended: Ended) -> None:
        """Its owner let go of it, or was killed."""
        ...


class _Connection:
    """The connection to one door. `inode` tells its socket from a later one of that name."""

    def __init__(self, watch: DoorWatch, name: str, inode: int, now: float) -> None:
        self.watch = watch
        self.inode = inode
        self.since = now
        self.asked_again: float | None = None
        """When it was asked again who it is, and has not answered since."""
        self.protocol: LineProtocol | None = None
        self.probe: LineProtocol | None = None
        self.ended_by: Ended | None = None
        self.seen = DoorSeen(name=name, session=session_of(name))

    @property
    def is_deaf(self) -> bool:
        """True if nothing comes from it any more: it refused this program, or takes nobody."""
        return self.protocol is None and bool(self.seen.problem)

    def lines(self, lines: Sequence[bytes]) -> None:
        self.watch.heard(self, lines)

    def ended(self) -> None:
        self.watch.lost(self)


class _Probe:
    """Asks an owner that says nothing once more who it is, by another connection."""

    def __init__(self, connection: _Connection) -> None:
        self._connection = connection

    def lines(self, lines: Sequence[bytes]) -> None:  # noqa: ARG002 - any is a sign of life
        self._connection.watch.answered(self._connection)

    def ended(self) -> None:
        self._connection.probe = None


class DoorWatch:
    """The doors in a folder. Used from one event loop; nothing in it blocks."""

    def __init__(self, folder: Path, clock: Clock, reader: DoorReader) -> None:
        self.folder = folder
        self.problem = ""
        """The reason why none can be watched; "" where all is well."""
        self._clock, self._reader = clock, reader
        self._doors: dict[str, _Connection] = {}
        self._by_session: dict[str, str] = {}
        self._changed_at: int = 0
        self._silent: dict[str, float] = {}
        """Sockets at which nobody listens, and when they are tried again."""
        self._again: bool = True
        self._turn = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def sessions(self) -> list[str]:
        """The sessions that have a door."""
        return [*self._by_session]

    def seen(self, session: str) -> DoorSeen | None:
        """The door of a session, None where there is none."""
        name = self._by_session.get(session)
        return self._doors[name].seen if name is not None else None

    def connect(self, seen: DoorSeen, taker: LineTaker) -> asyncio.Task[LineProtocol]:
        """Begin another connection to a door. The task raises OSError and ForeignSocketError."""
        return asyncio.create_task(self._attach(seen.name, taker), name="door")

    @property
    def settled(self) -> bool:
        """True if each owner has said how it is with its session, or is known to hang."""
        return not any(one.seen.is_silent for one in self._doors.values())

    def scan(self) -> None:
        """Find the doors that are new, and the owners that hang."""
        try:
            folder = open_private(self.folder)
        except FileNotFoundError:
            self.problem = ""
            return
        except (OSError, ForeignSocketError) as error:
            self._name_problem(str(error))
            return
        try:
            now = self._clock.monotonic()
            changed = os.fstat(folder).st_mtime_ns
            due = any(when <= now for when in self._silent.values())
            if self._again or due or changed != self._changed_at:
                self._again = changed != self._changed_at  # what came within the same tick
                self._changed_at = changed
                self._take_all(folder, now)
            self._check(now)
        finally:
            os.close(folder)

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        doors, self._doors = [*self._doors.values()], {}
        self._by_session.clear()
        for one in doors:
            for protocol in (one.protocol, one.probe):
                if protocol is not None:
                    protocol.close()

    # Finding them

    def _take_all(self, folder: int, now: float) -> None:
        self._silent = {name: when for name, when in self._silent.items() if when > now}
        strangers: list[str] = []
        names = os.listdir(folder)
        for one in [*self._doors.values()]:
            if one.is_deaf and one.seen.name not in names:
                self._drop(one)
        for name in names:
            if not name.endswith(_SUFFIX) or name in self._silent:
                continue
            try:
                inode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_ino
                before = self._doors.get(name)
                if before is not None and before.inode == inode:
                    continue
                connection = connected(self.folder, folder, name)
            except ForeignSocketError as error:
                strangers.append(str(error))
                continue
            except BlockingIOError:  # so many wait that it takes nobody any more
                self._silent[name] = now + _RETRY_S
                self._hung(name, now)
                continue
            except OSError:  # its owner has gone and did not take it along
                self._silent[name] = now + _RETRY_S
                continue
            if before is not None:
                self._drop(before)
            one = _Connection(self, name, inode, now)
            self._keep(one)
            self._run(self._begin(one, connection))
        self._name_problem(strangers[0] if strangers else "")

    def _hung(self, name: str, now: float) -> None:
        if name not in self._doors:
            one = _Connection(self, name, 0, now)
            self._keep(one)
            self._say(one, problem=_unanswered(HELLO_S))

    def _keep(self, one: _Connection) -> None:
        self._doors[one.seen.name] = one
        self._by_session[one.seen.session] = one.seen.name
        self._reader.door_changed(one.seen.session, asks=False)

    async def _begin(self, one: _Connection, connection: socket.socket) -> None:
        with suppress(OSError):
            one.protocol = await attached(connection, one)

    async def _attach(self, name: str, taker: LineTaker) -> LineProtocol:
        folder = open_private(self.folder)
        try:
            connection = connected(self.folder, folder, name)
        finally:
            os.close(folder)
        return await attached(connection, taker)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="door")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _name_problem(self, problem: str) -> None:
        if problem and problem != self.problem:
            log.warning("%s", problem)
        self.problem = problem

    # What they say

    def heard(self, one: _Connection, lines: Sequence[bytes]) -> None:
        """Take lines of a door."""
        if self._doors.get(one.seen.name) is not one:
            return
        one.since = self._clock.monotonic()
        asks = False
        before = one.seen
        for line in lines:
            try:
                message = from_owner(line)
            except LineError as error:
                log.info("%s: %s", one.seen.name, error)
                if one.seen.hello is None:
                    one.seen = _with(one.seen, problem=_other_version(""))
                continue
            asks |= isinstance(message, AskedLine)
            self._take(one, message)
        if one.seen.hello is not None and before.hello is not None and before.problem:
            self.answered(one)
        if one.seen is not before:
            self._renamed(one, before)
            self._reader.door_changed(one.seen.session, asks=asks)

    def _take(self, one: _Connection, message: FromOwner) -> None:
        match message:
            case Hello(protocol=protocol, version=version):
                problem = "" if protocol == PROTOCOL else _other_version(version)
                session = message.session or one.seen.session
                one.seen = _with(one.seen, hello=message, session=session, problem=problem)
            case SessionStatus():
                one.seen = _with(one.seen, status=message)
            case AskedLine(number=number):
                others = (asked for asked in one.seen.asked if asked.number != number)
                one.seen = _with(one.seen, asked=(*others, message))
            case Settled(number=number):
                still = tuple(asked for asked in one.seen.asked if asked.number != number)
                one.seen = _with(one.seen, asked=still)
            case Ended():
                one.ended_by = message
            case OwnerNotice(text=text) | RequestOutcome(text=text) if _refuses(one.seen.hello):
                one.seen = _with(one.seen, hello=None, problem=text)
            case _:
                pass

    def _renamed(self, one: _Connection, before: DoorSeen) -> None:
        """Keep a door under the session that its owner names."""
        if one.seen.session != before.session:
            if self._by_session.get(before.session) == one.seen.name:
                del self._by_session[before.session]
            self._reader.door_changed(before.session, asks=False)
        self._by_session[one.seen.session] = one.seen.name

    def answered(self, one: _Connection) -> None:
        """An owner said something after a silence."""
        one.since, one.asked_again = self._clock.monotonic(), None
        if one.probe is not None:
            one.probe.close()
        if one.seen.hello is not None and one.seen.hello.protocol == PROTOCOL:
            self._say(one, problem="")

    def lost(self, one: _Connection) -> None:
        """The connection to a door has ended."""
        if self._doors.get(one.seen.name) is not one:
            return
        hello, ended = one.seen.hello, one.ended_by
        if hello is None and one.seen.problem and one.inode:
            one.protocol = None  # it is refused, which is so until the session has another owner
            return
        if ended is None and hello is not None and not born(hello.pid):
            ended = Ended(state="interrupted", detail=KILLED)
        if ended is not None:
            self._reader.door_ended(one.seen.session, ended)
        elif hello is None:
            self._silent[one.seen.name] = self._clock.monotonic() + _RETRY_S
        self._again = True
        self._drop(one)

    def _drop(self, one: _Connection) -> None:
        del self._doors[one.seen.name]
        if self._by_session.get(one.seen.session) == one.seen.name:
            del self._by_session[one.seen.session]
        for protocol in (one.protocol, one.probe):
            if protocol is not None:
                protocol.close()
        self._reader.door_changed(one.seen.session, asks=False)

    def _say(self, one: _Connection, *, problem: str) -> None:
        if one.seen.problem != problem:
            one.seen = _with(one.seen, problem=problem)
            self._reader.door_changed(one.seen.session, asks=False)

    # Those that hang

    def _check(self, now: float) -> None:
        """Look at some of the owners: all have had their turn after a few scans."""
        count = -(-len(self._doors) // _CHECKED_AT_ONCE)
        names = [*islice(self._doors, self._turn, self._turn + count)]
        self._turn = self._turn + count if self._turn + count < len(self._doors) else 0
        for name in names:
            one = self._doors[name]
            hello = one.seen.hello
            if hello is None:
                if now - one.since >= HELLO_S and not one.seen.problem:
                    self._say(one, problem=_unanswered(now - one.since))
            elif is_stopped(hello.pid):
                self._say(one, problem=f"suspended; {READ_ONLY} until its process goes on")
            elif one.asked_again is not None:
                if now - one.asked_again >= HELLO_S:
                    self._say(one, problem=_unanswered(now - one.since))
            elif hello.protocol != PROTOCOL:
                continue
            elif now - one.since >= SILENCE_S or one.seen.problem:
                one.asked_again = now
                self._run(self._ask_again(one))

    async def _ask_again(self, one: _Connection) -> None:
        if one.probe is not None:
            return
        try:
            one.probe = await self._attach(one.seen.name, _Probe(one))
        except FileNotFoundError:  # whoever has it lets go of it just now
            one.asked_again = None
        except (OSError, ForeignSocketError):
            self._say(one, problem=_unanswered(self._clock.monotonic() - one.since))


def _refuses(hello: Hello | None) -> bool:
    """True if an owner that says something else now has not said which session it has: it refuses
    this program."""
    return hello is None or not hello.session


def session_of(name: str) -> str:
    """The session that a socket is named after."""
    return name.removesuffix(_SUFFIX)


def _with(seen: DoorSeen, **changes: Any) -> DoorSeen:
    return msgspec.structs.replace(seen, **changes)


def _unanswered(seconds: float) -> str:
    """In steps, so that a row does not change all the time."""
    step = next((step for step in reversed(_STEPS_S) if step <= seconds), _STEPS_S[0])
    words = f"{step} s" if step < 60 else f"{step // 60} min"
    return f"its process hasn't answered for {words}; {READ_ONLY}"


def _other_version(version: str) -> str:
    name = f"Holdfast {version}" if version else "another version of Holdfast"
    return f"it runs in {name}; {READ_ONLY} from here"
