"""What goes on beside the turns: loading what is heavy, tidying what is old."""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import suppress
from dataclasses import dataclass, field

from tui.core.clock import Clock
from tui.core.errors import HoldfastError
from tui.core.output_store import OutputStore
from tui.provider.base import Provider

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Background:
    """Begun once, ended by `close`."""

    provider: Provider
    kept: OutputStore | None
    clock: Clock
    _stop: threading.Event = field(default_factory=threading.Event)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])

    def begin(self) -> None:
        self._tasks.append(asyncio.create_task(self._load(), name="loading"))
        self._tasks.append(asyncio.create_task(self._sweep(), name="sweeping"))

    def close(self) -> None:
        self._stop.set()
        for task in self._tasks:
            task.cancel()

    async def _load(self) -> None:
        """The SDK, in a thread. What fails is told by the request.

        The token ranks (40 MB) are left to the first result that is large enough to be counted.
        """
        with suppress(HoldfastError):
            await self.provider.load()

    async def _sweep(self) -> None:
        """Let full outputs go that no session names and that have had their time (L26)."""
        if self.kept is not None:
            now = self.clock.now()
            gone = await asyncio.to_thread(self.kept.sweep, now, self._stop)
            if gone:
                log.info("%d kept outputs that no session names were removed", gone)
