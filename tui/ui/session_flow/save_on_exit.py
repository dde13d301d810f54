"""Leaving a session: what is worth keeping of it goes to MEMORY.md first (R26), within bounds."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from textual.app import App

from tui.agent import events
from tui.agent.events import Event
from tui.app.ports import Agent
from tui.ui.turn_controller import Bridge

LIMIT_S = 10.0
"""After so many seconds nobody waits for the model's notes any longer."""
SAVING = "saving memory before leaving, esc leaves now"


@dataclass(slots=True)
class Leaving:
    """Saves to the memory before something else is done. Esc, Ctrl+C or asking again skips it."""

    app: App[Any]
    bridge: Bridge
    _then: Callable[[], Awaitable[object]] | None = None

    def save_first(self, then: Callable[[], Awaitable[object]]) -> bool:
        """Save, and do `then` once that is over, however it ends. Returns at once.

        False where there is nothing new to save, or the agent is at work: `then` is not done.
        """
        agent = self.bridge.agent
        if self._then is not None:
            self._then = then
            self.bridge.cancel()
            return True
        if agent is None or agent.session.read_only or not agent.memory_pending:
            return False
        if not self.bridge.beside(SAVING, _once(agent)):
            return False
        self._then = then
        self.app.run_worker(self._go(), group="leave")
        return True

    async def _go(self) -> None:
        timer = self.app.set_timer(LIMIT_S, self.bridge.cancel)
        await self.bridge.at_rest()
        timer.stop()
        then, self._then = self._then, None
        if then is not None:
            await then()


async def _once(agent: Agent) -> AsyncGenerator[Event]:
    """Save, without sending a request again that has failed: who leaves does not wait for a
    server that cannot be reached."""
    async for event in agent.flush_memory():
        if isinstance(event, events.RetryScheduled):
            agent.cancel()
        else:
            yield event
