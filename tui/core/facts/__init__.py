"""Facts: what happened, in the past tense, published in the order it happened.

The contract of a turn: `UserMessage`; then per request one `RequestSent` per attempt, deltas,
and one `AssistantMessage` (deltas since the last `RequestSent` are void when another follows);
then per call `ToolStarted`, any number of `ToolOutputChunk`, one `ToolFinished` (neither for a
call that an interrupt kept from beginning; between them, for a `task`, `SubAgentStarted`, any
number of `SubAgentEvent`, one `SubAgentFinished`); at the end one `TurnFinished`, always, whatever
happened. A fact that is in the record is synced before it is published. `to_json`
gives the line that `-p --output-format stream-json` prints.
"""

from __future__ import annotations

from typing import TypeAlias

from tui.core.facts.base import WireFact
from tui.core.facts.calls import (
    CheckpointTaken,
    HookFinished,
    PermissionAnswered,
    PermissionAsked,
    PlanApproved,
    PlanProposed,
    QuestionAnswered,
    QuestionAsked,
    ToolFinished,
    ToolOutputChunk,
    ToolsAwaited,
    ToolsChanged,
    ToolStarted,
)
from tui.core.facts.context import (
    INTERRUPTION,
    CompactionDelta,
    CompactionFinished,
    CompactionStarted,
    CompactionUndone,
    ContextBroken,
    ContextChanged,
    ContextFiles,
    ContextMeasured,
    ExamFinished,
    ExamStarted,
    FilesChanged,
    MemorySaved,
    OverflowCompactionStarted,
    Pruned,
    RepairApplied,
)
from tui.core.facts.conversation import (
    AssistantMessage,
    Debug,
    DirectivesChanged,
    ErrorRaised,
    HandOff,
    LoopStopped,
    Notice,
    QueueChanged,
    SessionStarted,
    SourcesCited,
    StorageChanged,
    TitleChanged,
    TodosChanged,
    TurnFinished,
    UserMessage,
)
from tui.core.facts.request import (
    Alive,
    ModelSwitched,
    Parked,
    RecoveryStep,
    RequestExtended,
    RequestPaid,
    RequestSent,
    RetryScheduled,
    Step,
    TextDelta,
    ThinkingDelta,
    ThinkingDropped,
    ToolInputDelta,
)
from tui.core.facts.work import (
    JobFinished,
    JobStarted,
    SubAgentEvent,
    SubAgentFinished,
    SubAgentStarted,
)

__all__ = [
    "INTERRUPTION",
    "Alive",
    "AssistantMessage",
    "CheckpointTaken",
    "CompactionDelta",
    "CompactionFinished",
    "CompactionStarted",
    "CompactionUndone",
    "ContextBroken",
    "ContextChanged",
    "ContextFiles",
    "ContextMeasured",
    "Debug",
    "DirectivesChanged",
    "ErrorRaised",
    "ExamFinished",
    "ExamStarted",
    "Fact",
    "FilesChanged",
    "HandOff",
    "HookFinished",
    "JobFinished",
    "JobStarted",
    "LoopStopped",
    "MemorySaved",
    "ModelSwitched",
    "Notice",
    "OverflowCompactionStarted",
    "Parked",
    "PermissionAnswered",
    "PermissionAsked",
    "PlanApproved",
    "PlanProposed",
    "Pruned",
    "QuestionAnswered",
    "QuestionAsked",
    "QueueChanged",
    "RecoveryStep",
    "RepairApplied",
    "RequestExtended",
    "RequestPaid",
    "RequestSent",
    "RetryScheduled",
    "SessionStarted",
    "SourcesCited",
    "Step",
    "StorageChanged",
    "SubAgentEvent",
    "SubAgentFinished",
    "SubAgentStarted",
    "TextDelta",
    "ThinkingDelta",
    "ThinkingDropped",
    "TitleChanged",
    "TodosChanged",
    "ToolFinished",
    "ToolInputDelta",
    "ToolOutputChunk",
    "ToolStarted",
    "ToolsAwaited",
    "ToolsChanged",
    "TurnFinished",
    "UserMessage",
    "WireFact",
    "awaits_person",
]

Fact: TypeAlias = (
    SessionStarted
    | UserMessage
    | DirectivesChanged
    | RequestSent
    | ThinkingDelta
    | TextDelta
    | ToolInputDelta
    | AssistantMessage
    | SourcesCited
    | ToolStarted
    | PermissionAsked
    | PermissionAnswered
    | QuestionAsked
    | QuestionAnswered
    | PlanProposed
    | PlanApproved
    | ToolOutputChunk
    | ToolFinished
    | HookFinished
    | CheckpointTaken
    | JobStarted
    | JobFinished
    | SubAgentStarted
    | SubAgentEvent
    | SubAgentFinished
    | RetryScheduled
    | Parked
    | ModelSwitched
    | RecoveryStep
    | OverflowCompactionStarted
    | LoopStopped
    | Alive
    | ContextMeasured
    | ContextChanged
    | ContextBroken
    | RequestExtended
    | RequestPaid
    | ThinkingDropped
    | Pruned
    | MemorySaved
    | CompactionStarted
    | CompactionDelta
    | CompactionFinished
    | ExamStarted
    | ExamFinished
    | CompactionUndone
    | HandOff
    | ContextFiles
    | FilesChanged
    | ToolsAwaited
    | ToolsChanged
    | TodosChanged
    | QueueChanged
    | TitleChanged
    | StorageChanged
    | RepairApplied
    | Notice
    | Debug
    | ErrorRaised
    | TurnFinished
)


def awaits_person(fact: WireFact) -> bool | None:
    """Whether a fact, of a sub-agent too, begins a wait for the person's answer; False where it
    ends one, None where it does neither."""
    match fact.event if isinstance(fact, SubAgentEvent) else fact:
        case PermissionAsked() | QuestionAsked():
            return True
        case PermissionAnswered() | QuestionAnswered():
            return False
        case _:
            return None
