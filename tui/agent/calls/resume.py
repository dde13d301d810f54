"""A call whose command an earlier run of the program began: its result comes from what was kept."""

from __future__ import annotations

from typing import Any

from tui.agent.agent_context import AgentContext
from tui.agent.calls.exclusive import alone
from tui.agent.calls.run import after_hooks
from tui.agent.calls.state import CallContext, PendingCall
from tui.agent.calls.tool_context import tool_context
from tui.core.messages import ToolOutput
from tui.permissions.sandbox.walls import Level
from tui.tools.base import Params, Tool


class EndUnknownError(Exception):
    """A command began under an earlier run of the program, and nothing says how it ended."""


async def resume(
    shared: CallContext, state: PendingCall, tool: Tool[Any], params: Params
) -> ToolOutput | None:
    """Return the result of a command that was begun already; None if the call may run.

    Raises EndUnknownError if it began, and it is not known how it ended.
    """
    kept = await shared.commands.state(state.id)
    if kept == "lost" and state.repeat:
        await shared.commands.forget(state.id)
        kept = ""
    if not kept:
        return None
    known = kept in {"running", "finished"}
    output = await _taken_over(shared, state, tool, params, known=known)
    seconds = float(output.details.get("seconds") or 0)
    state.started = shared.ctx.clock.monotonic() - seconds
    state.finished = output
    return await after_hooks(shared, state, output)


async def _taken_over(
    shared: CallContext, state: PendingCall, tool: Tool[Any], params: Params, *, known: bool
) -> ToolOutput:
    """Wait for the end of a command, then see what it changed, as if it had run here."""
    ctx = shared.ctx
    async with alone(ctx, state):
        output = await tool.resume(params, tool_context(shared, state)) if known else None
        if output is None:
            raise EndUnknownError
        if ctx.checkpoints is not None and not _could_only_read(ctx, state.id):
            output = (await ctx.checkpoints.after(state.id)).added_to(output)
        if ctx.toolbox.confinement is not None:
            lines = [f"[{line}]" for line in await ctx.toolbox.confinement.traces.tidy()]
            output = output.with_lines(lines) if lines else output
    return output


def _could_only_read(ctx: AgentContext, call_id: str) -> bool:
    """True if a command ran where it could change nothing: what others changed since the last
    checkpoint isn't its doing."""
    levels = [
        record.data.get("level")
        for record in ctx.records
        if record.type == "permission" and record.data.get("call_id") == call_id
    ]
    return levels[-1:] == [Level.READ_ONLY.value]
