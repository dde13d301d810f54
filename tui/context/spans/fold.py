"""The fold: which record begins and ends which spans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeAlias

from tui.context.spans import breaks, chat, single, tool
from tui.context.spans import turn as turns
from tui.context.spans.attributes import Values, failure
from tui.context.spans.ids import time_of
from tui.context.spans.open_spans import OpenSpans, RunningCall
from tui.core.config import Price
from tui.core.dataclass import dataclass
from tui.core.messages import blocks_of, string_of, tool_calls
from tui.core.otlp import Span
from tui.session.records import BESIDE, Record, is_answer

_Handler: TypeAlias = Callable[[OpenSpans, Record], None]

_GOES_ON: Final = frozenset({"pause_turn", "compaction"})
"""Why an answer without calls ended that isn't the last of its turn."""


@dataclass(slots=True)
class SpanFold(OpenSpans):
    """The spans of one session, whose records `add` takes in their order."""

    def add(self, record: Record) -> list[Span]:
        """Take the next record. Returns the spans that ended with it."""
        self.ended = []
        self.now = time_of(record.time) or self.now
        self.payer = record.payer
        if handler := _HANDLERS.get(record.type):
            handler(self, record)
        if record.type not in BESIDE:  # what goes on meanwhile began before it
            self.before = self.now
        return self.ended

    def end(self) -> list[Span]:
        """Return what has not ended, up to the last record."""
        self.ended = []
        unfinished: Values = {"holdfast.unfinished": True}
        chat.end(self)
        breaks.end_all(self)
        for id_ in [*self.calls]:
            tool.end(self, id_, unfinished)
        turns.end(self, unfinished)
        return self.ended


def _user(spans: OpenSpans, record: Record) -> None:
    chat.end(spans)
    turns.prompted(spans, record)


def _request(spans: OpenSpans, record: Record) -> None:
    breaks.end_answered(spans)
    chat.begin(spans, record)


def _assistant(spans: OpenSpans, record: Record) -> None:
    content = blocks_of(record.data.get("content"))
    calls = tool_calls(content)
    if is_answer(record):
        chat.answered(spans, record, content)
    tool.begin(spans, record, calls)
    goes_on = bool(calls) or string_of(record.data.get("stop_reason")) in _GOES_ON
    if is_answer(record) and not goes_on:
        turns.end(spans)


def _error(spans: OpenSpans, record: Record) -> None:
    turns.of(spans, record)
    why, words = failure(record.data), string_of(record.data.get("message"))
    chat.end(spans, why, words)
    turns.end(spans, why, words)


def _interrupt(spans: OpenSpans, record: Record) -> None:
    turns.of(spans, record)
    stopped: Values = {"holdfast.stopped": True}
    chat.end(spans, stopped)
    turns.end(spans, stopped)


_HANDLERS: Final[Mapping[str, _Handler]] = {
    "user": _user,
    "request": _request,
    "assistant": _assistant,
    "error": _error,
    "interrupt": _interrupt,
    **dict.fromkeys(("retry", "parked", "failover"), chat.waited),
    "recovery": chat.recovered,
    **dict.fromkeys(sorted(chat.PURPOSES), chat.aside),
    "compaction": single.compaction,
    "intent": tool.started,
    "tool_result": tool.finished,
    "sub_agent": tool.ran_agent,
    "permission": single.approval,
    "hook": single.hook,
    "job_ended": single.job,
    "break": breaks.begin,
    "break_billed": breaks.billed,
}


def spans_of(
    session: str,
    records: Iterable[Record],
    prices: Mapping[str, Price],
    *,
    content: bool = False,
    sub_agents: Mapping[str, Sequence[Record]] = MappingProxyType({}),
    within: Sequence[RunningCall] = (),
) -> Iterator[Span]:
    """Yield the spans of a session, then those of its sub-agents whose records are given."""
    followed = {id_ for id_, own in sub_agents.items() if own}
    fold = SpanFold(session, prices, content, within, followed)
    for record in records:
        yield from fold.add(record)
    yield from fold.end()
    for id_, calls in fold.runs.items():
        if own := sub_agents.get(id_):
            yield from spans_of(id_, own, prices, content=content, within=calls)
