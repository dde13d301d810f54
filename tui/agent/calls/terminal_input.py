"""Input for a terminal as the permissions see it: where it goes, and which line a shell gets."""

from __future__ import annotations

from typing import Final

from tui.agent.agent_context import AgentContext
from tui.core.dataclass import replace
from tui.core.messages import string_of
from tui.permissions.sandbox.walls import Level
from tui.permissions.types import Call, TypedInput
from tui.tools.base import Params
from tui.tools.terminal import TerminalParams, input_of, readable

_SHELLS: Final = frozenset({"bash", "sh", "dash", "zsh", "ksh", "fish", "ash", "busybox"})


async def with_input(ctx: AgentContext, call: Call, params: Params) -> Call:
    """Return a call that types with what it types, and where. Raises ToolError for a terminal that
    isn't there, and for keys that are none."""
    if not isinstance(params, TerminalParams) or params.action != "send":
        return call
    job = ctx.toolbox.jobs.get(params.terminal)
    if job.terminal is None:
        return call
    await job.terminal.refresh()  # another program may have it by now
    data = input_of(params, job.terminal)
    level = string_of(job.kept.call.get("walls"))
    typed = TypedInput(job.id, Level(level) if level else Level.OUTSIDE, str(job.path))
    line = job.terminal.line_with(data) if job.terminal.program in _SHELLS else ""
    subject = f"{job.id} ← {readable(data).rstrip()}"
    return replace(call, subject=subject, command=line or None, types=typed)
