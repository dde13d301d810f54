"""The lock of the writers and the checkpoints, for a call that writes or runs something."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

from tui.agent.agent_context import AgentContext
from tui.agent.calls.state import PendingCall
from tui.agent.checkpoints import CallChanges


@asynccontextmanager
async def alone(ctx: AgentContext, state: PendingCall) -> AsyncGenerator[None]:
    """Hold back every other call that writes or runs, of sub-agents too.

    The wait for them does not count as the tool's time.
    """
    async with ctx.rules.writing:
        state.started = ctx.clock.monotonic()
        yield


def watched(ctx: AgentContext, call_id: str) -> AbstractAsyncContextManager[CallChanges]:
    """Take a checkpoint of the workspace before and after a call that may change files."""
    if ctx.checkpoints is None:
        return nullcontext(CallChanges())
    return ctx.checkpoints.around(call_id)
