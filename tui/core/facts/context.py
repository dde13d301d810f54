"""The context: how full it is, and what was done to it."""

from __future__ import annotations

from typing import Any, Final

from tui.core.facts.base import WireFact


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
    """How records stand in the request was changed, from the next request on.

    `changes` are `{"target", "view", "by", "reason"}` for overlays and `{"target", "pinned"}` for
    pins; a target is the id of a record, and `call_id` is beside it where it is a result.
    """

    changes: tuple[dict[str, Any], ...]


class ContextBroken(WireFact, frozen=True, tag="break"):
    """A request changed what was sent before, by the person, the program or the server.

    `tokens` are written to the cache again; `thoughts` answers lose their thinking. `cost_usd` is
    None where no price is known.
    """

    reason: str
    by: str
    tokens: int
    thoughts: int
    cost_usd: float | None = None


class ContextFiles(WireFact, frozen=True, tag="context_files"):
    """The files in the system prompt: `{"name", "origin", "raw", "kept"}`, sizes in characters."""

    files: tuple[dict[str, Any], ...]


class FilesChanged(WireFact, frozen=True, tag="files_changed"):
    """Files are not as the model last saw them, which the next request tells it. `files` are
    `{"path", "state", "why", "calls"}`: the state is changed, gone or back (as it was), `why` says
    what is known of it, and `calls` showed it. `text` is all in a sentence.
    """

    files: tuple[dict[str, Any], ...]
    text: str


INTERRUPTION: Final = "B01"
"""The code of a finding that is no damage: a call whose turn was interrupted has no result."""


class RepairApplied(WireFact, frozen=True, tag="repair_applied"):
    """`findings` are `{"code", "where", "action"}`."""

    findings: tuple[dict[str, str], ...]


class Pruned(WireFact, frozen=True, tag="pruned"):
    """Old results were shortened in what the model sees; `tokens_saved` by each request."""

    results: int
    tokens_saved: int


class MemorySaved(WireFact, frozen=True, tag="memory_saved"):
    """`entries` lines were added to the memory file at `path`."""

    path: str
    entries: int


class OverflowCompactionStarted(WireFact, frozen=True, tag="compacting"):
    """What is too large for a request is about to be summarized; `number` of at most `of` times."""

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


class CompactionFinished(WireFact, frozen=True, tag="compaction_finished"):
    """`summary` stands for `messages_removed` messages from the next request on.

    Always the end of a `CompactionStarted`: where `problem` says why not, nothing was changed.
    """

    tokens_before: int
    tokens_after: int
    messages_removed: int
    summary: str
    reason: str = ""
    problem: str = ""


class ExamStarted(WireFact, frozen=True, tag="exam_started"):
    """`model` asks whether a summary holds what it replaces; `mode` is small or full."""

    mode: str
    model: str


class ExamFinished(WireFact, frozen=True, tag="exam_finished"):
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


class CompactionUndone(WireFact, frozen=True, tag="compaction_undone"):
    """The full view is sent again, `tokens` large."""

    tokens: int
