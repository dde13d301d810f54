"""How hard a model thinks: the wanted level, and how a request says it. Pure.

A level that changes within a conversation is said at its end where the model has that, and the
request still only grows. Else it stands in the request itself, and the cache restarts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tui.context.breaks import renews
from tui.context.notices import NOTICE
from tui.core.messages import string_of
from tui.provider.base import ModelInfo
from tui.session.records import Record


def level(model: ModelInfo, chosen: str, *, think: bool) -> str:
    """The level that holds for a model: the one that was `chosen` where the model offers it, else
    its own; with `think` the next above, where the model has levels. "" where it has none."""
    base = chosen if chosen in model.efforts else model.effort
    if not think or not model.adaptive_thinking or not model.efforts:
        return base
    if base not in model.efforts:
        return "xhigh"
    above = model.efforts.index(base) + 1
    return model.efforts[min(above, len(model.efforts) - 1)]


def field_of(model: ModelInfo, wanted: str) -> str | None:
    """What a request says of a level; None for the model's own, which need not be named."""
    return None if wanted in {"", model.effort} else wanted


def waits(marks: Sequence[Record]) -> bool:
    """Whether what was chosen last counts from the next break on, of a branch's directives and
    breaks."""
    for record in reversed(marks):
        if record.type == "directive":
            return record.data.get("wait") is True
        if renews(record):
            return False
    return False


def last_level(records: Sequence[Record], left_out: Collection[str]) -> str:
    """The level that was said last in a conversation; "" where none was."""
    seen = (r for r in reversed(records) if r.type == NOTICE and r.id not in left_out)
    levels = (string_of(record.data.get("effort")) for record in seen)
    return next(filter(None, levels), "")
