"""The thinking effort of a model: the wanted level, and how a request states it. Pure.

If a level changes within a conversation, it is stated at the end where the model supports that, so
that the request still only grows. Otherwise it is a field of the request itself, and the cache
restarts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tui.context.breaks import renews
from tui.context.notices import NOTICE
from tui.core.messages import string_of
from tui.provider.base import ModelInfo
from tui.session.records import Record


def level(model: ModelInfo, chosen: str, *, think: bool) -> str:
    """Return the level in force: `chosen` where the model offers it, otherwise the model's own.

    With `think` it is the next level up, where the model has levels. "" where it has none.
    """
    base = chosen if chosen in model.efforts else model.effort
    if not think or not model.adaptive_thinking or not model.efforts:
        return base
    if base not in model.efforts:
        return "xhigh"
    above = model.efforts.index(base) + 1
    return model.efforts[min(above, len(model.efforts) - 1)]


def field_of(model: ModelInfo, wanted: str) -> str | None:
    """The level as a request states it; None for the model's own, which need not be named."""
    return None if wanted in {"", model.effort} else wanted


def waits(marks: Sequence[Record]) -> bool:
    """True if the level chosen last takes effect at the next break only.

    `marks` are the directives and breaks of a branch.
    """
    for record in reversed(marks):
        if record.type == "directive":
            return record.data.get("wait") is True
        if renews(record):
            return False
    return False


def last_level(records: Sequence[Record], left_out: Collection[str]) -> str:
    """The level stated last in a conversation; "" where there was none."""
    seen = (r for r in reversed(records) if r.type == NOTICE and r.id not in left_out)
    levels = (string_of(record.data.get("effort")) for record in seen)
    return next(filter(None, levels), "")
