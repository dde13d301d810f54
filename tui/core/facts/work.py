"""Background commands and sub-agents."""

from __future__ import annotations

from typing import Any

from msgspec import field

from tui.core.facts.base import WireFact
from tui.core.messages import Usage


class JobStarted(WireFact, frozen=True, tag="job_started"):
    """A command runs in the background. `call_id` is of the call that started it, or of the
    person's own command; `moved_by` is person where it ran in front before, else ""."""

    job: str
    call_id: str
    command: str
    pid: int
    moved_by: str = ""


class JobFinished(WireFact, frozen=True, tag="job_finished"):
    """A background command ended, in a turn or between two. `state` is as `exit code 1`, `killed
    by SIGTERM` or `stopped`; `stopped_by` is person, model or program, "" where it ended by itself.
    `path` is the file with its whole output, "" where there is none, `text` its last lines."""

    job: str
    call_id: str
    command: str
    exit_code: int | None
    state: str
    stopped_by: str
    seconds: float
    path: str
    bytes: int
    text: str = ""


class SubAgentStarted(WireFact, frozen=True, tag="subagent_started"):
    """The call `id` of the tool `task` has its sub-agent, which works in a session of its own:
    `path` is its file, null where it is kept in memory. `resumed`: it continues an earlier one.
    """

    id: str
    session_id: str
    path: str | None
    agent: str = field(name="name")
    description: str
    model: str
    resumed: bool = False


class SubAgentEvent(WireFact, frozen=True, tag="subagent_event"):
    """What happened in the session of the sub-agent that the call `id` started: one of these
    events, but for what streams, what tools print, and how full its context is."""

    id: str
    agent: str = field(name="name")
    event: WireFact

    def to_json(self) -> dict[str, Any]:
        head = {"type": self.type, "id": self.id, "name": self.agent}
        return head | {"event": self.event.to_json()}


class SubAgentFinished(WireFact, frozen=True, tag="subagent_finished"):
    """How it ended: done, failed, limit, stopped (by the person) or interrupted (with the turn).
    `usage` and `cost_usd` are of this run; cost is null where a price is not known."""

    id: str
    session_id: str
    agent: str = field(name="name")
    outcome: str
    calls: int
    requests: int
    usage: Usage = Usage()
    cost_usd: float | None = None
