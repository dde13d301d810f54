"""The practice model as a provider."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from tui.core.clock import Clock
from tui.core.errors import ProviderError
from tui.provider.base import ModelInfo, Request, StreamPart
from tui.provider.practice.faults import Fault, FaultQueue, inject
from tui.provider.practice.respond import respond
from tui.provider.practice.script import Script, ScriptedTurn
from tui.provider.practice.stream import MODEL, WINDOW, count_input, stream

INFO = ModelInfo(id=MODEL, window=WINDOW, max_output=4096, source="catalogue")
"""The properties of the practice model."""


class PracticeModel:
    """A model without a network. It replays `script`, or otherwise answers by its phrases.

    By phrases it keeps no state: it reads its past actions from the request. `unplayed` are the
    remaining turns of the script. `delay_s` passes between two deltas, so that a person sees it
    work; `window` is in tokens.
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
        self._script = script
        self.unplayed = deque(script.turn if script else ())
        self._faults: FaultQueue | None = None

    async def stream(self, request: Request) -> AsyncGenerator[StreamPart]:
        clock, window = self._clock, self._window
        turn, fault = await self._next(request)
        parts = stream(turn, request, clock=clock, delay_s=self._delay_s, window=window)
        if fault is not None:
            parts = inject(fault, parts, request, clock, window=window)
        async with aclosing(parts):
            async for part in parts:
                yield part

    async def _next(self, request: Request) -> tuple[ScriptedTurn, Fault | None]:
        """The turn that answers a request, and the fault that this attempt meets."""
        if self._script is None:
            return respond(request), None
        if not self.unplayed:
            raise ProviderError(
                "unknown",
                f"The practice script {self._script.name} has run out of turns: it has "
                f"{len(self._script.turn)}, and one more was needed.",
                hint="Add a [[turn]] to the script.",
            )
        turn = self.unplayed[0]
        self._faults = self._faults or FaultQueue(turn.faults)
        fault = await self._faults.take(request)
        if fault is None or fault.slow_s is not None:
            self.unplayed.popleft()
            self._faults = None
        return turn, fault

    async def count_tokens(self, request: Request) -> int:
        return await count_input(request)

    async def load(self) -> None:
        """Do nothing: there is nothing to load."""

    async def model_info(self, model: str) -> ModelInfo:
        return replace(INFO, id=model, window=self._window)

    async def aclose(self) -> None:
        """Do nothing: nothing is held open."""
