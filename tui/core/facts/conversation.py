"""The conversation: its messages, and the end of a turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, Self, TypeAlias

from msgspec import UNSET, UnsetType, field

from tui.core.facts.base import DurableFact, Kept, RecordFact, WireFact
from tui.core.images import with_words
from tui.core.messages import Block, Usage, text_of

DEFAULT_PROFILE: Final = "default"
"""The name of what there is without a profile."""

GoalState: TypeAlias = Literal[
    "set", "checked", "continued", "paused", "met", "limit", "stuck", "blocked", "stopped"
]


class SessionStarted(WireFact, frozen=True, tag="session_started"):
    session_id: str
    path: str | None
    model: str
    cwd: str
    resumed: bool
    profile: str | UnsetType = UNSET
    """The person's profile, unset where there is none."""


class ProfileUsed(DurableFact, frozen=True, tag="profile"):
    """From here on the requests are made, and paid for, with another profile; "default" is none.
    `before` is the one until then. The profile that a session begins with is in its header."""

    name: str
    before: str


class UserMessage(DurableFact, frozen=True, tag="user_message"):
    """`text` is all that the model gets, `attached` its end that nobody typed.

    In the record, `content` is the text with its images, whose words are `images`; `typed` is what
    was typed, None where nobody did. `command` is of the person's own, if it is one's text; `by`
    says hook where one speaks, goal where the check of one does, every where a prompt is repeated,
    program where that of an imported session speaks.
    """

    record_type = "user"
    written = "content text=typed images? command? by?"

    text: str
    attached: str = ""
    content: Kept[Sequence[Block]] = ()
    typed: Kept[str | UnsetType] = UNSET
    images: Kept[Sequence[str]] = ()
    command: Kept[dict[str, Any]] = field(default_factory=dict[str, Any])
    by: Kept[str] = ""

    @property
    def prompt(self) -> str:
        """The typed text, with a word for each image; "" where nobody typed it."""
        return with_words(self.typed or "", self.images)

    @classmethod
    def completed(cls, *values: Any) -> Self:
        _, attached, content, typed, images, *others = values
        text, own = text_of(content), with_words(typed or "", images)
        if typed is not UNSET and text.startswith(own):
            attached = text.removeprefix(own).lstrip("\n")
        return cls(text, attached, content, typed, images, *others)


class DirectivesChanged(DurableFact, frozen=True, tag="directives_changed"):
    """The directives that are on; `effort` is the level that was chosen, "" for the configured one.
    One that is to `wait` counts from the next break on that restarts the cache."""

    record_type = "directive"
    written = "think verbose elevated effort wait?"

    think: bool
    verbose: bool
    elevated: bool
    effort: str = ""
    wait: Kept[bool] = False


class AssistantMessage(DurableFact, frozen=True, tag="assistant_message"):
    """An answer that is complete.

    In the record, `content` are its blocks. `bound_to` is the hash of the request that it answers,
    where there is thinking in it; `batch` the message batch that it came with.
    """

    record_type = "assistant"
    written = "content model usage stop_reason request_id server message_id? bound_to batch? by?"

    text: str
    stop_reason: str
    usage: Usage
    request_id: str | None = None
    content: Kept[Sequence[Block]] = ()
    model: Kept[str] = ""
    server: Kept[str] = ""
    message_id: Kept[str] = ""
    bound_to: Kept[str | UnsetType] = UNSET
    batch: Kept[str] = ""
    by: Kept[str] = ""

    @classmethod
    def completed(cls, *values: Any) -> Self:
        _, stop_reason, usage, request_id, content, *others = values
        return cls(text_of(content), stop_reason, usage, request_id, content, *others)


class CallsMentioned(RecordFact, frozen=True, tag="assistant"):
    """Calls that stand in the record as an answer's, and were made for what a prompt names."""

    content: list[Block]
    by: str
    stop_reason: str = "tool_use"


class TurnInterrupted(RecordFact, frozen=True, tag="interrupt"):
    """The turn was interrupted: what had been streamed of an answer."""

    reason: str
    text: str
    thinking: str


class Rewound(RecordFact, frozen=True, tag="rewind"):
    """The session goes on from before the record `target`, or without one where another branch of
    its file ended. `left` is the last record of the branch where it was before, with that many more
    `prompts`; `checkpoint` is of the files then, and `files_stay` says that none was restored."""

    written = "target? left checkpoint? prompts? files_stay?"

    target: str
    left: str
    checkpoint: str = ""
    prompts: int = 0
    files_stay: bool = False

    @property
    def restores(self) -> bool:
        """True if files were restored, too."""
        return bool(self.checkpoint) and not self.files_stay


class GoalChanged(DurableFact, frozen=True, tag="goal"):
    """A goal was set, checked or ended; the last one has all that is known of it.

    `state`: set; checked, and not met; continued; paused; or it is over: met, a limit was reached,
    stuck (the same failure again and again), blocked (it can't be checked, or met), stopped by the
    person. `command` checks it, "" where a model does. `round` is the one that it is in, or was
    when it was checked. `rounds`, `usd` (None: no bound) and `seconds` are its limits, `spent_usd`
    (None: not known) and `spent_s` what it took so far; `why` says what is missing, or why it
    ended.

    In the record, `same` counts equal failures in a row, whose hash is `digest`; `model` judged it.
    """

    record_type = "goal"
    written = (
        "state goal command? round rounds usd seconds spent_usd spent_s why? same? digest? model?"
        " usage"
    )

    state: GoalState
    goal: str
    command: str = ""
    round: int = 1
    rounds: int = 0
    usd: float | None = None
    seconds: float = 0.0
    spent_usd: float | None = 0.0
    spent_s: float = 0.0
    why: str = ""
    same: Kept[int] = 0
    digest: Kept[str] = ""
    model: Kept[str] = ""
    usage: Kept[Usage | UnsetType] = UNSET

    @property
    def open(self) -> bool:
        """True if it is worked on, or may be continued as it is."""
        return self.state in {"set", "checked", "continued", "paused"}


class TaskBegun(RecordFact, frozen=True, tag="task"):
    """The session works on a task of a task file from here on."""

    index: int
    group: str
    text: str


class SourcesCited(WireFact, frozen=True, tag="sources_cited"):
    """The pages of the web that the answer before cites: `url` and `title` of each."""

    sources: tuple[dict[str, str], ...]


class TodosChanged(WireFact, frozen=True, tag="todos_changed"):
    """`todos` are `{"text", "status"}`; status is pending, in_progress or completed."""

    todos: tuple[dict[str, str], ...]


class QueueChanged(WireFact, frozen=True, tag="queue_changed"):
    """The texts typed while the agent worked that have not been handed over yet."""

    texts: tuple[str, ...]


class TitleChanged(DurableFact, frozen=True, tag="title_changed"):
    """The session got a title, which nobody asked for where it is told. `model` wrote it, if one
    did."""

    record_type = "title"
    written = "title model? usage"

    title: str
    model: Kept[str] = ""
    usage: Kept[Usage | UnsetType] = UNSET


class SideQuestion(DurableFact, frozen=True, tag="side_question"):
    """The person asked the model something beside the conversation, which knows nothing of it.

    `outcome` is answered, stopped or failed: then `answer` is what had come, and `problem` says
    why there is no more. `n` is the request that it extends. `refused` are the tools that the
    answer called; none ran. With `estimated`, the server didn't say what it used. `seconds` passed
    from the question to its end. In the record, `cache` is what the server has since.
    """

    written = (
        "question answer outcome model server usage n seconds problem? refused? estimated?"
        " cost_usd cache"
    )

    question: str
    answer: str
    outcome: str
    model: str
    usage: Usage
    n: int
    seconds: float
    problem: str = ""
    refused: tuple[str, ...] = ()
    estimated: bool = False
    cost_usd: float | None = None
    server: Kept[str] = ""
    cache: Kept[dict[str, Any]] = field(default_factory=dict[str, Any])


class CacheWarmed(DurableFact, frozen=True, tag="cache_warmed"):
    """A request of one token kept the server's cache over a pause: for the time `times` in it, with
    a `total_usd` of all of them, so that it is kept `until` then (ISO 8601)."""

    written = "times total_usd until model usage cost_usd server seconds cache"

    times: int
    total_usd: float
    until: str
    model: str
    usage: Usage
    cost_usd: float | None = None
    server: Kept[str] = ""
    seconds: Kept[float] = 0.0
    cache: Kept[dict[str, Any]] = field(default_factory=dict[str, Any])


class StorageChanged(WireFact, frozen=True, tag="storage_changed"):
    """Everything so far is on disk, or not: then `detail` says what is wrong."""

    saved: bool
    detail: str = ""


class Notice(WireFact, frozen=True, tag="notice"):
    """A line for the person about what a directive or a command did."""

    text: str


class Note(Notice, DurableFact, frozen=True, tag="notice"):
    """A notice that the record keeps. `every` is the command of a prompt that is repeated from then
    on; "over" where that has ended, and not only its process."""

    record_type = "note"
    written = "text every?"

    every: Kept[str] = ""


class Debug(WireFact, frozen=True, tag="debug"):
    text: str


class ErrorRaised(DurableFact, frozen=True, tag="error"):
    """Something failed. `recoverable`: the session continues and the prompt may be sent again.

    `offers` are the rungs of `Agent.repair` that are left where the server refused the request.
    `category` and `explanation` say why the model declined, where it did and says so. `streamed`
    is what had come of the answer. `unreadable`: it was not of the API's form, twice.
    """

    written = "error_class message hint status request_id text=streamed"

    error_class: str = field(name="class")
    message: str
    recoverable: bool
    hint: str = ""
    offers: tuple[str, ...] = ()
    category: str = ""
    explanation: str = ""
    unreadable: Literal[True] | UnsetType = UNSET
    status: Kept[int | None] = None
    request_id: Kept[str | None] = None
    streamed: Kept[str] = ""

    @classmethod
    def completed(cls, *values: Any) -> Self:
        error_class, message, _, *others = values
        return cls(error_class or "unknown", message, True, *others)


class LoopStopped(WireFact, frozen=True, tag="loop_stopped"):
    """The model made the same call and got the same result `times` times in a row."""

    name: str
    input: dict[str, Any]
    times: int


class HandOff(WireFact, frozen=True, tag="hand_off"):
    """The work turned in circles and was stopped: what was asked, done, and is left."""

    asked: str
    done: tuple[str, ...]
    left: tuple[str, ...]


class TurnFinished(WireFact, frozen=True, tag="turn_finished"):
    outcome: Literal["done", "interrupted", "failed", "limit"]
    usage: Usage = Usage()
    cost_usd: float | None = None
