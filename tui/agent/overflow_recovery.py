"""Overflow recovery: a request that is too large is made smaller until it fits.

    output      a shorter answer is asked for, where that is the cause
    images      those of earlier turns replaced by text; only for a body too large in bytes
    compaction  at most 3 times a prompt
    results     oversized results cut, as overlays; before compaction where bytes count
    digest      the conversation in a few lines, made without a model: small enough by itself

Each step is recorded, shown, and followed by the same request, made again; one that has nothing to
do is no step. With the last one the ladder ends: a request that is still too large fails.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from msgspec import structs

from tui.agent.agent_context import AgentContext
from tui.agent.compaction import Compactor
from tui.agent.recovery import RequestRepair
from tui.agent.request.image_limits import has_media
from tui.agent.request.state import Prepared, RequestState
from tui.agent.request.view import prepare
from tui.context.history import same_model
from tui.context.request_assembly import MARGIN_TOKENS
from tui.core.dataclass import dataclass, field
from tui.core.errors import LimitReachedError, ProviderError
from tui.core.facts import Notice, OverflowCompactionStarted, Overlay, RecoveryStep, Step
from tui.core.formatting import plural
from tui.core.messages import Usage
from tui.provider.base import Request
from tui.session.records import Record, is_answer, is_prompt

log = logging.getLogger(__name__)

COMPACTIONS: Final = 3
"""Number of compactions in one turn."""

TOO_LARGE: Final = frozenset({"context_overflow", "payload_too_large"})

_TOO_LARGE = "too large to send"
_LEAST_OUTPUT = 1024
_LEAST_RESULT = 500
"""Tokens: about the 2,000 characters that a result keeps at least."""


@dataclass(slots=True)
class OverflowRecovery:
    """The response of one turn to requests that are too large."""

    ctx: AgentContext
    requests: RequestState
    repair: RequestRepair
    compactor: Compactor
    _compactions: int = 0
    _sent_at: int = 0
    _silent: str = ""
    _done: set[Step] = field(default_factory=set[Step])

    def __post_init__(self) -> None:
        self._sent_at = len(self.ctx.records)

    async def before_request(self, prepared: Prepared) -> Prepared:
        """Compact where it is time, or where the last answer was too much. Returns what is prepared
        then.

        That a request may be sent does not depend on it: a failure is logged. Raises
        LimitReachedError where compacting does not bring the work further.
        """
        records = self.ctx.records
        if any(map(is_answer, records[self._sent_at :])):
            self._done.clear()  # the last request went through; compactions count by the turn
        try:
            if await self._compact_in_time():
                prepared = prepare(self.requests)
        except LimitReachedError:
            raise
        except Exception:
            log.exception("couldn't compact the context; the turn continues")
            prepared = prepare(self.requests)
        self._sent_at = len(records)
        return prepared

    async def after_error(self, error: ProviderError, request: Request, streamed: str) -> bool:
        """Make the next request smaller than one that failed. False where nothing can be done.

        `streamed` is what had come of the answer.
        """
        if error.error_class not in TOO_LARGE:
            return False
        if self._outdated(request):
            return True
        sizes = error.overflow
        used = self.ctx.ledger.tokens
        before = (sizes and sizes.input_tokens) or used
        scale = before / max(1, used)  # the server's measure, for what comes after the step, too
        if sizes and sizes.limit and sizes.max_tokens is None:
            self.requests.know_window(sizes.limit)
        bytes_count = error.error_class == "payload_too_large"
        order: tuple[Step, ...] = ("output", "compaction", "results", "digest")
        if bytes_count:
            order = ("images", "results", "compaction", "digest")
        for step in order:
            if text := await self._take(step, error, request):
                prepare(self.requests)
                after = round(self.ctx.ledger.tokens * scale)
                await self._show(RecoveryStep(step, text, before, after), error, streamed)
                return True
        return False

    def _outdated(self, request: Request) -> bool:
        """True if an error says nothing of the request to come."""
        fresh = self.ctx.records[self._sent_at :]
        changed = request.model != self.ctx.link.model.id
        return changed or any(record.type == "compaction" for record in fresh)

    async def _take(self, step: Step, error: ProviderError, request: Request) -> str:
        """Try a step. Returns what it did, "" where it had nothing to do."""
        match step:
            case "output":
                return self._less_output(error, request)
            case "compaction":
                return "summarized the conversation so far" if await self.compact() else ""
            case _ if step in self._done:
                return ""
            case "images":
                done = self._without_images()
            case "results":
                done = self._short_results()
            case "digest":
                done = self._digest()
        self._done.add(step)
        return done

    async def _show(self, done: RecoveryStep, error: ProviderError, streamed: str) -> None:
        of_error = {"error_class": error.error_class, "request_id": error.request_id}
        recorded = structs.replace(done, **of_error, streamed=streamed)
        await self.ctx.recorder.record_synced(recorded, self.requests.meter.measure())

    def _less_output(self, error: ProviderError, request: Request) -> str:
        room = error.overflow.output_room(MARGIN_TOKENS) if error.overflow else None
        if room is None or not _LEAST_OUTPUT <= room < request.max_tokens:
            return ""
        self.requests.most_output = room
        return f"asking for an answer of at most {room:,} tokens"

    async def compact(self) -> bool:
        """One compaction; after one that failed there is no other."""
        if self._compactions >= COMPACTIONS:
            return False
        self._compactions += 1
        self.ctx.publish(
            OverflowCompactionStarted(self._compactions, COMPACTIONS, self.ctx.ledger.tokens)
        )
        if await self.compactor.compact("overflow"):
            return True
        self._compactions = COMPACTIONS
        return False

    async def _compact_in_time(self) -> bool:
        """Compact if it is due; return True if it was tried. The server's word on the window is
        waited for before that."""
        if not self._overflown() and not await self.compactor.due():
            return False
        await self.requests.learned()
        if overflow := self._overflown():
            self._silent = overflow.id
            await self._say_overflown(overflow)
            await self.compact()
            return True
        if due := await self.compactor.due():
            await self.compactor.compact("automatic")
        return due

    def _overflown(self) -> Record | None:
        """The last answer, where its request was too large and nothing was done about it yet."""
        overflow = silent_overflow(
            self.ctx.records, self.ctx.link.model.id, self.ctx.link.model.window
        )
        return overflow if overflow and overflow.id != self._silent else None

    async def _say_overflown(self, answer: Record) -> None:
        model, sent = self.ctx.link.model, Usage.from_json(answer.data.get("usage")).prompt_tokens
        text = f"The last request had {sent:,} tokens; the window of {model.id} is {model.window:,}"
        if model.source == "assumed":
            text += ", as far as Holdfast knows. If it is larger, set context_window to its size"
        await self.ctx.recorder.show(Notice(f"{text}."))

    def _without_images(self) -> str:
        states = prepare(self.requests).view.states
        records = self.ctx.records
        turn = max((n for n, record in enumerate(records) if is_prompt(record)), default=0)
        shown = [r for r in records[:turn] if states.get(r.id) in {"full", "cut", "repaired"}]
        with_images = [record for record in shown if has_media(record)]
        for record in with_images:
            self.ctx.record(Overlay(record.id, "imageless", "overflow", _TOO_LARGE))
        count = plural(len(with_images), "earlier message")
        return f"left out images of {count}" if with_images else ""

    def _short_results(self) -> str:
        prepare(self.requests)
        items = [
            item
            for item in self.ctx.ledger.items()
            if item.kind == "result" and item.state in {"full", "cut"} and not item.pinned
        ]
        share = self.ctx.config.guard.token_share
        most = cap([item.tokens for item in items], int(self.ctx.link.model.window * share))
        large = [item.id for item in items if item.tokens > most]
        for id_ in large:
            self.ctx.record(Overlay(id_, "clamped", "overflow", _TOO_LARGE, tokens=most))
        return f"cut {plural(len(large), 'large result')}" if large else ""

    def _digest(self) -> str:
        text = "replaced the conversation so far with a digest"
        if self.compactor.digest():
            return text
        if not self.repair.shrinks("summary_only"):
            return ""
        self.repair.climb("summary_only", by="overflow")
        return text


def cap(sizes: Sequence[int], total: int) -> int:
    """The most that each may take so that all together take `total`; at least _LEAST_RESULT."""
    remaining, count = total, len(sizes)
    for size in sorted(sizes):
        if size * count > remaining:
            return max(_LEAST_RESULT, remaining // count)
        remaining -= size
        count -= 1
    return max([_LEAST_RESULT, *sizes])


def silent_overflow(records: Sequence[Record], model: str, window: int) -> Record | None:
    """The last answer, where its request was larger than the window and no server complained.

    None where another model gave it, or where a compaction came since.
    """
    for record in reversed(records):
        if record.type == "compaction":
            return None
        if is_answer(record):
            usage = Usage.from_json(record.data.get("usage"))
            by = record.data.get("model")
            same = isinstance(by, str) and same_model(by, model)
            return record if same and usage.prompt_tokens > window else None
    return None
