"""The span of a tool call, `execute_tool NAME`, with what a sub-agent in it did."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tui.context.spans import turn as turns
from tui.context.spans.attributes import AGENT, Values, as_json, code, cut, nanoseconds
from tui.context.spans.ids import span_id
from tui.context.spans.open_spans import OpenSpans, OpenToolCall, RunningCall
from tui.core.messages import (
    Block,
    as_meant,
    blocks_of,
    string_of,
    text_of,
)
from tui.core.otlp import SpanContext
from tui.session.records import Record, spent_in

_CODES: Final = frozenset({"denied", "interrupted"})
"""Summaries of failed calls that say the kind of failure."""
_MCP: Final = (("mcp__", "tools/call"), ("read_mcp_resource", "resources/read"))
"""The beginnings of the names of calls to MCP servers, and what these are asked. The conventions
want no span of its own for that where the call has one."""


def begin(spans: OpenSpans, record: Record, calls: Iterable[Block]) -> None:
    """Begin the calls of an answer."""
    turn = turns.of(spans, record)
    for block in calls:
        id_ = string_of(block.get("id"))
        context = SpanContext(turn.root.trace_id, span_id("call", f"{record.id} {id_}"))
        spans.calls[id_] = OpenToolCall(context, turn.root.span_id, block, spans.now)
        turn.calls += 1


def started(spans: OpenSpans, record: Record) -> None:
    """Let a call begin only now: it waited until then."""
    if call := spans.calls.get(string_of(record.data.get("call_id"))):
        call.start = spans.now


def finished(spans: OpenSpans, record: Record) -> None:
    """End a call with its result."""
    data, id_ = record.data, string_of(record.data.get("call_id"))
    if id_ not in spans.calls:
        return
    values: Values = {}
    content, error = blocks_of(data.get("content")), None
    if data.get("is_error"):
        summary = string_of(data.get("summary"))
        values["error.type"] = summary if summary in _CODES else "tool_error"
        error = text_of(content)
    if spans.content:
        values["gen_ai.tool.call.result"] = cut(text_of(content))
    end(spans, id_, values, error, took=nanoseconds(data.get("seconds")))


def end(
    spans: OpenSpans, id_: str, values: Values, error: str | None = None, *, took: int = 0
) -> None:
    """End a call that is open; `took`: so many nanoseconds, 0 where nobody knows."""
    call = spans.calls.pop(id_)
    block = as_meant(call.block)
    name = code(block.get("name")) or "unknown"
    all_: Values = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.id": code(id_),
        "gen_ai.tool.type": "function",
        "mcp.method.name": next((to for begin, to in _MCP if name.startswith(begin)), ""),
    }
    if spans.content:
        all_["gen_ai.tool.call.arguments"] = cut(as_json(block.get("input")))
    spans.put(
        f"execute_tool {name}",
        call.context,
        call.parent,
        start=max(call.start, spans.now - took) if took else call.start,
        values=all_ | call.values | values,
        error=error,
    )


def ran_agent(spans: OpenSpans, record: Record) -> None:
    """Take the start or the end of a sub-agent, in the call that runs it."""
    data, session = record.data, string_of(record.data.get("session"))
    call = spans.calls.get(string_of(data.get("call_id")))
    if data.get("state") == "started":
        if call:
            kind = code(data.get("agent")) or AGENT
            running = RunningCall(call.context, spans.now, kind)
            spans.runs.setdefault(session, []).append(running)
            call.values["holdfast.sub_agent.session"] = code(session)
        return
    turn = turns.of(spans, record)
    usd: float | None = 0.0
    for model, _, usage in spent_in(record):
        cost = spans.pay(turn, model, usage)
        usd = None if usd is None or cost is None else usd + cost
    if call:
        call.values["holdfast.sub_agent.state"] = code(data.get("state"))
        if usd and session not in spans.followed:
            call.values["holdfast.cost_usd"] = usd
