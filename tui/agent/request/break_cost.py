"""The cost of a break: tokens written again, thinking lost, and the money."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from msgspec import structs

from tui.agent.agent_context import AgentContext
from tui.agent.request.break_reasons import BreakReason, first_turn
from tui.context.breaks import BREAK, thoughtless
from tui.context.frame import FRAME
from tui.context.overrides import content_of
from tui.context.request_trail import has_thinking
from tui.context.rules.blocks import THINKING
from tui.core.facts import ContextBroken
from tui.core.formatting import money, plural
from tui.core.formatting import tokens as tokens_text
from tui.core.messages import Block, Usage
from tui.provider.prices import CacheLife
from tui.session.records import is_answer
from tui.session.request_numbers import REQUEST
from tui.tokens import estimate


def broken(ctx: AgentContext, why: BreakReason, tokens: int, *, less: int = 0) -> ContextBroken:
    """A break after which `tokens` are written to the cache again, which else would be read; the
    next request has that many tokens `less` than the ledger says."""
    place = next((n for n, r in enumerate(ctx.records) if r.id == why.start), 0)
    dropped = thoughtless(ctx.records)
    answers = (r for r in ctx.records[place:] if r.type == "assistant" and r.id not in dropped)
    lost = sum(has_thinking(content_of(record)) for record in answers)
    usd = None
    if ctx.price is not None:
        whole = max(tokens, ctx.ledger.tokens - less)
        written = ctx.price.forecast(written=tokens, prompt=whole, life=cache_life(ctx))
        usd = max(0.0, written - ctx.price.forecast(read=tokens, prompt=whole))
    return ContextBroken(why.reason, why.by, tokens, lost, usd)


def reload_cost(ctx: AgentContext) -> ContextBroken:
    """Return the cost of a new frame with the next request."""
    return broken(ctx, BreakReason("reload", "person"), ctx.ledger.tokens)


def restart_cost(ctx: AgentContext, reason: str, by: str) -> ContextBroken:
    """Return the cost of a restart of the cache; thinking stays valid."""
    return structs.replace(broken(ctx, BreakReason(reason, by), ctx.ledger.tokens), thoughts=0)


def cache_life(ctx: AgentContext) -> CacheLife:
    """Return how long the server keeps what the session sends, by its frame."""
    frame = next((r for r in reversed(ctx.records) if r.type == FRAME), None)
    life = frame.data.get("cache_life", "5m") if frame else ctx.link.cache_life
    return "1h" if life == "1h" else "5m"


@dataclass(frozen=True, slots=True)
class ChangePrice:
    """The price of a change to what was sent, before it is made.

    Each request has `saved` tokens less; `tokens` are written again once and `thoughts` lost, for
    `cost_usd`, None where no price is known. After `pays_after` requests it was worth it, None
    where never.
    """

    saved: int
    tokens: int
    thoughts: int
    cost_usd: float | None = None
    pays_after: int | None = None

    @property
    def text(self) -> str:
        """In words, as part of a line."""
        sign = "−" if self.saved >= 0 else "+"
        words = f"{sign}{tokens_text(abs(self.saved))} tokens per request"
        if not self.tokens:
            return words
        usd = f" (≈ {money(self.cost_usd)})" if self.cost_usd is not None else ""
        lost = f", {plural(self.thoughts, 'thought')} lost" if self.thoughts else ""
        words += f"; {tokens_text(self.tokens)} written again once{usd}{lost}"
        if self.pays_after is None:
            return words
        return f"{words}; pays after {plural(self.pays_after, 'request')}"


@dataclass(frozen=True, slots=True)
class SwitchPrice:
    """The price of switching a server's tool: by itself, and with a reload of the frame for it,
    which is "" where there is no need for one."""

    text: str
    reload: str = ""


def price_of_masks(ctx: AgentContext, saved: Mapping[str, int], joining: int) -> ChangePrice:
    """Return the price of masking records that are shown now, by the tokens that each of them
    saves.

    `joining` are the tokens that go with them because they waited for a break.
    """
    each = sum(saved.values())
    cost = cost_of_change(ctx, saved, less=each + joining)
    if cost is None:
        return ChangePrice(each, 0, 0)
    return _paying(ctx, each, cost, ctx.ledger.tokens - each - joining)


def price_of_compaction(
    ctx: AgentContext,
    *,
    read: int,
    kept: int,
    freed: int,
    thoughts: int,
    output: int,
    new_frame: bool,
    asked_fresh: bool,
) -> ChangePrice:
    """Return the price of a summary: `read` tokens are read for it, `kept` stay in each request,
    `output` is its approximate length.

    With a `new_frame` all of it is written again, else what comes after the frame. The last answer
    is not in the cache yet, and would be written by any request; with `asked_fresh` the one for the
    summary does so, too.
    """
    after, fresh = kept + output, _fresh(ctx)
    written = max(0, after - fresh - (0 if new_frame else _fixed(ctx)))
    usd = None
    if ctx.price is not None:
        # the request for the summary, then what is written again instead of being read
        life, new = cache_life(ctx), min(fresh, read) if asked_fresh else 0
        request_usd = ctx.price.forecast(
            read=read - new, written=new, output=output, prompt=read, life=life
        )
        again = ctx.price.forecast(written=written, prompt=after, life=life)
        usd = request_usd + again - ctx.price.forecast(read=written, prompt=after)
    cost = ContextBroken("compaction", "person", written, thoughts, usd)
    return _paying(ctx, freed - output, cost, after)


def _fresh(ctx: AgentContext) -> int:
    """The tokens of what was recorded since the last request."""
    last = next((r.id for r in reversed(ctx.records) if r.type == REQUEST), "")
    spoken = {record.id for record in ctx.records if record.id > last}
    return sum(item.tokens for item in ctx.ledger.items() if item.id in spoken) if last else 0


def _fixed(ctx: AgentContext) -> int:
    kinds = {"system", "tools", "memory"}
    return sum(item.tokens for item in ctx.ledger.items() if item.kind in kinds)


def _paying(ctx: AgentContext, saved: int, cost: ContextBroken, after: int) -> ChangePrice:
    """A change with the number of requests after which it was worth it."""
    pays: int | None = None
    if ctx.price is not None and cost.cost_usd is not None and saved > 0:
        each = ctx.price.forecast(read=saved, prompt=after + saved)
        pays = math.ceil(cost.cost_usd / each) if each else None
    return ChangePrice(saved, cost.tokens, cost.thoughts, cost.cost_usd, pays)


def cost_of_change(
    ctx: AgentContext, targets: Collection[str], *, less: int = 0
) -> ContextBroken | None:
    """Return the cost of sending these records in another form from the next request on, which then
    has that many tokens `less`.

    None where none of them was sent yet.
    """
    requests = [n for n, record in enumerate(ctx.records) if record.type == REQUEST]
    if not any(record.id in targets for record in ctx.records[: max(requests, default=0)]):
        return None
    why = BreakReason("mask", "person", first_turn(ctx.records, targets))
    start = _written_from(ctx, why, targets)
    behind = {record.id: record for record in ctx.records[start:]}
    last = ctx.records[max(requests)].id
    items = [(item, behind[item.id]) for item in ctx.ledger.items() if item.id in behind]
    known = sum(item.tokens for item, record in items if record.id < last)
    scale = (_measured(ctx, start) / known if known else 0) or 1.0
    dropped, tokens = thoughtless(ctx.records), -scale * less
    for item, record in items:
        thought = 0.0
        if record.type == "assistant" and record.id not in dropped:
            thought = item.tokens * _thinking_share(content_of(record))
        tokens += scale * ((item.tokens if record.id < last else 0) - thought)
    return broken(ctx, why, max(0, round(tokens)), less=less)


def _written_from(ctx: AgentContext, why: BreakReason, targets: Collection[str]) -> int:
    """The place of the record from which on a change makes everything be written again.

    Behind the first change the cache knows nothing; before it, it knows the ends of requests. So
    that is an answer: the first that loses its thinking, or the one before what changes.
    """
    records, dropped = ctx.records, thoughtless(ctx.records)
    turn = next((n for n, record in enumerate(records) if record.id == why.start), 0)
    first = next((n for n, record in enumerate(records) if record.id in targets), 0)
    for place in range(turn, first):
        record = records[place]
        loses = record.type == "assistant" and record.id not in dropped
        if loses and has_thinking(content_of(record)):
            return place
    answers = (n for n in range(first, -1, -1) if is_answer(records[n]))
    return next(answers, first)


def _measured(ctx: AgentContext, start: int) -> int:
    """The tokens from an answer's place to the end of the last request, as the server counted; 0
    where something changed in between."""
    ends: list[int] = []
    for record in ctx.records[start:]:
        if record.type in {BREAK, "overlay", "compaction", "uncompaction"}:
            return 0
        if is_answer(record):
            ends.append(Usage.from_json(record.data.get("usage")).prompt_tokens)
    return max(0, ends[-1] - ends[0]) if ends and all(ends) else 0


def _thinking_share(content: Sequence[Block]) -> float:
    """Return the share of thinking in an answer."""
    whole = estimate.content_weight(content) + estimate.MESSAGE_TOKENS
    return 1 - spoken_weight(content) / whole


def spoken_weight(content: Iterable[Block]) -> float:
    """Weigh an answer without its thinking, which is left out after a break."""
    spoken = [block for block in content if str(block.get("type")) not in THINKING]
    return estimate.content_weight(spoken) + estimate.MESSAGE_TOKENS
