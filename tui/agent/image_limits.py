"""Which images a request leaves out: decided and recorded before they are sent, then fixed.

With more than 20 images in a request the API refuses any above 2,000 pixels. The newest, which
were never sent, go first: that changes nothing of what was. An older one goes where that is not
enough, which is a break.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tui.agent.agent_context import AgentContext
from tui.agent.events import Notice
from tui.context.overrides import Overlay, content_of, overlays_of
from tui.context.rules.media import MANY_IMAGES, MANY_PIXELS, image_info_of
from tui.context.view import View
from tui.core.formatting import plural
from tui.core.messages import Block
from tui.session.records import Record
from tui.session.request_numbers import REQUEST

_GONE = frozenset({"masked", "summarised"})


def keep_to_limits(ctx: AgentContext, view: View) -> bool:
    """Record which images are left out of the next request. Whether there is one."""
    changes = overlays(ctx.records, view)
    for change in changes:
        ctx.recorder.append("overlay", **change.to_json())
    if changes:
        count = plural(len(changes), "image")
        text = f"{count} above {MANY_PIXELS:,} pixels left out: the request has too many images."
        ctx.publish(Notice(f"{text} Attach a smaller copy to have it seen."))
    return bool(changes)


def overlays(records: Sequence[Record], view: View) -> list[Overlay]:
    """The changes after which the images of a view are within the limit."""
    shown = list(_images(records, view))
    surplus = len(shown) - MANY_IMAGES
    if surplus <= 0:
        return []
    sent = max((n for n, record in enumerate(records) if record.type == REQUEST), default=-1)
    large = [(n, place) for n, place, block in shown if _is_large(block)]
    fresh, old = [one for one in large if one[0] > sent], [one for one in large if one[0] <= sent]
    hidden: dict[int, set[int]] = {}
    for number, place in [*fresh, *old][:surplus]:
        hidden.setdefault(number, set()).add(place)
    known = overlays_of(records)
    changes: list[Overlay] = []
    for number, places in hidden.items():
        id_ = records[number].id
        before = known[id_].blocks if id_ in known else ()
        blocks = tuple(sorted(places | set(before)))
        why = f"over {MANY_PIXELS} pixels among many images"
        changes.append(Overlay(id_, "imageless", "limits", why, blocks=blocks))
    return changes


def _images(records: Sequence[Record], view: View) -> Iterator[tuple[int, int, Block]]:
    """The images that a view holds: the number of the record, the place in it, the block."""
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
            if block.get("type") == "image" and place not in hidden:
                yield number, place, block


def _is_large(block: Block) -> bool:
    picture = image_info_of(block)
    return picture is not None and picture.longest > MANY_PIXELS
