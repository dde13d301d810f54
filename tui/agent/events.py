"""Events: facts in the past tense, published in the order they happened.

The contract of a turn: `UserMessage`; then per request one `RequestSent` per attempt, deltas,
and one `AssistantMessage` (deltas since the last `RequestSent` are void when another follows);
then per call `ToolStarted`, any number of `ToolOutputChunk`, one `ToolFinished` (neither for a
call that an interrupt kept from beginning; between them, for a `task`, `SubAgentStarted`, any
number of `SubAgentEvent`, one `SubAgentFinished`); at the end one `TurnFinished`, always, whatever
happened. A fact that is in the record is synced before its event is published. `to_json`
gives the line that `-p --output-format stream-json` prints. What the provider tells of a request
that is under way (deltas, retries, another model) is published as it is: those types are its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from msgspec import field

from tui.core.formatting import duration, money, plural, tokens
from tui.core.messages import Usage, list_of, object_of, string_of
from tui.core.text_cleaning import without_colours
from tui.keeper.folder import END_UNKNOWN
from tui.provider.base import (
    Alive,
    ModelSwitched,
    RetryScheduled,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
    WireEvent,
)

Step: TypeAlias = Literal["output", "images", "compaction", "results", "digest"]


CACHE_MISSES: Final = {
    "model_changed": "another model was used",
    "system_changed": "the system prompt changed",
    "tools_changed": "the tools changed",
    "messages_changed": "earlier messages changed",
    "previous_message_not_found": "the server no longer knows the last answer",
    "unavailable": "the server can't say what changed",
}
"""The server's reasons why the cache was missed, in words."""

_MISFITS: Final = {
    "prefix_binding_mismatch": "earlier messages have changed",
    "model_binding_mismatch": "this model can't read another model's thinking",
    "organization_binding_mismatch": "they belong to another organization's key",
    "end_user_binding_mismatch": "they belong to another user",
}


class SessionStarted(WireEvent, frozen=True, tag="session_started"):
    session_id: str
    path: str | None
    model: str
    cwd: str
    resumed: bool


class UserMessage(WireEvent, frozen=True, tag="user_message"):
    """`text` is all that the model gets, `attached` its end that nobody typed."""

    text: str
    attached: str = ""


class DirectivesChanged(WireEvent, frozen=True, tag="directives_changed"):
    """What is on; `effort` is the level that was chosen, "" for the configured one."""

    think: bool
    verbose: bool
    elevated: bool
    effort: str = ""


class RequestSent(WireEvent, frozen=True, tag="request_sent"):
    """`messages` and `tokens` (estimated) are of the request; `attempt` counts from 1."""

    messages: int
    tokens: int
    model: str
    attempt: int


class AssistantMessage(WireEvent, frozen=True, tag="assistant_message"):
    text: str
    stop_reason: str
    usage: Usage
    request_id: str | None = None


class SourcesCited(WireEvent, frozen=True, tag="sources_cited"):
    """The pages of the web that the answer before cites: `url` and `title` of each."""

    sources: tuple[dict[str, str], ...]


class ToolStarted(WireEvent, frozen=True, tag="tool_started"):
    """A call is being looked at. `label` is for the card; running begins after permission.

    `seconds` is how long its command runs already, where an earlier run of the program began it.
    """

    id: str
    name: str
    input: dict[str, Any]
    label: str = ""
    seconds: float = 0.0


class PermissionAsked(WireEvent, frozen=True, tag="permission_asked"):
    id: str
    name: str
    reason: str


class PermissionAnswered(WireEvent, frozen=True, tag="permission_answered"):
    """`answer` is once, session, always, no, allow or deny; `by` says who decided. `level` is what
    the sandbox lets a command do, "" where there is none."""

    id: str
    name: str
    answer: str
    by: str
    reason: str = ""
    level: str = ""


class QuestionAsked(WireEvent, frozen=True, tag="question_asked"):
    """The call `id` puts questions to the person. `questions` are `{"header", "question",
    "choices", "several"}`, choices `{"label", "description"}`. `server` is the MCP server that
    asks, "" for the model."""

    id: str
    name: str
    questions: tuple[dict[str, Any], ...]
    server: str = ""


class PlanProposed(WireEvent, frozen=True, tag="plan_proposed"):
    """The call `id` presents a plan, in Markdown; `question_asked` comes with it."""

    id: str
    title: str
    plan: str


class PlanApproved(WireEvent, frozen=True, tag="plan_approved"):
    """The person approved the plan of the call `id`: `plan` is how they left it, `mode` that in
    which it is carried out, `path` the file where it is kept, "" for none."""

    id: str
    title: str
    plan: str
    mode: str
    path: str


class QuestionAnswered(WireEvent, frozen=True, tag="question_answered"):
    """`answers` are `{"header", "chosen", "text"}`: labels, and the person's own words; neither
    where a question was not answered. `by` is person, or default where nobody can be asked."""

    id: str
    name: str
    answers: tuple[dict[str, Any], ...]
    by: str
    server: str = ""


class ToolOutputChunk(WireEvent, frozen=True, tag="tool_output"):
    """A tool printed something: for the person, with its colors, which JSON has not."""

    id: str
    text: str

    def to_json(self) -> dict[str, Any]:
        return super().to_json() | {"text": without_colours(self.text)}


class ToolFinished(WireEvent, frozen=True, tag="tool_finished"):
    """`text` is what the model gets, at most 8,000 characters of it; `display` a diff.

    `images` are `{"type", "media_type", "bytes", "omitted": true}` without their data.
    """

    id: str
    name: str
    is_error: bool
    seconds: float
    receipt: dict[str, Any] | None
    summary: str = ""
    text: str = ""
    display: str = ""
    images: tuple[dict[str, Any], ...] = ()


class HookFinished(WireEvent, frozen=True, tag="hook_finished"):
    """A hook of the person's ran: `event` is what it ran for, `call_id` the call, "" for none.
    `outcome` is ok, blocked, failed, timeout or cancelled; `text` is why, where that is not ok;
    else what it printed that is no answer."""

    event: str
    command: str
    outcome: str
    exit_code: int | None
    seconds: float
    text: str = ""
    call_id: str = ""


class JobStarted(WireEvent, frozen=True, tag="job_started"):
    """A command runs in the background. `call_id` is of the call that started it, or of the
    person's own command; `moved_by` is person where it ran in front before, else ""."""

    job: str
    call_id: str
    command: str
    pid: int
    moved_by: str = ""

    @property
    def summary(self) -> str:
        """In words, without a period."""
        moved = "moved to the background" if self.moved_by else "started in the background"
        return f"{self.job} {moved}: {self.command}"


class CheckpointTaken(WireEvent, frozen=True, tag="checkpoint"):
    """A call changed files that git doesn't ignore: how many. `id` is the checkpoint after it."""

    id: str
    files: int
    call_id: str


class JobFinished(WireEvent, frozen=True, tag="job_finished"):
    """A background command ended, in a turn or between two. `state` is as `exit code 1`, `killed
    by SIGTERM` or `stopped`; `stopped_by` is person, model or program, "" where it ended by itself.
    `path` is the file with its whole output, "" where there is none, `text` its last lines."""

    job: str
    call_id: str
    command: str
    exit_code: int | None
    state: str
    stopped_by: str
    seconds: float
    path: str
    bytes: int
    text: str = ""

    @classmethod
    def of_record(cls, data: Mapping[str, Any]) -> JobFinished:
        """What a `job_ended` record says; what it lacks is empty."""
        return cls(
            job=str(data.get("job") or "job"),
            call_id=str(data.get("call_id") or ""),
            command=str(data.get("command") or ""),
            exit_code=data.get("exit_code"),
            state=str(data.get("state") or "ended"),
            stopped_by=str(data.get("stopped_by") or ""),
            seconds=data.get("seconds") or 0.0,
            path=str(data.get("path") or ""),
            bytes=data.get("bytes") or 0,
            text=str(data.get("text") or ""),
        )

    @property
    def summary(self) -> str:
        """In words, without a period."""
        took = duration(self.seconds)
        if self.stopped_by:
            by = {"person": "stopped by you", "model": "stopped by the model"}
            how = by.get(self.stopped_by, "stopped with the session")
            return f"{self.job} {how} after {took}: {self.command}"
        if self.state == END_UNKNOWN:
            return f"{self.job}: its keeper was killed, end unknown: {self.command}"
        verb = "finished" if self.exit_code == 0 else "failed"
        return f"{self.job} {verb}, {self.state}, {took}: {self.command}"


class SubAgentStarted(WireEvent, frozen=True, tag="subagent_started"):
    """The call `id` of the tool `task` has its sub-agent, which works in a session of its own:
    `path` is its file, null where it is kept in memory. `resumed`: it continues an earlier one.
    """

    id: str
    session_id: str
    path: str | None
    agent: str = field(name="name")
    description: str
    model: str
    resumed: bool = False


class SubAgentEvent(WireEvent, frozen=True, tag="subagent_event"):
    """What happened in the session of the sub-agent that the call `id` started: one of these
    events, but for what streams, what tools print, and how full its context is."""

    id: str
    agent: str = field(name="name")
    event: WireEvent

    def to_json(self) -> dict[str, Any]:
        head = {"type": self.type, "id": self.id, "name": self.agent}
        return head | {"event": self.event.to_json()}


class SubAgentFinished(WireEvent, frozen=True, tag="subagent_finished"):
    """How it ended: done, failed, limit, stopped (by the person) or interrupted (with the turn).
    `usage` and `cost_usd` are of this run; cost is null where a price is not known."""

    id: str
    session_id: str
    agent: str = field(name="name")
    outcome: str
    calls: int
    requests: int
    usage: Usage = Usage()
    cost_usd: float | None = None


class Parked(WireEvent, frozen=True, tag="parked"):
    """The server wants to see the request no sooner than `until` (ISO 8601, UTC); it is sent then.

    Told again when a parked session is opened. The turn continues by itself, or by `Agent.go_on`.
    """

    until: str
    reason: str
    error_class: str = "rate_limit"
    status: int | None = None


class RecoveryStep(WireEvent, frozen=True, tag="recovery"):
    """The request was too large and has been made smaller; it is sent again.

    `step` is `output` (a shorter answer is asked for), `images` (those of older turns replaced by
    text), `compaction`, `results` (large ones cut) or `digest` (made without a model).
    """

    step: Step
    text: str
    tokens_before: int
    tokens_after: int


class OverflowCompactionStarted(WireEvent, frozen=True, tag="compacting"):
    """What is too large for a request is about to be summarized; `number` of at most `of` times."""

    number: int
    of: int
    tokens: int


class LoopStopped(WireEvent, frozen=True, tag="loop_stopped"):
    """The model made the same call and got the same result `times` times in a row."""

    name: str
    input: dict[str, Any]
    times: int


class ContextMeasured(WireEvent, frozen=True, tag="context_measured"):
    """The next request: `measured` came from the last usage, or from the server's own count of the
    request; `estimated` is what changed since.

    `parts` are estimates by kind: system, tools, memory, messages, results. `reserve` is the
    output that the request asks for. `drift` is the share by which what was measured last had been
    estimated too large (below 0: too small), null before that. `forecast` is in how many turns like
    the last ones `threshold`, a share of the window, is reached; null while unknown. `saved` is
    the tokens that guards keep out. `cache_share` is how much of the last request came from the
    cache, null before an answer. `cost_usd` is of the whole session, null if a price is unknown.
    """

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
    cache_share: float | None = None
    cost_usd: float | None = None


class ContextChanged(WireEvent, frozen=True, tag="context_changed"):
    """How records stand in the request was changed, from the next request on.

    `changes` are `{"target", "view", "by", "reason"}` for overlays and `{"target", "pinned"}` for
    pins; a target is the id of a record, and `call_id` is beside it where it is a result.
    """

    changes: tuple[dict[str, Any], ...]


class ContextBroken(WireEvent, frozen=True, tag="break"):
    """A request changed what was sent before, by the person, the program or the server.

    `tokens` are written to the cache again; `thoughts` answers lose their thinking. `cost_usd` is
    None where no price is known.
    """

    reason: str
    by: str
    tokens: int
    thoughts: int
    cost_usd: float | None = None

    @property
    def price(self) -> str:
        """What it costs, as part of a sentence."""
        lost = f", {plural(self.thoughts, 'thought')} left out" if self.thoughts else ""
        usd = f" (≈ {money(self.cost_usd)})" if self.cost_usd is not None else ""
        return f"{self.tokens:,} tokens written again once{usd}{lost}"

    @property
    def text(self) -> str:
        """One line for the person."""
        return f"Break ({self.reason}): {self.price}."


class RequestExtended(WireEvent, frozen=True, tag="request_extended"):
    """An answer came: its request was number `n`, and extends number `last` to the same model.

    `broken` is why it does not, "" where it does. `tokens` are those of the prompt, `added` how
    many more than in the last (None where that is not known), `cached` those that came from the
    cache. `cache_miss` is the server's reason why the others did not, "" where it names none. Of
    the `output` that many tokens were `thought`, where the server says so.
    """

    n: int
    last: int | None
    broken: str
    tokens: int
    added: int | None = field(name="added_tokens")
    cached: int = field(name="cache")
    cache_miss: str = ""
    missed_tokens: int = 0
    thought: int = 0
    output: int = 0

    @property
    def text(self) -> str:
        """One line for the person."""
        parts = [f"#{self.n}"]
        if self.added is not None:
            parts[0] += f" {self.added:+,} tokens"
        if self.last is not None:
            mark = f"breaks with #{self.last} ({self.broken})" if self.broken else ""
            parts.append(mark or f"extends #{self.last} ✓")
        parts.append(f"cache {tokens(self.cached)}/{tokens(self.tokens)}")
        if self.cache_miss:
            lost = f" ({tokens(self.missed_tokens)} tokens)" if self.missed_tokens else ""
            parts.append(f"{CACHE_MISSES.get(self.cache_miss, self.cache_miss)}{lost}")
        if self.thought:
            parts.append(f"thought {tokens(self.thought)} of {tokens(self.output)}")
        return " · ".join(parts)


class RequestPaid(WireEvent, frozen=True, tag="cost"):
    """What the last request cost, and the session with it, in US dollars; null where a price is
    not known."""

    usd: float | None
    total_usd: float | None


class ThinkingDropped(WireEvent, frozen=True, tag="thinking_dropped"):
    """The server did not use earlier thinking, or used it though it stood in another place.

    `dropped` and `allowed` count the thoughts by the server's reasons.
    """

    dropped: dict[str, int]
    allowed: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        found = super().to_json()
        dropped = object_of(found["dropped"])
        return found | {"count": sum(dropped.values()), "reason": ", ".join(dropped)}

    @property
    def text(self) -> str:
        """A sentence or two for the person."""
        said = [
            f"The server {verb} {plural(count, 'thought')}: {_MISFITS.get(reason, reason)}."
            for verb, counts in (
                ("dropped", self.dropped),
                ("accepted, with a remark,", self.allowed),
            )
            for reason, count in counts.items()
        ]
        return " ".join(said)


class RepairApplied(WireEvent, frozen=True, tag="repair_applied"):
    """`findings` are `{"code", "where", "action"}`."""

    findings: tuple[dict[str, str], ...]


class Pruned(WireEvent, frozen=True, tag="pruned"):
    """Old results were shortened in what the model sees; `tokens_saved` by each request."""

    results: int
    tokens_saved: int


class MemorySaved(WireEvent, frozen=True, tag="memory_saved"):
    """`entries` lines were added to the memory file at `path`."""

    path: str
    entries: int


class CompactionStarted(WireEvent, frozen=True, tag="compaction_started"):
    """A summary is being made of `messages` messages; `reason` is manual, automatic or overflow."""

    reason: str
    tokens: int = 0
    messages: int = 0


class CompactionDelta(WireEvent, frozen=True, tag="compaction_delta"):
    """A piece of the summary as it is written; "" where an answer starts over. Provisional."""

    text: str


class CompactionFinished(WireEvent, frozen=True, tag="compaction_finished"):
    """`summary` stands for `messages_removed` messages from the next request on.

    Always the end of a `CompactionStarted`: where `problem` says why not, nothing was changed.
    """

    tokens_before: int
    tokens_after: int
    messages_removed: int
    summary: str
    reason: str = ""
    problem: str = ""


class ExamStarted(WireEvent, frozen=True, tag="exam_started"):
    """`model` asks whether a summary holds what it replaces; `mode` is small or full."""

    mode: str
    model: str


class ExamFinished(WireEvent, frozen=True, tag="exam_finished"):
    """A summary that was accepted holds `held` of the `facts` that it was asked for.

    Of the others, `verbatim` are sent with it verbatim. Each fact is {"question", "answer",
    "quote", "given", "held"}. `problem` says why there are none, or not as many as wanted;
    `cost_usd` is None where no price is known.
    """

    facts: tuple[dict[str, Any], ...]
    held: int
    verbatim: int
    model: str
    problem: str = ""
    cost_usd: float | None = None

    @classmethod
    def of_record(cls, data: Mapping[str, Any]) -> ExamFinished:
        """What an `exam` record says; what it lacks is empty."""
        facts = tuple(map(object_of, list_of(data.get("facts"))))
        return cls(
            facts,
            sum(fact.get("held") is True for fact in facts),
            data.get("verbatim") or 0,
            string_of(data.get("model")),
            string_of(data.get("problem")),
        )

    @property
    def text(self) -> str:
        """One line for the person."""
        count, problem = len(self.facts), self.problem.rstrip(".")
        if not count:
            return f"The summary wasn't checked: {problem}."
        lost, usd = count - self.held, money(self.cost_usd) if self.cost_usd else ""
        parts = [f"{self.held} of {plural(count, 'fact')} kept"]
        parts += [f"{self.verbatim} more sent verbatim"] if self.verbatim else []
        parts += [f"{lost - self.verbatim} lost for lack of room"] if lost > self.verbatim else []
        text = f"Summary checked: {', '.join(parts)}{f' ({usd})' if usd else ''}."
        return f"{text} Not all of it was checked: {problem}." if problem else text

    @property
    def detail(self) -> str:
        """The facts, first those that the summary lacks."""
        lines: list[str] = []
        for held, mark in ((False, "✗"), (True, "✓")):
            for fact in self.facts:
                if fact.get("held") is held:
                    lines.append(f"{mark} {fact.get('question')} — {fact.get('answer')}")
                    lines += [] if held else [f"  “{fact.get('quote')}”"]
        return "\n".join(lines)


class CompactionUndone(WireEvent, frozen=True, tag="compaction_undone"):
    """The full view is sent again, `tokens` large."""

    tokens: int


class HandOff(WireEvent, frozen=True, tag="hand_off"):
    """The work turned in circles and was stopped: what was asked, done, and is left."""

    asked: str
    done: tuple[str, ...]
    left: tuple[str, ...]


class ToolsAwaited(WireEvent, frozen=True, tag="tools_awaited"):
    """The first request waits for MCP `servers` that are still starting, `limit_s` at most."""

    servers: tuple[str, ...]
    limit_s: float


class ToolsChanged(WireEvent, frozen=True, tag="tools_changed"):
    """The tools of an MCP server changed, from the next request on; `text` says it and why."""

    server: str
    joined: tuple[str, ...]
    left: tuple[str, ...]
    text: str


class ContextFiles(WireEvent, frozen=True, tag="context_files"):
    """The files in the system prompt: `{"name", "origin", "raw", "kept"}`, sizes in characters."""

    files: tuple[dict[str, Any], ...]


class FilesChanged(WireEvent, frozen=True, tag="files_changed"):
    """Files are not as the model last saw them, which the next request tells it. `files` are
    `{"path", "state", "why", "calls"}`: the state is changed, gone or back (as it was), `why` says
    what is known of it, and `calls` showed it. `text` is all in a sentence.
    """

    files: tuple[dict[str, Any], ...]
    text: str


class TodosChanged(WireEvent, frozen=True, tag="todos_changed"):
    """`todos` are `{"text", "status"}`; status is pending, in_progress or completed."""

    todos: tuple[dict[str, str], ...]


class QueueChanged(WireEvent, frozen=True, tag="queue_changed"):
    """What was typed while the agent worked and has not been handed over yet."""

    texts: tuple[str, ...]


class TitleChanged(WireEvent, frozen=True, tag="title_changed"):
    """The session got a title without being asked for one."""

    title: str


class StorageChanged(WireEvent, frozen=True, tag="storage_changed"):
    """Whether everything so far is on disk. `detail` says what is wrong when it is not."""

    saved: bool
    detail: str = ""


class Notice(WireEvent, frozen=True, tag="notice"):
    """A line for the person about what a directive or a command did."""

    text: str


class Debug(WireEvent, frozen=True, tag="debug"):
    text: str


class ErrorRaised(WireEvent, frozen=True, tag="error"):
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


class TurnFinished(WireEvent, frozen=True, tag="turn_finished"):
    outcome: Literal["done", "interrupted", "failed", "limit"]
    usage: Usage = Usage()
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


def awaits_person(event: WireEvent) -> bool | None:
    """Whether an event, of a sub-agent too, begins a wait for the person's answer; False where it
    ends one, None where it does neither."""
    match event.event if isinstance(event, SubAgentEvent) else event:
        case PermissionAsked() | QuestionAsked():
            return True
        case PermissionAnswered() | QuestionAnswered():
            return False
        case _:
            return None
