"""Requests: each attempt, the answer as it comes, what went wrong, and what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self, TypeAlias

from msgspec import UNSET, UnsetType, field
from msgspec.structs import replace

from tui.core.errors import ErrorClass
from tui.core.facts.base import DurableFact, Kept, RecordFact, WireFact
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


class RequestMade(RecordFact, frozen=True, tag="request"):
    """A request of the conversation is about to be sent: all that it is made of besides the
    records before it, see `tui.context.request_replay`. `form` and `sha256` are of its content.

    Of `cache`, `kept` is what it makes the server keep (`tui.context.cached_prefixes`). One that
    breaks with the last has a `forecast` of its input: the tokens of its `prompt`, those `read`
    from the cache and `written` to it, the `old` ones that would be read had it only grown, and
    what was said.
    """

    written = (
        "n model server bound? sha256 messages open blocks max_tokens thinking effort marks form"
        " shared_thinking prune diagnostics cache_life untrusted? break=breaks? cache?"
    )

    n: int
    model: str
    server: str
    sha256: str
    messages: int
    open: list[Any]
    blocks: int
    max_tokens: int
    thinking: Any
    effort: str | None
    marks: Any
    form: list[Any]
    shared_thinking: bool
    prune: Any
    diagnostics: Any
    cache_life: str
    bound: str = ""
    untrusted: Sequence[str] = ()
    breaks: str = ""
    cache: dict[str, Any] = field(default_factory=dict[str, Any])


class FeatureMissing(RecordFact, frozen=True, tag="feature"):
    """The server does not know a feature of a model's requests: it refused it, in these words.

    The feature "max_output" is the length of its answers: they may have so many `tokens`.
    """

    written = "feature server model message request_id tokens?"

    feature: str
    server: str
    model: str
    message: str
    request_id: str | None
    tokens: int = 0


class RetryScheduled(DurableFact, frozen=True, tag="retry_scheduled"):
    """An attempt failed and the next starts in `delay_s` seconds; what it had streamed is void.

    `attempt` is the number of the coming retry, 1 to `max_attempts`; `status` is None without
    an HTTP answer. `request_id` is the failed attempt's, `received` the characters that it had
    streamed (text, thinking and tool input), `streamed` its text.
    """

    record_type = "retry"
    written = (
        "attempt max_attempts delay_s reason status error_class request_id received text=streamed"
    )

    attempt: int
    max_attempts: int
    delay_s: float
    reason: str
    status: int | None
    error_class: ErrorClass
    request_id: str | None = None
    received: int = 0
    streamed: Kept[str] = ""

    @classmethod
    def completed(cls, *values: Any) -> Self:
        fact = cls(*values)
        attempt, kind = fact.attempt or 1, fact.error_class or "unknown"
        most = max(attempt, fact.max_attempts)
        return replace(fact, attempt=attempt, max_attempts=most, error_class=kind)


class ModelSwitched(DurableFact, frozen=True, tag="model_switched"):
    """The model `new` is asked from now on, `old` was before; what had been streamed is void.

    `back_at` (ISO 8601) is when the model first asked for may be asked again, None where that is
    now or not known. The rest is of the error that led to it, as in `RetryScheduled`;
    `error_class` is None on the way back. Where that is a model of another profile, `again`
    are the tokens that its server has not in its cache, for `usd`, and `thoughts` the answers whose
    thinking it can't read.
    """

    record_type = "failover"
    written = (
        "from=old to=new reason back_at error_class status request_id received text=streamed"
        " again? usd? thoughts?"
    )

    old: str = field(name="from")
    new: str = field(name="to")
    reason: str
    back_at: str | None = None
    error_class: ErrorClass | None = None
    status: int | None = None
    request_id: str | None = None
    received: int = 0
    streamed: Kept[str] = ""
    again: int | UnsetType = UNSET
    usd: float | UnsetType = UNSET
    thoughts: int | UnsetType = UNSET


class Parked(DurableFact, frozen=True, tag="parked"):
    """The server wants to see the request no sooner than `until` (ISO 8601, UTC); it is sent then.

    Told again when a parked session is opened. The turn continues by itself, or by `Agent.go_on`.
    """

    written = "until reason error_class status request_id received text=streamed"

    until: str
    reason: str
    error_class: str = "rate_limit"
    status: int | None = None
    request_id: Kept[str | None] = None
    received: Kept[int] = 0
    streamed: Kept[str] = ""

    @classmethod
    def completed(cls, *values: Any) -> Self:
        until, reason, error_class, *others = values
        return cls(until, reason, error_class or "unknown", *others)


class RecoveryStep(DurableFact, frozen=True, tag="recovery"):
    """The request was too large and has been made smaller; it is sent again.

    `step` is `output` (a shorter answer is asked for), `images` (those of older turns replaced by
    text), `compaction`, `results` (large ones cut) or `digest` (made without a model).
    """

    written = "step action=text error_class tokens_before tokens_after request_id text=streamed"

    step: Step
    text: str
    tokens_before: int
    tokens_after: int
    error_class: Kept[str] = ""
    request_id: Kept[str | None] = None
    streamed: Kept[str] = ""


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
    """The cost of the last request, and of the session with it, in US dollars; null where a price
    is not known."""

    usd: float | None
    total_usd: float | None


class ThinkingDropped(WireFact, frozen=True, tag="thinking_dropped"):
    """The server did not use earlier thinking, or used it though it stood in another place.

    `dropped` and `allowed` count the thoughts by the server's reasons.
    """

    dropped: dict[str, int]
    allowed: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        data = super().to_json()
        dropped = object_of(data["dropped"])
        return data | {"count": sum(dropped.values()), "reason": ", ".join(dropped)}
