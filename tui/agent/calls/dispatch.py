"""From the tool calls of an answer to one result for each.

Every call leaves exactly one result in the record, whatever happens: a failure is a result with
is_error, a refusal too, and an interrupt closes what is still open. `stations` takes a call from
one to the next; it is loaded with the first call, since many prompts have none.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import cast

from tui.agent.calls.state import CallContext, PendingCall
from tui.agent.interrupted_work import InterruptedWork, calls_of, interrupted_work
from tui.agent.pause import TurnPausedError
from tui.core.dataclass import dataclass, field
from tui.core.messages import Block, as_meant, blocks_of, string_of, tool_calls

log = logging.getLogger(__name__)


@dataclass(slots=True)
class ToolDispatcher:
    """Carries out the tool calls of one agent."""

    shared: CallContext
    _ids: set[str] = field(default_factory=set[str])
    """The ids of all calls of the session."""

    def __post_init__(self) -> None:
        for record in self.shared.ctx.records:
            if record.type == "assistant":
                calls = tool_calls(blocks_of(record.data.get("content")))
                self._ids.update(str(call.get("id")) for call in calls)

    def unique_ids(self, content: Sequence[Block]) -> list[Block]:
        """Give calls ids that are new to the session; some servers count from 0 again."""
        renamed = list(content)
        for index, block in enumerate(content):
            if block.get("type") == "tool_use":
                given = fresh = str(block.get("id") or "call")
                n = 1
                while fresh in self._ids or self.shared.commands.exists(fresh):
                    n += 1
                    fresh = f"{given}_{n}"
                self._ids.add(fresh)
                renamed[index] = {**block, "id": fresh}
        return renamed

    async def run_all(self, calls: Sequence[Block], repeat: Collection[str] = ()) -> None:
        """Run the calls of one answer: reads side by side, everything else alone and in order.

        Args:
            calls: The calls, as the model made them.
            repeat: Ids of calls that a person lets run again, whatever they may have done.

        Raises:
            TurnPausedError: The turn was paused, and calls are left.
        """
        from tui.agent.answer_end import cut_call  # noqa: PLC0415 - where there are calls
        from tui.agent.calls.stations import carry  # noqa: PLC0415 - as above

        pause, cut = self.shared.ctx.state.pause, cut_call(self.shared.ctx.records)
        states = [
            PendingCall(call, str(call["id"]) in repeat, cut.get(str(call["id"]), ""))
            for call in map(as_meant, calls)
        ]
        try:
            for group in self._groups(states):
                if pause.wanted:
                    break
                async with asyncio.TaskGroup() as side_by_side:
                    for state in group:
                        side_by_side.create_task(carry(self.shared, state))
            if pause.wanted and not all(state.recorded for state in states):
                states = []  # they are made when the turn continues
                raise TurnPausedError
        except ExceptionGroup as group:
            raise _first_of(group) from group
        finally:
            await self._close([state for state in states if not state.recorded])

    def interrupted_work(self) -> InterruptedWork:
        """Return the work that an earlier run of the session left open. Blocks."""
        ctx, jobs = self.shared.ctx, self.shared.commands.jobs()
        records, path = list(ctx.records), ctx.session.path
        return interrupted_work(records, ctx.workspace.root, path, ctx.toolbox.kept, jobs)

    async def recover(self, ids: Collection[str], *, repeat: bool = False) -> None:
        """Give calls that an earlier run left open their results.

        The result is what is kept, or what a call that may run comes to (`Interrupted.recovery`).
        A call of which nobody knows what it did stays open, unless a person lets it be repeated.
        Raises as `run_all`.
        """
        work = await asyncio.to_thread(self.interrupted_work)
        unknown = {call.call_id for call in work.calls if call.recovery == "unknown"}
        repeated = unknown if repeat else set[str]()
        ready = {*ids} - (unknown - repeated)
        await self.run_all(calls_of(self.shared.ctx.records, ready), repeated)

    async def close(self, calls: Iterable[Block]) -> None:
        """Give calls that an earlier run left open their result: that they were interrupted."""
        ctx, left = self.shared.ctx, [PendingCall(call) for call in calls]
        ids = {state.id for state in left}
        begun = [
            string_of(record.data.get("call_id"))
            for record in ctx.records
            if record.type == "intent"
            and record.data.get("effect") == "run"
            and record.data.get("call_id") in ids
        ]
        if begun and ctx.checkpoints is not None:
            await ctx.checkpoints.after(begun[-1])
        await self._close(left)

    async def _close(self, calls: Collection[PendingCall]) -> None:
        """Give calls that were interrupted their result; nothing of their commands is kept."""
        from tui.agent.calls import finish  # noqa: PLC0415 - where there are calls

        await finish.close(self.shared.ctx, calls)
        for state in calls:
            await self.shared.commands.recorded(state.id)

    def _groups(self, calls: Iterable[PendingCall]) -> Iterator[list[PendingCall]]:
        """Yield the calls that run side by side, group after group."""
        together: list[PendingCall] = []
        for state in calls:
            tool = self.shared.ctx.toolbox.callable_tool(state.name)
            if tool is not None and tool.effect in {"write", "run"}:
                if together:
                    yield together
                    together = []
                yield [state]
            else:
                together.append(state)
        if together:
            yield together


def _first_of(group: ExceptionGroup[Exception]) -> Exception:
    """The first error of calls that ran side by side; each is logged, and a note counts the
    others."""
    errors = list(_leaves(group))
    for error in errors:
        log.error("couldn't finish a call", exc_info=error)
    if more := len(errors) - 1:
        errors[0].add_note(f"and {more} more, see the log file")
    return errors[0]


def _leaves(group: ExceptionGroup[Exception]) -> Iterator[Exception]:
    for error in group.exceptions:
        if isinstance(error, ExceptionGroup):
            yield from _leaves(cast("ExceptionGroup[Exception]", error))
        else:
            yield error
