"""The classes of errors in plain words, the same wherever a person meets them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_WORDS: Final[Mapping[str, str]] = {
    "rate_limit": "rate limited",
    "overloaded": "overloaded",
    "context_overflow": "too long for the model",
    "payload_too_large": "too large to send",
    "auth": "key refused",
    "billing": "no credit",
    "invalid_request": "request refused",
    "not_found": "not found",
    "timeout": "no answer in time",
    "network": "no connection",
    "stream_broken": "answer broken off",
    "server": "server error",
    "refusal": "declined",
    "unknown": "failed",
}
"""One for each of `tui.core.errors.ErrorClass`."""


def words(error_class: str) -> str:
    """A class of INTERFACE as a person says it; one that nobody knows as it is."""
    return _WORDS.get(error_class, error_class.replace("_", " "))
