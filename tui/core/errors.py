"""The one error tree. Errors are typed where they happen and never matched by text above.

HoldfastError            what happened, why (`message`) and what to do (`hint`)
├── UsageError           a wrong command line                             exit 2
│   └── ConfigError      a broken configuration file; names file and key  exit 2
├── CredentialsError     no key, or the server refused it                 exit 3
├── SessionError         the session cannot be opened                     exit 4
│   └── SessionInUseError  another program has it open                    exit 4
├── StorageError         the record or a spill could not be written
├── LimitReachedError    --max-turns, --max-tokens or --max-cost          exit 1
├── ImageError           an image cannot be attached
├── ToolError            a tool failed: becomes a result with is_error
└── ProviderError        a request failed; carries one of ERROR_CLASSES   exit 1 (3 for auth)
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final, Literal, TypeAlias

from tui.core.dataclass import dataclass

ErrorClass: TypeAlias = Literal[
    "rate_limit", "overloaded", "context_overflow", "payload_too_large", "auth", "billing",
    "invalid_request", "not_found", "timeout", "network", "stream_broken", "server", "refusal",
    "unknown",
]  # fmt: skip
_WORDS: Final[Mapping[str, str]] = {
    "rate_limit": "rate limited",
    "overloaded": "overloaded",
    "context_overflow": "too long for the model",
    "payload_too_large": "too large to send",
    "auth": "key rejected",
    "billing": "no credit",
    "invalid_request": "request rejected",
    "not_found": "not found",
    "timeout": "no answer in time",
    "network": "no connection",
    "stream_broken": "answer cut off",
    "server": "server error",
    "refusal": "declined",
    "unknown": "failed",
}
"""The classes in plain words, the same wherever a person meets them."""


def words(error_class: str) -> str:
    """Return an error class in words; an unknown one as it is."""
    return _WORDS.get(error_class, error_class.replace("_", " "))


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
    """There is no key, or none that the server accepts."""


class SessionError(HoldfastError):
    """A session cannot be opened: not found, ambiguous, not readable, in use."""


class MissingSessionError(SessionError):
    """No session has that id, and no file that name."""


class SessionInUseError(SessionError):
    """Another program writes this session. It can be taken over, read, or forked."""


class StorageError(HoldfastError):
    """Something could not be written. The code that raises it still holds the data."""


@contextmanager
def os_error_as(error: type[HoldfastError], what: str, *, hint: str = "") -> Generator[None]:
    """Turn an OSError of the block into an error of ours: `what`, and the system's reason."""
    try:
        yield
    except OSError as failed:
        raise error(f"{what}: {failed.strerror or failed}.", hint=hint) from failed


class LimitReachedError(HoldfastError):
    """A limit that the person set was reached."""


class ImageError(HoldfastError):
    """An image cannot be attached to a prompt: too large, unreadable, or one too many."""


class ToolError(HoldfastError):
    """A tool could not do its work. The message is meant for the model too."""


@dataclass(frozen=True, slots=True)
class Overflow:
    """The sizes that a `context_overflow` error named, in tokens; None for those that it did not.

    `input_tokens` is the size of the request, `limit` the size of the window. `max_tokens` is the
    room asked for the answer; it is set only if the server counted it towards the limit.
    """

    input_tokens: int | None = None
    max_tokens: int | None = None
    limit: int | None = None

    def output_room(self, margin: int = 0) -> int | None:
        """Return the `max_tokens` that would fit: `limit` less `input_tokens`, with `margin` to
        spare.

        None if a smaller answer does not help: the input alone is too long, or the server did not
        count `max_tokens`.
        """
        if self.max_tokens is None or self.input_tokens is None or self.limit is None:
            return None
        room = self.limit - self.input_tokens - margin
        return room if 0 < room < self.max_tokens else None


@dataclass(frozen=True, slots=True)
class AnswerLimit:
    """A server's word that the answer asked for is longer than it writes, in tokens; None where it
    names no number that can be read."""

    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class LargeImages:
    """The images of a request that have more pixels than its server takes: their places, such as
    `messages.0.content.1`, and the longest side that it does take."""

    paths: tuple[str, ...]
    longest: int


class ProviderError(HoldfastError):
    """A request to the model failed.

    `retry_after` is in seconds, None if the server named no delay. `retryable` is True if the same
    request may succeed later. `overflow` holds the sizes of a `context_overflow` that named any.
    `thinking_refused`: the request failed because of the signed thinking in it; without that it can
    be sent again. `feature`: it failed because of this feature, which not every server has, and can
    be sent without. `answer`: it asked for too long an answer. `images`: it holds these, which are
    too large. `unreadable`: an answer came, and was not of the API's form; the next one would not
    be either. `category` and `explanation` are the model's own, of a refusal.

    The retry loop sets the rest: `received` is the number of characters that the failed attempt had
    streamed. `park_until` is the moment (UTC) before which the server does not accept the request,
    if that is further away than the program waits. `switch` is set if the person asked for another
    model during the wait for a retry.
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
        overflow: Overflow | None = None,
        thinking_refused: bool = False,
        feature: str = "",
        answer: AnswerLimit | None = None,
        images: LargeImages | None = None,
        unreadable: bool = False,
        category: str = "",
        explanation: str = "",
    ) -> None:
        super().__init__(message, hint=hint)
        self.error_class: ErrorClass = error_class
        self.status = status
        self.request_id = request_id
        self.retry_after = retry_after
        self.retryable = retryable
        self.overflow = overflow
        self.thinking_refused = thinking_refused
        self.feature = feature
        self.answer = answer
        self.images = images
        self.unreadable = unreadable
        self.category = category
        self.explanation = explanation
        self.received = 0
        self.park_until: datetime | None = None
        self.switch = False
