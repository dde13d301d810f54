"""The context: how full it is, and what was done to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, Self, TypeAlias

from msgspec import UNSET, UnsetType, field

from tui.core.facts.base import DurableFact, Kept, RecordFact, WireFact
from tui.core.messages import Block, Usage

OverlayView: TypeAlias = Literal["full", "clamped", "imageless", "pruned", "masked"]


class ContextMeasured(WireFact, frozen=True, tag="context_measured"):
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


class ContextChanged(WireFact, frozen=True, tag="context_changed"):
    """Records stand in another form in the request, from the next one on.

    `changes` are `{"target", "view", "by", "reason"}` for overlays and `{"target", "pinned"}` for
    pins; a target is the id of a record, and `call_id` is beside it where it is a result.
    """

    changes: tuple[dict[str, Any], ...]


class Overlay(RecordFact, frozen=True, tag="overlay"):
    """The form in which the record `target` is to be sent. `by` is "person" or a part of the
    program.

    `age` is how many turns old it was when it was pruned; it is recorded so that the text in a
    cached prefix does not change with every turn. `tokens` is a further limit of a clamped result,
    0 for none. `blocks` are the places of the images that are left out of an imageless record,
    `images` smaller ones by the places of those that they replace; without either, all of them are
    left out. One that is to `wait` counts from the next break on, which then costs no
    more.
    """

    written = "target view by reason age? blocks? images? wait? tokens?"

    target: str
    view: OverlayView
    by: str = "person"
    reason: str = ""
    age: int = 0
    tokens: int = 0
    blocks: tuple[int, ...] = ()
    wait: bool = False
    images: dict[str, Block] = field(default_factory=dict[str, Block])


class Pinned(RecordFact, frozen=True, tag="pin"):
    """A result is kept from being pruned or summarized, or no longer; the last one counts."""

    target: str
    pinned: bool


BREAK_REASONS: Final = (
    "compaction",
    "prune",
    "mask",
    "unmask",
    "pin",
    "repair",
    "redaction",
    "reload",
    "overflow",
    "refused",
    "effort",
    "unexplained",
)
"""The reasons of a break; the last is an alarm, for what nothing in the record explains."""


class ContextBroken(DurableFact, frozen=True, tag="break"):
    """A request changed what was sent before, by the person, the program or the server.

    `reason` is one of `BREAK_REASONS`. `tokens` are written to the cache again which else would be
    read; `thoughts` answers lose their thinking. `cost_usd` is what that costs, None where no price
    is known. In the record, thinking is left out from the record `start` on, "" for all of it,
    except that of the answers `back`, which goes out again; `cause` is the compaction with whose
    undoing the break is void, `message` the first message of the request that differs, -1 for none.

    After the answer it is told once more, as it was billed (see `BreakBilled`): until then
    `billed_usd` is None.
    """

    written = "reason by from=start? back? cause? message tokens thoughts cost_usd"

    reason: str
    by: str
    tokens: int
    thoughts: int
    cost_usd: float | None = None
    billed_usd: float | None = None
    start: Kept[str] = ""
    cause: Kept[str] = ""
    message: Kept[int] = -1
    back: Kept[tuple[str, ...]] = ()


class BreakBilled(RecordFact, frozen=True, tag="break_billed"):
    """The cost of a break by the server's own usage: `tokens` that were written again, for
    `billed_usd`. `cost_usd` was the forecast. It is of the request number `n`."""

    reason: str
    by: str
    n: int
    tokens: int
    thoughts: int
    cost_usd: float | None = None
    billed_usd: float | None = None


class ThinkingBroken(RecordFact, frozen=True, tag="break"):
    """All thinking so far is left out: the server refused it, as it says in `message`, or a new
    frame was made, for `why`."""

    reason: str
    by: str
    message: str | UnsetType = UNSET
    request_id: str | UnsetType | None = UNSET
    why: str | UnsetType = UNSET


class FrameMade(RecordFact, frozen=True, tag="frame"):
    """The beginning of every request from here on: see `tui.context.frame`."""

    written = "system tools layers blocks? facts files room cache_life? sha256 reason version seal"

    system: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    layers: list[list[Any]]
    facts: dict[str, str]
    files: dict[str, str]
    room: list[int]
    sha256: str
    reason: str
    version: str
    seal: str
    cache_life: str = ""
    blocks: tuple[int, ...] = ()


class FrameAwaited(RecordFact, frozen=True, tag="reload"):
    """The frame is made again with the next compaction."""


class ModelNotice(RecordFact, frozen=True, tag="notice"):
    """The model is told something at the end of the conversation: see `tui.context.notices`."""

    kind: str
    text: str
    facts: dict[str, str] | UnsetType = UNSET
    files: dict[str, str] | UnsetType = UNSET
    tools: list[dict[str, Any]] | UnsetType = UNSET
    on: bool | UnsetType = UNSET
    effort: str | UnsetType = UNSET
    pins: list[str] | UnsetType = UNSET
    summary: str | UnsetType = UNSET
    jobs: list[str] | UnsetType = UNSET
    seen: dict[str, Any] | UnsetType = UNSET
    calls: list[str] | UnsetType = UNSET
    again: list[str] | UnsetType = UNSET
    seal: str | UnsetType = UNSET


class ContextFiles(WireFact, frozen=True, tag="context_files"):
    """The files in the system prompt: `{"name", "origin", "raw", "kept"}`, sizes in characters."""

    files: tuple[dict[str, Any], ...]


class FileChangedOutside(WireFact, frozen=True, tag="file_changed_outside"):
    """One file of `FilesChanged`, for programs."""

    path: str
    state: str
    why: str
    calls: list[str]


class FilesChanged(WireFact, frozen=True, tag="files_changed"):
    """Files are not as the model last saw them, which the next request tells it. `files` are
    `{"path", "state", "why", "calls"}`: the state is changed, gone or back (as it was), `why` says
    what is known of it, and `calls` showed it. `text` is all in a sentence.
    """

    files: tuple[dict[str, Any], ...]
    text: str

    def to_lines(self) -> list[dict[str, Any]]:
        return [self.to_json(), *(FileChangedOutside(**file).to_json() for file in self.files)]


INTERRUPTION: Final = "B01"
"""The code of a finding that is no damage: a call whose turn was interrupted has no result."""


class RepairApplied(DurableFact, frozen=True, tag="repair_applied"):
    """`findings` are `{"code", "where", "action"}`. `rung` is the repair level from here on, "" as
    before; `by` who chose it."""

    record_type = "repair"
    written = "rung? findings by?"

    findings: tuple[dict[str, str], ...]
    rung: Kept[str] = ""
    by: Kept[str] = ""


class Pruned(WireFact, frozen=True, tag="pruned"):
    """Old results were shortened in what the model sees; `tokens_saved` by each request."""

    results: int
    tokens_saved: int


class MemorySaved(DurableFact, frozen=True, tag="memory_saved"):
    """`entries` lines were added to the memory file at `path`: of the `notes` that `model` made of
    the conversation up to the record `covers`, those that were new."""

    record_type = "memory"
    written = "path notes added=entries covers model usage"

    path: str
    entries: int
    notes: Kept[Sequence[str]] = ()
    covers: Kept[str] = ""
    model: Kept[str] = ""
    usage: Kept[Usage] = Usage()


class OverflowCompactionStarted(WireFact, frozen=True, tag="compacting"):
    """A request is too large, so a part is summarized: for the time `number` of at most `of`."""

    number: int
    of: int
    tokens: int


class CompactionStarted(WireFact, frozen=True, tag="compaction_started"):
    """A summary is being made of `messages` messages; `reason` is manual, automatic or overflow."""

    reason: str
    tokens: int = 0
    messages: int = 0


class CompactionDelta(WireFact, frozen=True, tag="compaction_delta"):
    """A piece of the summary as it is written; "" where an answer starts over. Provisional."""

    text: str


class CompactionFinished(DurableFact, frozen=True, tag="compaction_finished"):
    """`summary` stands for `messages_removed` messages from the next request on.

    Always the end of a `CompactionStarted`: where `problem` says why not, nothing was changed, and
    nothing is recorded. In the record, `covers` is the last record that it stands for; `block` is
    what the server made of these, bound to a request; `verbatim` what is sent with it, by its exam.
    """

    record_type = "compaction"
    written = (
        "summary messages_removed covers prefix_sha256 tokens_before tokens_after reason model"
        " usage block server bound frame follows verbatim?"
    )

    tokens_before: int
    tokens_after: int
    messages_removed: int
    summary: str
    reason: str = ""
    problem: str = ""
    covers: Kept[str] = ""
    prefix_sha256: Kept[str] = ""
    model: Kept[str] = ""
    usage: Kept[Usage] = Usage()
    block: Kept[Block | UnsetType] = UNSET
    server: Kept[str | UnsetType] = UNSET
    bound: Kept[str | UnsetType] = UNSET
    frame: Kept[str | UnsetType] = UNSET
    follows: Kept[bool | UnsetType] = UNSET
    verbatim: Kept[Sequence[str]] = ()


class AnswerUnused(RecordFact, frozen=True, tag="unused"):
    """Answers to questions for a summary or for the memory that no other record bills: nothing came
    of them, or another model gave the rest."""

    model: str
    usage: Usage
    reason: str


class ExamStarted(WireFact, frozen=True, tag="exam_started"):
    """`model` asks whether a summary holds what it replaces; `mode` is small or full."""

    mode: str
    model: str


class ExamFinished(DurableFact, frozen=True, tag="exam_finished"):
    """A summary that was accepted holds `held` of the `facts` that it was asked for.

    Of the others, `verbatim` are sent with it verbatim. Each fact is {"question", "answer",
    "quote", "given", "held"}. `problem` says why there are none, or not as many as wanted;
    `cost_usd` is None where no price is known.
    """

    record_type = "exam"
    written = "mode model facts problem usage verbatim"

    facts: tuple[dict[str, Any], ...]
    held: int
    verbatim: int
    model: str
    problem: str = ""
    cost_usd: float | None = None
    mode: Kept[str] = ""
    usage: Kept[Usage] = Usage()

    @classmethod
    def completed(cls, *values: Any) -> Self:
        facts, _, *others = values
        return cls(facts, sum(one.get("held") is True for one in facts), *others)


class CompactionUndone(DurableFact, frozen=True, tag="compaction_undone"):
    """The full view is sent again, `tokens` large: `target` and every compaction before it are
    void."""

    record_type = "uncompaction"
    written = "target"

    tokens: int
    target: Kept[str] = ""
