"""Overflow recovery: a request that is too large is made smaller until it fits (O22 to O31).

    output      a shorter answer is asked for, where that is the cause (O28)
    images      those of earlier turns replaced by text; only for a body too large in bytes (O31)
    compaction  at most 3 times a prompt (O22)
    results     oversized results cut, as overlays (O23); before compaction where bytes count
    digest      the conversation in a few lines, made without a model: small enough by itself

Each step is recorded, told, and followed by the same request, made anew; one that has nothing to
do is no step. With the last one the ladder ends: a request that is still too large fails (O24).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol, TypeAlias

from tui.agent.recorder import Recorder
from tui.agent.request_builder import Preparing
from tui.agent.request_events import Compacting, RecoveryStep, Step
from tui.agent.request_repair import Repairing
from tui.context.history import same_model
from tui.context.overrides import MEDIA, Overlay
from tui.context.request_assembly import MARGIN_TOKENS
from tui.core.errors import ProviderError
from tui.core.messages import Usage, blocks_of
from tui.provider.base import Request
from tui.session.records import Record

log = logging.getLogger(__name__)

COMPACTIONS: Final = 3
"""O22: so many in one turn."""

TOO_LARGE: Final = frozenset({"context_overflow", "payload_too_large"})

Reason: TypeAlias = Literal["manual", "automatic", "overflow"]

_LEAST_OUTPUT = 1024
_LEAST_RESULT = 500
"""Tokens: about the 2,000 characters that a result keeps at least."""


class Compactor(Protocol):
    """Puts a summary in the place of the beginning of what the model sees."""

    def due(self) -> bool:
        """Whether the next request is so large that it is time for it."""
        ...

    def check(self) -> None:
        """Raise LimitReachedError where `due` found that it helps no more."""
        ...

    async def compact(self, reason: Reason, *, focus: str = "") -> bool:
        """Compact; returns whether the view got smaller. Nothing is raised but a cancellation."""
        ...

    def digest(self) -> bool:
        """The same with a digest made without a model, down to what was asked last."""
        ...


@dataclass(slots=True)
class Recovery:
    """One turn's way out of requests that are too large. `token_share` is O23's."""

    preparing: Preparing
    recorder: Recorder
    repairing: Repairing
    compactor: Compactor | None
    token_share: float = 0.3
    _compactions: int = 0
    _sent_at: int = 0
    _silent: str = ""
    _done: set[Step] = field(default_factory=set[Step])

    def __post_init__(self) -> None:
        self._sent_at = len(self.recorder.session.records)

    async def before(self) -> None:
        """Compact before a request where it is time, or where the last answer was too much (O30).

        That a request may be sent does not depend on it: a failure is logged (R11). Raises
        LimitReachedError where compacting does not bring the work further.
        """
        records = self.recorder.session.records
        if any(record.type == "assistant" for record in records[self._sent_at :]):
            self._done.clear()  # the last request went through; compactions count by the turn
        try:
            await self._compact_in_time()
        except Exception:
            log.exception("the context could not be compacted; the turn goes on")
        if self.compactor is not None:
            self.compactor.check()
        self._sent_at = len(records)

    async def after(self, error: ProviderError, request: Request, said: str) -> bool:
        """Make the next request smaller than one that failed. False where nothing is left to do.

        `said` is what had been streamed of the answer.
        """
        if error.error_class not in TOO_LARGE:
            return False
        if self._outdated(request):
            return True
        sizes = error.overflow
        before = (sizes and sizes.input_tokens) or self.preparing.ledger.tokens
        if sizes and sizes.limit and sizes.max_tokens is None:
            self.preparing.know_window(sizes.limit)
        bytes_count = error.error_class == "payload_too_large"
        order: tuple[Step, ...] = ("output", "compaction", "results", "digest")
        if bytes_count:
            order = ("images", "results", "compaction", "digest")
        for step in order:
            if text := await self._take(step, error, request):
                await self._tell(step, text, before, error, said)
                return True
        return False

    async def window_full(self) -> bool:
        """Compact after an answer that the window cut short."""
        return await self._compact()

    def _outdated(self, request: Request) -> bool:
        """Whether an error says nothing of the request to come (O29)."""
        fresh = self.recorder.session.records[self._sent_at :]
        changed = request.model != self.preparing.model.id
        return changed or any(record.type == "compaction" for record in fresh)

    async def _take(self, step: Step, error: ProviderError, request: Request) -> str:
        """Try a step. Returns what it did, "" where it had nothing to do."""
        match step:
            case "output":
                return self._less_output(error, request)
            case "compaction":
                return "the conversation so far was summarised" if await self._compact() else ""
            case "images":
                return self._once(step) and self._without_images()
            case "results":
                return self._once(step) and self._short_results()
            case "digest":
                return self._once(step) and self._digest()

    def _once(self, step: Step) -> str:
        if step in self._done:
            return ""
        self._done.add(step)
        return step

    async def _tell(
        self, step: Step, text: str, before: int, error: ProviderError, said: str
    ) -> None:
        self.preparing.look()
        after = self.preparing.ledger.tokens
        self.recorder.append(
            "recovery",
            step=step,
            action=text,
            error_class=error.error_class,
            tokens_before=before,
            tokens_after=after,
            request_id=error.request_id,
            text=said,
        )
        told = RecoveryStep(step, text, before, after)
        await self.recorder.show(told, *self.preparing.measured())

    def _less_output(self, error: ProviderError, request: Request) -> str:
        room = error.overflow.output_room(MARGIN_TOKENS) if error.overflow else None
        if room is None or not _LEAST_OUTPUT <= room < request.max_tokens:
            return ""
        self.preparing.most_output = room
        return f"an answer of at most {room:,} tokens is asked for"

    async def _compact(self) -> bool:
        """One compaction; after one that failed there is no other (O25)."""
        if self.compactor is None or self._compactions >= COMPACTIONS:
            return False
        self._compactions += 1
        held = self.preparing.ledger.tokens
        self.recorder.publish(Compacting(self._compactions, COMPACTIONS, held))
        if await self.compactor.compact("overflow"):
            return True
        self._compactions = COMPACTIONS
        return False

    async def _compact_in_time(self) -> None:
        if self.compactor is None:
            return
        found = silent_overflow(
            self.recorder.session.records, self.preparing.model.id, self.preparing.model.window
        )
        if found and found.id != self._silent:
            self._silent = found.id
            await self._compact()
        elif self.compactor.due():
            await self.compactor.compact("automatic")

    def _without_images(self) -> str:
        states = self.preparing.look().states
        records = self.recorder.session.records
        turn = max((n for n, record in enumerate(records) if record.type == "user"), default=0)
        found = [
            record
            for record in records[:turn]
            if states.get(record.id) in {"full", "cut", "repaired"} and has_media(record)
        ]
        self._overlay([Overlay(r.id, "imageless", "overflow", "too large to send") for r in found])
        count = len(found)
        return f"images of {count} earlier message{'s' * (count != 1)} left out" if found else ""

    def _short_results(self) -> str:
        self.preparing.look()
        items = [
            item
            for item in self.preparing.ledger.items()
            if item.kind == "result" and item.state in {"full", "cut"} and not item.pinned
        ]
        most = cap(
            [item.tokens for item in items], int(self.preparing.model.window * self.token_share)
        )
        found = [item.id for item in items if item.tokens > most]
        why = "too large to send"
        self._overlay([Overlay(id_, "clamped", "overflow", why, tokens=most) for id_ in found])
        count = len(found)
        return f"{count} large result{'s' * (count != 1)} cut" if found else ""

    def _digest(self) -> str:
        text = "the conversation so far was replaced by a digest"
        if self.compactor is not None and self.compactor.digest():
            return text
        if not self.repairing.shrinks("summary_only"):
            return ""
        self.repairing.climb("summary_only", by="overflow")
        return text

    def _overlay(self, changes: Sequence[Overlay]) -> None:
        for change in changes:
            self.recorder.append("overlay", **change.to_json())


def has_media(record: Record) -> bool:
    """Whether a record holds an image or a document."""
    return any(block.get("type") in MEDIA for block in blocks_of(record.data.get("content")))


def cap(sizes: Sequence[int], total: int) -> int:
    """The most that each may take so that all together take `total`; at least _LEAST_RESULT."""
    left, count = total, len(sizes)
    for size in sorted(sizes):
        if size * count > left:
            return max(_LEAST_RESULT, left // count)
        left -= size
        count -= 1
    return max([_LEAST_RESULT, *sizes])


def silent_overflow(records: Sequence[Record], model: str, window: int) -> Record | None:
    """The last answer, where its request was larger than the window and no server said so (O30).

    None where another model gave it, or where a compaction came since (O29).
    """
    for record in reversed(records):
        if record.type == "compaction":
            return None
        if record.type == "assistant":
            usage = Usage.from_json(record.data.get("usage"))
            asked = (
                usage.input_tokens
                + usage.cache_read_input_tokens
                + usage.cache_creation_input_tokens
            )
            by = record.data.get("model")
            same = isinstance(by, str) and same_model(by, model)
            return record if same and asked > window else None
    return None
