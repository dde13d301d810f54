"""The consequence of a failed task, by the error's class or, without one, by its text.

The error of a request has a class from the adapter, which alone interprets what servers say. A
failure outside a request (a child process, a library) only has its type and its text: here it is
assigned one of the six classes that a task runner acts on. The model's own text is no error text
and must not be passed in.
"""

from __future__ import annotations

import re
import socket
import subprocess
from typing import Final, Literal, TypeAlias

from tui.core.errors import CredentialsError, ErrorClass, ProviderError

TaskClass: TypeAlias = Literal[
    "rate_limit", "context_overflow", "auth", "timeout", "network", "unknown"
]
"""The consequence: retry after a wait (`rate_limit`, `network`), retry once (`timeout`), start a
fresh session (`context_overflow`), fail at once (`auth`), have the failure analysed (`unknown`)."""

TASK_CLASS: Final[dict[ErrorClass, TaskClass]] = {
    "rate_limit": "rate_limit",
    "overloaded": "rate_limit",
    "context_overflow": "context_overflow",
    "payload_too_large": "context_overflow",
    "auth": "auth",
    "billing": "auth",
    "not_found": "auth",
    "timeout": "timeout",
    "network": "network",
    "server": "network",
    "stream_broken": "network",
    "invalid_request": "unknown",
    "refusal": "unknown",
    "unknown": "unknown",
}
"""The task runner's class for each class of error."""

_TEXT_READ: Final = 8000


def _number(digits: str) -> str:
    """A pattern for a number as a separate word: not in 14290, 1,429, 0.429 or req_429."""
    return rf"(?<!\w)(?<!\d[.,]){digits}(?!\w)(?![.,]\d)"


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


TEXT_RULES: Final[tuple[tuple[TaskClass, re.Pattern[str]], ...]] = (
    # HTTP 429 Too Many Requests; rate_limit_error; Rate limit reached for requests
    ("rate_limit", _any(_number("429"), r"rate[ _-]?limit", r"too many requests")),
    # context_length_exceeded; token limit exceeded; maximum context length is 8192 tokens
    ("context_overflow", _any(r"context_length", r"token limit", r"maximum context")),
    # 401 Unauthorized; authentication_error; Invalid API key provided
    ("auth", _any(_number("401"), r"authentication", r"invalid.*key")),
    # Request timed out; ReadTimeout; terminated by signal SIGTERM
    ("timeout", _any(r"timeout", r"sigterm", r"timed out")),
    # connect ECONNREFUSED 127.0.0.1:8080; DNS lookup failed; Network is unreachable
    ("network", _any(r"econnrefused", r"dns", r"network")),
)
"""The first matching rule decides."""


def classify_text(text: str) -> TaskClass:
    """Classify an error's text (of a long one, its first 8,000 characters)."""
    beginning = text[:_TEXT_READ]
    for kind, pattern in TEXT_RULES:
        if pattern.search(beginning):
            return kind
    return "unknown"


def classify_error(error: BaseException) -> TaskClass:
    """Classify an error: by its own class or status, otherwise by its type, otherwise by its text.

    A failed request is classified by its text only if its reason is unknown; what a server called
    an invalid request is one, whatever its text mentions.
    """
    match error:
        case ProviderError(error_class="unknown", status=429 | 529):
            return "rate_limit"
        case ProviderError(error_class="unknown", status=401 | 403):
            return "auth"
        case ProviderError(error_class="unknown"):
            return classify_text(error.message)
        case ProviderError():
            return TASK_CLASS[error.error_class]
        case CredentialsError():
            return "auth"
        case TimeoutError() | subprocess.TimeoutExpired():
            return "timeout"
        case ConnectionError() | socket.gaierror():
            return "network"
        case _:
            return classify_text(str(error))
