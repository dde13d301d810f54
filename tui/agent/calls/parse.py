"""First station of a call: its tool, its arguments, and how the permissions see it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from tui.agent.agent_context import AgentContext
from tui.agent.calls.state import CallContext, CheckedCall, PendingCall
from tui.agent.calls.tool_context import tool_context
from tui.core.errors import ToolError
from tui.core.facts import ToolStarted
from tui.core.formatting import shortened
from tui.permissions.types import Call
from tui.tools.base import Params, Tool
from tui.tools.registry import TERMINAL

_SHOWN_LABEL_CHARS = 1000
"""The length of a call's label in its event."""


def parse(ctx: AgentContext, state: PendingCall, seconds: float) -> tuple[Tool[Any], Params]:
    """Find the tool and check the arguments; publish ToolStarted either way.

    `seconds`: how long its command has run already.
    """
    arguments: object = state.call.get("input")
    shown = cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {}
    try:
        _check_whole(state)
        tool = _tool(ctx, state.name)
        params = tool.parse(state.call.get("input"))
    except ToolError:
        ctx.publish(ToolStarted(state.id, state.name, shown))
        raise
    label = tool.label(params)
    label = shortened(label, _SHOWN_LABEL_CHARS)
    shown = dict(tool.input_shown(params, shown))
    ctx.publish(ToolStarted(state.id, state.name, shown, label, seconds))
    state.tool = tool
    return tool, params


def _check_whole(state: PendingCall) -> None:
    """Raise ToolError for a call that its answer was cut in."""
    if state.cut:
        raise ToolError(state.cut)


def _tool(ctx: AgentContext, name: str) -> Tool[Any]:
    if (tool := ctx.toolbox.callable_tool(name)) is not None:
        return tool
    known = ", ".join(ctx.toolbox.tools)
    raise ToolError(f"There is no tool named {name!r}.", hint=f"The tools are: {known}.")


async def update_workspace(ctx: AgentContext) -> None:
    """Let the agent work in the workspace as it is now: its parent's, with the sandbox's /tmp."""
    if ctx.parent is not None and not ctx.isolated:
        ctx.workspace = ctx.parent.workspace
    if (confinement := ctx.toolbox.confinement) is not None:
        temporary = await confinement.temporary()
        ctx.workspace = replace(ctx.workspace, temporary=temporary)
        confinement.denied = ctx.rules.gate.policy.denied_places


async def check(
    shared: CallContext, state: PendingCall, tool: Tool[Any], params: Params
) -> CheckedCall:
    """Return the call as the permissions see it, with what it takes to run it."""
    ctx, confinement = shared.ctx, shared.ctx.toolbox.confinement
    effect = tool.effect_of(params)
    command = getattr(params, "command", None) or None if effect == "run" else None
    call = Call(
        id=state.id,
        tool=tool.name,
        effect=effect,
        subject=tool.subject(params),
        command=command,
        paths=tool.paths(params),
        background=bool(getattr(params, "background", False)),
        agent=ctx.role,
        input=tool.input_shown(params, state.input),
    )
    if tool.name == TERMINAL:
        from tui.agent.calls.terminal_input import with_input  # noqa: PLC0415 - few have one

        call = await with_input(ctx, call, params)
    context = tool_context(shared, state)
    levels = await confinement.levels() if confinement and call.command is not None else ()
    return CheckedCall(state, call, tool, params, context, levels)
