"""The span of a break: what was already sent is changed. It ends with its bill."""

from __future__ import annotations

from collections import deque
from itertools import chain
from operator import attrgetter
from typing import Final

from tui.context.spans import turn as turns
from tui.context.spans.attributes import Fields, dollars
from tui.context.spans.ids import span_id
from tui.context.spans.open_spans import OpenBreak, OpenSpans
from tui.session.records import Record

_REASON: Final = "holdfast.break.reason"
_FIELDS: Final = Fields(
    codes={_REASON: "reason", "holdfast.break.by": "by"},
    numbers={"holdfast.break.tokens": "tokens", "holdfast.break.thoughts": "thoughts"},
)
_MESSAGE: Final = Fields(texts={"holdfast.break.message": "message"})


def begin(spans: OpenSpans, record: Record) -> None:
    """Begin a break; those before it that an answer left without a bill end."""
    data = record.data
    turns.of(spans, record)
    end_answered(spans)
    values = {
        **_FIELDS.read(data, content=False),
        **dollars("holdfast.break.forecast_usd", data.get("cost_usd")),
        **_MESSAGE.read(data, content=spans.content),
    }
    one = OpenBreak(span_id("break", record.id), spans.now, values)
    spans.breaks.setdefault(str(values[_REASON]), deque()).append(one)


def billed(spans: OpenSpans, record: Record) -> None:
    """End the first break of the reason that a bill names."""
    data = record.data
    reason = data.get("reason")
    if isinstance(reason, str) and (waiting := spans.breaks.get(reason)):
        one = waiting.popleft()
        bill = _FIELDS.read(data, content=False)
        bill |= dollars("holdfast.break.billed_usd", data.get("billed_usd"))
        _put(spans, OpenBreak(one.id, one.start, one.values | bill))


def end_answered(spans: OpenSpans) -> None:
    """End the breaks that an answer left without a bill."""
    if spans.answered:
        end_all(spans)
        spans.answered = False


def end_all(spans: OpenSpans) -> None:
    """End the breaks whose bill has not come, without it."""
    for one in sorted(chain.from_iterable(spans.breaks.values()), key=attrgetter("start")):
        _put(spans, one)
    spans.breaks.clear()


def _put(spans: OpenSpans, one: OpenBreak) -> None:
    if spans.turn is not None:
        spans.put_in(spans.turn, "break", one.id, start=one.start, values=one.values)
