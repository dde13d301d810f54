"""The session that the tasks of a group share (A32): opened when needed, summarised, let go."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from tui.agent.agent import Agent
from tui.agent.events import Event
from tui.batch import prompts
from tui.batch.attempt import Attempt, attempt
from tui.core.errors import HoldfastError
from tui.provider.task_error_class import classify_error


@dataclass(slots=True)
class GroupSession:
    """Holds the agent of the running group, which `section` counts.

    `cumulative` is what its session has cost so far: the tokens of each task's last request,
    added up (A31, A32).
    """

    open_agent: Callable[[], Awaitable[Agent]]
    say: Callable[[str], None]
    agent: Agent | None = None
    section: int | None = None
    cumulative: int = 0
    _opened: list[Event] = field(default_factory=list[Event])

    async def enter(self, section: int) -> Agent:
        """The agent to go on with; a fresh session where there is none."""
        if self.agent is None:
            self.agent = await self.open_agent()
            self.section, self.cumulative = section, 0
            self._opened = await self.agent.start()
        return self.agent

    def news(self) -> list[Event]:
        """The events of a session that was just opened, once."""
        events, self._opened = self._opened, []
        return events

    async def leave(self) -> None:
        """Let go of the agent. What could not be saved is said, never raised."""
        agent, self.agent = self.agent, None
        if agent is not None:
            try:
                await agent.close()
            except HoldfastError as error:
                self.say(str(error))

    async def attempt(self, prompt: str, *, log: Path, publish: Callable[[Event], None]) -> Attempt:
        """Send a prompt on the session. Nothing is raised: a failure is the attempt's."""
        assert self.agent is not None
        try:
            return await attempt(self.agent, prompt, log=log, publish=publish)
        except HoldfastError as error:
            self.say(f"  {error}")
            return Attempt("failed", classify_error(error), str(error))

    async def summarise(
        self, *, log: Path, publish: Callable[[Event], None]
    ) -> tuple[str, Attempt]:
        """The session's summary of its work (A34), and what it cost; the session is left.

        Without an answer the summary says so (A37).
        """
        made = Attempt("failed")
        if self.agent is not None:
            made = await self.attempt(prompts.SUMMARY, log=log, publish=publish)
        await self.leave()
        told = made.answer.strip() if made.outcome == "done" else ""
        return told or prompts.NO_SUMMARY, made
