"""A provider that forwards to another one: the common base of those that add something."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from tui.provider.base import ModelInfo, Provider, Request, StreamPart


class ProviderWrapper:
    """Forwards everything to the provider that it wraps and owns. Implements `Provider`.

    A subclass overrides only what it changes.
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
        await self._provider.aclose()
