"""Rules about JSON: a request body may contain only what every server can parse."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import cast

MAX_DEPTH = 100
"""Maximum nesting of a block. Servers have limits of their own, some of them 200."""


def unsound(value: object, depth: int = 0) -> bool:
    """True if a JSON value cannot be sent: lone surrogates, NaN, infinities, nested too deep."""
    if isinstance(value, str):
        return not value.isascii() and _has_surrogate(value)
    if isinstance(value, dict | list):
        if depth > MAX_DEPTH:
            return True
        inner = cast("dict[object, object] | list[object]", value)
        if isinstance(inner, dict):
            return _any_unsound(inner, depth) or _any_unsound(inner.values(), depth + 1)
        return _any_unsound(inner, depth + 1)
    if isinstance(value, float):
        return not math.isfinite(value)
    return not (value is None or isinstance(value, int))


def _any_unsound(values: Iterable[object], depth: int) -> bool:
    for value in values:  # nearly every value is plain ASCII and needs no call
        if not (isinstance(value, str) and value.isascii()) and unsound(value, depth):
            return True
    return False


def _has_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
