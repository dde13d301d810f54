"""The edge of an agent: work runs in a task of its own, what it publishes is handed out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from typing import Any

from tui.agent.events import Event
from tui.agent.turn import Turns


class Running:
    """Runs one turn of an agent at a time, or work beside them; `events` is where both publish."""

    def __init__(self, turns: Turns, events: asyncio.Queue[Event | None]) -> None:
        self._turns = turns
        self._events = events
        self._task: asyncio.Task[None] | None = None

    @property
    def busy(self) -> bool:
        return self._task is not None and not self._task.done()

    async def told(self, work: Coroutine[Any, Any, None]) -> AsyncGenerator[Event]:
        """Run the work and yield its events. Closing the iterator interrupts it."""
        if self.busy:
            work.close()
            raise RuntimeError("a turn is running; use steer()")
        self._turns.stopped = False
        task = self._task = asyncio.create_task(work, name="turn")
        task.add_done_callback(lambda _: self._events.put_nowait(None))
        try:
            while (event := await self._events.get()) is not None:
                yield event
        finally:
            self.cancel()
            await asyncio.wait({task})
            self._task = None
            while not self._events.empty():
                self._events.get_nowait()

    async def beside(self, work: Coroutine[Any, Any, bool]) -> None:
        """Work beside the turns, which `cancel` ends; it has told its end itself then."""
        self._turns.running = True
        try:
            await work
        except asyncio.CancelledError:
            pass  # whoever cancelled waits for the end, and that is told
        finally:
            self._turns.running = False

    def cancel(self) -> None:
        """Interrupt what runs, if anything; what closes its books already ends as it would have."""
        if self._task is not None and self.busy and not self._turns.stopped:
            self._turns.stopped = True
            if self._turns.running:
                self._task.cancel()

    async def end(self) -> None:
        """Interrupt what runs, and wait for its end."""
        self.cancel()
        if self._task is not None:
            await asyncio.wait({self._task})
