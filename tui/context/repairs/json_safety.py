"""Makes values valid for a JSON request body."""

from __future__ import annotations

import math
from typing import cast

from tui.context.rules.json_safety import MAX_DEPTH

TOO_DEEP = "[removed: nested too deep]"


def made_sound(value: object, depth: int) -> object:
    """Make a JSON value fit to be sent: surrogates replaced, no NaN, not nested too deep."""
    if isinstance(value, str):
        return plain(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth > MAX_DEPTH:
        return TOO_DEEP
    if isinstance(value, dict):
        pairs = cast("dict[object, object]", value).items()
        return {plain(str(key)): made_sound(item, depth + 1) for key, item in pairs}
    if isinstance(value, list):
        return [made_sound(item, depth + 1) for item in cast("list[object]", value)]
    return str(value)


def plain(text: str) -> str:
    """Replace lone surrogates in a text by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
