"""What runs, one thing at a time: a turn, something beside the turns, a command of the person's."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from textual.app import App
from textual.worker import Worker, WorkerError

from tui.agent import events
from tui.agent.events import Event
from tui.app.ports import Agent
from tui.core.errors import HoldfastError

log = logging.getLogger(__name__)

BURST = 64
"""So many events are drawn before the loop gets a turn."""

Kind: TypeAlias = Literal["turn", "beside", "shell"]


class Work:
    """Holds the worker. What runs calls `over` when it ends, however it does, before anything else
    is begun."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._worker: Worker[None] | None = None
        self._kind: Kind = "turn"
        self._stopping = False

    @property
    def busy(self) -> bool:
        return self._worker is not None

    @property
    def listens(self) -> bool:
        """Whether a prompt can join what runs: a turn that nobody has stopped."""
        return self.busy and self._kind == "turn" and not self._stopping

    def begin(self, kind: Kind, work: Coroutine[Any, Any, None]) -> None:
        """Run something. Nothing else runs."""
        self._kind = kind
        self._worker = self._app.run_worker(work, name=kind, group="work", exit_on_error=False)

    def over(self) -> None:
        """It has ended."""
        self._worker, self._stopping = None, False

    def stop(self, agent: Agent | None) -> bool:
        """Stop what runs: where the agent is at work by asking it, as it closes its books. False
        when nothing did."""
        if self._worker is None:
            return False
        if agent is not None and self._kind != "shell":
            self._stopping = True
            agent.cancel()
        else:
            self._worker.cancel()
        return True

    async def at_rest(self) -> None:
        """Wait until what runs now is over."""
        if self._worker is not None:
            with suppress(WorkerError):
                await self._worker.wait()


@dataclass(slots=True)
class Course:
    """What has become of a turn so far. `recorded`: its prompt, if any, is in the record."""

    recorded: bool
    outcome: str = "failed"
    error: events.ErrorRaised | None = None

    def see(self, event: Event) -> None:
        match event:
            case events.UserMessage() | events.DirectivesChanged():
                self.recorded = True
            case events.TurnFinished():
                self.outcome = event.outcome
            case events.ErrorRaised():
                self.error = event
            case _:
                pass


async def follow(told: AsyncIterator[Event], show: Callable[[Event], None], what: str) -> None:
    """Show what happens, to its end; keys and frames come between. The boundary: what fails
    inside is shown as an error too. `what` names it in the log file."""
    seen = 0
    try:
        async for event in told:
            seen += 1
            if seen % BURST == 0:
                await asyncio.sleep(0)
            show(event)
    except Exception as error:
        log.exception("%s failed", what)
        show(explained(error))


def explained(error: Exception) -> events.ErrorRaised:
    """An error that nothing told, for the screen."""
    known = isinstance(error, HoldfastError)
    message = error.message if known else f"Something went wrong ({type(error).__name__})."
    hint = error.hint if known else "Nothing is lost. The details are in the log file."
    return events.ErrorRaised("unknown", message, True, hint)
