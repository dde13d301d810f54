"""The span of a turn, `invoke_agent`: the root of its trace, or a sub-agent's part of it."""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter

from tui.context.spans.attributes import AGENT, Values, sendable, text_message
from tui.context.spans.ids import span_id, trace_id
from tui.context.spans.open_spans import OpenSpans, OpenTurn
from tui.core.messages import blocks_of, string_of, text_of
from tui.core.otlp import SpanContext, SpanEvent, parent_in
from tui.session.records import EVERY, GOAL, HOOK, PROGRAM, Record

_BY_PROGRAM = frozenset({EVERY, GOAL, HOOK, PROGRAM})
"""The makers of prompts that no person typed just then."""


def begin(
    spans: OpenSpans,
    record: Record,
    by: str = PROGRAM,
    prompt: str = "",
    around: SpanContext | None = None,
) -> OpenTurn:
    """Begin the turn of a record, after the end of the one before. `around` is the span of another
    program in which it is."""
    before = spans.turn
    end(spans)
    own = span_id("turn", record.id)
    if spans.within:
        since = bisect_right(spans.within, spans.now, key=attrgetter("since"))
        call = spans.within[max(0, since - 1)]
        root = SpanContext(call.context.trace_id, own)
        parent, agent = call.context.span_id, call.agent
    elif around is not None:
        root, parent, agent = SpanContext(around.trace_id, own), around.span_id, AGENT
    else:
        root, parent, agent = SpanContext(trace_id(record.id), own), "", AGENT
    link = before.root if before and before.root.trace_id != root.trace_id else None
    spans.turn = OpenTurn(root, parent, spans.now, agent, by, link, prompt)
    return spans.turn


def prompted(spans: OpenSpans, record: Record) -> None:
    """Begin the turn of a prompt."""
    data = record.data
    by, words = string_of(data.get("by")), ""
    if spans.content:
        typed = data.get("text")
        words = typed if isinstance(typed, str) else text_of(blocks_of(data.get("content")))
    around = parent_in(string_of(data.get("traceparent")))
    begin(spans, record, by if by in _BY_PROGRAM else "person", words, around)


def of(spans: OpenSpans, record: Record) -> OpenTurn:
    """Return the turn that a record belongs to."""
    return spans.turn or begin(spans, record)


def add_event(spans: OpenSpans, record: Record, name: str, values: Values) -> None:
    """Add an event to the open request, or to the turn."""
    event = SpanEvent(name, spans.now, sendable(values))
    if spans.request is not None:
        spans.request.events.append(event)
    elif not (turn := of(spans, record)).ended:
        turn.events.append(event)


def end(spans: OpenSpans, values: Values | None = None, error: str | None = None) -> None:
    """End the turn, if one is open."""
    turn = spans.turn
    if turn is None or turn.ended:
        return
    turn.ended = True
    all_: Values = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": turn.provider,
        "gen_ai.agent.name": turn.agent,
        "holdfast.turn.by": turn.by,
        "holdfast.turn.requests": turn.requests,
        "holdfast.turn.tool_calls": turn.calls,
    }
    if turn.usd is not None:
        all_["holdfast.turn.cost_usd"] = turn.usd
    if spans.content:
        if turn.prompt:
            all_["gen_ai.input.messages"] = text_message("user", turn.prompt)
        if turn.answer:
            all_["gen_ai.output.messages"] = text_message("assistant", turn.answer)
    spans.put(
        f"invoke_agent {turn.agent}",
        turn.root,
        turn.parent,
        start=turn.start,
        values=all_ | (values or {}),
        error=error,
        events=turn.events,
        links=(turn.link,) if turn.link else (),
    )
