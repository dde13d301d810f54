"""One model side for a whole run: shared by its sessions, and asked beside them."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from tui.agent.limits import cost
from tui.batch.attempt import Attempt
from tui.core.config import Price
from tui.core.errors import HoldfastError
from tui.core.messages import text_block, text_of
from tui.provider.base import Completed, Provider, Request
from tui.provider.provider_wrapper import Through

ANSWER_TOKENS = 1024
PATIENCE_S = 180.0
_SYSTEM = "You judge why a task of an automatic run failed. You answer with JSON alone."


class Shared(Through):
    """A provider that the sessions of a run use one after the other: closing one leaves it open.

    So a practice script goes on where the last session left it. Whoever made the inner one closes
    it.
    """

    async def aclose(self) -> None:
        """The next session goes on with it."""


async def ask(provider: Provider, model: str, question: str, price: Price | None) -> Attempt:
    """One question without tools, and its answer. Raises HoldfastError, after PATIENCE_S too."""
    request = Request(
        model=model,
        system=[text_block(_SYSTEM)],
        messages=[{"role": "user", "content": [text_block(question)]}],
        tools=[],
        max_tokens=ANSWER_TOKENS,
    )
    try:
        async with asyncio.timeout(PATIENCE_S), aclosing(provider.stream(request)) as parts:
            async for part in parts:
                if isinstance(part, Completed):
                    return Attempt(
                        "done",
                        answer=text_of(part.content),
                        usage=part.usage,
                        cost_usd=cost(part.usage, price),
                    )
    except TimeoutError:
        raise HoldfastError(f"{model} gave no answer in {PATIENCE_S:.0f} s.") from None
    raise HoldfastError(f"{model} gave no whole answer.")
