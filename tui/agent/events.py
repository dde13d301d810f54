"""Events: facts in the past tense, published in the order they happened.

The contract of a turn: `UserMessage`; then per request one `RequestSent` per attempt, deltas,
and one `AssistantMessage` (deltas since the last `RequestSent` are void when another follows);
then per call `ToolStarted`, any number of `ToolOutputChunk`, one `ToolFinished` (neither for a
call that an interrupt kept from beginning); at the end one `TurnFinished`, always, whatever
happened. A fact that stands in the record is synced before its event is published. `to_json`
gives the line that `-p --output-format stream-json` prints.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, TypeAlias

from tui.errors import ErrorClass
from tui.messages import Usage


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
    type: ClassVar[str] = "user_message"
    text: str


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
class ThinkingDelta:
    type: ClassVar[str] = "thinking_delta"
    text: str


@dataclass(frozen=True, slots=True)
class TextDelta:
    type: ClassVar[str] = "text_delta"
    text: str


@dataclass(frozen=True, slots=True)
class ToolInputDelta:
    """The model is writing a call: a piece of its JSON. Void like other deltas."""

    type: ClassVar[str] = "tool_input_delta"
    id: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    type: ClassVar[str] = "assistant_message"
    text: str
    stop_reason: str
    usage: Usage


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
    """`text` is what the model gets, at most 8,000 characters of it (O19); `display` a diff.

    `images` are `{"type", "media_type", "bytes", "omitted": true}` without their data (O20).
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
class RetryScheduled:
    type: ClassVar[str] = "retry_scheduled"
    attempt: int
    max_attempts: int
    delay_s: float
    reason: str
    status: int | None
    error_class: ErrorClass


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
class RepairApplied:
    """`findings` are `{"code", "where", "action"}`."""

    type: ClassVar[str] = "repair_applied"
    findings: tuple[dict[str, str], ...]


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
    """Something failed. `recoverable`: the session goes on and the prompt may be sent again."""

    type: ClassVar[str] = "error"
    error_class: str
    message: str
    recoverable: bool
    hint: str = ""


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
    | ContextMeasured
    | ContextChanged
    | TodosChanged
    | QueueChanged
    | StorageChanged
    | RepairApplied
    | Notice
    | Debug
    | ErrorRaised
    | TurnFinished
)

_RENAMED = {"error_class": "class"}


def to_json(event: Event) -> dict[str, Any]:
    """An event as one JSON object: its `type`, then its fields."""
    line: dict[str, Any] = {"type": event.type}
    for f in fields(event):
        value = getattr(event, f.name)
        name = _RENAMED.get(f.name, f.name) if isinstance(event, ErrorRaised) else f.name
        line[name] = value.to_json() if isinstance(value, Usage) else value
    return line
