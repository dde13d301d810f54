"""Single images of a prompt, masked and shown again. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tui.context.ledger_items import AT
from tui.context.overrides import MEDIA, Overlay, content_of, overlays_of
from tui.session.records import Record


def record_of(id_: str) -> tuple[str, int | None]:
    """The record that an item of the context is of, and the place of its block for an image."""
    record, _, place = id_.partition(AT)
    return (record, int(place)) if place.isdecimal() else (id_, None)


def one_image(records: Sequence[Record], target: str, place: int, *, hide: bool) -> Overlay:
    """The overlay that hides one image of a record, or shows it again; the others stay as they
    stand. A record that is masked as a whole is shown as a whole."""
    record = next((record for record in records if record.id == target), None)
    images = {
        n
        for n, block in enumerate(content_of(record) if record else ())
        if block.get("type") in MEDIA
    }
    now = overlays_of(records).get(target)
    hidden: set[int] = set()
    if now is not None and now.view == "masked" and not hide:
        return Overlay(target, "full")
    if now is not None and now.view == "imageless":
        hidden = set(now.blocks) or images
    hidden = (hidden | {place} if hide else hidden - {place}) & images
    if not hidden:
        return Overlay(target, "full")
    return Overlay(target, "imageless", blocks=tuple(sorted(hidden)))
