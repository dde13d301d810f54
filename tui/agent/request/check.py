"""Last station: a request is compared with the one before it, and recorded.

Where it does not extend that one, this is a break: recorded with its reason and price, and what was
thought after what changed is left out from there on (see `tui.context.breaks`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from tui.agent.request.break_reasons import BreakReason, first_changed, reason_of, with_pending
from tui.agent.request.build import build, built
from tui.agent.request.form import Target
from tui.agent.request.state import Built, Prepared, RequestState
from tui.agent.request.view import prepare, up_to_date
from tui.context.breaks import BREAK, in_turn, thoughtless, turn_start
from tui.context.compaction_block import follows
from tui.context.overrides import Stand, content_of, pending
from tui.context.prune import rule_to_json
from tui.context.request_trail import Comparison, has_thinking, signature_of
from tui.context.view import View
from tui.core.dataclass import astuple, dataclass, replace
from tui.core.facts import ContextBroken, RequestMade
from tui.provider.base import Request
from tui.session.records import Record

if TYPE_CHECKING:
    from tui.agent.request.break_bill import Expected

log = logging.getLogger(__name__)

_IN_THE_MIDDLE: Final = frozenset({"mask", "unmask", "prune", "repair"})
"""The reasons of breaks before which most of a conversation stays as it was."""
_FOR_GOOD: Final = frozenset({"refused", "redaction", "repair", "unexplained"})
"""The reasons of breaks whose thinking never goes out again."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A request that may be sent. Where it breaks with the last one: why, what is said of it, and
    what the server is expected to read and write."""

    target: Target
    built: Built
    why: BreakReason | None = None
    said: ContextBroken | None = None
    due: Expected | None = None


def check(requests: RequestState, prepared: Prepared) -> Request:
    """Return the request to send, recorded.

    What was recorded since the view was made is in it too: it comes before the request.
    """
    prepared = up_to_date(requests, prepared)
    requests.asked = checked(requests, prepared, lambda: prepare(requests))
    return requests.asked


def checked(requests: RequestState, prepared: Prepared, again: Callable[[], Prepared]) -> Request:
    """Return a request that may be sent, recorded, after the break that it needs."""
    one = judged(requests, prepared, again)
    target, now, why = one.target, one.built, one.why
    forecast: dict[str, Any] = {}
    if one.due is not None and one.said is not None:
        forecast = {"forecast": one.due.to_json(one.said)}
    first_party = requests.ctx.link.at(target.model.id).first_party
    if first_party and "diagnostics" not in target.off:
        previous = {"previous_message_id": requests.sent.last_answer(target.model)}
        now = replace(now, request=replace(now.request, diagnostics=previous))
    _record_request(requests, target, now, why.reason if why else "", forecast)
    requests.sent.keep(target.model, now.found, now.candidate)
    return now.request


def judged(requests: RequestState, prepared: Prepared, again: Callable[[], Prepared]) -> Judged:
    """Make a request one that may be sent. A break that it needs is recorded; then its view is made
    `again`."""
    prepared = _with_built(requests, prepared)
    why, said = needed_break(requests, prepared), None
    if why is not None and not why.recorded:
        said = record_break(requests, prepared, why)
        prepared = _with_built(requests, again())
    # Thinking that is still out of place must not be sent, whatever the reason: all of it goes.
    if built(requests, prepared).found.misplaced is not None:
        known = (why is not None and why.reason == "repair") or _damaged(requests)
        said = record_break(
            requests, prepared, BreakReason("repair" if known else "unexplained", "program")
        )
        prepared = _with_built(requests, again())
    target, now = prepared.target, built(requests, prepared)
    answered = requests.sent.answered(target.model)
    if why is None and answered and _restarts(target, now.request):
        by = "server" if target.off & {"effort", "thinking"} else "person"
        why = BreakReason("effort", by, recorded=True)  # thinking stays valid
    if why is None:
        return Judged(target, now)
    from tui.agent.request.break_bill import expected, forecast_of  # noqa: PLC0415 - on demand

    now = _marked(requests, prepared, why, now)
    due = expected(requests, target, now, requests.ctx.records)
    if said is None:
        said = forecast_of(requests.ctx, target, why, due, _lost(requests, why))
        requests.ctx.publish(said)
    return Judged(target, now, why, said, due)


def _with_built(requests: RequestState, prepared: Prepared) -> Prepared:
    return replace(prepared, built=built(requests, prepared))


def needed_break(requests: RequestState, prepared: Prepared) -> BreakReason | None:
    """Return the break that a request needs; None where it extends the last, or goes back to one
    before."""
    now, target = built(requests, prepared), prepared.target
    if not _breaks(now.found) and not _summarized(requests, target, now.found):
        return None
    why = reason(requests, prepared)
    if not why.reason:  # a compaction was undone
        back = requests.sent.goes_back(now.request, target.model)
        if back and now.found.misplaced is None:
            return None
        why = BreakReason("reload", "program")
    if _stays(requests, why, now.found):
        why = replace(why, start=why.cause)
    if why.recorded:
        return why
    return _with_pending(requests, prepared, _healing(requests, why, now))


def next_break(requests: RequestState, prepared: Prepared) -> int | None:
    """Return the number of the first record at which the next request changes what was sent.

    None where it would not, where only a compaction did (its undoing restores what was), and
    where nothing was sent yet.
    """
    records, last = requests.ctx.records, prepared.target.last
    if last is None or not _breaks(built(requests, prepared).found):
        return None
    why = reason_of(records, last)
    if not why.reason or why.cause or why.recorded:  # recorded: its thinking went before
        return None
    return first_changed(records, last)


def reason(requests: RequestState, prepared: Prepared) -> BreakReason:
    """Return the reason why a request does not extend the last to its model."""
    records, last = requests.ctx.records, prepared.target.last
    why = reason_of(records, last, _newly_pruned(requests, prepared))
    if why.reason == "unexplained" and _damaged(requests):
        return replace(why, reason="repair")
    return why


def _damaged(requests: RequestState) -> bool:
    """True if the record no longer makes the requests of this branch, and its file is not what was
    written."""
    session = requests.ctx.session
    if session.path is None or not session.resumed:
        return False
    from tui.session.chain_check import verify  # noqa: PLC0415 - on demand

    if not session.findings and not verify(session.path).changed:
        return False
    from tui.context.request_replay import RequestReplay  # noqa: PLC0415 - on demand

    return any(one.problem for one in RequestReplay(requests.ctx.records).every())


def with_break(
    requests: RequestState, prepared: Prepared, why: BreakReason, *, prompt_follows: bool = False
) -> Prepared:
    """View again as it will be after a break, which is not recorded here."""
    records = [*requests.ctx.records, _as_record(why)]
    viewer, model = prepared.target.viewer(), prepared.target.model.id
    view = viewer.build(records, model=model, prompt_follows=prompt_follows)
    return replace(prepared, view=view, built=None)


def _breaks(found: Comparison) -> bool:
    return not found.extends or found.misplaced is not None


def _with_pending(requests: RequestState, prepared: Prepared, why: BreakReason) -> BreakReason:
    """A break with what waited for it."""
    records, summary = requests.ctx.records, prepared.view.summary
    ahead = {record.id for record in records[summary.end if summary else 0 :]}
    targets = [target for target in pending(records) if target in ahead]
    return with_pending(records, why, targets) if targets else why


def _healing(requests: RequestState, why: BreakReason, now: Built) -> BreakReason:
    """Return a break with its start, where no record names one: the turn of the first thinking that
    is out of place. While a turn runs, all thinking is left out."""
    records = requests.ctx.records
    if why.reason not in {"repair", "unexplained"} or why.start or in_turn(records):
        return why
    if why.by == "person":  # by a repair level, which has its own say about thinking
        return why
    return replace(why, start=_turn_of(requests, now) or records[-1].id)


def _turn_of(requests: RequestState, now: Built) -> str:
    """The id of the first record of the turn in which thinking is out of place; "" for none."""
    records, place = requests.ctx.records, now.found.misplaced
    if place is None:
        return ""
    signature = signature_of(now.request.messages[place]["content"])
    for number, record in enumerate(records):
        if record.type == "assistant" and signature_of(content_of(record)) == signature:
            return records[turn_start(records, number)].id
    return records[0].id


def _back(requests: RequestState, prepared: Prepared, why: BreakReason) -> tuple[str, ...]:
    """Return the answers after the start of a break whose thinking may be sent again, because
    everything before them is again as it was when they were made."""
    records = requests.ctx.records
    places = {record.id: number for number, record in enumerate(records)}
    begin = places.get(why.start)
    if begin is None:
        return ()
    rest = [r for r in records if r.type != BREAK or r.data.get("reason") in _FOR_GOOD]
    found: frozenset[str] = thoughtless(records) - thoughtless(rest)
    back: list[str] = [
        id_
        for id_ in found
        if places[id_] >= begin and has_thinking(content_of(records[places[id_]]))
    ]
    # Tried with all of them; where one is out of place, again with those of earlier turns alone.
    while back:
        tried = replace(why, back=tuple(sorted(back, key=places.__getitem__)))
        now = built(requests, with_break(requests, prepared, tried))
        if now.found.misplaced is None:
            return tried.back
        first = places[_turn_of(requests, now)]
        kept = [id_ for id_ in back if places[id_] < first]
        if len(kept) == len(back):
            return ()
        back = kept
    return ()


def _lost(requests: RequestState, why: BreakReason) -> int:
    """Count the answers that a break took the thinking of that was recorded before."""
    records = requests.ctx.records
    numbers = [n for n, record in enumerate(records) if record.type == BREAK]
    if why.reason == "effort" or not numbers:
        return 0
    from tui.agent.request.break_bill import thoughts_lost  # noqa: PLC0415 - on demand

    return thoughts_lost(records[: numbers[-1]], records)


def _restarts(target: Target, made: Request) -> bool:
    """True if another effort than in the last request restarts the cache, whose keys hold it."""
    if target.last is None:
        return False
    before = target.last.data
    same = before.get("effort") == made.effort
    return not same or bool(before.get("thinking")) != bool(made.thinking)


def _marked(requests: RequestState, prepared: Prepared, why: BreakReason, now: Built) -> Built:
    """With a mark at the end of what a request shares with the last: that is in the cache."""
    changed = now.found.changed
    level = why.reason == "repair" and why.by == "person"  # concerns the whole conversation
    if why.reason not in _IN_THE_MIDDLE or level or prepared.target.prune.when == "turns":
        return now
    if not changed or changed < 0:
        return now
    request, marks = build(requests, prepared, held=changed - 1)
    return replace(now, request=request, marks=marks)


def _summarized(requests: RequestState, target: Target, found: Comparison) -> bool:
    """True if the first request to a model is the first to any after a summary.

    It breaks with what the others were sent: recorded later, that would take the thinking of this
    one's answer, too.
    """
    sent = requests.sent.all()
    if not sent or target.last is not None:
        return False
    why = reason_of(requests.ctx.records, sent[-1])
    return why.reason == "compaction" and not why.recorded and not _stays(requests, why, found)


def _stays(requests: RequestState, why: BreakReason, found: Comparison) -> bool:
    """True if all thinking after a server's own summary is where it stood before it."""
    if found.misplaced is not None or not why.cause:
        return False
    return any(r.id == why.cause and follows(r) for r in reversed(requests.ctx.records))


def _newly_pruned(requests: RequestState, prepared: Prepared) -> Collection[str]:
    """The records that the rule prunes in another way than in the last request to a model.

    What a later break covers is left out: one from a record on covers what follows that.
    """
    target = prepared.target
    if target.prune.when != "turns":
        return ()
    records, last = requests.ctx.records, target.last
    since = next((n for n, record in enumerate(records) if record is last), 0)
    breaks = [n for n in range(since, len(records)) if records[n].type == BREAK]
    places = {record.id: place for place, record in enumerate(records)}
    now, floor, found = _pruned(prepared.view), len(records), set[str]()
    for end in [*reversed(breaks), since]:
        before = _pruned(target.viewer().build(records[:end], model=target.model.id))
        changed = (id_ for id_ in before.keys() | now.keys() if before.get(id_) != now.get(id_))
        found |= {id_ for id_ in changed if places[id_] < floor}
        start = records[end].data.get("from")
        if end in breaks and not isinstance(start, str):
            break
        now, floor = before, min(floor, places.get(str(start), floor))
    return found


def _pruned(view: View) -> dict[str, Stand]:
    """Return the states of the pruned records of a view, by id."""
    return {id_: stand for id_, stand in view.stands.items() if stand.state == "pruned"}


def record_break(requests: RequestState, prepared: Prepared, why: BreakReason) -> ContextBroken:
    """Record a break and say what it costs: by the request as it will be with it."""
    from tui.agent.request.break_bill import (  # noqa: PLC0415 - on demand
        expected,
        forecast_of,
        thoughts_lost,
    )

    ctx = requests.ctx
    changed = built(requests, prepared).found.changed
    why = replace(why, back=_back(requests, prepared, why))
    ahead = with_break(requests, prepared, why)
    now = _marked(requests, ahead, why, built(requests, ahead))
    records = [*ctx.records, _as_record(why)]
    due = expected(requests, prepared.target, now, records)
    lost = thoughts_lost(ctx.records, records)
    event = structs.replace(
        forecast_of(ctx, prepared.target, why, due, lost),
        start=why.start,
        cause=why.cause,
        back=why.back,
        message=changed if changed is not None else -1,
    )
    if why.reason == "unexplained":
        log.error("a request changed what was sent before at message %s", event.message)
    ctx.record(event)
    return event


def _as_record(why: BreakReason) -> Record:
    return Record(BREAK, "", None, "", why.to_json())


def _record_request(
    requests: RequestState, target: Target, now: Built, breaks: str, forecast: dict[str, Any]
) -> None:
    """Record a request."""
    ctx, made, sent = requests.ctx, now.request, now.found.sent
    kept = requests.sent.prefixes(made, now.marks, now.candidate).marked()
    ctx.record(
        RequestMade(
            n=ctx.session.requests + 1,
            model=made.model,
            server=ctx.link.at(made.model).host,
            **sent.to_json(),
            max_tokens=made.max_tokens,
            thinking=made.thinking,
            effort=made.effort,
            marks=now.marks,
            form=list(astuple(target.form)),
            shared_thinking=target.rendering.shared_thinking,
            prune=rule_to_json(target.prune),
            diagnostics=made.diagnostics,
            cache_life=target.mark_life,
            untrusted=sorted(target.rendering.untrusted),
            breaks=breaks,
            cache={"kept": [prefix.to_json() for prefix in kept], **forecast},
        )
    )
