"""Last station: a request is compared with the one before it, and recorded.

Where it does not extend that one, this is a break: recorded with its reason and price, and what was
thought after what changed is left out from there on (see `tui.context.breaks`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import astuple, replace

from msgspec import structs

from tui.agent.request.break_cost import broken, restart_cost, spoken_weight
from tui.agent.request.break_reasons import BreakReason, first_changed, reason_of, with_pending
from tui.agent.request.build import build, built
from tui.agent.request.form import Target
from tui.agent.request.state import Built, Prepared, RequestState
from tui.agent.request.view import prepare, up_to_date
from tui.context.breaks import BREAK
from tui.context.compaction_block import follows
from tui.context.overrides import Stand, pending
from tui.context.prune import rule_to_json
from tui.context.request_trail import Comparison
from tui.context.view import View
from tui.core.facts import RequestMade
from tui.provider.base import Request
from tui.session.records import Record

log = logging.getLogger(__name__)


def check(requests: RequestState, prepared: Prepared) -> Request:
    """Return the request to send, recorded.

    What was recorded since the view was made is in it too: it comes before the request.
    """
    prepared = up_to_date(requests, prepared)
    requests.asked = checked(requests, prepared, lambda: prepare(requests))
    return requests.asked


def checked(requests: RequestState, prepared: Prepared, again: Callable[[], Prepared]) -> Request:
    """Return a request that may be sent, recorded. A break that it needs is recorded before it;
    then its view is made `again`."""
    target, now = prepared.target, built(requests, prepared)
    why: BreakReason | None = None
    if _breaks(now.found) or _summarized(requests, target, now.found):
        why = reason(requests, prepared)
        if not why.reason:  # a compaction was undone
            back = requests.sent.goes_back(now.request, target.model)
            whole = now.found.misplaced is None
            why = None if back and whole else BreakReason("reload", "program")
        if why is not None and _stays(requests, why, now.found):
            why = replace(why, start=why.cause)
        if why is not None and not why.recorded:
            _record_break(requests, *_with_pending(requests, prepared, why, now))
            prepared = again()
            now = built(requests, prepared)
        # Thinking that is still out of place must not be sent, whatever the reason: all of it goes.
        if now.found.misplaced is not None:
            _record_break(requests, BreakReason("unexplained", "program"), now)
            prepared = again()
            now = built(requests, prepared)
        target = prepared.target
    masked = why is not None and why.reason in {"mask", "unmask", "prune"}
    changed = now.found.changed
    if masked and target.prune.when != "turns" and changed and changed > 0:
        # what stands before it is in the cache
        request, marks = build(requests, prepared, held=changed - 1)
        now = replace(now, request=request, marks=marks)
    requests.sent.keep(target.model, now.found, now.candidate)
    if requests.ctx.link.first_party and "diagnostics" not in target.off:
        previous = {"previous_message_id": requests.sent.last_answer(target.model)}
        now = replace(now, request=replace(now.request, diagnostics=previous))
    _record_request(requests, target, now, why)
    return now.request


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
    pruned = _newly_pruned(requests, prepared)
    return reason_of(requests.ctx.records, prepared.target.last, pruned)


def with_break(
    requests: RequestState, prepared: Prepared, why: BreakReason, *, prompt_follows: bool = False
) -> Prepared:
    """View again as it will be after a break, which is not recorded here."""
    records = [*requests.ctx.records, Record(BREAK, "", None, "", why.to_json())]
    viewer, model = prepared.target.viewer(), prepared.target.model.id
    view = viewer.build(records, model=model, prompt_follows=prompt_follows)
    return replace(prepared, view=view, built=None)


def _breaks(found: Comparison) -> bool:
    return not found.extends or found.misplaced is not None


def _with_pending(
    requests: RequestState, prepared: Prepared, why: BreakReason, now: Built
) -> tuple[BreakReason, Built]:
    """A break with what waited for it: the reason, and the request as it will be then."""
    records, summary = requests.ctx.records, prepared.view.summary
    ahead = {record.id for record in records[summary.end if summary else 0 :]}
    targets = [target for target in pending(records) if target in ahead]
    if not targets:
        return why, now
    why = with_pending(records, why, targets)
    return why, built(requests, with_break(requests, prepared, why))


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


def _record_break(requests: RequestState, why: BreakReason, now: Built) -> None:
    """Record a break and say what it costs."""
    ctx, place = requests.ctx, now.found.changed
    changed = place if place is not None else -1
    behind = now.request.messages[max(changed, 0) :]
    tokens = round(ctx.ledger.share * sum(spoken_weight(one["content"]) for one in behind))
    event = broken(ctx, why, tokens if changed >= 0 else ctx.ledger.tokens)
    if why.reason == "unexplained":
        log.error("a request changed what was sent before at message %s", changed)
    ctx.record(structs.replace(event, start=why.start, cause=why.cause, message=changed))


def _record_request(
    requests: RequestState, target: Target, now: Built, why: BreakReason | None
) -> None:
    """Record a request; another effort than in the last one is a break by itself."""
    ctx, made, sent = requests.ctx, now.request, now.found.sent
    breaks = why.reason if why else ""
    before = None if breaks else target.last
    same = before is None or (
        before.data.get("effort") == made.effort
        and bool(before.data.get("thinking")) == bool(made.thinking)
    )
    if not same:  # it restarts the cache of the server, whose keys hold it
        breaks = "effort"
        ctx.publish(restart_cost(ctx, breaks, "person"))
    ctx.record(
        RequestMade(
            n=ctx.session.requests + 1,
            model=made.model,
            server=ctx.link.server,
            **sent.to_json(),
            max_tokens=made.max_tokens,
            thinking=made.thinking,
            effort=made.effort,
            marks=now.marks,
            form=list(astuple(target.form)),
            shared_thinking=target.rendering.shared_thinking,
            prune=rule_to_json(target.prune),
            diagnostics=made.diagnostics,
            cache_life=target.life,
            untrusted=sorted(target.rendering.untrusted),
            breaks=breaks,
        )
    )
