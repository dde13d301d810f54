"""The next request as it would be after a change: judged on a copy that leaves no trace.

What a person is told before a key counts is so by the very steps that record it afterwards.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Final

from tui.agent.agent_context import AgentContext
from tui.agent.recorder import FactStream, Recorder
from tui.agent.request.build import built
from tui.agent.request.check import judged, needed_break, next_break, record_break
from tui.agent.request.form import target_of
from tui.agent.request.state import Prepared, RequestState
from tui.context.breaks import ends_turn
from tui.context.overrides import SPEAKING
from tui.context.token_ledger import Ledger
from tui.core.facts import ContextBroken, DurableFact, Overlay
from tui.core.messages import text_block

_PROMPT: Final = "."
"""Stands for the prompt that is sent next."""


def supposing(requests: RequestState, *facts: DurableFact) -> RequestState:
    """A copy of the state with further facts in its record, which is in memory."""
    ctx = _supposed(requests.ctx)
    other = copy(requests)
    other.ctx = ctx
    other.sent, other.frame = requests.sent.supposed(ctx), requests.frame.supposed(ctx)
    other.choices = requests.choices.copy()
    other.lifters, other.viewer, other.view_key = {}, None, ()
    for fact in facts:
        ctx.record(fact)
    return other


def broken_next(supposed: RequestState) -> ContextBroken | None:
    """Return what would be said of the break that the next request of a copy needs, None for none:
    with a prompt, and with what waited for a break."""
    ctx = supposed.ctx
    last = next((r for r in reversed(ctx.records) if r.type in SPEAKING), None)
    if last is None or ends_turn(last):
        ctx.session.append("user", content=[text_block(_PROMPT)])
    prepared = _viewed(supposed)
    if ctx.config.prune.when == "auto" and prepared.view.due:
        prepared = _pruned(supposed, prepared)
    prepared = replace(prepared, built=built(supposed, prepared))
    why = needed_break(supposed, prepared)
    if why is not None and not why.recorded:
        return record_break(supposed, prepared, why)
    return judged(supposed, prepared, lambda: _viewed(supposed)).said


def _pruned(supposed: RequestState, prepared: Prepared) -> Prepared:
    """With the old results that are pruned at a break, if there is one."""
    ctx = supposed.ctx
    if (place := next_break(supposed, prepared)) is None:
        return prepared
    behind = {record.id for record in ctx.records[place:]}
    for one in prepared.view.due:
        if one.record in behind:
            ctx.record(Overlay(one.record, "pruned", "policy", age=one.age))
    return _viewed(supposed)


def _viewed(supposed: RequestState) -> Prepared:
    """The view of a copy's record; the ledger stays as it is."""
    records, target = supposed.ctx.records, target_of(supposed, supposed.ctx.link.model)
    view = target.viewer().build(records, model=target.model.id)
    return Prepared(target, view, records[-1:])


def _supposed(ctx: AgentContext) -> AgentContext:
    other = copy(ctx)
    other.session, other.events = ctx.session.supposed(), FactStream()
    other.recorder = Recorder(other.session, other.events, Ledger())
    other.toolbox, other.sources = copy(ctx.toolbox), copy(ctx.sources)
    other.toolbox.tools = {**ctx.toolbox.tools}
    return other
