"""This machine as the desk has it: its sessions from their doors, and from its files.

Doors tell what happens by themselves; the folder of doors is looked at a few times a second, other
files once a second, in a thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from tui.app import background
from tui.app.background import BackgroundSession
from tui.app.door.lines import Ended, RequestOutcome, SendPrompt
from tui.app.options.arguments import Options
from tui.core.clock import Clock, SystemClock, timestamp
from tui.core.errors import HoldfastError, SessionError
from tui.core.paths import Folders, expanded, shorten
from tui.core.text_cleaning import one_line
from tui.desk.channel import LocalChannel
from tui.desk.door_watch import DoorSeen, DoorWatch
from tui.desk.host import Changed, DeskRow, call_all
from tui.desk.rows import EndSeen, SessionTraces, row_of
from tui.desk.session_files import DeskFiles, FilesSeen
from tui.desk.sockets import LineProtocol, LineTaker
from tui.session import catalog
from tui.session.naming import named

SCAN_S: Final = 0.2
"""Seconds between two looks at the folder of doors, and the least between two calls of
`changed`."""
_FILES_EVERY: Final = 5
"""A scan of the other files comes with each so many of those."""
_ALL_EVERY: Final = 300
"""All rows are made again once in so many scans: a day may have passed since a session ended."""
_GRACE_S: Final = 2.0
"""Seconds within which a session's process opens its door, after it has locked the session."""
_SCANS_FOR_NEW: Final = 2
"""Scans after which a session that began just now is known: one may be at work already."""
_IDS: Final = 10
"""The most sessions whose ids are listed where a title fits several."""
_FIRST_WORDS_S: Final = 0.5
_MOST_PROMPTS: Final = 1000
"""The number of prompts whose outcome is remembered."""

log = logging.getLogger(__name__)


class ProcessStarter(Protocol):
    """Starts a background session with a prompt. Blocks; raises HoldfastError."""

    def __call__(
        self, home: Folders, options: Options, /, *, replaces_draft: bool = False
    ) -> BackgroundSession: ...


class LocalHost:
    """This machine. `start_process` starts a background session with a prompt, as
    `background.start` does."""

    name = ""

    def __init__(
        self,
        home: Folders,
        clock: Clock | None = None,
        start_process: ProcessStarter = background.start,
    ) -> None:
        self.home = home
        self.clock = clock or SystemClock()
        self._start_process = start_process
        self._doors = DoorWatch(home.data / "live", self.clock, self)
        self._session_files = DeskFiles(home)
        self._files = FilesSeen()
        self._ends: dict[str, EndSeen] = {}
        self._rows: dict[str, DeskRow] = {}
        self._listed: list[DeskRow] | None = []
        self._dirty: set[str] = set()
        self._followers: list[Changed] = []
        self._told_at = float("-inf")
        self._news = True
        """True if rows have changed since that was last told."""
        self._told_problem = ""
        self._due: asyncio.TimerHandle | None = None
        self._channels: set[LocalChannel] = set()
        self._prompts: OrderedDict[str, asyncio.Task[RequestOutcome]] = OrderedDict()
        self._work: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self._scan_now = asyncio.Event()
        self._scanned = asyncio.Event()

    @property
    def problem(self) -> str:
        """The reason why no session of it can be watched; "" where all is well."""
        return self._doors.problem

    @property
    def rows(self) -> Sequence[DeskRow]:
        """Its sessions as last known, in no order."""
        if self._listed is None:
            self._listed = [*self._rows.values()]
        return self._listed

    def follow(self, changed: Changed) -> None:
        """Keep `rows` up to date, and call `changed` after changes: first once they are whole."""
        self._followers.append(changed)
        self._begin()

    async def open(self, session: str) -> LocalChannel:
        """The channel of a session, by its id or the beginning of one. Raises SessionError."""
        self._begin()
        await self._ready.wait()
        channel = LocalChannel(self, *await self._named(session))
        self._channels.add(channel)
        return channel

    async def start(self, cwd: str, prompt: str) -> str:
        """Start a session in the background, and return its id. Raises HoldfastError."""
        session = await asyncio.to_thread(self._started, cwd, prompt)
        self._scan_now.set()
        return session

    def _started(self, cwd: str, prompt: str) -> str:
        folder = expanded(cwd)
        if not folder.is_dir():
            raise SessionError(f"Not a folder: {cwd}.", hint="Name one that exists.")
        options = Options(cwd=folder.absolute(), prompt=prompt)
        return self._start_process(self.home, options).id

    async def dismiss(self, session: str) -> None:
        """Note that somebody has seen how a session ended."""
        if (end := self._ends.get(session)) is not None:
            self._ends[session] = msgspec.structs.replace(end, seen=True)
        await asyncio.to_thread(background.mark_opened, self.home, session)
        self._dirty.add(session)
        self._scan_now.set()

    async def close(self) -> None:
        for channel in [*self._channels]:
            await channel.close()
        if self._due is not None:
            self._due.cancel()
        tasks: list[asyncio.Task[Any]] = [*self._prompts.values()]
        if self._work is not None:
            self._work.cancel()
            tasks.append(self._work)
        self._doors.close()
        await asyncio.gather(*tasks, return_exceptions=True)

    # For its channels

    def row(self, session: str) -> DeskRow | None:
        """The row of a session as it is now."""
        if session in self._dirty:
            self._make_row(session)
        return self._rows.get(session)

    def door(self, session: str) -> DoorSeen | None:
        """The door of a session, None where there is none."""
        return self._doors.seen(session)

    def connect(self, door: DoorSeen, taker: LineTaker) -> asyncio.Task[LineProtocol]:
        """Begin a connection to a door. The task raises OSError and ForeignSocketError."""
        return self._doors.connect(door, taker)

    def closed(self, channel: LocalChannel) -> None:
        self._channels.discard(channel)

    async def send_prompt(self, session: str, path: str, request: SendPrompt) -> RequestOutcome:
        """Start a background process that sends a prompt in a session that nobody has open. The
        same request has no second effect."""
        task = self._prompts.get(request.number)
        if task is None:
            work = self._sent(session, path, request)
            task = self._prompts[request.number] = asyncio.create_task(work, name="prompt")
            if len(self._prompts) > _MOST_PROMPTS:
                self._prompts.popitem(last=False)
        return await asyncio.shield(task)

    async def _sent(self, session: str, path: str, request: SendPrompt) -> RequestOutcome:
        number = request.number
        try:
            options = await asyncio.to_thread(self._options, session, path)
            wanted = options.having(resume=path, profile=None, prompt=request.text)
            await asyncio.to_thread(self._start_process, self.home, wanted, replaces_draft=True)
        except HoldfastError as error:
            return RequestOutcome(
                number=number, outcome="refused", text=error.message, hint=error.hint
            )
        self._scan_now.set()
        return RequestOutcome(number=number, outcome="sent")

    def _options(self, session: str, path: str) -> Options:
        """The options with which a session continues. Blocks; raises SessionError."""
        entry = background.entry(self.home, session)
        options = background.options_from_json(entry.options) if entry else Options()
        cwd = options.cwd or catalog.cwd_of(Path(path))
        if not cwd.is_dir():
            raise SessionError(
                f"Its folder is gone: {shorten(cwd)}.", hint="Restore the folder first."
            )
        return options.having(cwd=cwd, background=False)

    # What happens

    def door_changed(self, session: str, *, asks: bool) -> None:
        """A door came, went or said something: see `DoorReader`."""
        self._dirty.add(session)
        if asks:
            self._tell()
        else:
            self._tell_soon()
        self._wake(session)

    def door_ended(self, session: str, ended: Ended) -> None:
        """A session's owner has let go of it: see `DoorReader`."""
        self._ends[session] = EndSeen(ended, timestamp(self.clock.now()), self.row(session))
        self._dirty.add(session)
        self._scan_now.set()

    def _begin(self) -> None:
        if self._work is None:
            self._work = asyncio.create_task(self._run(), name="desk")

    async def _run(self) -> None:
        turn = 0
        while True:
            try:
                self._doors.scan()
                if turn % _FILES_EVERY == 0 or self._scan_now.is_set():
                    self._scan_now.clear()
                    await self._scan_files()
                    self._scanned.set()
                    self._scanned = asyncio.Event()
                if turn % _ALL_EVERY == 0:
                    self._dirty |= self._rows.keys()
            except Exception:  # the boundary: the next scan may see what this one can't
                log.exception("can't look at the sessions of this machine")
            if not self._ready.is_set():
                await self._first_words()
                self._ready.set()
                self._tell()
            elif self._dirty or self._told_problem != self.problem:
                self._tell_soon()
            turn += 1
            await self._sleep()

    async def _first_words(self) -> None:
        """Give those that have a door the time to say something."""
        until = self.clock.monotonic() + _FIRST_WORDS_S
        while not self._doors.settled and self.clock.monotonic() < until:
            await self.clock.sleep(_FIRST_WORDS_S / 20)

    async def _sleep(self) -> None:
        """Wait until the next scan is due, or wanted at once."""
        waits = [
            asyncio.ensure_future(one) for one in (self.clock.sleep(SCAN_S), self._scan_now.wait())
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()

    async def _scan_files(self) -> None:
        served = {one for one in self._doors.sessions if self._is_served(one)}
        before, now = self._files, self.clock.now()
        scan = self._session_files.scan
        self._files = files = await asyncio.to_thread(scan, now, self.clock.monotonic(), served)
        for old, new in (
            (before.entries, files.entries),
            (before.locks, files.locks),
            (before.saved, files.saved),
        ):
            for id_ in old.keys() | new.keys():
                if old.get(id_) != new.get(id_):
                    self._dirty.add(id_)
                    self._wake(id_)
        if before.branches != files.branches:
            self._dirty |= self._rows.keys()

    def _is_served(self, session: str) -> bool:
        door = self._doors.seen(session)
        return door is not None and door.hello is not None

    def _wake(self, session: str) -> None:
        for channel in self._channels:
            if channel.session == session:
                channel.wake()

    # Rows

    def _tell_soon(self) -> None:
        """Have the change told, not more often than some times a second."""
        if self._due is not None or not self._ready.is_set():
            return
        wait = self._told_at + SCAN_S - self.clock.monotonic()
        if wait <= 0:
            self._tell()
        else:
            self._due = asyncio.get_running_loop().call_later(wait, self._tell)

    def _tell(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None
        if not self._ready.is_set():
            return
        for session in [*self._dirty]:
            self._make_row(session)
        if self._news or self._told_problem != self.problem:
            self._told_at = self.clock.monotonic()
            self._news, self._told_problem = False, self.problem
            call_all(self._followers)

    def _make_row(self, session: str) -> None:
        self._dirty.discard(session)
        files, door = self._files, self._doors.seen(session)
        if door is not None:
            self._ends.pop(session, None)
        lock = files.locks.get(session) if door is None else None
        if lock is not None and self.clock.monotonic() - lock.since < _GRACE_S:
            lock = None  # its door comes
            self._dirty.add(session)
        known = SessionTraces(
            door=door,
            entry=files.entries.get(session),
            lock=lock,
            saved=files.saved.get(session),
            end=self._ends.get(session),
        )
        row = row_of(session, known, self.clock.now())
        if row is not None and not row.branch:
            row = msgspec.structs.replace(row, branch=files.branches.get(row.cwd, ""))
        if row == self._rows.get(session):
            return
        self._listed, self._news = None, True
        if row is None:
            self._rows.pop(session, None)
        else:
            self._rows[session] = row

    async def _named(self, session: str) -> tuple[str, str]:
        """The whole id of a session, by that, the beginning of it, or its title, and its file; ""
        for one without. Raises SessionError."""
        for _ in range(_SCANS_FOR_NEW + 1):
            for dirty in [*self._dirty]:
                self._make_row(dirty)
            exact = [id_ for id_ in self._rows if id_ == session]
            matches = exact or [id_ for id_ in self._rows if session and id_.startswith(session)]
            if len(matches) == 1:
                return matches[0], self._rows[matches[0]].path
            scanned = self._scanned  # it may have begun since the last scan
            self._scan_now.set()
            await scanned.wait()
        called = named(session, ((row.title, row) for row in self._rows.values()))
        if len(called) == 1:
            return called[0].id, called[0].path
        if called:
            ids = ", ".join(sorted(row.id for row in called)[:_IDS])
            raise SessionError(
                f"{len(called)} sessions are called “{one_line(session)}”.",
                hint=f"Name one by its id: {ids}{', …' if len(called) > _IDS else ''}.",
            )
        if catalog.is_path(session):
            hint = "`holdfast desk` lists the sessions."
            raise SessionError(f"Not a session's id: {session}.", hint=hint)
        path = await asyncio.to_thread(catalog.resolve, session, self.home)
        return catalog.id_of(path), str(path)
