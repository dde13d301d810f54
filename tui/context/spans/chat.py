"""The span of a request, `chat MODEL`: those of the conversation, and those beside it."""

from __future__ import annotations

from typing import Final

from tui.context.failed_attempts import is_instead
from tui.context.spans import turn as turns
from tui.context.spans.attributes import (
    Fields,
    Values,
    code,
    dollars,
    failure,
    messages,
    nanoseconds,
    operation,
    parts_of,
    provider,
    seconds,
    server,
    text,
    text_message,
    tokens,
)
from tui.context.spans.ids import span_id
from tui.context.spans.open_spans import OpenRequest, OpenSpans
from tui.core.config import model_of
from tui.core.messages import Block, Usage, string_of, text_of
from tui.core.otlp import SpanEvent
from tui.provider.prices import price_of
from tui.session.records import BATCH, BESIDE, GOAL, Record

PURPOSES: Final = {
    "cache_warmed": "keep_warm",
    "compaction": "summary",
    "exam": "exam",
    GOAL: "goal_check",
    "memory": "memory",
    "side_question": "side_question",
    "title": "title",
    "unused": "unused",
}
"""The records of requests beside the conversation, and what these were for."""

_REQUEST: Final = Fields(
    codes={"holdfast.request.effort": "effort"},
    numbers={"gen_ai.request.max_tokens": "max_tokens", "holdfast.request.number": "n"},
)
_ANSWER: Final = Fields(
    codes={
        "gen_ai.response.id": "message_id",
        "holdfast.request.id": "request_id",
    }
)
_WAIT: Final = Fields(
    codes={
        "holdfast.parked.until": "until",
        "holdfast.failover.from": "from",
        "holdfast.failover.to": "to",
    },
    numbers={"holdfast.retry.attempt": "attempt"},
)


def begin(spans: OpenSpans, record: Record) -> None:
    """Begin a request of the conversation, in a turn of its own if none is open. If it
    replaces one to another profile, it continues that one's span."""
    before, name = spans.request, string_of(record.data.get("model"))
    if before is None or not is_instead(before.model, name):
        end(spans)
        before = None
    if (turn := spans.turn) is None or turn.ended:
        turn = turns.begin(spans, record)
    data, asked = record.data, server(record.data.get("server"))
    model = code(data.get("model")) or "unknown"
    turn.provider = provider(asked)
    values: Values = {
        **operation(model, turn.provider),
        "gen_ai.request.stream": True,
        **_REQUEST.read(data, content=False),
        **asked,
    }
    id_, start, events = span_id("request", record.id), spans.now, list[SpanEvent]()
    if before is not None:
        start, events = before.start, before.events
    spans.request = OpenRequest(id_, name, start, values, events)


def answered(spans: OpenSpans, record: Record, content: list[Block]) -> None:
    """End the open request with its answer."""
    turn, request, spans.request = turns.of(spans, record), spans.request, None
    data, model = record.data, code(record.data.get("model"))
    values = request.values if request else operation(model or "unknown", turn.provider)
    usage, reason = Usage.from_json(data.get("usage")), code(data.get("stop_reason"))
    values = {**values, **_ANSWER.read(data, content=False), **tokens(usage)}
    values["gen_ai.response.model"] = model_of(model)
    if reason:
        values["gen_ai.response.finish_reasons"] = (reason,)
    if usage.total:
        usd = spans.pay(turn, model, usage, batch=bool(data.get(BATCH)))
        values |= dollars("holdfast.cost_usd", usd)
    if not turn.ended:
        turn.requests += 1
    if spans.content:
        values["gen_ai.output.messages"] = messages("assistant", parts_of(content), reason)
        turn.answer = text_of(content) or turn.answer
    spans.answered = True
    spans.put_in(
        turn,
        f"chat {values['gen_ai.request.model']}",
        request.id if request else span_id("request", record.id),
        start=request.start if request else spans.before,
        values=values,
        events=request.events if request else (),
        client=True,
    )


def end(spans: OpenSpans, why: Values | None = None, words: str = "") -> None:
    """End the open request without an answer; `why` says what ended it, None that nobody knows."""
    request, turn = spans.request, spans.turn
    spans.request = None
    if request is None or turn is None:
        return
    why = {"holdfast.unfinished": True} if why is None else why
    spans.put_in(
        turn,
        f"chat {request.values['gen_ai.request.model']}",
        request.id,
        start=request.start,
        values=request.values | why,
        error=words if "error.type" in why else None,
        events=request.events,
        client=True,
    )


def waited(spans: OpenSpans, record: Record) -> None:
    """Add a retry, a park or a change of models as an event."""
    data = record.data
    values = failure(data) | _WAIT.read(data, content=False)
    if delay := seconds(data.get("delay_s")):
        values["holdfast.retry.delay_s"] = delay
    turns.add_event(spans, record, f"holdfast.{record.type}", values)


def recovered(spans: OpenSpans, record: Record) -> None:
    """End a request that failed, and add the step after it as an event."""
    end(spans, failure(record.data))
    step: Values = {"holdfast.recovery.step": code(record.data.get("step"))}
    turns.add_event(spans, record, "holdfast.recovery", step)


def aside(spans: OpenSpans, record: Record, *, parent: str = "") -> None:
    """Add a request beside the conversation, which is paid for, too."""
    data, usage = record.data, Usage.from_json(record.data.get("usage"))
    if not usage.total:
        return
    turn, model = turns.of(spans, record), code(data.get("model")) or "unknown"
    asked = server(data.get("server"))
    values: Values = {
        **operation(model, provider(asked) if asked else turn.provider),
        "gen_ai.response.model": model_of(model),
        "holdfast.request.purpose": PURPOSES[record.type],
        **asked,
        **tokens(usage),
    }
    if spans.content and record.type == "side_question":
        values["gen_ai.input.messages"] = text_message("user", text(data.get("question")))
        values["gen_ai.output.messages"] = text_message("assistant", text(data.get("answer")))
    unpriced_title = record.type == "title" and price_of(model, spans.prices, record.payer) is None
    if not unpriced_title:
        values |= dollars("holdfast.cost_usd", spans.pay(turn, model, usage))
    start = spans.now if record.type == "title" else spans.before
    if record.type in BESIDE:
        start = spans.now - nanoseconds(data.get("seconds"))
    id_ = span_id("aside", record.id)
    name = f"chat {model_of(model)}"
    spans.put_in(turn, name, id_, start=start, values=values, parent=parent, client=True)
