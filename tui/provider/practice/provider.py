"""The practice model as a provider."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from tui import tokens
from tui.clock import Clock
from tui.provider.base import ModelInfo, Request, StreamPart
from tui.provider.practice.answer import INFO, WINDOW, count_input, model_info, stream
from tui.provider.practice.respond import respond
from tui.provider.practice.script import Script, ScriptedModel

__all__ = ["INFO", "PracticeModel"]


class PracticeModel:
    """A model without a network: rules that understand plain requests and use the real tools.

    It keeps no state: what it has done it reads from the request. With a `script` it replays
    that instead, and then counts its turns. `delay_s` passes between two deltas, so that a
    person sees it work; `window` is in tokens.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        script: Script | None = None,
        delay_s: float = 0.0,
        window: int = WINDOW,
    ) -> None:
        self._clock = clock
        self._delay_s = delay_s
        self._window = window
        self._script = script and ScriptedModel(script, clock, delay_s=delay_s, window=window)

    async def stream(self, request: Request) -> AsyncGenerator[StreamPart]:
        parts = self._script.stream(request) if self._script else self._by_rules(request)
        async with aclosing(parts):
            async for part in parts:
                yield part

    def _by_rules(self, request: Request) -> AsyncGenerator[StreamPart]:
        return stream(
            respond(request),
            request,
            clock=self._clock,
            delay_s=self._delay_s,
            window=self._window,
        )

    async def count_tokens(self, request: Request) -> int:
        return await count_input(request)

    async def load(self) -> None:
        """Get the token counter ready, which every answer needs."""
        await tokens.load()

    async def model_info(self, model: str) -> ModelInfo:
        return model_info(model, self._window)

    async def aclose(self) -> None:
        """Nothing is held open."""
