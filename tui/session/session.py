"""One session: its header, the records of its active branch, and its file."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from msgspec import structs

import tui
from tui.core.clock import Clock, timestamp
from tui.core.errors import SessionError, StorageError
from tui.core.facts import DurableFact, Rewound
from tui.core.messages import Usage
from tui.core.paths import Folders, shorten
from tui.session import chain
from tui.session.chain import CHAIN, ChainEnd, linked
from tui.session.drafts import DraftWriter, UnsentWork
from tui.session.lock import SessionLock
from tui.session.reader import LoadedSession, read
from tui.session.records import (
    PROFILE,
    Finding,
    Header,
    Record,
    is_prompt,
    new_id,
    new_session_id,
    profile_in,
    redacted,
    title_of,
)
from tui.session.request_numbers import REQUEST, number_after, numbered
from tui.session.writer import SessionWriter

DIRECTIVES = ("think", "verbose", "elevated", "effort")


class RecordFollower(Protocol):
    """Hears of each record as it is appended; see `tui.agent.span_export`."""

    @property
    def prompt_fields(self) -> Mapping[str, str]:
        """Return the fields that it adds to the record of each prompt."""
        ...

    def recorded(self, record: Record) -> None:
        """Take a record. Called in the loop, so it neither waits nor raises."""
        ...

    def of_sub_agent(self, session: Session) -> RecordFollower:
        """Return what follows the session of a sub-agent."""
        ...

    def traceparent(self, call_id: str) -> str:
        """Return the span of a call that runs, or that of the turn, as W3C Trace Context writes it;
        "" where there is none."""
        ...


class Session:
    """The record of one conversation, in memory and on disk. Used from one event loop.

    `records` is the active branch; it only grows, except by `rewind` and `move_to`.
    `metadata["directives"]` holds the directives last recorded, unchecked. The file of a new
    session is created with its first prompt, or the draft of one: if nothing was asked, nothing is
    written.

    A session on disk holds the lock of its file (see `tui.session.lock`), from its first line or
    from `open`, until `close`. Without it `read_only` is true and nothing is written: what is
    appended is held in memory, `saved` is false and `problem` says why. `unsent` is what was
    typed, queued and streamed when an earlier run ended. `requests` is the number of the last
    request, on whatever branch, `profile` that of the last request, "" for none. `elsewhere` are
    the records on other branches, `recent` the last facts that were recorded: what shows them may
    not have come yet.

    While `redact` is set, secrets of known shapes are masked in what is appended, in memory too:
    the model then gets the masked text.
    """

    def __init__(
        self,
        header: Header,
        file: SessionWriter | None,
        clock: Clock,
        *,
        records: Iterable[Record] = (),
        findings: Iterable[Finding] = (),
        resumed: bool = False,
        lock: SessionLock | None = None,
        unsent: UnsentWork | None = None,
    ) -> None:
        self.header = header
        self.records: list[Record] = []
        self.findings = tuple(findings)
        self.resumed = resumed
        self.metadata: dict[str, Any] = {}
        self.title = ""
        self.model = ""
        self.profile = header.profile
        self.usage = Usage()
        self.requests = 0
        self.elsewhere: Sequence[Record] = ()
        self.redact = False
        self.unsent = unsent or UnsentWork()
        self.recent = deque[DurableFact](maxlen=32)
        self.follower: RecordFollower | None = None
        self._file = file
        self._clock = clock
        self._lock = lock
        self._drafts = DraftWriter()
        self._asked = resumed
        self._with_prompt: list[DurableFact] = []
        self._last_id = ""
        self._waiting: list[bytes] | None = None if resumed else []
        self._chain = ChainEnd()
        for record in records:
            self._note(record)

    @classmethod
    def create(
        cls,
        workspace: Path,
        *,
        folders: Folders,
        clock: Clock,
        started: str = "",
        profile: str = "",
    ) -> Session:
        """A new session of a workspace; `started` and `profile` are those of its header."""
        header = replace(_new_header(workspace, clock), started=started, profile=profile)
        return cls._in_folder(folders.sessions_of(workspace), header, clock)

    @classmethod
    def create_child(cls, parent: Session, call_id: str, *, clock: Clock) -> Session:
        """A new session for a sub-agent that a call in `parent` starts: in a folder beside that
        one's file, in memory where it has none."""
        header = replace(
            _new_header(Path(parent.header.cwd), clock),
            parent_session=parent.id,
            parent_call=call_id,
            profile=parent.profile,
        )
        if parent.path is None:
            return cls(header, None, clock)
        return cls._in_folder(children_of(parent.path), header, clock)

    @classmethod
    def _in_folder(cls, folder: Path, header: Header, clock: Clock) -> Session:
        path = folder / f"{clock.now():%Y%m%dT%H%M%SZ}-{header.id}.jsonl"
        lock = SessionLock(path, clock=clock)
        first, link = linked(header.to_line(), "")
        file = SessionWriter(path, header=first, guard=lock.check)
        session = cls(header, file, clock, lock=lock)
        session._chain = ChainEnd(link)
        return session

    @classmethod
    def in_memory(cls, workspace: Path, *, clock: Clock) -> Session:
        """A new session that leaves nothing on disk (`--no-session`)."""
        return cls(_new_header(workspace, clock), None, clock)

    @classmethod
    def open(
        cls, path: Path, *, clock: Clock, take_over: bool = False, read_only: bool = False
    ) -> Session:
        """Continue a session. Blocks while it is read; damage is in `findings`, and stays.

        Raises SessionInUseError while another program has it open, unless it is to be taken over
        (the other then writes no more) or only read; SessionError if it cannot be read at all.
        """
        real = Path(os.path.realpath(path))
        if read_only:
            return cls.of(read(real), clock=clock)
        lock = SessionLock(real, clock=clock)
        lock.take(over=take_over)  # before it is read: nobody writes behind our back
        try:
            return cls.of(read(real), clock=clock, lock=lock)
        except BaseException:
            lock.release()
            raise

    @classmethod
    def of(cls, loaded: LoadedSession, *, clock: Clock, lock: SessionLock | None = None) -> Session:
        """Continue a session that has been read. Without its lock it is read-only."""
        session = cls(
            loaded.header,
            SessionWriter(loaded.path, guard=lock.check if lock else _opened_to_read),
            clock,
            records=loaded.branch,
            findings=loaded.findings,
            resumed=True,
            lock=lock,
            unsent=loaded.unsent,
        )
        session._chain = chain.end_of(loaded.path) if lock else ChainEnd()
        if len(loaded.records) > len(session.records):
            here = {record.id for record in session.records}
            session.elsewhere = tuple(one for one in loaded.records if one.id not in here)
            for record in loaded.records:  # what is paid is counted in the order of the file
                if record.type == PROFILE:
                    session.profile = profile_in(record)
        session.requests = max((number for number, _ in numbered(loaded.records)), default=0)
        return session

    @property
    def id(self) -> str:
        return self.header.id

    @property
    def path(self) -> Path | None:
        """The file, which may not exist yet; None for a session kept in memory."""
        return self._file.path if self._file else None

    @property
    def directives(self) -> Any:
        """The directives last recorded, unchecked: anything may be in the file."""
        return self.metadata.get("directives")

    @property
    def saved(self) -> bool:
        """True if everything meant for the disk got there, as far as is known."""
        return self._file is None or self._file.saved

    @property
    def problem(self) -> str:
        """The reason why something is not saved; "" where everything is."""
        return self._file.problem if self._file else ""

    @property
    def read_only(self) -> bool:
        """True if nothing is written: opened so, or taken over by another program."""
        return self.opened_to_read or bool(self.lost)

    @property
    def opened_to_read(self) -> bool:
        """True if nothing was to be written from the beginning."""
        return self._file is not None and self._lock is None

    def with_next_prompt(self, fact: DurableFact) -> None:
        """Record a fact right before the next prompt, if there is one: a session that is only
        opened and read does not change."""
        self._with_prompt.append(fact)

    @property
    def lost(self) -> str:
        """The program that took the session over; "" while nobody has."""
        return self._lock.lost if self._lock is not None else ""

    def supposed(self) -> Session:
        """The session as it is, in memory: what is recorded in the copy leaves no trace."""
        other: Session = copy(self)
        other.records, other.metadata = [*self.records], {**self.metadata}
        other._file = other._lock = other.follower = None
        other.recent = self.recent.copy()
        other._with_prompt = [*self._with_prompt]
        return other

    def record(self, fact: DurableFact) -> Record:
        """Add the record of a fact: as `append`."""
        self.recent.append(fact)
        return self.append(fact.recorded_as(), **fact.to_record())

    def append(self, type_: str, **data: Any) -> Record:
        """Add a record to the branch and write it, without waiting for the disk.

        Never raises for the disk: what cannot be written is kept and tried again, see `saved`.
        """
        if type_ == "user" and self._with_prompt:
            pending, self._with_prompt = self._with_prompt, []
            for fact in pending:
                self.record(fact)
        if type_ == "user" and self.follower is not None:
            data |= self.follower.prompt_fields
        record = self._made(type_, data)
        line = record.to_line()
        self._note(record)
        if self.follower is not None:
            self.follower.recorded(record)
        if type_ == "user":
            self._asked = True
        if self._file is not None:
            self._write(self._file, line, starts=type_ == "user")
        return record

    def draft(self, work: UnsentWork) -> float:
        """Record what a crash would lose: the prompt being typed, the queue, the answer so far.

        To be called with all of this whenever one changes. Writes what is typed at most once a
        second and the answer every 5 s, and returns after how many seconds to call again with the
        same, 0 if all is written. Never raises. Does not wait for the disk: a crash of the program
        loses nothing, one of the machine may lose what was written since the last sync.
        """
        fields, wait = self._drafts.note(self._clock.monotonic(), work)
        if fields is not None:
            self._write_draft(fields)
        return wait

    def traceparent(self, call_id: str) -> str:
        """Return the span that a program continues which a call starts; "" where no spans are made.
        Without a call it is the turn's."""
        return self.follower.traceparent(call_id) if self.follower is not None else ""

    async def rewind(self, target: str, *, checkpoint: str = "", restores: bool = False) -> Record:
        """Begin a branch in the file that continues from before the record `target`. `checkpoint`
        is of the files now, "" where there is none; `restores`: those of then come back.

        What came since stays in the file on its own branch; the session must be opened again.
        Raises SessionError if there is no such record, StorageError if it cannot be saved.
        """
        place = next((n for n, record in enumerate(self.records) if record.id == target), None)
        if place is None:
            raise SessionError(
                f"No record {target} on this branch.", hint="See /rewind for the prompts."
            )
        prompts = sum(map(is_prompt, self.records[place:]))
        fact = Rewound(target, "", checkpoint, prompts, bool(checkpoint) and not restores)
        return await self._leave_for(self.records[:place], fact)

    async def move_to(
        self, branch: Sequence[Record], *, checkpoint: str = "", restores: bool = False
    ) -> Record:
        """Continue where another branch of the file ended, whose records these are; the rest as
        with `rewind`."""
        return await self._leave_for(
            branch, Rewound("", "", checkpoint, files_stay=bool(checkpoint) and not restores)
        )

    async def _leave_for(self, branch: Sequence[Record], fact: Rewound) -> Record:
        """Go on after the last record of a branch. The session keeps its title."""
        await self.sync()
        left = self.records[-1].id
        title, other = _last_title(self.records), _last_title(branch)
        self.records[:] = branch
        made = self.record(structs.replace(fact, left=left))
        if title and title.data.get("title") != (other.data.get("title") if other else None):
            self.append("title", **title.data)
        await self.sync()
        return made

    async def commit(self, type_: str, **data: Any) -> Record:
        """Add a record and wait until it is on the disk. Raises StorageError if it is not."""
        record = self.append(type_, **data)
        await self.sync()
        return record

    async def sync(self) -> None:
        """Wait until everything written so far is on the disk. Raises StorageError if not."""
        if self._file is not None:
            await self._file.sync()

    async def recheck(self) -> str:
        """Check the file while nothing is appended. Returns what is wrong, "" if nothing is.

        What could not be saved is tried again; a lock that another program took is noticed.
        """
        lost = self._lock.check() if self._lock is not None and self._lock.held else ""
        if not lost and not self.saved:
            with suppress(StorageError):
                await self.sync()
        if self.read_only:  # opened so, nothing is to be saved
            return self.lost
        return self.problem

    async def close(self) -> None:
        """Sync and close the file. Raises StorageError if something could not be saved; in a
        session that was opened to read, nothing was to be.

        What is still typed is written first; if nothing was asked nor typed, the file is removed.
        """
        try:
            if self._file is None:
                return
            if not self._asked and not self._drafts.typed:
                await self._file.discard()
                return
            if fields := self._drafts.last():
                self._write_draft(fields)
            await self._file.close()
        except StorageError:
            if not self.opened_to_read:
                raise
        finally:
            if self._lock is not None:
                self._lock.release()

    def _made(self, type_: str, data: dict[str, Any]) -> Record:
        if self.redact:
            data = redacted(data)
        now = self._clock.now()
        last = self.records[-1].id if self.records else None
        self._last_id = new_id(now, after=self._last_id or last or "")
        return Record(type_, self._last_id, last, timestamp(now), data, self.profile)

    def _write_draft(self, fields: dict[str, Any]) -> None:
        if self._file is not None:
            line = self._made("draft", fields).to_line()
            self._write(self._file, line, starts=self._drafts.typed)

    def _write(self, file: SessionWriter, line: bytes, *, starts: bool) -> None:
        if self._waiting is not None:
            self._waiting.append(line)
            if not starts:
                return
            lines, self._waiting = self._waiting, None
        else:
            lines = [line]
        if self._chain.covers is not None:
            lines = [self._made(CHAIN, self._chain.covers).to_line(), *lines]
        link = self._chain.link
        for each in lines:
            whole, link = linked(each, link)
            file.append(whole)
        self._chain = ChainEnd(link)

    def _note(self, record: Record) -> None:
        """Keep a record and its facts about the session."""
        self.records.append(record)
        data = record.data
        match record.type:
            case "user" if not self.title and is_prompt(record):
                self.title = title_of(data)
            case "title" if isinstance(data.get("title"), str):
                self.title = data["title"]
            case "assistant":
                self.usage += Usage.from_json(data.get("usage"))
                if isinstance(data.get("model"), str):
                    self.model = data["model"]
            case _ if record.type == PROFILE:
                self.profile = profile_in(record)
            case _ if record.type == REQUEST:
                self.requests = number_after(self.requests, record)
            case "directive":
                self.metadata["directives"] = {k: data[k] for k in DIRECTIVES if k in data}
            case _:
                pass


def children_of(path: Path) -> Path:
    """The folder of the sessions of the sub-agents of one, by its file."""
    return path.with_suffix("")


def file_of_child(parent: Path | None, recorded: str) -> Path | None:
    """The file of a sub-agent's session: beside its parent's, if that was moved since it was
    recorded, or beside the one that its parent was forked from. None for one that is in memory.
    Blocks. Raises SessionError for any other: what a record names may be somebody else's."""
    if not recorded or parent is None:
        return None
    path, beside = Path(recorded), children_of(parent) / Path(recorded).name
    with suppress(OSError, ValueError):
        if beside.exists():
            return beside
    ours = path.parent.parent == parent.parent and ".." not in path.parts
    if ours and path.suffix == parent.suffix:
        return path
    raise SessionError(
        f"{shorten(path)} is outside this folder's sessions, so it wasn't opened.",
        hint="Its parent's record names it as the session of a sub-agent.",
    )


def _last_title(records: Sequence[Record]) -> Record | None:
    return next((record for record in reversed(records) if record.type == "title"), None)


def _opened_to_read() -> str:
    return "The session is read-only."


def _new_header(workspace: Path, clock: Clock) -> Header:
    app = f"holdfast {tui.__version__}"
    return Header(new_session_id(), timestamp(clock.now()), str(workspace), app)
