"""Events about a request that did not go well, and what is done. See `tui.agent.events`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from tui.core.errors import ErrorClass

Step: TypeAlias = Literal["output", "images", "compaction", "results", "digest"]


@dataclass(frozen=True, slots=True)
class RetryScheduled:
    """An attempt failed, and what it had streamed is void: `received` characters of it."""

    type: ClassVar[str] = "retry_scheduled"
    attempt: int
    max_attempts: int
    delay_s: float
    reason: str
    status: int | None
    error_class: ErrorClass
    request_id: str | None = None
    received: int = 0


@dataclass(frozen=True, slots=True)
class Parked:
    """The server wants to see the request no sooner than `until` (ISO 8601, UTC); it is sent then.

    Told again when a parked session is opened. The turn goes on by itself, or by `Agent.go_on`.
    """

    type: ClassVar[str] = "parked"
    until: str
    reason: str
    error_class: str = "rate_limit"
    status: int | None = None


@dataclass(frozen=True, slots=True)
class ModelSwitched:
    """The model `new` is asked from now on; what the attempt before had streamed is void.

    `back_at` (ISO 8601) is when the first model may be asked again, None where that is now or not
    known; `error_class` is None on the way back.
    """

    type: ClassVar[str] = "model_switched"
    old: str
    new: str
    reason: str
    back_at: str | None = None
    error_class: ErrorClass | None = None
    status: int | None = None
    request_id: str | None = None
    received: int = 0


@dataclass(frozen=True, slots=True)
class RecoveryStep:
    """The request was too large and has been made smaller; it is sent again.

    `step` is `output` (a shorter answer is asked for), `images` (those of older turns replaced by
    text), `compaction`, `results` (large ones cut) or `digest` (made without a model).
    """

    type: ClassVar[str] = "recovery"
    step: Step
    text: str
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True, slots=True)
class Compacting:
    """What is too large for a request is about to be summarised; `number` of at most `of` times."""

    type: ClassVar[str] = "compacting"
    number: int
    of: int
    tokens: int


@dataclass(frozen=True, slots=True)
class LoopStopped:
    """The model made the same call and got the same result `times` times in a row."""

    type: ClassVar[str] = "loop_stopped"
    name: str
    input: dict[str, Any]
    times: int


@dataclass(frozen=True, slots=True)
class Alive:
    """The server is there, but sent nothing to show; at most one a second."""

    type: ClassVar[str] = "alive"
