"""The one error tree. Errors are typed where they happen and never matched by text above.

HoldfastError            what happened, why (`message`) and what to do (`hint`)
├── UsageError           a wrong command line                             exit 2
│   └── ConfigError      a broken configuration file; names file and key  exit 2
├── CredentialsError     no key, or the server refused it                 exit 3
├── SessionError         the session cannot be opened                     exit 4
├── StorageError         the record or a spill could not be written
├── LimitReachedError    --max-turns, --max-tokens or --max-cost          exit 1
├── ToolError            a tool failed: becomes a result with is_error
└── ProviderError        a request failed; carries one of ERROR_CLASSES   exit 1 (3 for auth)
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

ErrorClass: TypeAlias = Literal[
    "rate_limit",
    "overloaded",
    "context_overflow",
    "payload_too_large",
    "auth",
    "billing",
    "invalid_request",
    "not_found",
    "timeout",
    "network",
    "stream_broken",
    "server",
    "refusal",
    "unknown",
]


class HoldfastError(Exception):
    """Root of all errors that the program raises on purpose.

    `message` says what happened and why in one line; `hint` what the person can do.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class UsageError(HoldfastError):
    """The command line cannot be carried out as written."""


class ConfigError(UsageError):
    """A configuration file is broken. `key` is the dotted key, "" for the file as a whole."""

    def __init__(self, file: Path | str, key: str, message: str, *, hint: str = "") -> None:
        where = f"{file}: {key}: " if key else f"{file}: "
        super().__init__(where + message, hint=hint)
        self.file = str(file)
        self.key = key


class CredentialsError(HoldfastError):
    """There is no key, or none that the server takes."""


class SessionError(HoldfastError):
    """A session cannot be opened: not found, ambiguous, not readable, in use."""


class StorageError(HoldfastError):
    """Something could not be written. Whoever raises it still holds the data."""


class LimitReachedError(HoldfastError):
    """A limit that the person set was reached."""


class ToolError(HoldfastError):
    """A tool could not do what it was asked. The message is meant for the model too."""


class ProviderError(HoldfastError):
    """A request to the model failed.

    `retry_after` is in seconds, None when the server named none. `retryable` follows R17.
    """

    def __init__(
        self,
        error_class: ErrorClass,
        message: str,
        *,
        hint: str = "",
        status: int | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        retryable: bool = False,
    ) -> None:
        super().__init__(message, hint=hint)
        self.error_class: ErrorClass = error_class
        self.status = status
        self.request_id = request_id
        self.retry_after = retry_after
        self.retryable = retryable
