"""What a break costs: the tokens that are written again, the thinking that is lost, in money."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tui.agent.agent_context import AgentContext
from tui.agent.break_reasons import BreakReason, first_turn
from tui.agent.events import ContextBroken
from tui.context.breaks import thoughtless
from tui.context.frame import FRAME
from tui.context.overrides import content_of
from tui.context.request_trail import REQUEST, has_thinking
from tui.context.rules.blocks import THINKING
from tui.core.messages import Block
from tui.provider.prices import CacheLife
from tui.tokens import estimate


def broken(ctx: AgentContext, why: BreakReason, tokens: int) -> ContextBroken:
    """A break behind which `tokens` are written to the cache again, which else would be read."""
    place = next((n for n, r in enumerate(ctx.records) if r.id == why.start), 0)
    gone = thoughtless(ctx.records)
    answers = (r for r in ctx.records[place:] if r.type == "assistant" and r.id not in gone)
    lost = sum(has_thinking(content_of(record)) for record in answers)
    usd = None
    if ctx.price is not None:
        whole = max(tokens, ctx.ledger.tokens)
        written = ctx.price.forecast(written=tokens, prompt=whole, life=cache_life(ctx))
        usd = max(0.0, written - ctx.price.forecast(read=tokens, prompt=whole))
    return ContextBroken(why.reason, why.by, tokens, lost, usd)


def cache_life(ctx: AgentContext) -> CacheLife:
    """How long the server keeps what the session sends, by its frame."""
    frame = next((r for r in reversed(ctx.records) if r.type == FRAME), None)
    found = frame.data.get("cache_life", "5m") if frame else ctx.cache_life
    return "1h" if found == "1h" else "5m"


def cost_of_change(ctx: AgentContext, targets: Collection[str]) -> ContextBroken | None:
    """What it would cost to send these records in another form from the next request on.

    None where none of them was sent yet.
    """
    requests = [n for n, record in enumerate(ctx.records) if record.type == REQUEST]
    if not any(record.id in targets for record in ctx.records[: max(requests, default=0)]):
        return None
    items = [item for item in ctx.ledger.items() if item.kind not in {"system", "tools", "memory"}]
    first = next((n for n, item in enumerate(items) if item.id in targets), len(items))
    answers = {record.id: record for record in ctx.records if record.type == "assistant"}
    tokens = 0.0
    for item in items[first:]:
        answer = answers.get(item.id)
        tokens += ctx.ledger.share * spoken_weight(content_of(answer)) if answer else item.tokens
    why = BreakReason("mask", "person", first_turn(ctx.records, targets))
    return broken(ctx, why, round(tokens))


def spoken_weight(content: Iterable[Block]) -> float:
    """What an answer weighs without its thinking, which is left out behind a break."""
    said = [block for block in content if str(block.get("type")) not in THINKING]
    return estimate.content_weight(said) + estimate.MESSAGE_TOKENS
