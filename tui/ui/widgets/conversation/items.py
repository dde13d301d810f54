"""What a conversation is made of. Plain data: the presenter fills it, the view draws it.

After changing an item that the view already holds, call `ConversationView.changed(item)`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias


@dataclass(slots=True, eq=False)
class UserItem:
    """What the person sent. `state` is "queued" until the agent has taken it over.

    `folded` shortens a text of more than 20 lines.
    """

    text: str
    state: Literal["sent", "queued"] = "sent"
    folded: bool = True


@dataclass(slots=True, eq=False)
class AssistantItem:
    """The model's text, markdown. While `streaming`, text arrives by `ConversationView.stream`."""

    text: str = ""
    streaming: bool = False


@dataclass(slots=True, eq=False)
class ThinkingItem:
    """The model's thinking; folded once it is over, unless the person opened it."""

    text: str = ""
    streaming: bool = False
    folded: bool = True


SHOWS_ALL = "F4 shows all"
"""After what a card leaves out: opening a card puts its whole output into the pane."""
SUB_AGENT = "task"
"""The tool whose calls are sub-agents, which can be looked into."""
QUESTION = "ask_user"
"""The tool whose calls are questions to the person: their results repeat what was asked."""
STOPPED = "stopped"
"""The summary of a command of the person's own that they stopped."""


@dataclass(slots=True, eq=False)
class ToolItem:
    """One tool call as a card. `diff` is a unified diff; `preview` a few lines of output; `tail`
    the end of what a command has printed, while it runs and where it failed. `alone`: it is never
    folded into one row with those of its kind beside it.

    `masked`: the model sees one line in the place of the result; `pinned`: nothing automatic
    takes it away; `outdated`: the file that it shows has changed since; `elevated`: nobody was
    asked; `level`: what the sandbox let a command do, "" where there is none.

    While it runs, `started` is when it began, on the clock that `ConversationView.tick` is told.
    """

    id: str
    name: str
    label: str = ""
    state: Literal[
        "writing", "written", "waiting", "running", "ok", "error", "denied", "interrupted"
    ] = "running"
    seconds: float | None = None
    summary: str = ""
    diff: str = ""
    preview: str = ""
    receipt: dict[str, Any] | None = None
    started: float | None = None
    input: dict[str, Any] = field(default_factory=dict[str, Any])
    folded: bool = True
    tail: str = ""
    masked: bool = False
    pinned: bool = False
    outdated: bool = False
    elevated: bool = False
    level: str = ""
    alone: bool = False


@dataclass(slots=True, eq=False)
class NoticeItem:
    """A line from the program itself: a retry, an error, a repair, a note. `detail` folds away,
    `hint` comes after the text and says what to do."""

    text: str
    kind: Literal["info", "warning", "error", "success"] = "info"
    detail: str = ""
    folded: bool = True
    hint: str = ""


@dataclass(slots=True, eq=False)
class AttemptItem:
    """An attempt to get an answer that failed; another follows after `delay_s` seconds.

    `received` counts the characters that had been streamed and are void, `text` is what they
    said. That and the server's `message` fold away. `alone` as in `ToolItem`.
    """

    attempt: int
    error_class: str
    delay_s: float
    message: str = ""
    status: int | None = None
    request_id: str = ""
    received: int = 0
    text: str = ""
    folded: bool = True
    alone: bool = False


Item: TypeAlias = UserItem | AssistantItem | ThinkingItem | ToolItem | NoticeItem | AttemptItem
