"""The price of a change before it is made: what its break is then said to cost, and billed by."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Any

from msgspec import structs

from tui.agent.agent_context import AgentContext
from tui.agent.request.form import target_of
from tui.agent.request.state import RequestState
from tui.agent.request.supposed import broken_next, supposing
from tui.core.dataclass import dataclass
from tui.core.facts import CompactionFinished, ContextBroken, DirectivesChanged, Overlay
from tui.core.formatting import money, plural
from tui.core.formatting import tokens as tokens_text
from tui.session.request_numbers import REQUEST
from tui.tools.base import Tool


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
        """In short, as part of a line."""
        sign = "−" if self.saved >= 0 else "+"
        return self._after(f"{sign}{tokens_text(abs(self.saved))} tokens per request")

    @property
    def sentence(self) -> str:
        """As `text`, for a question, which spells out signs that look like others."""
        which = "fewer" if self.saved >= 0 else "more"
        return self._after(f"{tokens_text(abs(self.saved))} {which} tokens per request")

    def _after(self, words: str) -> str:
        if not self.tokens and not self.thoughts:
            return words
        usd = f" (≈ {money(self.cost_usd)})" if self.cost_usd is not None else ""
        again = f"{tokens_text(self.tokens)} cached again once{usd}"
        lost = f", {plural(self.thoughts, 'thought')} lost" if self.thoughts else ""
        words += f"; {again if self.tokens else 'nothing cached again'}{lost}"
        if self.pays_after is None:
            return words
        return f"{words}; pays after {plural(self.pays_after, 'request')}"


@dataclass(frozen=True, slots=True)
class SwitchPrice:
    """The price of switching a server's tool: by itself, and with a reload of the frame for it,
    which is "" where there is no need for one."""

    text: str
    reload: str = ""


async def price_of_changes(
    requests: RequestState, changes: Sequence[Overlay], saved: int
) -> ChangePrice:
    """Return the price of sending records in another form, which saves `saved` tokens of each
    request. Works in a thread, since it takes longer in long conversations."""
    supposed = supposing(requests, *changes)
    broken = await asyncio.to_thread(broken_next, supposed)
    if broken is None:
        return ChangePrice(saved, 0, 0)
    return _paying(requests.ctx, saved, broken, requests.ctx.ledger.tokens - saved)


async def next_break(requests: RequestState) -> ContextBroken | None:
    """Return the break that the next request causes as things are; None where it extends the
    last. Works in a thread, too."""
    return await asyncio.to_thread(broken_next, supposing(requests))


async def reload_cost(requests: RequestState) -> ContextBroken | None:
    """Return the break of a new frame, from the files as they are now; None where it would say the
    same, and before the first request. Works in a thread, too. Raises nothing."""
    supposed = supposing(requests)
    supposed.frame.renew("reload")
    await supposed.frame.make()
    return await asyncio.to_thread(broken_next, supposed)


async def exchange_cost(
    requests: RequestState, tool: Tool[Any], *, joins: bool
) -> ContextBroken | None:
    """Return the break of a new frame that a tool joins, or leaves. Worked out in a thread, too."""
    supposed = supposing(requests)
    supposed.frame.exchange(() if joins else {tool.name}, [tool] if joins else ())
    supposed.frame.renew("reload")
    supposed.frame.make_of_known()
    return await asyncio.to_thread(broken_next, supposed)


def foreign_frame_cost(requests: RequestState) -> ContextBroken | None:
    """Return the break of the new frame that the next request begins with, since another
    installation made the one in the record; None where it costs nothing."""
    if not requests.frame.is_foreign:
        return None
    supposed = supposing(requests)
    supposed.frame.make_of_known()
    return _if_it_costs(broken_next(supposed))


def effort_cost(
    requests: RequestState, level: str | None = None, *, think: bool | None = None
) -> ContextBroken | None:
    """Return the break of another level, or of /think, with the next request; None where it costs
    nothing."""
    frame = requests.frame
    think = frame.think if think is None else think
    chosen = frame.effort if level is None else level
    state = requests.ctx.state
    now = DirectivesChanged(think, state.verbose, state.elevated, chosen)
    supposed = supposing(requests, now)
    supposed.frame.think, supposed.frame.effort = think, chosen
    return _if_it_costs(broken_next(supposed))


def _if_it_costs(broken: ContextBroken | None) -> ContextBroken | None:
    return broken if broken and (broken.tokens or broken.thoughts) else None


async def price_of_compaction(
    requests: RequestState,
    made: CompactionFinished,
    *,
    read: int,
    saved: int,
    output: int,
    asked_fresh: bool,
) -> ChangePrice:
    """Return the price of a summary as it would be recorded, of `output` tokens: `read` tokens are
    read for it, and each request has `saved` fewer.

    What is not in the cache yet would be written by any request; with `asked_fresh` the one for the
    summary does so, too.
    """
    ctx, supposed = requests.ctx, supposing(requests, made)
    if requests.frame.waits:
        supposed.frame.renew("compaction")
        await supposed.frame.make()
    broken = broken_next(supposed) or ContextBroken("compaction", "person", 0, 0)
    usd = None
    if ctx.price is not None and broken.cost_usd is not None:
        model = ctx.link.model
        warm = requests.sent.cached(model).warm(ctx.clock.now().timestamp())
        new = min(read, _fresh(ctx) if asked_fresh else 0) if warm else read
        life = target_of(requests, model).life
        usd = broken.cost_usd + ctx.price.forecast(
            read=read - new, written=new, output=output, prompt=read, life=life
        )
    cost = structs.replace(broken, cost_usd=usd)
    return _paying(ctx, saved, cost, ctx.ledger.tokens - saved)


def _fresh(ctx: AgentContext) -> int:
    """The tokens of what was recorded since the last request."""
    last = next((r.id for r in reversed(ctx.records) if r.type == REQUEST), "")
    spoken = {record.id for record in ctx.records if record.id > last}
    return sum(item.tokens for item in ctx.ledger.items() if item.id in spoken) if last else 0


def _paying(ctx: AgentContext, saved: int, cost: ContextBroken, after: int) -> ChangePrice:
    """A change with the number of requests after which it was worth it."""
    pays: int | None = None
    if ctx.price is not None and cost.cost_usd is not None and saved > 0:
        each = ctx.price.forecast(read=saved, prompt=after + saved)
        pays = math.ceil(cost.cost_usd / each) if each else None
    return ChangePrice(saved, cost.tokens, cost.thoughts, cost.cost_usd, pays)
