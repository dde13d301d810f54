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

from tui.core.facts.base import DurableFact, RecordFact, WireFact
from tui.core.facts.calls import (
    CallBegan,
    CheckpointTaken,
    HookFinished,
    PermissionAnswered,
    PermissionAsked,
    PlanApproved,
    PlanProposed,
    ProcessBegan,
    QuestionAnswered,
    QuestionAsked,
    ToolFinished,
    ToolOutputChunk,
    ToolsAwaited,
    ToolsChanged,
    ToolsSwitched,
    ToolStarted,
)
from tui.core.facts.context import (
    BREAK_REASONS,
    INTERRUPTION,
    AnswerUnused,
    BreakBilled,
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
    FileChangedOutside,
    FilesChanged,
    FrameAwaited,
    FrameMade,
    MemorySaved,
    ModelNotice,
    OverflowCompactionStarted,
    Overlay,
    OverlayView,
    Pinned,
    Pruned,
    RepairApplied,
    ThinkingBroken,
)
from tui.core.facts.conversation import (
    DEFAULT_PROFILE,
    AssistantMessage,
    CacheWarmed,
    CallsMentioned,
    Debug,
    DirectivesChanged,
    ErrorRaised,
    GoalChanged,
    HandOff,
    LoopStopped,
    Note,
    Notice,
    ProfileUsed,
    QueueChanged,
    Rewound,
    SessionStarted,
    SideQuestion,
    SourcesCited,
    StorageChanged,
    TaskBegun,
    TitleChanged,
    TodosChanged,
    TurnFinished,
    TurnInterrupted,
    UserMessage,
)
from tui.core.facts.request import (
    Alive,
    FeatureMissing,
    ModelSwitched,
    Parked,
    RecoveryStep,
    RequestExtended,
    RequestMade,
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
    FileChanged,
    JobFinished,
    JobMoved,
    JobStarted,
    SubAgentEvent,
    SubAgentFinished,
    SubAgentStarted,
)

__all__ = [
    "BREAK_REASONS",
    "DEFAULT_PROFILE",
    "INTERRUPTION",
    "Alive",
    "AnswerUnused",
    "AssistantMessage",
    "BreakBilled",
    "CacheWarmed",
    "CallBegan",
    "CallsMentioned",
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
    "DurableFact",
    "ErrorRaised",
    "ExamFinished",
    "ExamStarted",
    "Fact",
    "FeatureMissing",
    "FileChanged",
    "FileChangedOutside",
    "FilesChanged",
    "FrameAwaited",
    "FrameMade",
    "GoalChanged",
    "HandOff",
    "HookFinished",
    "JobFinished",
    "JobMoved",
    "JobStarted",
    "LoopStopped",
    "MemorySaved",
    "ModelNotice",
    "ModelSwitched",
    "Note",
    "Notice",
    "OverflowCompactionStarted",
    "Overlay",
    "OverlayView",
    "Parked",
    "PermissionAnswered",
    "PermissionAsked",
    "Pinned",
    "PlanApproved",
    "PlanProposed",
    "ProcessBegan",
    "ProfileUsed",
    "Pruned",
    "QuestionAnswered",
    "QuestionAsked",
    "QueueChanged",
    "RecordFact",
    "RecoveryStep",
    "RepairApplied",
    "RequestExtended",
    "RequestMade",
    "RequestPaid",
    "RequestSent",
    "RetryScheduled",
    "Rewound",
    "SessionStarted",
    "SideQuestion",
    "SourcesCited",
    "Step",
    "StorageChanged",
    "SubAgentEvent",
    "SubAgentFinished",
    "SubAgentStarted",
    "TaskBegun",
    "TextDelta",
    "ThinkingBroken",
    "ThinkingDelta",
    "ThinkingDropped",
    "TitleChanged",
    "TodosChanged",
    "Told",
    "ToolFinished",
    "ToolInputDelta",
    "ToolOutputChunk",
    "ToolStarted",
    "ToolsAwaited",
    "ToolsChanged",
    "ToolsSwitched",
    "TurnFinished",
    "TurnInterrupted",
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
    | GoalChanged
    | HandOff
    | ContextFiles
    | FilesChanged
    | ToolsAwaited
    | ToolsChanged
    | TodosChanged
    | ProfileUsed
    | QueueChanged
    | TitleChanged
    | SideQuestion
    | CacheWarmed
    | StorageChanged
    | RepairApplied
    | Notice
    | Debug
    | ErrorRaised
    | TurnFinished
)


Told: TypeAlias = Fact | CallBegan | Rewound | TurnInterrupted
"""A fact that a front end may get, live or by a record: the last three by a record alone."""


def awaits_person(fact: WireFact) -> bool | None:
    """True if a fact, of a sub-agent too, begins a wait for the person's answer; False where it
    ends one, None where it does neither."""
    match fact.event if isinstance(fact, SubAgentEvent) else fact:
        case PermissionAsked() | QuestionAsked():
            return True
        case PermissionAnswered() | QuestionAnswered():
            return False
        case _:
            return None
