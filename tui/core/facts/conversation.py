"""The conversation: what is said, and how a turn ends."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import field

from tui.core.facts.base import WireFact
from tui.core.messages import Usage


class SessionStarted(WireFact, frozen=True, tag="session_started"):
    session_id: str
    path: str | None
    model: str
    cwd: str
    resumed: bool


class UserMessage(WireFact, frozen=True, tag="user_message"):
    """`text` is all that the model gets, `attached` its end that nobody typed."""

    text: str
    attached: str = ""


class DirectivesChanged(WireFact, frozen=True, tag="directives_changed"):
    """What is on; `effort` is the level that was chosen, "" for the configured one."""

    think: bool
    verbose: bool
    elevated: bool
    effort: str = ""


class AssistantMessage(WireFact, frozen=True, tag="assistant_message"):
    text: str
    stop_reason: str
    usage: Usage
    request_id: str | None = None


class SourcesCited(WireFact, frozen=True, tag="sources_cited"):
    """The pages of the web that the answer before cites: `url` and `title` of each."""

    sources: tuple[dict[str, str], ...]


class TodosChanged(WireFact, frozen=True, tag="todos_changed"):
    """`todos` are `{"text", "status"}`; status is pending, in_progress or completed."""

    todos: tuple[dict[str, str], ...]


class QueueChanged(WireFact, frozen=True, tag="queue_changed"):
    """What was typed while the agent worked and has not been handed over yet."""

    texts: tuple[str, ...]


class TitleChanged(WireFact, frozen=True, tag="title_changed"):
    """The session got a title without being asked for one."""

    title: str


class StorageChanged(WireFact, frozen=True, tag="storage_changed"):
    """Whether everything so far is on disk. `detail` says what is wrong when it is not."""

    saved: bool
    detail: str = ""


class Notice(WireFact, frozen=True, tag="notice"):
    """A line for the person about what a directive or a command did."""

    text: str


class Debug(WireFact, frozen=True, tag="debug"):
    text: str


class ErrorRaised(WireFact, frozen=True, tag="error"):
    """Something failed. `recoverable`: the session continues and the prompt may be sent again.

    `offers` are the rungs of `Agent.repair` that are left where the server refused the request.
    `category` and `explanation` say why the model declined, where it did and says so.
    """

    error_class: str = field(name="class")
    message: str
    recoverable: bool
    hint: str = ""
    offers: tuple[str, ...] = ()
    category: str = ""
    explanation: str = ""


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
