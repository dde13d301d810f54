"""The sub-agents of a session: those that work, and those that its records name.

The parent's record names each: `sub_agent` when it starts and when it ends (with what it cost), and
`file_change` for what it does to files, so that /rewind and /diff of the parent know it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias, cast

from msgspec import structs

from tui.agent.agent_context import AgentContext
from tui.agent.background_jobs import OwnedJob
from tui.agent.limits import Spent, spent_by_model
from tui.context.file_changes import details_of
from tui.context.overrides import content_of
from tui.context.record_index import RecordIndex
from tui.core.dataclass import dataclass, field
from tui.core.errors import SessionError, ToolError
from tui.core.facts import FileChanged, SubAgentFinished
from tui.core.formatting import money, plural, tokens
from tui.core.messages import string_of, text_of
from tui.core.text_cleaning import one_line
from tui.session.reader import read
from tui.session.records import FILE_CHANGE, SUB_AGENT, Record
from tui.session.session import Session, file_of_child
from tui.tools.jobs import Jobs

State: TypeAlias = Literal[
    "waiting", "running", "done", "failed", "limit", "stopped", "interrupted"
]

_ENDED: Final = frozenset({"done", "failed", "limit", "stopped"})
_CHANGE_FIELDS = ("path", "before", "before_sha256", "after_sha256", "mode")


class Cancellable(Protocol):
    """Work that can be ended."""

    def cancel(self) -> None: ...


@dataclass(slots=True, eq=False)
class SubAgent:
    """A sub-agent of a session, as it works or as it ended. `call_id` is of the call that it works
    for, or worked for last; `path` is its session's file, None in memory."""

    call_id: str
    session_id: str
    path: Path | None
    agent: str
    description: str
    model: str
    state: State = "waiting"
    calls: int = 0
    spent: Spent = field(default_factory=Spent)
    now: str = ""
    """Its present activity, in a few words."""
    asks: bool = False
    """True if it waits for the person's answer."""
    problem: str = ""
    """The reason why it failed."""
    started: float = 0.0
    """The time when it began to work, on the clock's monotonic scale; 0 before."""
    seconds: float = 0.0
    """The seconds that it worked, once it has ended."""
    session: Session | None = None
    """While it works; where it is kept in memory only, for good."""
    stopped: bool = False
    """True if the person let it end."""
    watch: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    """Called whenever something of it is different."""
    work: Cancellable | None = None
    """Its work of the moment, which can be cancelled."""
    jobs: Jobs | None = None
    """Its background commands, of this run of the program."""

    @property
    def works(self) -> bool:
        """True while it has not ended."""
        return self.state in {"waiting", "running"}

    @property
    def figures(self) -> str:
        """Its work and cost, as parts of a line."""
        usd = self.spent.usd
        used = [f"{tokens(self.spent.usage.total)} tokens"] if self.spent.requests else []
        cost = [money(usd)] if usd else []
        return " · ".join([plural(self.calls, "call"), *used, *cost])

    def stop(self) -> None:
        """Let it end where it is: what it did so far is its result. One that waits for its turn
        ends when that comes."""
        self.stopped = True
        if self.work is not None:
            self.work.cancel()
        self.tell()

    def tell(self) -> None:
        """Say to who watches that something is different."""
        for call in tuple(self.watch):
            call()


class SubAgentList:
    """The sub-agents of one agent: those of its session, and what is known of those at work."""

    def __init__(self, ctx: AgentContext) -> None:
        self._ctx = ctx
        self._records = RecordIndex({SUB_AGENT})
        self._found: dict[str, SubAgent] = {}
        self._read = 0
        self._last: Record | None = None
        self.taken: set[str] = set()
        """The sessions of earlier sub-agents that continue."""
        self.known: dict[str, SubAgent] = {}
        """The sub-agents of this run of the program, by the id of the session."""
        self._settled = False

    @property
    def all(self) -> Sequence[SubAgent]:
        """The sub-agents of the session, those of earlier runs too, in the order of their start."""
        records = self._records.of(self._ctx.records)
        if len(records) < self._read or (self._read and records[self._read - 1] is not self._last):
            self._found, self._read = {}, 0  # the branch was rewound
        for record in records[self._read :]:
            one = _of_record(record)
            before = self._found.get(one.session_id)
            one.spent = Spent.of_sub_agent(record, self._ctx.config.prices)
            if before is not None:
                one.spent, one.calls = before.spent + one.spent, before.calls + one.calls
            self._found[one.session_id] = one
        self._read, self._last = len(records), records[-1] if records else None
        return [self.known.get(id_, one) for id_, one in self._found.items()]

    @property
    def jobs(self) -> Sequence[OwnedJob]:
        """The background commands of all of them, each with whose it is."""
        return [
            OwnedJob(job, f"{one.agent}: {one.description}")
            for one in self.known.values()
            for job in (one.jobs.list() if one.jobs else ())
        ]

    def move_to_background(self) -> int:
        """Let the commands that run in front in them continue in the background; how many."""
        return sum(one.jobs.move() for one in self.known.values() if one.jobs)

    def leave(self) -> None:
        """Let the commands that run in them continue without this program."""
        for one in self.known.values():
            if one.jobs:
                one.jobs.leave()

    def stay(self) -> None:
        """Let them end with their sub-agents after all."""
        for one in self.known.values():
            if one.jobs:
                one.jobs.stay()

    def file_of(self, one: SubAgent) -> Path | None:
        """The file of its session: beside the parent's, if that was moved. Blocks."""
        return file_of_child(self._ctx.session.path, str(one.path or ""))

    def records_of(self, one: SubAgent) -> Sequence[Record]:
        """Its records, from its file where it has ended. Blocks; raises SessionError."""
        if one.session is not None:
            return one.session.records
        file = self.file_of(one)
        return read(file).branch if file is not None else ()

    def of_call(self, call_id: str) -> SubAgent | None:
        """The sub-agent that works or worked for a call."""
        records = self._records.of(self._ctx.records)
        named = (one.data for one in reversed(records) if one.data.get("call_id") == call_id)
        session = next((string_of(data.get("session")) for data in named), None)
        return next((one for one in self.all if one.session_id == session), None)

    def has_started(self, call_id: str) -> bool:
        """True if a call has had a sub-agent."""
        records = self._records.of(self._ctx.records)
        return any(record.data.get("call_id") == call_id for record in records)

    def earlier(self, resume: str, call_id: str) -> SubAgent | None:
        """The sub-agent to continue: the one that is named, or that of the call itself, if an
        earlier run of the program started it."""
        if not resume:
            return self.of_call(call_id)
        matches = [one for one in self.all if one.session_id.startswith(resume.strip())]
        if len(matches) != 1:
            known = ", ".join(one.session_id for one in self.all) or "none yet"
            raise ToolError(
                f"No sub-agent has the session {resume!r}.", hint=f"There are: {known}."
            )
        if matches[0].session_id in self.taken or matches[0].works:
            raise ToolError("This sub-agent still works.", hint="Wait for its result.")
        return matches[0]

    async def settle(self) -> None:
        """Record what sub-agents did that ended with an earlier run of the program: what they cost
        and changed. To be called before anything else is recorded."""
        if self._settled or self._ctx.parent is not None:
            return
        self._settled = True
        for record in _unfinished(self._records.of(self._ctx.records)):
            try:
                own = list(await asyncio.to_thread(self.records_of, _of_record(record)))
            except SessionError:
                own = list[Record]()  # it had not begun, or is gone
            since = [one for one in own if one.id > record.id]
            noted = {
                (one.data.get("session"), one.data.get("session_call"))
                for one in self._ctx.records
                if one.type == FILE_CHANGE
            }
            ended = SubAgentFinished.of_record(record.data)
            for change in changes_in(since, ended.id, ended.session_id):
                if (change.session, change.session_call) not in noted:
                    self._ctx.record(change)
            calls = sum(one.type == "tool_result" for one in since)
            used = spent_by_model(since)
            self._ctx.recorder.write(
                structs.replace(ended, outcome="interrupted", calls=calls, spent=used)
            )


def _of_record(record: Record) -> SubAgent:
    data = record.data
    call_id, session, path, agent, description, model, state = (
        string_of(data.get(name))
        for name in ("call_id", "session", "path", "agent", "description", "model", "state")
    )
    # One without an end was killed with the program.
    known = cast("State", state if state in _ENDED else "interrupted")
    where, calls = Path(path) if path else None, data.get("calls")
    count = calls if isinstance(calls, int) else 0
    about = one_line(description)
    return SubAgent(call_id, session, where, one_line(agent), about, model, known, count)


def _unfinished(records: Iterable[Record]) -> list[Record]:
    """The records of sub-agents that started and did not end."""
    open_records: dict[str, Record] = {}
    for record in records:
        session = string_of(record.data.get("session"))
        if record.data.get("state") == "started":
            open_records[session] = record
        else:
            open_records.pop(session, None)
    return list(open_records.values())


def changes_in(records: Iterable[Record], call_id: str, session: str) -> Iterator[FileChanged]:
    """Yield the changes to files in the records of a sub-agent, as its parent records them."""
    for record in records:
        for details in details_of(record):
            if "after_sha256" in details:
                fields = {name: details.get(name) for name in _CHANGE_FIELDS}
                yield FileChanged(call_id, session, record.data.get("call_id"), **fields)


def last_words(records: Iterable[Record]) -> str:
    """The text of the last answer that has one."""
    answers = (
        text_of(content_of(one)) for one in reversed(list(records)) if one.type == "assistant"
    )
    return next((text for text in answers if text.strip()), "")
