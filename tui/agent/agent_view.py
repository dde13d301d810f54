"""The model's view of one agent's session: looked at, changed, summarized and priced."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui.agent.agent_context import AgentContext
from tui.agent.compaction import CompactionPreview, Compactor
from tui.agent.recovery import RequestRepair
from tui.agent.request import break_cost
from tui.agent.request.break_cost import ChangePrice
from tui.agent.request.pruning import PruneSchedule, Waiting
from tui.agent.request.side_requests import next_request
from tui.agent.request.state import RequestState
from tui.agent.request.view import prepare
from tui.agent.side_question import MemoryFlush
from tui.agent.token_counter import TokenCounter
from tui.context.overrides import SPEAKING, pending
from tui.context.repair_levels import RepairLevel
from tui.context.token_ledger import Ledger
from tui.context.view import View
from tui.core import facts
from tui.core.dataclass import dataclass
from tui.core.errors import HoldfastError
from tui.core.facts import Fact, Overlay, Pinned
from tui.provider.base import Request
from tui.tools.paging import PageLimits
from tui.tools.recall import RecallParams

if TYPE_CHECKING:
    from tui.agent.recall import RecallSources


@dataclass(frozen=True, slots=True)
class AgentView:
    """The context of one agent. What is changed counts from the next request; a request that is
    under way stays as it was sent."""

    _ctx: AgentContext
    _requests: RequestState
    _pruning: PruneSchedule
    _compactor: Compactor
    _memory: MemoryFlush
    _repair: RequestRepair
    _counter: TokenCounter

    @property
    def ledger(self) -> Ledger:
        """The items of the next request."""
        return self._ctx.ledger

    def view(self) -> View:
        """Return the view that the model will have of the record, without the prompt that
        follows."""
        return prepare(self._requests, prompt_follows=True).view

    def next_request(self, *, prompt_follows: bool = False) -> Request:
        """The request that the record makes; with `prompt_follows`, less the prompt."""
        return next_request(self._requests, prompt_follows=prompt_follows)

    def fixed_texts(self) -> dict[str, str]:
        """The texts of the ledger's items that every request carries, by id."""
        frame = self._requests.frame.current
        texts = {f"system:{name}": text for name, text in frame.layers}
        return texts | {f"tool:{one['name']}": json.dumps(one, indent=2) for one in frame.tools}

    def measure(self) -> facts.ContextMeasured:
        """Measure how full the context is now."""
        return self._requests.meter.measure()

    def waiting(self) -> Waiting:
        """The old results that wait to be pruned, for the next break or until it pays."""
        return self._pruning.waiting(self.view())

    @property
    def pending(self) -> Mapping[str, Overlay]:
        """The changes that wait for the next break, by the records that they concern."""
        return pending(self._ctx.records)

    async def next_break(self) -> facts.ContextBroken | None:
        """The break that the next request causes as things are; None where it extends the last."""
        return await break_cost.next_break(self._requests)

    async def price_of_changes(self, changes: Sequence[Overlay], saved: int) -> ChangePrice:
        """Return the price of sending records in another form, which saves `saved` tokens of each
        request. Takes longer in long conversations, but doesn't hold up the screen."""
        return await break_cost.price_of_changes(self._requests, changes, saved)

    async def overlay(self, changes: Sequence[Overlay]) -> Sequence[Fact]:
        """Change how records stand in what the model sees, at any time.

        Raises HoldfastError where a target is no record of this session that the model sees.
        """
        await self._change(changes)
        self._counter.schedule()
        return self._ctx.events.take()

    async def pin(self, pins: Mapping[str, bool]) -> Sequence[Fact]:
        """Keep records from everything that takes results away by itself, or let them go again.

        When, and errors, as for `overlay`.
        """
        await self._change([Pinned(id_, on) for id_, on in pins.items()])
        return self._ctx.events.take()

    async def _change(self, changes: Sequence[Overlay | Pinned]) -> None:
        ctx = self._ctx
        known: dict[str, dict[str, Any]] = {
            r.id: {"call_id": r.data.get("call_id")} if r.type == "tool_result" else {}
            for r in ctx.records
            if r.type in SPEAKING
        }
        if unknown := [one.target for one in changes if one.target not in known]:
            raise HoldfastError(f"No item {unknown[0]} in this session.")
        for change in changes:
            ctx.record(change)
        prepare(self._requests)
        shown = tuple(change.to_record() | known[change.target] for change in changes)
        await ctx.recorder.show(facts.ContextChanged(shown), self._requests.meter.measure())

    async def outdated(self) -> set[str]:
        """The records that show the model files as they are no longer, by their ids."""
        frame = self._requests.frame
        return await frame.stale.outdated(frame.is_sent)

    async def show_difference(self, record: str) -> str:
        """Show the model with the next request how the file has changed that a record shows.
        Returns its name. Raises HoldfastError where nothing changed, or where that isn't known."""
        frame = self._requests.frame
        return await frame.stale.show_difference(record, frame.is_sent)

    async def plan_compaction(self, focus: str = "") -> CompactionPreview | None:
        """Return what `compact` would keep, summarize and hold on to; None where there is nothing
        to do."""
        return await self._compactor.plan(focus)

    def compact(self, focus: str = "") -> AsyncGenerator[Fact]:
        """Put a summary in the place of the beginning (/compact); yields what happens, as
        `Agent.send`.

        `Agent.cancel` stops it and changes nothing. The last fact is CompactionFinished, whose
        `problem` says why not where it failed; only a notice comes where there is nothing to do.
        """
        return self._ctx.events.run(self._compactor.compact_now, focus)

    async def uncompact(self) -> Sequence[Fact]:
        """Send the full view again. Raises RuntimeError in a turn."""
        self._ctx.refuse_in_turn()
        await self._compactor.undo()
        self._counter.schedule()
        return self._ctx.events.take()

    def flush_memory(self) -> AsyncGenerator[Fact]:
        """Keep in MEMORY.md what is worth it of what is new (/new, on quit); nothing where none is.

        Yields what happens, as `Agent.send`; `Agent.cancel` stops it.
        """
        return self._ctx.events.run(self._memory.flush_now)

    @property
    def memory_pending(self) -> bool:
        """True if `flush_memory` would ask the model at all."""
        return self._memory.pending()

    def reload(self, *, wait: bool = False) -> None:
        """Build the system prompt and the tools again for the next request: a break. With `wait`
        the next compaction does it, which restarts the cache in any case.

        What changed since the session began is then said there, and not at the end.
        """
        if wait:
            self._ctx.record(facts.FrameAwaited())
        else:
            self._requests.frame.renew("reload")

    async def reload_cost(self) -> facts.ContextBroken | None:
        """The break that `reload` would cause; None where there is none."""
        return await break_cost.reload_cost(self._requests)

    def repair_levels(self) -> tuple[RepairLevel, ...]:
        """The levels of the repair ladder that can be tried after a refused request; else none."""
        return self._repair.offers()

    async def repair(self, level: RepairLevel) -> Sequence[Fact]:
        """Send what the model sees on a level of the ladder.

        Recorded; `Agent.go_on` then asks again. Raises RuntimeError while a turn runs.
        """
        self._ctx.refuse_in_turn()
        applied = self._repair.climb(level)
        await self._ctx.recorder.show(applied, self._requests.meter.measure())
        self._counter.schedule()
        return self._ctx.events.take()

    async def recall(
        self, asked: RecallParams, limits: PageLimits, *, for_person: bool = True
    ) -> tuple[str, str]:
        """Search or read what is not in the window: the text, and what it is in a few words.
        Raises ToolError where there is no such message."""
        from tui.agent.recall import recalled  # noqa: PLC0415 - on demand

        return await recalled(self._recall_sources(), asked, limits, for_person=for_person)

    async def blame(self, path: Path, lines: str) -> tuple[str, str]:
        """Tell the model where lines of a file come from: the text, and what it is in a few words.
        `path` is one that it may read. Raises HoldfastError where there is no answer."""
        from tui.agent.recall_blame import blamed  # noqa: PLC0415 - on demand

        return await blamed(self._recall_sources(), path, lines, self._ctx.config.prices)

    def _recall_sources(self) -> RecallSources:
        from tui.agent.recall import RecallSources  # noqa: PLC0415 - on demand

        ctx = self._ctx
        return RecallSources(
            list(ctx.records),
            prepare(self._requests).view.states,
            ctx.workspace.tool_results,
            ctx.session.path,
            ctx.folders,
            ctx.workspace.root,
        )
