"""Requests: each attempt, the answer as it comes, what went wrong, and what it cost."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import field

from tui.core.errors import ErrorClass
from tui.core.facts.base import WireFact
from tui.core.messages import object_of

Step: TypeAlias = Literal["output", "images", "compaction", "results", "digest"]


class RequestSent(WireFact, frozen=True, tag="request_sent"):
    """`messages` and `tokens` (estimated) are of the request; `attempt` counts from 1."""

    messages: int
    tokens: int
    model: str
    attempt: int


class TextDelta(WireFact, frozen=True, tag="text_delta"):
    text: str


class ThinkingDelta(WireFact, frozen=True, tag="thinking_delta"):
    text: str


class ToolInputDelta(WireFact, frozen=True, tag="tool_input_delta"):
    """The model is writing a call: a piece of the JSON of its input, the first may be empty."""

    id: str
    name: str
    text: str


class Alive(WireFact, frozen=True, tag="alive"):
    """The server is there, but sent no delta (a ping, a signature); at most one a second.

    The seconds since the last part of any kind are the seconds since the last sign of life, give
    or take that one.
    """


class RetryScheduled(WireFact, frozen=True, tag="retry_scheduled"):
    """An attempt failed and the next starts in `delay_s` seconds; what it had streamed is void.

    `attempt` is the number of the coming retry, 1 to `max_attempts`; `status` is None without
    an HTTP answer. `request_id` is the failed attempt's, `received` the characters that it had
    streamed (text, thinking and tool input).
    """

    attempt: int
    max_attempts: int
    delay_s: float
    reason: str
    status: int | None
    error_class: ErrorClass
    request_id: str | None = None
    received: int = 0


class ModelSwitched(WireFact, frozen=True, tag="model_switched"):
    """The model `new` is asked from now on, `old` was before; what had been streamed is void.

    `back_at` (ISO 8601) is when the model first asked for may be asked again, None where that is
    now or not known. The rest is of the error that led to it, as in `RetryScheduled`;
    `error_class` is None on the way back.
    """

    old: str = field(name="from")
    new: str = field(name="to")
    reason: str
    back_at: str | None = None
    error_class: ErrorClass | None = None
    status: int | None = None
    request_id: str | None = None
    received: int = 0


class Parked(WireFact, frozen=True, tag="parked"):
    """The server wants to see the request no sooner than `until` (ISO 8601, UTC); it is sent then.

    Told again when a parked session is opened. The turn continues by itself, or by `Agent.go_on`.
    """

    until: str
    reason: str
    error_class: str = "rate_limit"
    status: int | None = None


class RecoveryStep(WireFact, frozen=True, tag="recovery"):
    """The request was too large and has been made smaller; it is sent again.

    `step` is `output` (a shorter answer is asked for), `images` (those of older turns replaced by
    text), `compaction`, `results` (large ones cut) or `digest` (made without a model).
    """

    step: Step
    text: str
    tokens_before: int
    tokens_after: int


class RequestExtended(WireFact, frozen=True, tag="request_extended"):
    """An answer came: its request was number `n`, and extends number `last` to the same model.

    `broken` is why it does not, "" where it does. `tokens` are those of the prompt, `added` how
    many more than in the last (None where that is not known), `cached` those that came from the
    cache. `cache_miss` is the server's reason why the others did not, "" where it names none. Of
    the `output` that many tokens were `thought`, where the server says so.
    """

    n: int
    last: int | None
    broken: str
    tokens: int
    added: int | None = field(name="added_tokens")
    cached: int = field(name="cache")
    cache_miss: str = ""
    missed_tokens: int = 0
    thought: int = 0
    output: int = 0


class RequestPaid(WireFact, frozen=True, tag="cost"):
    """What the last request cost, and the session with it, in US dollars; null where a price is
    not known."""

    usd: float | None
    total_usd: float | None


class ThinkingDropped(WireFact, frozen=True, tag="thinking_dropped"):
    """The server did not use earlier thinking, or used it though it stood in another place.

    `dropped` and `allowed` count the thoughts by the server's reasons.
    """

    dropped: dict[str, int]
    allowed: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        found = super().to_json()
        dropped = object_of(found["dropped"])
        return found | {"count": sum(dropped.values()), "reason": ", ".join(dropped)}
