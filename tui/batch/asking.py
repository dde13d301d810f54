"""One model side for a whole run: shared by its sessions, and asked beside them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from tui.agent.limits import cost
from tui.batch.attempt import Attempt
from tui.config import Price
from tui.errors import HoldfastError
from tui.messages import text_block, text_of
from tui.provider.base import Completed, ModelInfo, Provider, Request, StreamPart

ANSWER_TOKENS = 1024
PATIENCE_S = 180.0
_SYSTEM = "You judge why a task of an automatic run failed. You answer with JSON alone."


class Shared:
    """A provider that the sessions of a run use one after the other: closing one leaves it open.

    So a practice script goes on where the last session left it. Implements `Provider`; whoever
    made the inner one closes it.
    """

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    async def stream(self, request: Request) -> AsyncGenerator[StreamPart]:
        async with aclosing(self._provider.stream(request)) as parts:
            async for part in parts:
                yield part

    async def count_tokens(self, request: Request) -> int:
        return await self._provider.count_tokens(request)

    async def load(self) -> None:
        await self._provider.load()

    async def model_info(self, model: str) -> ModelInfo:
        return await self._provider.model_info(model)

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
