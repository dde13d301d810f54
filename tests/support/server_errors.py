"""The error answers of the API."""

from __future__ import annotations

from typing import NamedTuple


class Rejection(NamedTuple):
    """An error answer: status, type and text. `code` stands in `error.details.error_code`."""

    status: int
    type: str
    message: str
    code: str = ""


def invalid(text: str, code: str = "") -> Rejection:
    """The answer to a request that the API does not take."""
    return Rejection(400, "invalid_request_error", text, code)


EXTRA = "Extra inputs are not permitted"
