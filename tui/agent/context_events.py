"""Events about the context: how full it is, and what was done to it. See `tui.agent.events`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class ContextMeasured:
    """The next request: `measured` came from the last usage, `estimated` is what changed since.

    `parts` are estimates by kind: system, tools, memory, messages, results. `reserve` is the
    output that the request asks for. `drift` is the share by which the last request was estimated
    too large (below 0: too small), null before an answer. `forecast` is in how many turns like
    the last ones `threshold`, a share of the window, is reached; null while unknown. `saved` is
    the tokens that guards keep out.
    """

    type: ClassVar[str] = "context_measured"
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


@dataclass(frozen=True, slots=True)
class ContextChanged:
    """How records stand in the request was changed, from the next request on.

    `changes` are `{"target", "view", "by", "reason"}` for overlays and `{"target", "pinned"}` for
    pins; a target is the id of a record, and `call_id` stands beside it where it is a result.
    """

    type: ClassVar[str] = "context_changed"
    changes: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class RepairApplied:
    """`findings` are `{"code", "where", "action"}`."""

    type: ClassVar[str] = "repair_applied"
    findings: tuple[dict[str, str], ...]


@dataclass(frozen=True, slots=True)
class Pruned:
    """Old results were shortened in what the model sees; `tokens_saved` by each request."""

    type: ClassVar[str] = "pruned"
    results: int
    tokens_saved: int


@dataclass(frozen=True, slots=True)
class MemorySaved:
    """`entries` lines were added to the memory file at `path`."""

    type: ClassVar[str] = "memory_saved"
    path: str
    entries: int


@dataclass(frozen=True, slots=True)
class CompactionStarted:
    """A summary is being made of `messages` messages; `reason` is manual, automatic or overflow."""

    type: ClassVar[str] = "compaction_started"
    reason: str
    tokens: int = 0
    messages: int = 0


@dataclass(frozen=True, slots=True)
class CompactionDelta:
    """A piece of the summary as it is written; "" where an answer begins anew. Provisional."""

    type: ClassVar[str] = "compaction_delta"
    text: str


@dataclass(frozen=True, slots=True)
class CompactionFinished:
    """`summary` stands for `messages_removed` messages from the next request on.

    Always the end of a `CompactionStarted`: where `problem` says why not, nothing was changed.
    """

    type: ClassVar[str] = "compaction_finished"
    tokens_before: int
    tokens_after: int
    messages_removed: int
    summary: str
    reason: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class CompactionUndone:
    """The full view is sent again, `tokens` large."""

    type: ClassVar[str] = "compaction_undone"
    tokens: int


@dataclass(frozen=True, slots=True)
class HandOff:
    """The work turned in circles and was stopped: what was asked, done, and is left."""

    type: ClassVar[str] = "hand_off"
    asked: str
    done: tuple[str, ...]
    left: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ToolsAwaited:
    """The first request waits for MCP `servers` that are still starting, `limit_s` at most."""

    type: ClassVar[str] = "tools_awaited"
    servers: tuple[str, ...]
    limit_s: float


@dataclass(frozen=True, slots=True)
class ToolsChanged:
    """The tools of an MCP server changed, from the next request on; `text` says it and why."""

    type: ClassVar[str] = "tools_changed"
    server: str
    joined: tuple[str, ...]
    left: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class ContextFiles:
    """The files in the system prompt: `{"name", "origin", "raw", "kept"}`, sizes in characters."""

    type: ClassVar[str] = "context_files"
    files: tuple[dict[str, Any], ...]
