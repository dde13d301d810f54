"""The bill of a break: what its request is expected to read and write, and what it did.

The expectation comes from the request itself and from what the server keeps of those before it, by
their own records; so it holds whatever the reason is, and whether the program knows one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import structs

from tui.agent.agent_context import AgentContext
from tui.agent.request.break_reasons import BreakReason
from tui.agent.request.state import Built, RequestState, Target
from tui.context.breaks import thoughtless
from tui.context.cached_prefixes import Forecast
from tui.context.overrides import SPEAKING, content_of
from tui.context.request_trail import CACHE, Prefix, has_thinking, weigh
from tui.core.dataclass import dataclass
from tui.core.facts import BreakBilled, ContextBroken
from tui.core.messages import Block, Usage, object_of
from tui.provider.prices import CacheLife, ModelPrice
from tui.session.records import Record
from tui.session.request_numbers import REQUEST
from tui.tokens import estimate


@dataclass(frozen=True, slots=True)
class Expected:
    """The input of a request that breaks with the last, and how many of its tokens would have come
    from the cache, had it only grown: `old`, 0 where nothing is there any more."""

    input: Forecast
    old: int

    @property
    def again(self) -> int:
        """The tokens that are written again."""
        return max(0, self.old - self.input.read)

    def to_json(self, said: ContextBroken) -> dict[str, Any]:
        """The fields of a `request` record that the bill is worked out from."""
        return {
            "prompt": self.input.prompt,
            "read": self.input.read,
            "written": self.input.written,
            "old": self.old,
            "by": said.by,
            "thoughts": said.thoughts,
            "cost_usd": said.cost_usd,
        }


def expected(
    requests: RequestState, target: Target, now: Built, records: Sequence[Record]
) -> Expected:
    """Work out what a request will read and write; `records` are those that it is made of."""
    cached = requests.sent.cached(target.model)
    moment = requests.ctx.clock.now().timestamp()
    input_ = cached.forecast(requests.sent.prefixes(now.request, now.marks, now.candidate), moment)
    if not cached.warm(moment):
        return Expected(input_, 0)
    fresh = round(cached.fit.tokens(Prefix("", 0, 0.0), _spoken_since(records, target.last)))
    return Expected(input_, max(0, input_.prompt - fresh))


def _spoken_since(records: Sequence[Record], last: Record | None) -> Prefix:
    """Weigh what was said since a request, as one that extends it would send it: with thinking that
    a break takes."""
    since = list[Block]()
    messages = 0
    for record in reversed(records):
        if record is last:
            break
        if record.type not in SPEAKING:
            continue
        since += content_of(record)
        messages += 1
    weight, thoughts, thought_weight = weigh(since)
    weight += messages * estimate.MESSAGE_TOKENS
    return Prefix("", len(since) - thoughts, weight, thoughts, thought_weight)


def forecast_of(
    ctx: AgentContext, target: Target, why: BreakReason, due: Expected, lost: int
) -> ContextBroken:
    """A break as it is expected, with the number of thoughts that are lost."""
    price = ctx.price_of(target.model.id)
    usd = None
    if price is not None:
        usd = _extra(price, due.input.prompt, due.again, written=due.again, life=target.life)
    return ContextBroken(why.reason, why.by, due.again, lost, usd)


def thoughts_lost(before: Sequence[Record], after: Sequence[Record]) -> int:
    """Count the answers that lose their thinking by what comes after."""
    gone = thoughtless(after) - thoughtless(before)
    return sum(has_thinking(content_of(record)) for record in before if record.id in gone)


def billed(ctx: AgentContext, usage: Usage, model: str) -> BreakBilled | None:
    """The bill of the last request to a model, by its answer's usage; None where it did not
    break."""
    sent = (r.data for r in reversed(ctx.records) if r.type == REQUEST)
    request = next((data for data in sent if data.get("model") == model), dict[str, Any]())
    match forecast := object_of(object_of(request.get(CACHE)).get("forecast")):
        case {"prompt": int(prompt), "old": int(old)}:
            pass
        case _:
            return None
    whole = usage.prompt_tokens
    again = max(0, whole - (prompt - old) - usage.cache_read_input_tokens) if old else 0
    usd, price = None, ctx.price_of(model)
    if price is not None:
        written = min(again, usage.cache_creation_input_tokens)
        life: CacheLife = "1h" if usage.ephemeral_1h_input_tokens else "5m"
        usd = _extra(price, whole, again, written=written, life=life)
    said = BreakBilled.of_record({**forecast, "reason": request.get("break")})
    return structs.replace(said, tokens=again, billed_usd=usd, n=int(request.get("n") or 0))


def _extra(price: ModelPrice, prompt: int, again: int, *, written: int, life: CacheLife) -> float:
    """Return the extra cost of tokens that don't come from the cache, some written to it."""
    paid = price.forecast(written=written, fresh=again - written, prompt=prompt, life=life)
    return max(0.0, paid - price.forecast(read=again, prompt=prompt))
