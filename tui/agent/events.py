"""Events: facts in the past tense, published in the order they happened.

The contract of a turn: `UserMessage`; then per request one `RequestSent` per attempt, deltas,
and one `AssistantMessage` (deltas since the last `RequestSent` are void when another follows);
then per call `ToolStarted`, any number of `ToolOutputChunk`, one `ToolFinished` (neither for a
call that an interrupt kept from beginning); at the end one `TurnFinished`, always, whatever
happened. A fact that stands in the record is synced before its event is published. `to_json`
gives the line that `-p --output-format stream-json` prints. What the provider tells of a request
that is under way (deltas, retries, another model) is published as it is: those types are its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, TypeAlias

from tui.core.messages import Usage
from tui.provider.base import (
    Alive,
    ModelSwitched,
    RetryScheduled,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
)

Step: TypeAlias = Literal["output", "images", "compaction", "results", "digest"]


@dataclass(frozen=True, slots=True)
class SessionStarted:
    type: ClassVar[str] = "session_started"
    session_id: str
    path: str | None
    model: str
    cwd: str
    resumed: bool


@dataclass(frozen=True, slots=True)
class UserMessage:
    """`text` is all that the model gets, `attached` its end that nobody typed."""

    type: ClassVar[str] = "user_message"
    text: str
    attached: str = ""


@dataclass(frozen=True, slots=True)
class DirectivesChanged:
    type: ClassVar[str] = "directives_changed"
    think: bool
    verbose: bool
    elevated: bool


@dataclass(frozen=True, slots=True)
class RequestSent:
    """`messages` and `tokens` (estimated) are of the request; `attempt` counts from 1."""

    type: ClassVar[str] = "request_sent"
    messages: int
    tokens: int
    model: str
    attempt: int


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    type: ClassVar[str] = "assistant_message"
    text: str
    stop_reason: str
    usage: Usage
    request_id: str | None = None


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A call is being looked at. `label` is for the card; running begins after permission."""

    type: ClassVar[str] = "tool_started"
    id: str
    name: str
    input: dict[str, Any]
    label: str = ""


@dataclass(frozen=True, slots=True)
class PermissionAsked:
    type: ClassVar[str] = "permission_asked"
    id: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class PermissionAnswered:
    """`answer` is once, session, always, no, allow or deny; `by` says who decided."""

    type: ClassVar[str] = "permission_answered"
    id: str
    name: str
    answer: str
    by: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ToolOutputChunk:
    type: ClassVar[str] = "tool_output"
    id: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """`text` is what the model gets, at most 8,000 characters of it; `display` a diff.

    `images` are `{"type", "media_type", "bytes", "omitted": true}` without their data.
    """

    type: ClassVar[str] = "tool_finished"
    id: str
    name: str
    is_error: bool
    seconds: float
    receipt: dict[str, Any] | None
    summary: str = ""
    text: str = ""
    display: str = ""
    images: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Parked:
    """The server wants to see the request no sooner than `until` (ISO 8601, UTC); it is sent then.

    Told again when a parked session is opened. The turn goes on by itself, or by `Agent.go_on`.
    """

    type: ClassVar[str] = "parked"
    until: str
    reason: str
    error_class: str = "rate_limit"
    status: int | None = None


@dataclass(frozen=True, slots=True)
class RecoveryStep:
    """The request was too large and has been made smaller; it is sent again.

    `step` is `output` (a shorter answer is asked for), `images` (those of older turns replaced by
    text), `compaction`, `results` (large ones cut) or `digest` (made without a model).
    """

    type: ClassVar[str] = "recovery"
    step: Step
    text: str
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True, slots=True)
class OverflowCompactionStarted:
    """What is too large for a request is about to be summarised; `number` of at most `of` times."""

    type: ClassVar[str] = "compacting"
    number: int
    of: int
    tokens: int


@dataclass(frozen=True, slots=True)
class LoopStopped:
    """The model made the same call and got the same result `times` times in a row."""

    type: ClassVar[str] = "loop_stopped"
    name: str
    input: dict[str, Any]
    times: int


@dataclass(frozen=True, slots=True)
class ContextMeasured:
    """The next request: `measured` came from the last usage, `estimated` is what changed since.

    `parts` are estimates by kind: system, tools, memory, messages, results. `reserve` is the
    output that the request asks for. `drift` is the share by which the last request was estimated
    too large (below 0: too small), null before an answer. `forecast` is in how many turns like
    the last ones `threshold`, a share of the window, is reached; null while unknown. `saved` is
    the tokens that guards keep out.
    """

    type: ClassVar[str] = "context_measured"
    tokens: int
    measured: int
    estimated: int
    window: int
    parts: dict[str, int]
    window_source: str = "assumed"
    reserve: int = 0
    drift: float | None = None
    forecast: int | None = None
    saved: int = 0
    threshold: float = 0.8


@dataclass(frozen=True, slots=True)
class ContextChanged:
    """How records stand in the request was changed, from the next request on.

    `changes` are `{"target", "view", "by", "reason"}` for overlays and `{"target", "pinned"}` for
    pins; a target is the id of a record, and `call_id` stands beside it where it is a result.
    """

    type: ClassVar[str] = "context_changed"
    changes: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class RepairApplied:
    """`findings` are `{"code", "where", "action"}`."""

    type: ClassVar[str] = "repair_applied"
    findings: tuple[dict[str, str], ...]


@dataclass(frozen=True, slots=True)
class Pruned:
    """Old results were shortened in what the model sees; `tokens_saved` by each request."""

    type: ClassVar[str] = "pruned"
    results: int
    tokens_saved: int


@dataclass(frozen=True, slots=True)
class MemorySaved:
    """`entries` lines were added to the memory file at `path`."""

    type: ClassVar[str] = "memory_saved"
    path: str
    entries: int


@dataclass(frozen=True, slots=True)
class CompactionStarted:
    """A summary is being made of `messages` messages; `reason` is manual, automatic or overflow."""

    type: ClassVar[str] = "compaction_started"
    reason: str
    tokens: int = 0
    messages: int = 0


@dataclass(frozen=True, slots=True)
class CompactionDelta:
    """A piece of the summary as it is written; "" where an answer begins anew. Provisional."""

    type: ClassVar[str] = "compaction_delta"
    text: str


@dataclass(frozen=True, slots=True)
class CompactionFinished:
    """`summary` stands for `messages_removed` messages from the next request on.

    Always the end of a `CompactionStarted`: where `problem` says why not, nothing was changed.
    """

    type: ClassVar[str] = "compaction_finished"
    tokens_before: int
    tokens_after: int
    messages_removed: int
    summary: str
    reason: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class CompactionUndone:
    """The full view is sent again, `tokens` large."""

    type: ClassVar[str] = "compaction_undone"
    tokens: int


@dataclass(frozen=True, slots=True)
class HandOff:
    """The work turned in circles and was stopped: what was asked, done, and is left."""

    type: ClassVar[str] = "hand_off"
    asked: str
    done: tuple[str, ...]
    left: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ToolsAwaited:
    """The first request waits for MCP `servers` that are still starting, `limit_s` at most."""

    type: ClassVar[str] = "tools_awaited"
    servers: tuple[str, ...]
    limit_s: float


@dataclass(frozen=True, slots=True)
class ToolsChanged:
    """The tools of an MCP server changed, from the next request on; `text` says it and why."""

    type: ClassVar[str] = "tools_changed"
    server: str
    joined: tuple[str, ...]
    left: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class ContextFiles:
    """The files in the system prompt: `{"name", "origin", "raw", "kept"}`, sizes in characters."""

    type: ClassVar[str] = "context_files"
    files: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class TodosChanged:
    """`todos` are `{"text", "status"}`; status is pending, in_progress or completed."""

    type: ClassVar[str] = "todos_changed"
    todos: tuple[dict[str, str], ...]


@dataclass(frozen=True, slots=True)
class QueueChanged:
    """What was typed while the agent worked and has not been handed over yet."""

    type: ClassVar[str] = "queue_changed"
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StorageChanged:
    """Whether everything so far is on disk. `detail` says what is wrong when it is not."""

    type: ClassVar[str] = "storage_changed"
    saved: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Notice:
    """A line for the person about what a directive or a command did."""

    type: ClassVar[str] = "notice"
    text: str


@dataclass(frozen=True, slots=True)
class Debug:
    type: ClassVar[str] = "debug"
    text: str


@dataclass(frozen=True, slots=True)
class ErrorRaised:
    """Something failed. `recoverable`: the session goes on and the prompt may be sent again.

    `offers` are the rungs of `Agent.repair` that are left where the server refused the request.
    """

    type: ClassVar[str] = "error"
    error_class: str
    message: str
    recoverable: bool
    hint: str = ""
    offers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnFinished:
    type: ClassVar[str] = "turn_finished"
    outcome: Literal["done", "interrupted", "failed", "limit"]
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = None


Event: TypeAlias = (
    SessionStarted
    | UserMessage
    | DirectivesChanged
    | RequestSent
    | ThinkingDelta
    | TextDelta
    | ToolInputDelta
    | AssistantMessage
    | ToolStarted
    | PermissionAsked
    | PermissionAnswered
    | ToolOutputChunk
    | ToolFinished
    | RetryScheduled
    | Parked
    | ModelSwitched
    | RecoveryStep
    | OverflowCompactionStarted
    | LoopStopped
    | Alive
    | ContextMeasured
    | ContextChanged
    | Pruned
    | MemorySaved
    | CompactionStarted
    | CompactionDelta
    | CompactionFinished
    | CompactionUndone
    | HandOff
    | ContextFiles
    | ToolsAwaited
    | ToolsChanged
    | TodosChanged
    | QueueChanged
    | StorageChanged
    | RepairApplied
    | Notice
    | Debug
    | ErrorRaised
    | TurnFinished
)

_RENAMED: dict[tuple[str, str], str] = {
    ("error", "error_class"): "class",
    ("model_switched", "old"): "from",
    ("model_switched", "new"): "to",
}


def to_json(event: Event) -> dict[str, Any]:
    """An event as one JSON object: its `type`, then its fields."""
    line: dict[str, Any] = {"type": event.type}
    for f in fields(event):
        value = getattr(event, f.name)
        name = _RENAMED.get((event.type, f.name), f.name)
        line[name] = value.to_json() if isinstance(value, Usage) else value
    return line
