"""Which images a request leaves out: decided and recorded before they are sent, then fixed.

With more than 20 images in a request the API refuses any above 2,000 pixels. The newest, which
were never sent, go first: that changes nothing of what was. An older one goes where that is not
enough, which is a break.

A model takes so many images and no more, fewer where its window is small. There the oldest go, and
more of them than must: what was sent changes once, not with each image that is added.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from tui.agent.agent_context import AgentContext
from tui.agent.events import Notice
from tui.context.overrides import CROWD, MEDIA, Overlay, content_of, overlays_of
from tui.context.rules.media import MANY_IMAGES, MANY_PIXELS, image_info_of, most_media
from tui.context.view import View
from tui.core.formatting import plural
from tui.core.messages import Block
from tui.session.records import Record
from tui.session.request_numbers import REQUEST

LARGE: Final = f"over {MANY_PIXELS} pixels among many images"
_GONE = frozenset({"masked", "summarised"})


class _Image(NamedTuple):
    """An image or a document: the number of its record, its place in it, the block."""

    number: int
    place: int
    block: Block


def keep_to_limits(ctx: AgentContext, view: View) -> bool:
    """Record which images are left out of the next request. Whether there is one."""
    most = most_media(ctx.model.window)
    shown = list(_images(ctx.records, view))
    crowd = shown[: _surplus(len(shown), most)]
    large = _too_large(ctx.records, shown[len(crowd) :])
    changes = _overlays(ctx.records, {CROWD: crowd, LARGE: large})
    for change in changes:
        ctx.recorder.append("overlay", **change.to_json())
    if crowd:
        gone = f"{plural(len(crowd), 'image')}, the oldest, left out"
        ctx.publish(Notice(f"{gone}: {ctx.model.id} takes at most {most} in a request."))
    if large:
        count = plural(len(large), "image")
        text = f"{count} above {MANY_PIXELS:,} pixels left out: the request has too many images."
        ctx.publish(Notice(f"{text} Attach a smaller copy to have it seen."))
    return bool(changes)


def _surplus(count: int, most: int) -> int:
    """How many are to go: where there are too many, all but three quarters of what is taken."""
    return count - most * 3 // 4 if count > most else 0


def _too_large(records: Sequence[Record], shown: Sequence[_Image]) -> list[_Image]:
    surplus = len([one for one in shown if one.block.get("type") == "image"]) - MANY_IMAGES
    if surplus <= 0:
        return []
    sent = max((n for n, record in enumerate(records) if record.type == REQUEST), default=-1)
    large = [one for one in shown if _is_large(one.block)]
    fresh, old = [o for o in large if o.number > sent], [o for o in large if o.number <= sent]
    return [*fresh, *old][:surplus]


def _overlays(records: Sequence[Record], gone: Mapping[str, Sequence[_Image]]) -> list[Overlay]:
    """One change for each record, with all images of it that are left out, and why."""
    known = overlays_of(records)
    hidden: dict[int, set[int]] = {}
    reasons: dict[int, str] = {}
    for why, those in gone.items():
        for one in those:
            hidden.setdefault(one.number, set()).add(one.place)
            reasons.setdefault(one.number, why)
    changes: list[Overlay] = []
    for number, places in hidden.items():
        id_ = records[number].id
        before = known[id_].blocks if id_ in known else ()
        blocks = tuple(sorted(places | set(before)))
        changes.append(Overlay(id_, "imageless", "limits", reasons[number], blocks=blocks))
    return changes


def _images(records: Sequence[Record], view: View) -> Iterator[_Image]:
    """The images and documents that a view holds, the oldest first."""
    known = overlays_of(records)
    for number, record in enumerate(records):
        overlay = known.get(record.id)
        if record.type not in {"user", "tool_result"} or view.states.get(record.id) in _GONE:
            continue
        hidden = set[int]()
        if overlay is not None and overlay.view == "imageless":
            if not overlay.blocks:
                continue
            hidden = set(overlay.blocks)
        for place, block in enumerate(content_of(record)):
            if block.get("type") in MEDIA and place not in hidden:
                yield _Image(number, place, block)


def _is_large(block: Block) -> bool:
    picture = image_info_of(block)
    return picture is not None and picture.longest > MANY_PIXELS
