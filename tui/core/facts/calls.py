"""The model's calls, and the questions that they ask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from msgspec import UNSET, UnsetType, field

from tui.core.facts.base import DurableFact, Kept, RecordFact, WireFact
from tui.core.messages import Block, text_of
from tui.core.text_cleaning import without_colours


class ToolStarted(WireFact, frozen=True, tag="tool_started"):
    """A call is being looked at. `label` is for the card; running begins after permission.

    `seconds` is how long its command runs already, where an earlier run of the program began it.
    """

    id: str
    name: str
    input: dict[str, Any]
    label: str = ""
    seconds: float = 0.0


class PermissionAsked(WireFact, frozen=True, tag="permission_asked"):
    id: str
    name: str
    reason: str


class PermissionAnswered(DurableFact, frozen=True, tag="permission_answered"):
    """`answer` is once, session, always, no, allow or deny; `by` says who decided. `level` is what
    the sandbox lets a command do, "" where there is none; `subject` what was asked about."""

    record_type = "permission"
    written = "call_id=id tool=name subject answer by reason level?"

    id: str
    name: str
    answer: str
    by: str
    reason: str = ""
    level: str = ""
    subject: Kept[str] = ""


class QuestionAsked(WireFact, frozen=True, tag="question_asked"):
    """The call `id` puts questions to the person. `questions` are `{"header", "question",
    "choices", "several"}`, choices `{"label", "description"}`. `server` is the MCP server that
    asks, "" for the model."""

    id: str
    name: str
    questions: tuple[dict[str, Any], ...]
    server: str = ""


class QuestionAnswered(WireFact, frozen=True, tag="question_answered"):
    """`answers` are `{"header", "chosen", "text"}`: labels, and the person's own words; neither
    where a question was not answered. `by` is person, or default where nobody can be asked."""

    id: str
    name: str
    answers: tuple[dict[str, Any], ...]
    by: str
    server: str = ""


class PlanProposed(WireFact, frozen=True, tag="plan_proposed"):
    """The call `id` presents a plan, in Markdown; `question_asked` comes with it."""

    id: str
    title: str
    plan: str


class PlanApproved(WireFact, frozen=True, tag="plan_approved"):
    """The person approved the plan of the call `id`: `plan` is how they left it, `mode` that in
    which it is carried out, `path` the file where it is kept, "" for none."""

    id: str
    title: str
    plan: str
    mode: str
    path: str


class ToolOutputChunk(WireFact, frozen=True, tag="tool_output"):
    """A tool printed something: for the person, with its colors, which JSON has not. A carriage
    return in the text starts its line over, as on a terminal. `picture` are the last lines of what
    is drawn over several of them now, for a screen alone."""

    id: str
    text: str
    picture: str = ""

    def to_json(self) -> dict[str, Any]:
        data = super().to_json() | {"text": without_colours(self.text)}
        del data["picture"]
        return data


class ToolFinished(DurableFact, frozen=True, tag="tool_finished"):
    """`text` is what the model gets, at most 8,000 characters of it; `display` a diff.

    `images` are `{"type", "media_type", "bytes", "omitted": true}` without their data. In the
    record, `content` is all that the model gets, `details` what the call did to files.
    """

    record_type = "tool_result"
    written = "call_id=id name content is_error seconds receipt summary display details"

    id: str
    name: str
    is_error: bool
    seconds: float
    receipt: dict[str, Any] | None
    summary: str = ""
    text: str = ""
    display: str = ""
    images: tuple[dict[str, Any], ...] = ()
    content: Kept[Sequence[Block]] = ()
    details: Kept[dict[str, Any]] = field(default_factory=dict[str, Any])

    @classmethod
    def completed(cls, *values: Any) -> Self:
        id_, name, failed, seconds, receipt, summary, _, *others = values
        content, details = others[-2:]
        partial = details.get("partial") if summary == "interrupted" else None
        text = partial if isinstance(partial, str) else text_of(content)
        return cls(id_, name, failed, seconds, receipt, summary, text, *others)


class HookFinished(DurableFact, frozen=True, tag="hook_finished"):
    """A hook of the person's ran: `event` is what it ran for, `call_id` the call, "" for none.
    `outcome` is ok, blocked, failed, timeout or cancelled; `text` is why, where that is not ok;
    else what it printed that is no answer."""

    record_type = "hook"
    written = "event command outcome exit_code seconds text call_id"

    event: str
    command: str
    outcome: str
    exit_code: int | None
    seconds: float
    text: str = ""
    call_id: str = ""


class CheckpointTaken(DurableFact, frozen=True, tag="checkpoint"):
    """A call changed files that git doesn't ignore: how many. `id` is the checkpoint after it.

    The record has those that were taken for another reason, too: `by` names it, `prompt` is the
    record of the prompt that one was taken for.
    """

    written = "checkpoint=id files by call_id? prompt?"

    id: str
    files: int
    call_id: str
    by: Kept[str] = "call"
    prompt: Kept[str] = ""


class CallBegan(RecordFact, frozen=True, tag="intent"):
    """A call that is allowed is about to run, with an `effect`. A write names the file, and what
    it held before (None: there was none); one of several `files` all of them."""

    call_id: str
    tool: str
    effect: str
    args_sha256: str
    label: str
    path: str | UnsetType = UNSET
    before_sha256: str | UnsetType | None = UNSET
    files: list[dict[str, Any]] | UnsetType = UNSET


class ProcessBegan(RecordFact, frozen=True, tag="job"):
    """A command runs as a group of processes, by which it is found again after a crash."""

    call_id: str
    pid: int
    born: str | None
    command: str


class ToolsSwitched(RecordFact, frozen=True, tag="mcp"):
    """The tools of MCP servers that the model does not get, by the server, from here on."""

    off: dict[str, list[str]]


class ToolsAwaited(WireFact, frozen=True, tag="tools_awaited"):
    """The first request waits for MCP `servers` that are still starting, `limit_s` at most."""

    servers: tuple[str, ...]
    limit_s: float


class ToolsChanged(WireFact, frozen=True, tag="tools_changed"):
    """The tools of an MCP server changed, from the next request on; `text` says it and why."""

    server: str
    joined: tuple[str, ...]
    left: tuple[str, ...]
    text: str
