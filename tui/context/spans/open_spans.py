"""The spans of a session that have begun, and how one is added once it has ended."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from tui.context.spans.attributes import PROVIDER, Values, cut, sendable
from tui.core.config import Price
from tui.core.dataclass import dataclass, field
from tui.core.messages import Block, Usage
from tui.core.otlp import AttributeValue, Span, SpanContext, SpanEvent
from tui.core.redaction import mask
from tui.provider.prices import price_of


@dataclass(frozen=True, slots=True)
class RunningCall:
    """A call that runs a sub-agent, since a time, with the name of its kind."""

    context: SpanContext
    since: int
    agent: str


@dataclass(slots=True)
class OpenTurn:
    """A turn that has begun. What comes after its end is still in its trace."""

    root: SpanContext
    parent: str
    start: int
    agent: str
    by: str
    link: SpanContext | None = None
    prompt: str = ""
    answer: str = ""
    events: list[SpanEvent] = field(default_factory=list[SpanEvent])
    usd: float | None = 0.0
    requests: int = 0
    calls: int = 0
    ended: bool = False
    provider: str = PROVIDER
    """The provider that was asked last."""


@dataclass(slots=True)
class OpenRequest:
    """A request without an answer."""

    id: str
    model: str
    start: int
    values: Values
    events: list[SpanEvent] = field(default_factory=list[SpanEvent])


@dataclass(slots=True)
class OpenToolCall:
    """A call without a result, in the turn with the span `parent`."""

    context: SpanContext
    parent: str
    block: Block
    start: int
    values: Values = field(default_factory=dict[str, AttributeValue])


@dataclass(frozen=True, slots=True)
class OpenBreak:
    """A break whose bill has not come."""

    id: str
    start: int
    values: Values


@dataclass(slots=True)
class OpenSpans:
    """State that all spans share: the session, what is open in it, and what the last record
    ended.

    `prices` are the configured ones. For a sub-agent's session, `within` are the calls of its
    parent that ran it: the list in `runs` of the parent's fold. `followed` are the sessions of
    sub-agents that are folded, too: what these cost is on their own spans.
    """

    session: str
    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])
    content: bool = False
    within: Sequence[RunningCall] = ()
    followed: set[str] = field(default_factory=set[str])
    runs: dict[str, list[RunningCall]] = field(default_factory=dict[str, list[RunningCall]])
    turn: OpenTurn | None = None
    request: OpenRequest | None = None
    calls: dict[str, OpenToolCall] = field(default_factory=dict[str, OpenToolCall])
    breaks: dict[str, deque[OpenBreak]] = field(default_factory=dict[str, deque[OpenBreak]])
    """The open breaks, by reason: a bill names nothing else."""
    before: int = 0
    """When the record before was written."""
    now: int = 0
    answered: bool = False
    """True if an answer came since the breaks that wait for their bill."""
    payer: str = ""
    """The profile that pays now."""
    ended: list[Span] = field(default_factory=list[Span])

    def put(
        self,
        name: str,
        context: SpanContext,
        parent: str,
        *,
        start: int,
        values: Values,
        error: str | None = None,
        events: Iterable[SpanEvent] = (),
        links: tuple[SpanContext, ...] = (),
        client: bool = False,
    ) -> None:
        """Add a span that ends now. `error` says in words why it failed, None that it did not."""
        shown: Values = {"gen_ai.conversation.id": self.session, **sendable(values)}
        start = min(start or self.now, self.now)
        words = error and (mask(cut(error))[0] if self.content else "")
        self.ended.append(
            Span(
                mask(name)[0],
                context,
                parent,
                "client" if client else "internal",
                start,
                self.now,
                shown,
                tuple(events),
                links,
                words,
            )
        )

    def put_in(
        self,
        turn: OpenTurn,
        name: str,
        id_: str,
        *,
        start: int,
        values: Values,
        error: str | None = None,
        events: Iterable[SpanEvent] = (),
        parent: str = "",
        client: bool = False,
    ) -> None:
        """Add a span of a turn that ends now, below the span `parent` or the turn's own."""
        self.put(
            name,
            SpanContext(turn.root.trace_id, id_),
            parent or turn.root.span_id,
            start=start,
            values=values,
            error=error,
            events=events,
            client=client,
        )

    def pay(self, turn: OpenTurn, model: str, usage: Usage, *, batch: bool = False) -> float | None:
        """Return what an answer cost, and count it for the turn; None without a price."""
        price = price_of(model, self.prices, self.payer)
        usd = (price.in_batch() if batch else price).cost(usage) if price else None
        if not turn.ended:
            turn.usd = None if usd is None or turn.usd is None else turn.usd + usd
        return usd
