"""Background commands and sub-agents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Self

from msgspec import field
from msgspec.structs import replace

from tui.core.facts.base import DurableFact, Kept, RecordFact, WireFact
from tui.core.messages import Usage, object_of

END_UNKNOWN: Final = "end unknown"
"""The state of a command whose keeper was killed: it may still run, and nobody watches it."""


class JobStarted(WireFact, frozen=True, tag="job_started"):
    """A command runs in the background. `call_id` is of the call that started it, or of the
    person's own command; `moved_by` is person where it ran in front before, else ""."""

    id: str
    call_id: str
    command: str
    pid: int
    moved_by: str = ""


class JobMoved(RecordFact, frozen=True, tag="job_moved"):
    """A command that ran in front was moved to the background, by whom."""

    call_id: str
    job: str
    pid: int
    by: str


class JobFinished(DurableFact, frozen=True, tag="job_finished"):
    """A background command ended, in a turn or between two. `state` is as `exit code 1`, `killed
    by SIGTERM` or `stopped`; `stopped_by` is person, model or program, "" where it ended by itself.
    `path` is the file with its whole output, "" where there is none, `text` its last lines.

    What one printed that is `hidden` from the model is not recorded. `end_read`: the model has the
    end from its call of `command_status`.
    """

    record_type = "job_ended"
    written = (
        "job=id call_id command exit_code state stopped_by seconds path bytes text hidden end_read"
    )

    id: str
    call_id: str
    command: str
    exit_code: int | None
    state: str
    stopped_by: str
    seconds: float
    path: str
    bytes: int
    text: str = ""
    hidden: Kept[bool] = False
    end_read: Kept[bool] = False

    def to_record(self) -> dict[str, Any]:
        fields = super().to_record()
        return fields | ({"text": "", "path": ""} if self.hidden else {})

    @classmethod
    def completed(cls, *values: Any) -> Self:
        fact = cls(*values)
        return replace(fact, id=fact.id or "job", state=fact.state or "ended")


class FileChanged(RecordFact, frozen=True, tag="file_change"):
    """A call of a sub-agent changed a file: how it was before, and what it is now."""

    call_id: str | None
    session: str | None
    session_call: str | None
    path: str | None
    before: str | None
    before_sha256: str | None
    after_sha256: str | None
    mode: int | None


class SubAgentStarted(DurableFact, frozen=True, tag="subagent_started"):
    """The call `id` of the tool `task` has its sub-agent, which works in a session of its own:
    `path` is its file, null where it is kept in memory. `resumed`: it continues an earlier one.
    """

    record_type = "sub_agent"
    written = "call_id=id session=session_id path agent description model state"

    id: str
    session_id: str
    path: str | None
    agent: str = field(name="name")
    description: str
    model: str
    resumed: bool = False
    state: Kept[str] = "started"

    def to_record(self) -> dict[str, Any]:
        return super().to_record() | {"path": self.path or ""}

    @classmethod
    def completed(cls, *values: Any) -> Self:
        id_, session, path, *others = values
        return cls(id_, session, path or None, *others)


class SubAgentEvent(WireFact, frozen=True, tag="subagent_event"):
    """Something happened in the session of the sub-agent that the call `id` started: one of these
    events, but for what streams, what tools print, and how full its context is."""

    id: str
    agent: str = field(name="name")
    event: WireFact

    def to_json(self) -> dict[str, Any]:
        head = {"type": self.type, "id": self.id, "name": self.agent}
        return head | {"event": self.event.to_json()}


class SubAgentFinished(DurableFact, frozen=True, tag="subagent_finished"):
    """A sub-agent ended: done, failed, limit, stopped (by the person) or interrupted (with the
    turn). `usage` and `cost_usd` are of this run; cost is null where a price is not known. `spent`
    has both for each model, as `{"model", "requests", "usage"}`.
    """

    record_type = "sub_agent"
    written = "call_id=id session=session_id path agent description model state=outcome calls spent"

    id: str
    session_id: str
    agent: str = field(name="name")
    outcome: str
    calls: int
    requests: int
    usage: Usage = Usage()
    cost_usd: float | None = None
    path: Kept[str] = ""
    description: Kept[str] = ""
    model: Kept[str] = ""
    spent: Kept[Sequence[dict[str, Any]]] = ()

    @classmethod
    def completed(cls, *values: Any) -> Self:
        fact = cls(*values)
        runs = [*map(object_of, fact.spent)]
        usage = sum((Usage.from_json(one.get("usage")) for one in runs), Usage())
        counts = (one.get("requests") for one in runs)
        requests = sum(n for n in counts if isinstance(n, int))
        return replace(fact, usage=usage, requests=requests)
