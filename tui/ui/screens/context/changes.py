"""What a key of the inspector changes, what undoes it, and what is said of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tui.context.masks import one_image, record_of
from tui.context.overrides import Overlay, overlays_of, pins_of
from tui.context.token_ledger import Item
from tui.core.formatting import plural, tokens
from tui.session.records import Record
from tui.ui.screens.context.rows import share


@dataclass(frozen=True, slots=True)
class Change:
    """How records shall stand from now on, and which are pinned (True) or let go."""

    overlays: Sequence[Overlay] = ()
    pins: Mapping[str, bool] = field(default_factory=dict[str, bool])


def masking(item: Item, records: Sequence[Record]) -> Change:
    """Mask an item, or show it again where it is masked; of an image only that."""
    hide, (id_, place) = item.state != "masked", record_of(item.id)
    if place is not None:
        return Change([one_image(records, id_, place, hide=hide)])
    return Change([Overlay(id_, "masked" if hide else "full")])


def pinning(item: Item) -> Change:
    """Pin an item, or let it go."""
    return Change(pins={record_of(item.id)[0]: not item.pinned})


def undoing(change: Change, records: Sequence[Record]) -> Change:
    """What brings back how things stand in `records`, which is before the change."""
    masks, pinned = overlays_of(records), pins_of(records)
    targets = [overlay.target for overlay in change.overlays]
    return Change(
        [masks.get(target, Overlay(target, "full", reason="undone")) for target in targets],
        {target: target in pinned for target in change.pins},
    )


def told(change: Change, saved: int, window: int) -> str:
    """What a change came to; `saved` is in tokens, less than 0 where it costs some."""
    if not change.overlays:
        what = "pinned" if any(change.pins.values()) else "not pinned any more"
        return f"{plural(len(change.pins), 'item')} {what}."
    many = plural(len(change.overlays), "item")
    masked = any(overlay.view != "full" for overlay in change.overlays)
    what = f"{many} masked" if masked else f"{many} as recorded again"
    verb = "costs" if saved < 0 else "saves"
    size = f"{tokens(abs(saved))} tokens ({share(abs(saved), window)})"
    return f"{what}: {verb} ~{size}, from the next request on."
