"""Runs one thing at a time, and says how it ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol

from tui.app.frontend import Kind, TurnResult
from tui.core import facts
from tui.core.dataclass import dataclass
from tui.core.errors import HoldfastError
from tui.core.facts import Fact

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.app.reports import Report

log = logging.getLogger(__name__)

BURST = 64
"""Number of events that are shown before the loop gets a turn."""


class RepeatedPrompt(Protocol):
    """A prompt that is sent again and again; see `tui.app.every`."""

    wake: asyncio.Event

    @property
    def report(self) -> Report: ...
    def stop(self) -> None: ...


class Work:
    """Holds the one task that runs. A callback of the task itself ends the busy state, so that
    one that is cancelled before its first step ends it too."""

    def __init__(self) -> None:
        self.stopping = False
        """It was asked to stop, maybe before its first step."""
        self._task: asyncio.Task[None] | None = None
        self._kind: Kind = "turn"

    @property
    def busy(self) -> bool:
        return self._task is not None

    @property
    def accepts_prompts(self) -> bool:
        """True if a prompt can join what runs: a turn that nobody has stopped."""
        return self.busy and self._kind == "turn" and not self.stopping

    def begin(
        self, kind: Kind, work: Coroutine[Any, Any, None], then: Callable[[], object]
    ) -> None:
        """Run something; nothing else runs. `then` is called once it is over, however it ended."""
        self._kind, self.stopping = kind, False
        self._task = asyncio.create_task(work, name=kind)

        def over(task: asyncio.Task[None]) -> None:
            self._task, self.stopping = None, False
            if not task.cancelled() and (error := task.exception()):
                log.error("%s failed", kind, exc_info=error)
            then()

        self._task.add_done_callback(over)

    def stop(self, agent: Agent | None) -> bool:
        """Stop what runs: where the agent is at work by asking it, since it has records to
        complete. False when nothing ran."""
        if self._task is None:
            return False
        self.stopping = True
        if agent is not None and self._kind != "shell":
            agent.cancel()
        else:
            self._task.cancel()
        return True

    async def at_rest(self) -> None:
        """Wait until what runs now is over."""
        if self._task is not None:
            await asyncio.wait({self._task})


@dataclass(slots=True)
class TurnProgress:
    """The progress of a turn so far. `recorded`: its prompt, if any, is in the record; `finished`:
    it has reported its end itself."""

    recorded: bool
    outcome: str = "failed"
    error: facts.ErrorRaised | None = None
    finished: bool = False

    def see(self, event: Fact) -> None:
        match event:
            case facts.UserMessage() | facts.DirectivesChanged():
                self.recorded = True
            case facts.TurnFinished():
                self.outcome, self.finished = event.outcome, True
            case facts.ErrorRaised():
                self.error = event
            case _:
                pass

    @property
    def result(self) -> TurnResult:
        return TurnResult(self.outcome, self.error)


async def follow(stream: AsyncIterator[Fact], show: Callable[[Fact], None], what: str) -> None:
    """Show events to their end; keys and frames come between. The boundary of a turn: what fails
    inside is shown as an error too. `what` names it in the log file."""
    seen = 0
    try:
        async for event in stream:
            seen += 1
            if seen % BURST == 0:
                await asyncio.sleep(0)
            show(event)
    except Exception as error:
        log.exception("%s failed", what)
        show(explained(error))


def explained(error: Exception) -> facts.ErrorRaised:
    """An error that no event reported, for the person."""
    known = isinstance(error, HoldfastError)
    message = error.message if known else f"Something went wrong ({type(error).__name__})."
    hint = error.hint if known else "Nothing is lost. Details are in the log file."
    return facts.ErrorRaised("unknown", message, True, hint)
