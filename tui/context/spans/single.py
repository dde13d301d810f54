"""The spans that one record tells whole: an approval, a hook, a background command, a summary."""

from __future__ import annotations

from typing import Final

from tui.context.spans import chat, tool
from tui.context.spans import turn as turns
from tui.context.spans.attributes import Fields, nanoseconds
from tui.context.spans.ids import span_id
from tui.context.spans.open_spans import OpenSpans
from tui.core.messages import string_of
from tui.session.records import Record

_APPROVAL: Final = Fields(
    codes={
        "gen_ai.tool.name": "tool",
        "gen_ai.tool.call.id": "call_id",
        "holdfast.approval.answer": "answer",
    },
    texts={"holdfast.approval.subject": "subject", "holdfast.approval.reason": "reason"},
)
_HOOK: Final = Fields(
    codes={"holdfast.hook.event": "event", "holdfast.hook.outcome": "outcome"},
    numbers={"process.exit.code": "exit_code"},
    texts={"holdfast.hook.command": "command", "holdfast.hook.output": "text"},
)
_JOB: Final = Fields(
    codes={
        "gen_ai.tool.call.id": "call_id",
        "holdfast.job.id": "job",
        "holdfast.job.stopped_by": "stopped_by",
    },
    numbers={"process.exit.code": "exit_code"},
    texts={"process.command_line": "command", "gen_ai.tool.call.result": "text"},
)
_COMPACTION: Final = Fields(
    codes={"holdfast.compaction.reason": "reason"},
    numbers={
        "holdfast.compaction.tokens_before": "tokens_before",
        "holdfast.compaction.tokens_after": "tokens_after",
        "holdfast.compaction.messages": "messages_removed",
    },
)


def approval(spans: OpenSpans, record: Record) -> None:
    """Add the wait for a person's decision, from the record before; the call begins after it."""
    data = record.data
    if data.get("by") != "person":
        return
    tool.started(spans, record)
    values = _APPROVAL.read(data, content=spans.content)
    turn, id_ = turns.of(spans, record), span_id("approval", record.id)
    spans.put_in(turn, "approval", id_, start=spans.before, values=values)


def hook(spans: OpenSpans, record: Record) -> None:
    """Add a hook that ran, below the call that it is about."""
    data = record.data
    values, words = _HOOK.read(data, content=spans.content), None
    outcome = values["holdfast.hook.outcome"]
    if outcome not in {"ok", "blocked"}:
        values["error.type"] = f"hook_{outcome or 'failed'}"
        words = string_of(data.get("text"))
    call = spans.calls.get(string_of(data.get("call_id")))
    spans.put_in(
        turns.of(spans, record),
        f"hook {values['holdfast.hook.event']}".strip(),
        span_id("hook", record.id),
        start=spans.now - nanoseconds(data.get("seconds")),
        values=values,
        error=words,
        parent=call.context.span_id if call else "",
    )


def job(spans: OpenSpans, record: Record) -> None:
    """Add a background command that has ended."""
    data = record.data
    values, exit_code = _JOB.read(data, content=spans.content), data.get("exit_code")
    failed = exit_code != 0 and not values["holdfast.job.stopped_by"]
    if failed:
        values["error.type"] = "exit_code" if isinstance(exit_code, int) else "unknown_end"
    start = spans.now - nanoseconds(data.get("seconds"))
    turn, id_ = turns.of(spans, record), span_id("job", record.id)
    spans.put_in(turn, "job", id_, start=start, values=values, error="" if failed else None)


def compaction(spans: OpenSpans, record: Record) -> None:
    """Add a summary, with its request below it."""
    data = record.data
    begun = spans.now if data.get("reason") == "manual" else spans.before
    values = _COMPACTION.read(data, content=False)
    turn, id_ = turns.of(spans, record), span_id("compact", record.id)
    spans.put_in(turn, "compact", id_, start=begun, values=values)
    chat.aside(spans, record, parent=id_)
