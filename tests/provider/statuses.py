"""R17: the class of each HTTP status, and whether it is worth another try."""

from __future__ import annotations

from tui.core.errors import ErrorClass

STATUSES: list[tuple[int, ErrorClass, bool]] = [
    (400, "invalid_request", False),
    (401, "auth", False),
    (402, "billing", False),
    (403, "auth", False),
    (404, "not_found", False),
    (405, "not_found", False),
    (408, "timeout", True),
    (409, "server", True),
    (413, "payload_too_large", False),
    (418, "invalid_request", False),
    (422, "invalid_request", False),
    (429, "rate_limit", True),
    (500, "server", True),
    (501, "server", False),
    (502, "server", True),
    (503, "server", True),
    (504, "timeout", True),
    (522, "server", True),
    (529, "overloaded", True),
]
