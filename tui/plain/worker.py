"""One thing at a time, which Ctrl+C stops: a turn, something beside the turns, a command."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Doing:
    """What runs. `stopping`: it was told to stop, or it was before it began."""

    stopping: bool = False
    _task: asyncio.Task[None] | None = None
    _stop: Callable[[], object] | None = None
    _joinable: bool = False

    @property
    def busy(self) -> bool:
        return self._task is not None

    @property
    def joinable(self) -> bool:
        """Whether what runs takes up what is typed meanwhile."""
        return self.busy and self._joinable and not self.stopping

    async def do(
        self,
        work: Coroutine[Any, Any, None],
        stop: Callable[[], object] | None = None,
        *,
        joinable: bool = False,
    ) -> None:
        """Do something to its end; raises what it raises. `stop` asks it to end, and counts once
        it has begun: before that, `stopping` is for it to see. Without one it is cancelled."""
        task = self._task = asyncio.create_task(work, name="work")
        self._stop, self._joinable = stop, joinable
        if self.stopping and stop is None:
            task.cancel()
        try:
            await asyncio.wait({task})
            if not task.cancelled() and (error := task.exception()):
                raise error
        finally:
            self._task = self._stop = None
            self.stopping = False

    def stop(self) -> None:
        """Stop what runs, or else what begins next."""
        self.stopping = True
        if self._task is not None:
            (self._stop or self._task.cancel)()
