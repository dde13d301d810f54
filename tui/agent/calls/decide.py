"""Second station of a call: hooks, the permissions and the person decide if it may run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tui.agent.calls.parse import check
from tui.agent.calls.state import CallContext, CheckedCall
from tui.agent.hooks import HookAnswer
from tui.core.errors import ToolError
from tui.core.facts import PermissionAnswered, PermissionAsked
from tui.core.messages import ToolOutput
from tui.permissions.sandbox.walls import Level
from tui.permissions.types import Answer, Call, Decision, offered
from tui.tools.base import UrlAccess

_HOOK = "the user's hook"
_CHANGED_BY_HOOK = "A hook changed what this call does: it is shown as it would run."
_RULELESS = frozenset({"default", "sandbox"})
"""The sources of a question that is no rule of the person's."""


async def decide(shared: CallContext, call: CheckedCall) -> tuple[CheckedCall, Decision]:
    """Return the call, with the input that hooks give it, and a decision: "allow" or "deny".

    Raises ToolError for an input of a hook that the tool can't take, and for a path that led
    somewhere else by the time the person was asked.
    """
    call, hooked = await _heard(shared, call)
    decision = _with_hooks(_by_rules(shared, call), hooked)
    if decision.answer == "ask":
        call, decision = await _by_request_hooks(shared, call, decision)
    if decision.answer == "ask":
        call, decision = await _by_person(shared, call, decision, hooked)
    elif decision.answer == "deny":
        _record(shared, call, "deny", decision)
    elif call.call.effect not in {"none", "read"} or decision.by == "elevated":
        _record(shared, call, "allow", decision)
    else:
        _debug(shared, call, "allow", decision)
    return call, decision


def refusal(decision: Decision) -> ToolOutput:
    """Return the result of a call that is not allowed, worded for the model."""
    if decision.by == "person":
        text = "Declined by the user; it didn't run."
        text += (
            f" Reason: {decision.reason}"
            if decision.reason
            else " Ask what to do instead, or continue without it."
        )
    else:
        text = f"Not allowed, not run: {decision.reason}"
    return ToolOutput.text(text, is_error=True, summary="denied")


async def ask_for_more(
    shared: CallContext, call: CheckedCall, asked: Decision
) -> tuple[CheckedCall, Answer]:
    """Ask as `ask_again` does, where hooks don't answer in the person's place. What they would
    change about a command that has run is for the person to see."""
    hooked = await shared.hooks.at_request(call.call, call.state.input)
    if hooked.blocked:
        answer = Answer("no", hooked.blocked, by="hook")
    elif hooked.verdict == "allow" and hooked.changed is None:
        answer = Answer("once", hooked.reason or "A hook.", by="hook")
    else:
        return await ask_again(shared, call, asked)
    _record(shared, call, answer.answer, replace(asked, by=answer.by, reason=answer.reason))
    return call, answer


async def ask_again(
    shared: CallContext, call: CheckedCall, asked: Decision
) -> tuple[CheckedCall, Answer]:
    """Ask if a command that has run may run again with more. Return the answer, and the call as it
    lets it run."""
    shown = await _with_preview(shared, call, asked.level)
    async with shared.ctx.rules.asking:
        answer = await _question(shared, shown, asked)
    call.state.started = shared.ctx.clock.monotonic()
    if answer.answer != "no" and _changes(answer, call):
        shown = call = await _as_answered(shared, call, answer)
        if (decision := _by_rules(shared, call)).answer == "deny":
            answer = Answer("no", decision.reason, by=decision.by)
    _record(shared, shown, answer.answer, replace(asked, by=answer.by, reason=answer.reason))
    return call, answer


def _changes(answer: Answer, call: CheckedCall) -> bool:
    """True if an answer gives a call another input."""
    return answer.changed is not None and dict(answer.changed) != dict(call.call.input)


async def _as_answered(shared: CallContext, call: CheckedCall, answer: Answer) -> CheckedCall:
    """Return a call with the input that an answer gives it. Raises ToolError."""
    return await _with_input(shared, call, answer.changed or {}, "the user")


def url_access(shared: CallContext, call: CheckedCall, url: str) -> UrlAccess:
    """Return the permissions' answer for an address that a call is led to."""
    decision = _by_rules(shared, replace(call, call=replace(call.call, subject=url)))
    free = decision.answer == "ask" and decision.by == "default"
    return UrlAccess("site" if free else decision.answer, decision.private)


async def _heard(shared: CallContext, call: CheckedCall) -> tuple[CheckedCall, HookAnswer]:
    """Let hooks look at a call; with the input that they give it, it is another call from here."""
    hooked = await shared.hooks.before_tool(call.call, call.call.input)
    if hooked.context:
        call = replace(call, notes=(*call.notes, hooked.context))
    if hooked.changed is not None and not hooked.blocked:
        call = await _with_input(shared, call, hooked.changed, _HOOK)
    return call, hooked


async def _by_request_hooks(
    shared: CallContext, call: CheckedCall, decision: Decision
) -> tuple[CheckedCall, Decision]:
    """Let hooks answer in the person's place. A yes to another input is one to that input alone,
    and only where nothing forbids it."""
    hooked = await shared.hooks.at_request(call.call, call.call.input)
    if hooked.blocked:
        return call, replace(decision, answer="deny", reason=hooked.blocked, by="hook")
    if hooked.verdict != "allow":
        return call, decision
    if hooked.changed is not None:
        call = await _with_input(shared, call, hooked.changed, _HOOK)
        decision = _by_rules(shared, call)
        if decision.answer == "deny":
            return call, decision
    return call, replace(decision, answer="allow", reason=hooked.reason or "A hook.", by="hook")


async def _with_input(
    shared: CallContext, call: CheckedCall, given: Mapping[str, Any], by: str
) -> CheckedCall:
    """Return a call with another input, of which the model hears. Raises ToolError."""
    try:
        params = call.tool.parse(given)
    except ToolError as error:
        who = "A hook" if by == _HOOK else "The user"
        raise ToolError(f"{who} gave the call an invalid input. {error}") from error
    call.state.call = {**call.state.call, "input": dict(given)}
    shown = json.dumps(call.state.input, ensure_ascii=False, default=str)
    changed = await check(shared, call.state, call.tool, params)
    note = f"[{by} changed the input of this call to: {shown}]"
    return replace(changed, notes=(*call.notes, note))


def _by_rules(shared: CallContext, call: CheckedCall) -> Decision:
    """Decide by the policy. A command that walls have just stopped asks for the level it needs."""
    ctx, stopped = shared.ctx, shared.stopped
    decision = ctx.rules.gate.decide(
        call.call,
        mode=ctx.state.mode,
        elevated=ctx.state.elevated,
        workspace=ctx.workspace,
        holds=call.levels,
    )
    if stopped is None or stopped.key != call.key or decision.answer == "deny":
        return decision
    narrow = decision.level in call.levels and decision.level is not stopped.wider
    return stopped.asking(decision) if narrow and not ctx.state.elevated else decision


def _with_hooks(decision: Decision, hooked: HookAnswer) -> Decision:
    """Apply what hooks said to a decision: they forbid anything, ask about what is allowed, and
    allow what would be asked, but for a rule of the person's that asks. Of a call that they changed
    the decision is about its new input, and so is their yes. What rules or the program forbid stays
    forbidden."""
    if decision.answer == "deny":
        return decision
    if hooked.blocked:
        return replace(decision, answer="deny", reason=hooked.blocked, by="hook")
    if hooked.verdict == "ask" and decision.answer == "allow":
        reason = hooked.reason or "A hook asks about it."
        decision = replace(decision, answer="ask", reason=reason, by="hook")
    elif hooked.verdict == "allow" and decision.answer == "ask" and decision.by in _RULELESS:
        return replace(decision, answer="allow", reason=hooked.reason or "A hook.", by="hook")
    if hooked.changed is not None and decision.answer == "ask":
        return replace(decision, reason=f"{_CHANGED_BY_HOOK} {decision.reason}")
    return decision


async def _by_person(
    shared: CallContext, call: CheckedCall, decision: Decision, hooked: HookAnswer
) -> tuple[CheckedCall, Decision]:
    """Ask the person, record the answer, and return it as a decision, with the call as they let it
    run. What they changed about it is their own; only what is forbidden stays so."""
    shown = await _with_preview(shared, call, decision.level)
    answer = await _ask(shared, shown, decision, hooked)
    call.state.started = shared.ctx.clock.monotonic()  # their thinking is not the tool's time
    yes = answer.answer != "no"
    if yes and _changes(answer, call):
        shown = call = await _as_answered(shared, call, answer)
        decision = _by_rules(shared, call)
        if decision.answer == "deny":
            _record(shared, call, "deny", decision)
            return call, decision
    settled = replace(
        decision, answer="allow" if yes else "deny", by=answer.by, reason=answer.reason
    )
    _record(shared, shown, answer.answer, settled)
    if not yes:
        shared.stopped = None
    return call, settled


async def _with_preview(shared: CallContext, call: CheckedCall, level: Level) -> CheckedCall:
    """Add what the person sees who is asked about a level."""
    preview = await call.tool.preview(call.params, call.context)
    gate = shared.ctx.rules.gate
    shown = replace(
        call.call,
        preview_kind=preview.kind,
        preview=preview.text,
        scope=gate.scope_of(call.call),
        always=gate.always(call.call, _granted(call, level)),
    )
    return replace(call, call=shown)


async def _ask(
    shared: CallContext, call: CheckedCall, decision: Decision, hooked: HookAnswer
) -> Answer:
    """Ask one question at a time; the answer to an earlier one may settle this one."""
    async with shared.ctx.rules.asking:
        now = _with_hooks(_by_rules(shared, call), hooked)
        if now.paths != decision.paths and now.answer != "deny":
            raise ToolError("The path now leads somewhere else; nothing was done.")
        if now.answer == "ask":
            return await _question(shared, call, now)
        return Answer("once" if now.answer == "allow" else "no", now.reason, by=now.by)


async def _question(shared: CallContext, call: CheckedCall, decision: Decision) -> Answer:
    ctx = shared.ctx
    ctx.publish(PermissionAsked(call.call.id, call.call.tool, decision.reason))
    with shared.hooks.asking():
        answer = await ctx.state.pause.question(ctx.rules.approver.ask(call.call, decision))
    answer = _as_offered(call.call, decision, answer)
    ctx.rules.gate.record(call.call, answer, _granted(call, decision.level))
    return answer


def _as_offered(call: Call, decision: Decision, answer: Answer) -> Answer:
    """Return an answer that lasts no longer than was offered, whoever gives it: a program may
    answer with anything."""
    if answer.answer in {"once", "no"} or answer.answer in (lasting := offered(call, decision)):
        return answer
    return replace(answer, answer="session" if "session" in lasting else "once")


def _granted(call: CheckedCall, level: Level) -> Level:
    """The level that a lasting yes grants; without a sandbox, the one that it has where there is
    one."""
    return level if call.levels else Level.WORKSPACE


def _record(shared: CallContext, call: CheckedCall, answer: str, decision: Decision) -> None:
    """Record what was answered, by whom and why; for a command in a sandbox, the level too."""
    permitted = call.call
    runs = call.levels and permitted.command is not None and answer not in {"deny", "no"}
    fact = PermissionAnswered(
        permitted.id,
        permitted.tool,
        answer,
        decision.by,
        decision.reason,
        decision.level.value if runs else "",
        permitted.subject,
    )
    shared.ctx.record(fact)
    _debug(shared, call, answer, decision)


def _debug(shared: CallContext, call: CheckedCall, answer: str, decision: Decision) -> None:
    what = f"{call.call.tool}: {answer} (by {decision.by}): {decision.reason}"
    shared.ctx.debug(f"[DEBUG] Decision: {what}")
