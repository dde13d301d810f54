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

from tui.agent.context_events import (
    CompactionDelta,
    CompactionFinished,
    CompactionStarted,
    CompactionUndone,
    ContextChanged,
    ContextFiles,
    ContextMeasured,
    HandOff,
    MemorySaved,
    Pruned,
    RepairApplied,
    ToolsAwaited,
    ToolsChanged,
)
from tui.agent.request_events import (
    Alive,
    Compacting,
    LoopStopped,
    ModelSwitched,
    Parked,
    RecoveryStep,
    RetryScheduled,
)
from tui.core.messages import Usage


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
    | Compacting
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
