"""The next request as one model would get it, and what that costs."""

from __future__ import annotations

from tui.agent.request.state import RequestState
from tui.context.overrides import content_of
from tui.context.request_trail import has_thinking
from tui.core.config import model_of
from tui.core.dataclass import dataclass
from tui.core.messages import string_of
from tui.provider.base import ModelInfo
from tui.provider.prices import Payer, price_of
from tui.session.records import paid_by


@dataclass(frozen=True, slots=True)
class NextPrompt:
    """The next request as one model would get it: its tokens, how many of them the server still has
    in its cache, and the price of all, None where that isn't known."""

    tokens: int
    cached: int = 0
    usd: float | None = None


def next_prompt(requests: RequestState, info: ModelInfo, payer: Payer | None = None) -> NextPrompt:
    """Return what the next prompt costs if a model gets it with the conversation so far. Each
    model has its own cache, for each `payer`; None is the one in use."""
    ctx, sent = requests.ctx, requests.sent
    server = ctx.link.at(info.id)
    profile = paid_by(info.id, ctx.config.profile)
    payer = payer or Payer(profile, server.host, ctx.config.prices)
    asked = {model_of(string_of(record.data.get("model"))) for record in sent.all()}
    if not asked:
        return NextPrompt(0)
    size, read = requests.meter.tokens_for(info.id), 0
    if model_of(info.id) in asked:
        kept = sent.cached(info, payer.server, payer.profile)
        if kept.last is not None and kept.warm(ctx.clock.now().timestamp()):
            read = min(size, round(kept.last.tokens))
    price, new = price_of(info.id, payer.prices), size - read
    life = server.cache_life
    usd = price.forecast(read=read, written=new, prompt=size, life=life) if price else None
    return NextPrompt(size, read, usd)


def thoughts_elsewhere(requests: RequestState, model: str) -> int:
    """Count the answers whose thinking another server made than the one that a model is asked
    of."""
    host = requests.ctx.link.at(model).host
    answers = (record for record in requests.ctx.records if record.type == "assistant")
    return sum(has_thinking(content_of(one)) for one in answers if one.data.get("server") != host)
