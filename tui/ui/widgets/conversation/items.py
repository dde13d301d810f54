"""The items of a conversation. Plain data: the presenter fills it, the view draws it.

After changing an item that the view already holds, call `ConversationView.changed(item)`.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from tui.core.dataclass import dataclass, field


@dataclass(slots=True, eq=False)
class UserItem:
    """A prompt of the person. `state` is "queued" until the agent has taken it over.

    `folded` shortens a text of more than 20 lines.
    """

    text: str
    state: Literal["sent", "queued"] = "sent"
    folded: bool = True


@dataclass(slots=True, eq=False)
class AssistantItem:
    """The model's text, Markdown. While `streaming`, text arrives by `ConversationView.stream`."""

    text: str = ""
    streaming: bool = False


@dataclass(slots=True, eq=False)
class ThinkingItem:
    """The model's thinking; folded once it is over, unless the person opened it."""

    text: str = ""
    streaming: bool = False
    folded: bool = True


SHOWS_ALL = "F4 shows all"
"""Text after what a card leaves out: opening a card shows its whole output in the pane."""
SUB_AGENT = "task"
"""The tool whose calls are sub-agents, which can be opened."""
TERMINAL = "terminal"
"""The tool whose calls are steps in a terminal, which can be opened."""
QUESTION = "ask_user"
"""The tool whose calls are questions to the person: their results repeat the questions."""
STOPPED = "stopped"
"""The summary of a person's own command that they stopped."""


@dataclass(slots=True, eq=False)
class ToolItem:
    """One tool call as a card.

    `diff` is a unified diff; `preview` a few lines of output; `tail` the end of what a command has
    printed, while it runs and if it failed; `picture` the last lines of what it draws over several
    of them now. `alone` is true if it is never folded into one row with
    its neighbors.

    `masked` is true if the model sees one line instead of the result, `pinned` if nothing automatic
    removes it, `outdated` if the file that it shows has changed since, `elevated` if nobody was
    asked. `level` is what the sandbox let a command do, "" without one.

    While it runs, `started` is its start time, on the clock of `ConversationView.tick`.
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
    picture: str = ""
    masked: bool = False
    pinned: bool = False
    outdated: bool = False
    elevated: bool = False
    level: str = ""
    alone: bool = False


@dataclass(slots=True, eq=False)
class NoticeItem:
    """A line from the program itself: a retry, an error, a repair, a note. `detail` folds away;
    `hint` follows the text and says what to do; with `can_undo`, a key undoes it."""

    text: str
    kind: Literal["info", "warning", "error", "success"] = "info"
    detail: str = ""
    folded: bool = True
    hint: str = ""
    can_undo: bool = False


@dataclass(slots=True, eq=False)
class AttemptItem:
    """A failed attempt to get an answer; another follows after `delay_s` seconds.

    `received` counts the streamed characters that are void, `text` is their text. That and the
    server's `message` fold away. `alone` as in `ToolItem`.
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


def terminal_of(item: ToolItem) -> str:
    """Return the id of the terminal that a call is about; "" where it isn't known."""
    if item.name != TERMINAL:
        return ""
    named = item.input.get("terminal")
    if isinstance(named, str) and named:
        return named
    first = item.summary.partition(" ")[0]
    return first if first.startswith("job-") else ""


Item: TypeAlias = UserItem | AssistantItem | ThinkingItem | ToolItem | NoticeItem | AttemptItem
