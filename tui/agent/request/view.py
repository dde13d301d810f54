"""First station: the conversation as the model will see it, by the record as it is now."""

from __future__ import annotations

from collections.abc import Sequence

from tui.agent.request.form import target_of
from tui.agent.request.state import Prepared, RequestState, Target
from tui.context.compaction_block import follows, is_sent, tools_in
from tui.session.records import Record


def prepare(
    requests: RequestState, target: Target | None = None, *, prompt_follows: bool = False
) -> Prepared:
    """View the record as it is now; the ledger takes from it how each record stands."""
    records, viewer = requests.ctx.records, requests.viewer
    target = target or target_of(requests, requests.ctx.link.model)
    if viewer is None or requests.view_key != target.view_key:
        viewer = requests.viewer = target.viewer()
        requests.view_key = target.view_key
    view = viewer.build(records, model=target.model.id, prompt_follows=prompt_follows)
    requests.meter.update(view)
    prepared = Prepared(target, view, records[-1:])
    _tell_frame(requests, prepared)
    return prepared


def up_to_date(requests: RequestState, prepared: Prepared) -> Prepared:
    """Look again only where a record or another model came since."""
    ctx = requests.ctx
    same = prepared.seen == ctx.records[-1:] and prepared.target.model is ctx.link.model
    return prepared if same else prepare(requests)


def _tell_frame(requests: RequestState, prepared: Prepared) -> None:
    """Give the frame what it depends on of a summary in force."""
    frame, target, view = requests.frame, prepared.target, prepared.view
    summary, link = view.summary, requests.ctx.link
    covered: Sequence[Record] = requests.ctx.records[: summary.end] if summary else ()
    frame.summary = summary.record if summary else None
    frame.covered = covered[-1].id if covered else ""
    pins = summary is not None and follows(summary.record)
    frame.pins = [r for r in covered if r.id in view.pinned] if pins else ()
    sent = summary is not None and is_sent(summary.record, link.server, target.form)
    frame.joined = tools_in(summary.record) if summary and sent else frozenset()
