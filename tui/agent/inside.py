"""What an agent consists of, put together: each part does one thing, this says who has whom."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tui.agent.compaction import Compactor
from tui.agent.context_overrides import Standing
from tui.agent.deferred_retry import Parking
from tui.agent.directive_state import Switches
from tui.agent.events import Debug, Event
from tui.agent.limits import Spent
from tui.agent.mcp_tools import Joining
from tui.agent.memory_flush import Memory
from tui.agent.parts import Parts
from tui.agent.pruning import Pruning
from tui.agent.recorder import Recorder
from tui.agent.request_builder import Preparing
from tui.agent.request_repair import Repairing
from tui.agent.results import Results
from tui.agent.runtime_state import Settings
from tui.agent.shell_output import Keeping
from tui.agent.tool_dispatch import Dispatcher
from tui.agent.turn import Turns
from tui.context import recall
from tui.core.config import Price
from tui.provider.base import ModelInfo, Provider
from tui.provider.failover import Failover
from tui.tools.base import Tool
from tui.tools.file_access import FileLedger
from tui.tools.limits.pipeline import GuardLimits
from tui.tools.recall import Recall


@dataclass(frozen=True, slots=True)
class Inside:
    """The collaborators of one agent."""

    settings: Settings
    preparing: Preparing
    recorder: Recorder
    standing: Standing
    switches: Switches
    repairing: Repairing
    parking: Parking
    provider: Provider
    memory: Memory
    compactor: Compactor
    pruning: Pruning
    turns: Turns
    joining: Joining
    keeping: Keeping

    async def close(self, parts: Parts) -> None:
        """Stop what runs in the background, sync, and let go of everything; no turn runs.

        Raises StorageError when something recorded could not be saved to the end.
        """
        self.preparing.close()
        try:
            await asyncio.gather(parts.jobs.close(), self.joining.close())
        finally:
            try:
                await parts.session.close()
            finally:
                if parts.kept is not None:
                    await asyncio.to_thread(parts.kept.close)
                await self.provider.aclose()


def put_together(parts: Parts, publish: Callable[[Event], None]) -> Inside:
    """Make them; `publish` takes what they have to tell."""
    settings = Settings(parts.workspace)
    preparing = Preparing(parts)
    recorder = Recorder(parts.session, publish, preparing.ledger.add)
    switches = Switches(parts.session, settings, recorder=recorder, think=preparing.think)
    repairing = Repairing(preparing, recorder)
    provider = Failover(parts.provider, parts.fallbacks, clock=parts.clock, adapt=repairing.adapt)
    parking = Parking(recorder, parts.clock, parts.control, publish, parts.max_wait_s)

    def model() -> ModelInfo:
        return preparing.model

    def price() -> Price | None:
        return parts.config.prices.get(preparing.model.id)

    def limits() -> GuardLimits:
        return GuardLimits.of(parts.config.guard, window=preparing.model.window)

    def spend(cost: Spent) -> None:
        turns.beside += cost

    def debug(text: str) -> None:
        if settings.verbose:
            publish(Debug(text))

    tools = dict(parts.tools)

    def look_up(query: str, first: int, last: int) -> str:
        return recall.answer(parts.session.records, query, first, last)

    def compacted() -> None:
        if Recall.name not in tools:
            tool = Recall(look_up)
            tools[tool.name] = tool
            preparing.offer(tool)

    if recall.has_summary(parts.session.records):
        compacted()
    memory = Memory(
        provider=provider,
        recorder=recorder,
        clock=parts.clock,
        path=parts.workspace.tool_results.parent / "MEMORY.md" if parts.session.path else None,
        enabled=parts.config.compaction.memory_flush,
        model=model,
        look=preparing.look,
        publish=publish,
        spend=spend,
        price=price,
    )
    compactor = Compactor(
        provider=provider,
        recorder=recorder,
        memory=memory,
        config=parts.config.compaction,
        model=model,
        ledger=lambda: preparing.ledger,
        look=preparing.look,
        publish=publish,
        debug=debug,
        spend=spend,
        price=price,
        compacted=compacted,
    )
    joining = Joining(
        parts.servers,
        tools,
        preparing,
        recorder,
        parts.clock,
        publish,
        debug,
        shared=parts.servers_shared,
    )
    pruning = Pruning(
        preparing,
        recorder,
        parts.clock,
        parts.config.prune,
        parts.config.compaction.threshold,
        publish,
        debug,
        lambda: joining.reason,
    )
    turns = Turns(
        parts=parts,
        preparing=preparing,
        switches=switches,
        settings=settings,
        recorder=recorder,
        dispatcher=_dispatcher(parts, recorder, settings, publish, limits, tools=tools),
        repairing=repairing,
        parking=parking,
        provider=provider,
        publish=publish,
        compactor=compactor,
        pruning=pruning,
        joining=joining,
    )
    standing = Standing(parts.session, recorder, preparing)
    keeping = Keeping(parts.workspace.tool_results, limits, parts.kept)
    return Inside(
        settings,
        preparing,
        recorder,
        standing,
        switches,
        repairing,
        parking,
        provider,
        memory,
        compactor,
        pruning,
        turns,
        joining,
        keeping,
    )


def _dispatcher(
    parts: Parts,
    recorder: Recorder,
    settings: Settings,
    publish: Callable[[Event], None],
    limits: Callable[[], GuardLimits],
    *,
    tools: Mapping[str, Tool[Any]],
) -> Dispatcher:
    results = Results(
        recorder=recorder,
        settings=settings,
        clock=parts.clock,
        limits=limits,
        publish=publish,
        kept=parts.kept,
    )
    return Dispatcher(
        tools=tools,
        gate=parts.gate,
        approver=parts.approver,
        recorder=recorder,
        settings=settings,
        clock=parts.clock,
        files=FileLedger(),
        jobs=parts.jobs,
        limits=limits,
        publish=publish,
        results=results,
    )
