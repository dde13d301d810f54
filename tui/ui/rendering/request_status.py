"""A request that did not go well, drawn: a line in the conversation, and the banner meanwhile."""

from __future__ import annotations

from datetime import datetime
from typing import TypeAlias

from tui.agent import events
from tui.core.formatting import plural, tokens
from tui.core.text_cleaning import one_line
from tui.ui.screens.chat import ChatScreen
from tui.ui.widgets.conversation.items import NoticeItem
from tui.ui.widgets.record_items import (
    attempt_item,
    compacted_item,
    parked_item,
    recovery_item,
    switch_item,
)

RequestEvent: TypeAlias = (
    events.RetryScheduled
    | events.Parked
    | events.ModelSwitched
    | events.RecoveryStep
    | events.LoopStopped
)

_FULL = "context full"
_STEPS = {
    "output": "a shorter answer",
    "images": "without older images",
    "compaction": "compacted",
    "results": "large results cut",
    "digest": "as a digest",
}


def show(chat: ChatScreen, event: RequestEvent, voided: str) -> None:
    """Draw one event. `voided` is what had been streamed of the answer that will not come."""
    match event:
        case events.RetryScheduled():
            chat.work("waiting to try again")
            chat.retry.wait(
                event.reason,
                attempt=event.attempt,
                max_attempts=event.max_attempts,
                delay_s=event.delay_s,
                error_class=event.error_class,
            )
            chat.add(attempt_item(event.to_json() | {"text": voided}))
        case events.Parked(until, reason, error_class, _):
            moment = datetime.fromisoformat(until)
            chat.work("parked")
            chat.retry.park(moment, error_class)
            told = parked_item(error_class, moment, chat.clock.now(), one_line(reason), voided)
            last = chat.conversation.newest
            if not (isinstance(last, NoticeItem) and last.text == told.text):  # told by the record
                chat.add(told)
        case events.ModelSwitched():
            chat.add(_switched(chat, event, voided))
        case events.RecoveryStep(step, text, before, after):
            chat.retry.recover(_FULL, f"{_STEPS[step]}, sent again …")
            chat.add(recovery_item(text, before, after, voided))
        case events.LoopStopped(name, input_, times):
            text = f"{name} was called {times} times in a row with the same result: stopped."
            hint = "Say what it should do instead."
            given = "\n".join(f"{key}: {value}" for key, value in input_.items())
            chat.add(NoticeItem(f"{text} {hint}", "warning", given))


def compact(
    chat: ChatScreen,
    event: events.OverflowCompactionStarted | events.CompactionStarted | events.CompactionFinished,
) -> None:
    """Show that a summary is being made, and what has come of it."""
    match event:
        case events.OverflowCompactionStarted(number, of, size):
            chat.work("compacting")
            chat.retry.recover(_FULL, f"compacting {number} of {of}, {tokens(size)} tokens …")
        case events.CompactionStarted(reason, size, messages):
            chat.work("compacting")
            if reason != "overflow":  # which was announced
                what = f"{plural(messages, 'message')}, {tokens(size)} tokens"
                chat.retry.recover("context", f"compacting {what} …")
        case events.CompactionFinished(before, after, removed, summary, reason, problem):
            chat.retry.done()
            if reason != "overflow":  # of which the step is told
                chat.add(compacted_item(before, after, removed, summary, problem))


def _switched(chat: ChatScreen, event: events.ModelSwitched, voided: str) -> NoticeItem:
    """Another model: why, and the way back."""
    back = f"back to {event.old} later by itself, or with /model {event.old}"
    if event.back_at:
        at = chat.retry.moment(datetime.fromisoformat(event.back_at))
        back = f"back to {event.old} from {at} on, or with /model {event.old}"
    return switch_item(event.to_json() | {"text": voided}, back)
