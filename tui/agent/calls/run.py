"""Third station of a call: its start is recorded, and its tool runs."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Any

from tui.agent.agent_context import AgentContext
from tui.agent.calls.decide import url_access
from tui.agent.calls.exclusive import alone, watched
from tui.agent.calls.finish import failed
from tui.agent.calls.state import CallContext, CheckedCall, PendingCall
from tui.agent.calls.tool_context import LABEL_CHARS
from tui.agent.checkpoints import CallChanges
from tui.agent.hooks import NOTHING
from tui.core.errors import ToolError
from tui.core.facts import CallBegan
from tui.core.messages import ToolOutput, list_of, object_of, string_of, text_block, text_of
from tui.permissions.types import Call, Decision
from tui.session.records import encode
from tui.tools.base import Params, Tool
from tui.tools.file_access import as_now, take_snapshot

ORIGINAL_CHARS = 200_000
"""Characters of a result that are kept when a hook changes it."""


async def run(shared: CallContext, call: CheckedCall, decision: Decision) -> ToolOutput:
    """Run a call that is allowed; return its result, or why it failed, with what hooks and checks
    say about it.

    Raises ToolError where it doesn't begin. From `call.state.finished` on it has done its work.
    """
    ctx, state, writes = shared.ctx, call.state, call.tool.effect == "write"
    async with alone(ctx, state) if writes else nullcontext():
        if writes and ctx.checkpoints is not None:
            await ctx.checkpoints.ready()
        call = await _begun(shared, call, decision)
        try:
            output = await _done(shared, call, decision)
        except ToolError as error:
            output = failed(ctx, error)
        state.finished = output
        ctx.state.turn_ends |= output.ends_turn
        output = await after_hooks(shared, state, output, call.call)
    if writes:
        state.finished = output
        _tell_parents(ctx, output)
        output = await shared.checks.after_edit(output)
    return output


async def after_hooks(
    shared: CallContext, state: PendingCall, output: ToolOutput, about: Call | None = None
) -> ToolOutput:
    """Add what hooks say about a result, or put theirs in its place, and note the files that they
    changed after it."""
    given = state.input if about is None else about.input
    hooked = await shared.hooks.after_tool(state.id, state.name, given, output, about)
    if hooked is not NOTHING and not output.is_error:
        details, changed = await asyncio.to_thread(as_now, output.details)
        names = ", ".join(shared.ctx.workspace.show(path) for path in changed)
        what = [f"[a hook changed {names}: read it again before you edit it]"] if names else []
        output = replace(output, details=details).with_lines(what)
    if isinstance(hooked.result, str):
        output = _with_result(output, hooked.result)
    lines = [f"[the user's hook says: {hooked.blocked}]"] if hooked.blocked else []
    lines += [hooked.context] if hooked.context else []
    return output.with_lines(lines) if lines else output


def _with_result(output: ToolOutput, text: str) -> ToolOutput:
    """Put the text of a hook in the place of a result, which the record keeps for the person. The
    model gets the new one alone, and hears that it is."""
    before = text_of(output.content)
    size = len(before.encode("utf-8", "surrogateescape"))
    original = {
        "text": before[:ORIGINAL_CHARS],
        "bytes": size,
        "sha256": sha256(before.encode("utf-8", "surrogateescape")).hexdigest(),
        "blocks": len(output.content),
        "path": str(output.full or ""),
    }
    content = [text_block(f"{text}\n[the user's hook changed this result]".lstrip("\n"))]
    details = {**output.details, "before_hooks": original}
    return replace(output, content=content, full=None, details=details)


async def _begun(shared: CallContext, call: CheckedCall, decision: Decision) -> CheckedCall:
    """Record that a call begins; return it with what it may go to."""
    ctx, state, tool, params = shared.ctx, call.state, call.tool, call.params
    if tool.effect in {"read", "write"}:
        ctx.toolbox.touched.update(decision.paths)
    if call.call.effect in {"write", "run"}:
        shared.stopped = None
    arguments = sha256(encode({"input": state.call.get("input")})).hexdigest()
    label = " ".join(tool.label(params).split())[:LABEL_CHARS]
    target = await _target(ctx, tool, params)
    ctx.record(CallBegan(state.id, tool.name, call.call.effect, arguments, label, **target))
    await ctx.recorder.sync()
    if ctx.session.lost:  # whoever has the session now decides about this call
        raise ToolError(f"{ctx.session.lost} Nothing was done.")
    context = replace(
        call.context,
        recorded=ctx.session.saved,
        allowed=frozenset(decision.paths),
        url_access=partial(url_access, shared, call),
    )
    return replace(call, context=context)


async def _target(ctx: AgentContext, tool: Tool[Any], params: Params) -> dict[str, Any]:
    """For a write: the file and the hash of its content, None if there is no file yet. If it writes
    several files, those of all."""
    paths = tool.paths(params)
    if tool.effect != "write" or not paths:
        return {}
    try:
        files = [await asyncio.to_thread(_before, ctx, path) for path in paths]
    except ToolError:
        return {}  # the tool itself says what is wrong
    return files[0] if len(files) == 1 else {"files": files}


def _before(ctx: AgentContext, named: str) -> dict[str, Any]:
    path = ctx.workspace.resolve(named)
    snapshot = take_snapshot(path, named)
    if snapshot is not None and snapshot.sha256 is None:
        return {"path": str(path)}
    return {"path": str(path), "before_sha256": snapshot.sha256 if snapshot else None}


async def _done(shared: CallContext, call: CheckedCall, decision: Decision) -> ToolOutput:
    """Return the result of a call's tool. Raises what the tool raises."""
    if call.call.command is None or call.call.types is not None:
        return await _run_tool(shared.ctx, call)
    from tui.agent.calls.confine import run_command  # noqa: PLC0415 - on demand

    return await run_command(shared, call, decision)


async def _run_tool(ctx: AgentContext, call: CheckedCall) -> ToolOutput:
    """Run a tool that is no command; what it may change in files, only the disk shows."""
    runs = call.call.effect == "run"
    async with watched(ctx, call.call.id) if runs else nullcontext(CallChanges()) as changes:
        output = await call.tool.run(call.params, call.context)
    return changes.added_to(output)


def _tell_parents(ctx: AgentContext, output: ToolOutput) -> None:
    """Let the agents that work in the same folder know which files this one wrote."""
    wrote = {
        string_of(one.get("path")): string_of(one.get("after_sha256"))
        for one in [output.details, *map(object_of, list_of(output.details.get("files")))]
        if "after_sha256" in one
    }
    while ctx.parent is not None and not ctx.isolated:
        ctx = ctx.parent
        ctx.toolbox.by_sub_agents.update(wrote)
