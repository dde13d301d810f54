"""Second station: what has to happen before a request is sent.

Files and tools that changed are said at its end, a conversation that is too large is compacted,
images beyond a limit are left out, old results pruned. Each step is recorded; the view is made
again only after one that was.
"""

from __future__ import annotations

from dataclasses import replace

from tui.agent.overflow_recovery import OverflowRecovery
from tui.agent.request.check import checked
from tui.agent.request.form import target_of
from tui.agent.request.image_limits import keep_to_limits
from tui.agent.request.pruning import PruneSchedule
from tui.agent.request.state import Prepared, RequestState
from tui.agent.request.view import prepare, up_to_date
from tui.provider.base import ModelInfo, Request


async def due(
    requests: RequestState, overflow: OverflowRecovery, pruning: PruneSchedule
) -> Prepared:
    """Do all that is due before the next request."""
    before = prepared = await _settle(requests)
    prepared = up_to_date(requests, await overflow.before_request(prepared))
    summary, old = prepared.view.summary, before.view.summary
    if summary and (not old or summary.record != old.record):
        # what left the view with a new summary is said again
        await requests.frame.read_files()
        prepared = await _settle(requests)
    if _without_images(requests, prepared):
        prepared = prepare(requests)
    return await pruning.before_request(prepared)


async def _settle(requests: RequestState) -> Prepared:
    """Record what the next request needs, its frame and what changed; return the view then."""
    ctx, prepared = requests.ctx, None
    if requests.compactions.of(ctx.records):
        prepared = prepare(requests)  # what a summary covers is not said any more
    target = prepared.target if prepared else target_of(requests, ctx.link.model)
    seen = ctx.records[-1:]
    frame = await requests.frame.settle(target.form, target.effort or target.model.effort)
    requests.count_fixed(frame)
    # Mostly nothing was recorded: then what was looked up before holds.
    if ctx.records[-1:] != seen or ctx.link.model is not target.model:
        return prepare(requests)
    return prepared or prepare(requests, target)


def adapt(requests: RequestState, asked: Request, model: ModelInfo) -> Request | None:
    """A request made for another model (`tui.provider.failover.Adapt`).

    None where its window is too small.
    """
    if asked.compaction is not None:  # another model's block is nothing to wait for
        return None
    if asked is not requests.asked:  # a question beside the conversation
        most, link = min(asked.max_tokens, model.max_output), requests.ctx.link
        if link.at(asked.model) is not link.at(model.id):
            from tui.agent.request.any_server import for_any_server  # noqa: PLC0415 - seldom needed

            asked = for_any_server(asked)
        return replace(asked, model=model.id, max_tokens=most)
    if not requests.fits(model).ok:
        return None
    model = requests.features.limited(model)

    def again() -> Prepared:
        records, target = requests.ctx.records, target_of(requests, model)
        view = target.viewer().build(records, model=model.id)
        return Prepared(target, view, records[-1:])

    prepared = again()
    if _without_images(requests, prepared):
        prepared = again()
    return checked(requests, prepared, again)


def _without_images(requests: RequestState, prepared: Prepared) -> bool:
    """Leave out images beyond a limit; return True if there are any."""
    target = prepared.target
    return keep_to_limits(
        requests.ctx, prepared.view, target.model, target.off, requests.with_images
    )
