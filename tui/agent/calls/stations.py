"""A tool call from its start to its recorded result, by five stations, each a module here: `parse`,
`decide`, `run` (a command: through `confine`) and `finish`; before them `resume`, which has the
result of one whose command ran on.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from tui.agent.calls import finish
from tui.agent.calls.decide import decide, refusal
from tui.agent.calls.parse import check, parse, update_workspace
from tui.agent.calls.resume import EndUnknownError, resume
from tui.agent.calls.run import run
from tui.agent.calls.state import CallContext, PendingCall
from tui.core.cancellation import to_the_end
from tui.core.errors import ToolError
from tui.core.messages import ToolOutput
from tui.tools.base import Params, Tool
from tui.tools.run_command import CommandDetachedError, RunCommandParams

log = logging.getLogger(__name__)


async def carry(shared: CallContext, state: PendingCall) -> None:
    """Take one call from its start to its recorded result.

    One whose command runs on gets its result in the program's next run; one of which nobody knows
    how it ended is closed as interrupted.
    """
    ctx, output = shared.ctx, None
    state.started = ctx.clock.monotonic()
    try:
        output = await _output(shared, state)
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
            await shared.commands.recorded(state.id)


async def _output(shared: CallContext, state: PendingCall) -> ToolOutput:
    """Take one call through the stations that make its output. Raises what its tool raises."""
    tool, params = parse(shared.ctx, state, await shared.commands.seconds(state.id))
    if isinstance(params, RunCommandParams) and not params.background:
        with shared.ctx.toolbox.jobs.coming():
            return await _of(shared, state, tool, params)
    return await _of(shared, state, tool, params)


async def _of(
    shared: CallContext, state: PendingCall, tool: Tool[Any], params: Params
) -> ToolOutput:
    resumed = await resume(shared, state, tool, params) if tool.effect == "run" else None
    if resumed is not None:
        return resumed
    await update_workspace(shared.ctx)
    call, decision = await decide(shared, await check(shared, state, tool, params))
    allowed = decision.answer == "allow"
    output = await run(shared, call, decision) if allowed else refusal(decision)
    return output.with_lines(call.notes)
