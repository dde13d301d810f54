"""Folds the records of a session into OpenTelemetry spans, one by one. Pure.

A turn is a trace: its root is `invoke_agent`, with a link to the turn before it, and all spans of a
session have its id as `gen_ai.conversation.id`. In it are the requests (`chat MODEL`), the tools
(`execute_tool NAME`), the person's answers (`approval`), breaks, compactions, hooks and background
commands. A sub-agent's turns are in its parent's trace, in the call that ran it.

Ids are made of those of the records, so that the same records give the same spans wherever and how
often they are folded, and so do the copies of a fork. Names are those of the conventions in
`CONVENTIONS`; what these lack begins with `holdfast.`. Costs add up: `holdfast.cost_usd` is only on
the request that was paid for. No text of a person, a model or a tool is in a span, nor a path,
unless `content` is set; keys are masked always.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from tui.core.config import Price, model_of, profile_of
from tui.core.dataclass import dataclass, field
from tui.core.formatting import moment_of
from tui.core.messages import (
    Block,
    Usage,
    as_meant,
    blocks_of,
    list_of,
    object_of,
    string_of,
    text_of,
    tool_calls,
)
from tui.core.otlp import AttributeValue, Span, SpanContext, SpanEvent
from tui.core.redaction import mask
from tui.provider.prices import price_of
from tui.session.records import BATCH, BESIDE, EVERY, GOAL, HOOK, PROGRAM, Record, is_answer

CONVENTIONS: Final = "https://opentelemetry.io/schemas/1.44.0"
"""The conventions whose names are used: those of the package opentelemetry-semantic-conventions
0.66b2, against which they are tested."""
AGENT: Final = "holdfast"

_PROVIDER: Final = "anthropic"
"""The conventions' name for all servers that speak the Messages API, but those of the clouds that
have a name there: these end so."""
_CLOUDS: Final = {
    ".amazonaws.com": "aws.bedrock",
    ".api.aws": "aws.bedrock",
    "aiplatform.googleapis.com": "gcp.vertex_ai",
    ".rep.googleapis.com": "gcp.vertex_ai",
}
_GOES_ON: Final = frozenset({"pause_turn", "compaction"})
"""Why an answer without calls ended that isn't the last of its turn."""
_PURPOSES: Final = {
    "cache_warmed": "keep_warm",
    "compaction": "summary",
    "exam": "exam",
    GOAL: "goal_check",
    "memory": "memory",
    "side_question": "side_question",
    "title": "title",
    "unused": "unused",
}
_BY_PROGRAM: Final = frozenset({EVERY, GOAL, HOOK, PROGRAM})
"""Who made a prompt that no person typed just then."""
_CODES: Final = frozenset({"denied", "interrupted"})
"""Summaries of failed calls that say the kind of failure."""
_LONGEST: Final = 65_536
"""Most characters of a text; the rest is cut."""
_SHORT: Final = 200
"""Most characters of a name or a code."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_Values: TypeAlias = dict[str, AttributeValue]


@dataclass(frozen=True, slots=True)
class RunningCall:
    """A call that runs a sub-agent, since a time, with the name of its kind."""

    context: SpanContext
    since: int
    agent: str


@dataclass(slots=True)
class _Turn:
    """A turn that has begun. What comes after its end is still in its trace."""

    root: SpanContext
    parent: str
    start: int
    agent: str
    by: str
    link: SpanContext | None = None
    prompt: str = ""
    answer: str = ""
    events: list[SpanEvent] = field(default_factory=list[SpanEvent])
    usd: float | None = 0.0
    requests: int = 0
    calls: int = 0
    ended: bool = False
    provider: str = _PROVIDER
    """Who was asked last."""


@dataclass(slots=True)
class _Request:
    """A request without an answer."""

    id: str
    start: int
    values: _Values
    events: list[SpanEvent] = field(default_factory=list[SpanEvent])


@dataclass(slots=True)
class _Call:
    """A call without a result, in the turn with the span `parent`."""

    context: SpanContext
    parent: str
    block: Block
    start: int
    values: _Values = field(default_factory=dict[str, AttributeValue])


@dataclass(slots=True)
class SpanFold:
    """The spans of one session, whose records `add` takes in their order.

    `prices` are the configured ones. For a sub-agent's session, `within` are the calls of its
    parent that ran it: the list in `runs` of the parent's fold. `followed` are the sessions of
    sub-agents that are folded, too: what these cost is on their own spans.
    """

    session: str
    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])
    content: bool = False
    within: Sequence[RunningCall] = ()
    followed: set[str] = field(default_factory=set[str])
    runs: dict[str, list[RunningCall]] = field(default_factory=dict[str, list[RunningCall]])
    current: _Turn | None = None
    request: _Request | None = None
    calls: dict[str, _Call] = field(default_factory=dict[str, _Call])
    breaks: list[tuple[str, int, _Values]] = field(
        default_factory=list[tuple[str, int, dict[str, AttributeValue]]]
    )
    before: int = 0
    """When the record before was written."""
    now: int = 0
    answered: bool = False
    """True if an answer came since the breaks that wait for their bill."""
    made: list[Span] = field(default_factory=list[Span])

    def add(self, record: Record) -> list[Span]:
        """Take the next record. Returns the spans that ended with it."""
        self.made = []
        self.now = _time(record.time) or self.now
        if handler := _HANDLERS.get(record.type):
            handler(self, record, record.data)
        if record.type not in BESIDE:  # what goes on meanwhile began before it
            self.before = self.now
        return self.made

    def end(self) -> list[Span]:
        """Return what has not ended, up to the last record."""
        self.made = []
        self.close_request(None)
        self.settle_breaks()
        for id_ in [*self.calls]:
            self.end_call(id_, {"holdfast.unfinished": True}, None)
        self.end_turn({"holdfast.unfinished": True})
        return self.made

    # What the handlers use

    def begin_turn(self, record: Record, by: str, prompt: str = "") -> _Turn:
        """Begin the turn of a record, after the end of the one before."""
        before = self.current
        self.end_turn({})
        now, span = self.now, _span_id("turn", record.id)
        calls = [one for one in self.within if one.since <= now] or self.within[:1]
        if calls:
            call = calls[-1]
            root, parent, agent = (
                SpanContext(call.context.trace_id, span),
                call.context.span_id,
                call.agent,
            )
        else:
            root, parent, agent = SpanContext(_digest("trace", record.id)[:32], span), "", AGENT
        link = before.root if before and before.root.trace_id != root.trace_id else None
        self.current = _Turn(root, parent, now, agent, by, link, prompt)
        return self.current

    def turn(self, record: Record) -> _Turn:
        """The turn that a record belongs to."""
        return self.current or self.begin_turn(record, "program")

    def end_turn(self, values: _Values, error: str | None = None) -> None:
        """End the turn, if one is open."""
        turn = self.current
        if turn is None or turn.ended:
            return
        turn.ended = True
        all_: _Values = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": turn.provider,
            "gen_ai.agent.name": turn.agent,
            "holdfast.turn.by": turn.by,
            "holdfast.turn.requests": turn.requests,
            "holdfast.turn.tool_calls": turn.calls,
        }
        if turn.usd is not None:
            all_["holdfast.turn.cost_usd"] = turn.usd
        if self.content:
            if turn.prompt:
                all_["gen_ai.input.messages"] = _messages("user", [_text_part(turn.prompt)])
            if turn.answer:
                all_["gen_ai.output.messages"] = _messages("assistant", [_text_part(turn.answer)])
        links = (turn.link,) if turn.link else ()
        name = f"invoke_agent {turn.agent}"
        made = self._span(
            name,
            turn.root,
            turn.parent,
            start=turn.start,
            values=all_ | values,
            error=error,
            events=tuple(turn.events),
            links=links,
        )
        self.made.append(made)

    def put(
        self,
        turn: _Turn,
        name: str,
        id_: str,
        start: int,
        values: _Values,
        *,
        error: str | None = None,
        events: Iterable[SpanEvent] = (),
        parent: str = "",
        client: bool = False,
    ) -> str:
        """Add a span of a turn that ends now. Returns its id."""
        context = SpanContext(turn.root.trace_id, id_)
        made = self._span(
            name,
            context,
            parent or turn.root.span_id,
            start=start,
            values=values,
            error=error,
            events=tuple(events),
            client=client,
        )
        self.made.append(made)
        return id_

    def _span(
        self,
        name: str,
        context: SpanContext,
        parent: str,
        *,
        start: int,
        values: _Values,
        error: str | None,
        events: tuple[SpanEvent, ...] = (),
        links: tuple[SpanContext, ...] = (),
        client: bool = False,
    ) -> Span:
        shown: _Values = {"gen_ai.conversation.id": self.session}
        shown |= {key: _masked(value) for key, value in values.items() if value != ""}
        kind = "client" if client else "internal"
        start = min(start or self.now, self.now)
        words = error and (mask(_cut(error))[0] if self.content else "")
        name = mask(name)[0]
        return Span(name, context, parent, kind, start, self.now, shown, events, links, words)

    def pay(self, turn: _Turn, model: str, usage: Usage, *, batch: bool = False) -> float | None:
        """Return what an answer cost, and count it for the turn; None without a price."""
        price = price_of(model, self.prices)
        usd = (price.in_batch() if batch else price).cost(usage) if price else None
        if not turn.ended:
            turn.usd = None if usd is None or turn.usd is None else turn.usd + usd
        return usd

    def close_request(self, error: _Values | None, words: str = "") -> None:
        """End the open request without an answer; `error` says why, None that nobody knows."""
        request, turn = self.request, self.current
        self.request = None
        if request is None or turn is None:
            return
        why: _Values = {"holdfast.unfinished": True} if error is None else error
        self.put(
            turn,
            f"chat {request.values['gen_ai.request.model']}",
            request.id,
            request.start,
            request.values | why,
            error=words if "error.type" in why else None,
            events=request.events,
            client=True,
        )

    def end_call(self, id_: str, values: _Values, error: str | None) -> None:
        """End a call that is open."""
        call = self.calls.pop(id_)
        block = as_meant(call.block)
        name = _short(block.get("name")) or "unknown"
        all_: _Values = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.id": _short(id_),
            "gen_ai.tool.type": "function",
        }
        if self.content:
            all_["gen_ai.tool.call.arguments"] = _cut(_json(block.get("input")))
        seconds = values.pop("holdfast.seconds", 0.0)
        start = call.start
        if isinstance(seconds, float) and seconds:
            start = max(start, self.now - int(seconds * 1e9))
        made = self._span(
            f"execute_tool {name}",
            call.context,
            call.parent,
            start=start,
            values=all_ | call.values | values,
            error=error,
        )
        self.made.append(made)

    def settle_breaks(self) -> None:
        """Add the breaks whose bill has not come, without it."""
        for id_, at, values in self.breaks:
            self.put_break(id_, at, values)
        self.breaks.clear()

    def put_break(self, id_: str, at: int, values: _Values) -> None:
        """Add a break, in the turn that it is part of."""
        if self.current is not None:
            self.put(self.current, "break", id_, at, values)

    def event(self, record: Record, name: str, values: _Values) -> None:
        """Add an event to the open request, or to the turn."""
        shown = {key: _masked(value) for key, value in values.items() if value != ""}
        made = SpanEvent(name, self.now, shown)
        if self.request is not None:
            self.request.events.append(made)
        elif not (turn := self.turn(record)).ended:
            turn.events.append(made)


# One handler for each type of records

_Handler: TypeAlias = Callable[[SpanFold, Record, dict[str, Any]], None]


def _user(fold: SpanFold, record: Record, data: dict[str, Any]) -> None:
    fold.close_request(None)
    by = string_of(data.get("by"))
    text = data.get("text") if fold.content else ""
    if fold.content and not isinstance(text, str):
        text = text_of(blocks_of(data.get("content")))
    fold.begin_turn(record, by if by in _BY_PROGRAM else "person", string_of(text))


def _request(fold: SpanFold, record: Record, data: dict[str, Any]) -> None:
    fold.close_request(None)
    if (turn := fold.current) is None or turn.ended:
        turn = fold.begin_turn(record, "program")
    server = _server(data.get("server"))
    turn.provider = _provider(server)
    if fold.answered:
        fold.settle_breaks()
        fold.answered = False
    model = _short(data.get("model")) or "unknown"
    values: _Values = {
        **_operation(model, turn.provider),
        "gen_ai.request.stream": True,
        "holdfast.request.effort": _short(data.get("effort")),
        **server,
        **_whole("gen_ai.request.max_tokens", data.get("max_tokens")),
        **_whole("holdfast.request.number", data.get("n")),
    }
    fold.request = _Request(_span_id("request", record.id), fold.now, values)


def _assistant(fold: SpanFold, record: Record, data: dict[str, Any]) -> None:
    content = blocks_of(data.get("content"))
    turn = fold.turn(record)
    if is_answer(record):
        _answer(fold, record, data, content)
    for block in tool_calls(content):
        id_ = string_of(block.get("id"))
        context = SpanContext(turn.root.trace_id, _span_id("call", f"{record.id} {id_}"))
        fold.calls[id_] = _Call(context, turn.root.span_id, block, fold.now)
        turn.calls += 1
    goes_on = bool(tool_calls(content)) or string_of(data.get("stop_reason")) in _GOES_ON
    if is_answer(record) and not goes_on:
        fold.end_turn({})


def _answer(fold: SpanFold, record: Record, data: dict[str, Any], content: list[Block]) -> None:
    turn, request, fold.request = fold.turn(record), fold.request, None
    usage, model = Usage.from_json(data.get("usage")), _short(data.get("model"))
    values = request.values if request else _operation(model or "unknown", turn.provider)
    reason = _short(data.get("stop_reason"))
    values = values | {
        "gen_ai.response.model": model_of(model),
        "gen_ai.response.id": _short(data.get("message_id")),
        "holdfast.request.id": _short(data.get("request_id")),
        **({"gen_ai.response.finish_reasons": (reason,)} if reason else {}),
        **_usage(usage),
    }
    if usage.total:
        usd = fold.pay(turn, model, usage, batch=bool(data.get(BATCH)))
        values |= {} if usd is None else {"holdfast.cost_usd": usd}
    if not turn.ended:
        turn.requests += 1
    if fold.content:
        values["gen_ai.output.messages"] = _messages("assistant", _parts(content), reason)
        turn.answer = text_of(content) or turn.answer
    fold.answered = True
    fold.put(
        turn,
        f"chat {values['gen_ai.request.model']}",
        request.id if request else _span_id("request", record.id),
        request.start if request else fold.before,
        values,
        events=request.events if request else (),
        client=True,
    )


def _intent(fold: SpanFold, record: Record, data: dict[str, Any]) -> None:
    del record
    if call := fold.calls.get(string_of(data.get("call_id"))):
        call.start = fold.now


def _permission(fold: SpanFold, record: Record, data: dict[str, Any]) -> None:
    """Take a decision; the wait for a person is a span, from the record before."""
    call = fold.calls.get(string_of(data.get("call_id")))
    if data.get("by") != "person":
        return
    if call:
        call.start = fold.now
    values: _Values = {
        "gen_ai.tool.name": _short(data.get("tool")),
        "gen_ai.tool.call.id": _short(data.get("call_id")),
        "holdfast.approval.answer": _short(data.get("answer")),
    }
    if fold.content:
        values["holdfast.approval.subject"] = _text(data.get("subject"))
        values["holdfast.approval.reason"] = _text(data.get("reason"))
    id_ = _span_id("approval", record.id)
    fold.put(fold.turn(record), "approval", id_, fold.before, values)


def _result(fold: SpanFold, record: Record, data: dict[str, Any]) -> None:
    del record
    id_ = string_of(data.get("call_id"))
    if id_ not in fold.calls:
        return
    values: _Values = {"holdfast.seconds": _seconds(data.get("seconds"))}
    content, error = blocks_of(data.get("content")), None
    if data.get("is_error"):
        summary = string_of(data.get("summary"))
        values["error.type"] = summary if summary in _CODES else "tool_error"
        error = text_of(content)
    if fold.content:
        values["gen_ai.tool.call.result"] = _cut(text_of(content))
    fold.end_call(id_, values, error)


def _sub_agent(fold: SpanFold, record: Record, data: dict[str, Any]) -> None:
    call, session = fold.calls.get(string_of(data.get("call_id"))), string_of(data.get("session"))
    if data.get("state") == "started":
        if call:
            kind = _short(data.get("agent")) or AGENT
            running = RunningCall(call.context, fold.now, kind)
            fold.runs.setdefault(session, []).append(running)
            call.values["holdfast.sub_agent.session"] = _short(session)
        return
    turn = fold.turn(record)
    usd: float | None = 0.0
    for one in map(object_of, list_of(data.get("spent"))):
        usage = Usage.from_json(one.get("usage"))
        cost = fold.pay(turn, string_of(one.get("model")), usage)
        usd = None if usd is None or cost is None else usd + cost
    if call:
        call.values["holdfast.sub_agent.state"] = _short(data.get("state"))
        if usd and session not in fold.followed:
            call.values["holdfast.cost_usd"] = usd


def _hook(fold: SpanFold, record: Record, data: dict[str, Any]) -> None:
    event, outcome = _short(data.get("event")), _short(data.get("outcome"))
    values: _Values = {
        "holdfast.hook.event": event,
        "holdfast.hook.outcome": outcome,
        **_whole("process.exit.code", data.get("exit_code")),
    }
    call = fold.calls.get(string_of(data.get("call_id")))
    if fold.content:
        values["holdfast.hook.command"] = _text(data.get("command"))
        values["holdfast.hook.output"] = _text(data.get("text"))
    failed = outcome not in {"ok", "blocked"}
    if failed:
        values["error.type"] = f"hook_{outcome or 'failed'}"
    start = fold.now - int(_seconds(data.get("seconds")) * 1e9)
    fold.put(
        fold.turn(record),
        f"hook {event}".strip(),
        _span_id("hook", record.id),
        start,
        values,
        error=string_of(data.get("text")) if failed else None,
        parent=call.context.span_id if call else "",
    )


def _job_ended(fold: SpanFold, record: Record, data: dict[str, Any]) -> None:
    code, seconds = data.get("exit_code"), _seconds(data.get("seconds"))
    stopped = string_of(data.get("stopped_by"))
    values: _Values = {
        "gen_ai.tool.call.id": _short(data.get("call_id")),
        "holdfast.job.id": _short(data.get("job")),
        "holdfast.job.stopped_by": _short(stopped),
        **_whole("process.exit.code", code),
    }
    if fold.content:
        values["process.command_line"] = _text(data.get("command"))
        values["gen_ai.tool.call.result"] = _text(data.get("text"))
    failed = code != 0 and not stopped
    if failed:
        values["error.type"] = "exit_code" if isinstance(code, int) else "unknown_end"
    start = fold.now - int(seconds * 1e9)
    id_ = _span_id("job", record.id)
    fold.put(fold.turn(record), "job", id_, start, values, error="" if failed else None)


def _compaction(fold: SpanFold, record: Record, data: dict[str, Any]) -> None:
    values: _Values = {
        "holdfast.compaction.reason": _short(data.get("reason")),
        **_whole("holdfast.compaction.tokens_before", data.get("tokens_before")),
        **_whole("holdfast.compaction.tokens_after", data.get("tokens_after")),
        **_whole("holdfast.compaction.messages", data.get("messages_removed")),
    }
    begun = fold.now if data.get("reason") == "manual" else fold.before
    id_ = fold.put(fold.turn(record), "compact", _span_id("compact", record.id), begun, values)
    _aside(fold, record, data, parent=id_)


def _aside(fold: SpanFold, record: Record, data: dict[str, Any], *, parent: str = "") -> None:
    """Take a request beside the conversation, which is paid for, too."""
    usage = Usage.from_json(data.get("usage"))
    if not usage.total:
        return
    turn, model = fold.turn(record), _short(data.get("model")) or "unknown"
    server = _server(data.get("server"))
    values: _Values = {
        **_operation(model, _provider(server) if server else turn.provider),
        "gen_ai.response.model": model_of(model),
        "holdfast.request.purpose": _PURPOSES[record.type],
        **server,
        **_usage(usage),
    }
    if fold.content and record.type == "side_question":
        values["gen_ai.input.messages"] = _messages(
            "user", [_text_part(_text(data.get("question")))]
        )
        answered = [_text_part(_text(data.get("answer")))]
        values["gen_ai.output.messages"] = _messages("assistant", answered)
    unpriced_title = record.type == "title" and price_of(model, fold.prices) is None
    if not unpriced_title and (usd := fold.pay(turn, model, usage)) is not None:
        values["holdfast.cost_usd"] = usd
    start = fold.now if record.type == "title" else fold.before
    if record.type in BESIDE:
        start = fold.now - int(_seconds(data.get("seconds")) * 1e9)
    id_ = _span_id("aside", record.id)
    fold.put(turn, f"chat {model_of(model)}", id_, start, values, parent=parent, client=True)


def _break(fold: SpanFold, record: Record, data: dict[str, Any]) -> None:
    fold.turn(record)
    if fold.answered:
        fold.settle_breaks()
        fold.answered = False
    values = _break_values(data)
    if isinstance(usd := data.get("cost_usd"), int | float):
        values["holdfast.break.forecast_usd"] = float(usd)
    if fold.content and isinstance(data.get("message"), str):
        values["holdfast.break.message"] = _text(data.get("message"))
    fold.breaks.append((_span_id("break", record.id), fold.now, values))


def _billed(fold: SpanFold, record: Record, data: dict[str, Any]) -> None:
    del record
    reason = data.get("reason")
    for place, (id_, at, values) in enumerate(fold.breaks):
        if values["holdfast.break.reason"] == reason:
            billed = values | _break_values(data)
            if isinstance(usd := data.get("billed_usd"), int | float):
                billed["holdfast.break.billed_usd"] = float(usd)
            del fold.breaks[place]
            fold.put_break(id_, at, billed)
            return


def _break_values(data: dict[str, Any]) -> _Values:
    return {
        "holdfast.break.reason": _short(data.get("reason")),
        "holdfast.break.by": _short(data.get("by")),
        **_whole("holdfast.break.tokens", data.get("tokens")),
        **_whole("holdfast.break.thoughts", data.get("thoughts")),
    }


def _wait(fold: SpanFold, record: Record, data: dict[str, Any]) -> None:
    """Take a retry, a park or a change of models."""
    values: _Values = {
        **_failure(data),
        **_whole("holdfast.retry.attempt", data.get("attempt")),
        "holdfast.parked.until": _short(data.get("until")),
        "holdfast.failover.from": _short(data.get("from")),
        "holdfast.failover.to": _short(data.get("to")),
    }
    if delay := _seconds(data.get("delay_s")):
        values["holdfast.retry.delay_s"] = delay
    fold.event(record, f"holdfast.{record.type}", values)


def _recovery(fold: SpanFold, record: Record, data: dict[str, Any]) -> None:
    fold.close_request(_failure(data))
    values: _Values = {"holdfast.recovery.step": _short(data.get("step"))}
    fold.event(record, "holdfast.recovery", values)


def _error(fold: SpanFold, record: Record, data: dict[str, Any]) -> None:
    fold.turn(record)
    failure, words = _failure(data), string_of(data.get("message"))
    fold.close_request(failure, words)
    fold.end_turn(failure, words)


def _interrupt(fold: SpanFold, record: Record, data: dict[str, Any]) -> None:
    del data
    fold.turn(record)
    stopped: _Values = {"holdfast.stopped": True}
    fold.close_request(stopped)
    fold.end_turn(stopped)


_HANDLERS: Final[Mapping[str, _Handler]] = {
    "user": _user,
    "request": _request,
    "assistant": _assistant,
    "intent": _intent,
    "permission": _permission,
    "tool_result": _result,
    "sub_agent": _sub_agent,
    "hook": _hook,
    "job_ended": _job_ended,
    "compaction": _compaction,
    **dict.fromkeys(sorted(_PURPOSES.keys() - {"compaction"}), _aside),
    "break": _break,
    "break_billed": _billed,
    **dict.fromkeys(("retry", "parked", "failover"), _wait),
    "recovery": _recovery,
    "error": _error,
    "interrupt": _interrupt,
}


# Attributes


def _operation(model: str, provider: str) -> _Values:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": model_of(model),
        "holdfast.profile": profile_of(model),
    }


def _usage(usage: Usage) -> _Values:
    """The conventions count what came from the cache as input, too."""
    if not usage.total:
        return {}
    values: _Values = {
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_input_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_creation_input_tokens,
    }
    if usage.thinking_tokens:
        values["gen_ai.usage.reasoning.output_tokens"] = usage.thinking_tokens
    if usage.web_search_requests:
        values["holdfast.usage.web_searches"] = usage.web_search_requests
    return values


def _server(name: object) -> _Values:
    try:
        parts = urlsplit(string_of(name))
        port = parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    except ValueError:
        return {}
    if not parts.hostname:
        return {}
    values: _Values = {"server.address": _short(parts.hostname)}
    return values | {"server.port": port} if port else values


def _provider(server: _Values) -> str:
    """The conventions' name of who answers at a server."""
    host = str(server.get("server.address", ""))
    return next((name for end, name in _CLOUDS.items() if host.endswith(end)), _PROVIDER)


def _failure(data: dict[str, Any]) -> _Values:
    """The class of an error and the server's status; without a class, the conventions' `_OTHER`."""
    status = data.get("status")
    return {
        "error.type": _short(data.get("error_class")) or "_OTHER",
        **_whole("http.response.status_code", status),
        "holdfast.request.id": _short(data.get("request_id")),
    }


def _parts(content: Iterable[Block]) -> list[dict[str, Any]]:
    """The blocks of an answer as the conventions' parts of a message."""
    parts: list[dict[str, Any]] = []
    for block in content:
        match block.get("type"):
            case "text":
                parts.append(_text_part(string_of(block.get("text"))))
            case "thinking":
                parts.append({"type": "reasoning", "content": _text(block.get("thinking"))})
            case "tool_use":
                call = {"id": block.get("id"), "name": block.get("name")}
                parts.append({"type": "tool_call", **call, "arguments": block.get("input")})
            case kind:
                parts.append({"type": string_of(kind) or "unknown"})
    return parts


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "content": _cut(text)}


def _messages(role: str, parts: list[dict[str, Any]], reason: str = "") -> str:
    message = {"role": role, "parts": parts} | ({"finish_reason": reason} if reason else {})
    return json.dumps([message], ensure_ascii=False)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _masked(value: AttributeValue) -> AttributeValue:
    return mask(value)[0] if isinstance(value, str) else value


def _cut(text: str, most: int = _LONGEST) -> str:
    return text if len(text) <= most else text[:most] + "…"


def _text(value: object) -> str:
    """A text, whatever is in the record."""
    return _cut(string_of(value))


def _short(value: object) -> str:
    """A name or a code, whatever is in the record."""
    return _cut(string_of(value), _SHORT)


def _whole(name: str, value: object) -> _Values:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 62:
        return {name: value}
    return {}


def _seconds(value: object) -> float:
    """Seconds that can be counted with; 0 for anything else."""
    return float(value) if isinstance(value, int | float) and 0 < value < 1e8 else 0.0


def _time(text: str) -> int:
    """A record's time in nanoseconds since 1970; 0 where it has none."""
    moment = moment_of(text)
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000 if moment else 0


def _span_id(kind: str, id_: str) -> str:
    return _digest(kind, id_)[:16]


def _digest(kind: str, id_: str) -> str:
    return sha256(f"{kind} {id_}".encode(errors="replace")).hexdigest()


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
