"""From the tool calls of an answer to one result for each.

Every call leaves exactly one result in the record, whatever happens: a failure is a result with
is_error, a refusal too, and an interrupt closes what is still open. A call passes five stations,
each a module here: `parse`, `decide`, `run` (a command: through `confine`) and `finish`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, cast

from tui.agent.calls import finish
from tui.agent.calls.decide import decide, refusal
from tui.agent.calls.parse import check, parse, update_workspace
from tui.agent.calls.resume import EndUnknownError, resume
from tui.agent.calls.run import run
from tui.agent.calls.state import CallContext, PendingCall
from tui.agent.interrupted_work import InterruptedWork, calls_of, interrupted_work
from tui.agent.pause import TurnPausedError
from tui.core.cancellation import to_the_end
from tui.core.dataclass import dataclass, field
from tui.core.errors import ToolError
from tui.core.messages import Block, ToolOutput, as_meant, blocks_of, string_of, tool_calls
from tui.tools.base import Params, Tool
from tui.tools.run_command import CommandDetachedError, RunCommandParams

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
                        side_by_side.create_task(self._carry(state))
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

    async def _carry(self, state: PendingCall) -> None:
        """Take one call from its start to its recorded result.

        One whose command runs on gets its result in the program's next run; one of which nobody
        knows how it ended is closed as interrupted.
        """
        ctx, output = self.shared.ctx, None
        state.started = ctx.clock.monotonic()
        try:
            output = await self._output(state)
        except CommandDetachedError:
            ctx.state.pause.begin()
        except EndUnknownError:
            pass
        except asyncio.CancelledError:
            if state.finished is not None:  # what it did counts, whatever hooks had to say
                await to_the_end(finish.finish(ctx, state, state.finished))
            raise
        except ToolError as error:
            output = finish.failed(ctx, error)
        except Exception as error:
            log.exception("tool %s failed", state.name)
            what = f"{type(error).__name__}: {error}"
            output = ToolOutput.text(f"{state.name} failed: {what}", is_error=True, summary=what)
        if output is not None:
            await to_the_end(finish.finish(ctx, state, output))
            if state.tool is not None and state.tool.effect == "run":
                await self.shared.commands.recorded(state.id)

    async def _output(self, state: PendingCall) -> ToolOutput:
        """Take one call through the stations that make its output. Raises what its tool raises."""
        shared = self.shared
        tool, params = parse(shared.ctx, state, await shared.commands.seconds(state.id))
        if isinstance(params, RunCommandParams) and not params.background:
            with shared.ctx.toolbox.jobs.coming():
                return await self._of(state, tool, params)
        return await self._of(state, tool, params)

    async def _of(self, state: PendingCall, tool: Tool[Any], params: Params) -> ToolOutput:
        shared = self.shared
        resumed = await resume(shared, state, tool, params) if tool.effect == "run" else None
        if resumed is not None:
            return resumed
        await update_workspace(shared.ctx)
        call, decision = await decide(shared, await check(shared, state, tool, params))
        allowed = decision.answer == "allow"
        output = await run(shared, call, decision) if allowed else refusal(decision)
        return output.with_lines(call.notes)


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
