"""The session that the tasks of a group share, and where they are worked on."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from tui.agent.agent import Agent
from tui.batch import prompts
from tui.batch.attempt import TaskAttempt, attempt
from tui.batch.run_context import RunContext
from tui.batch.run_policy import ModelPair
from tui.batch.task_worktrees import TaskPlace
from tui.core.dataclass import dataclass, field
from tui.core.errors import HoldfastError
from tui.core.facts import Fact
from tui.provider.task_error_class import classify_error


@dataclass(slots=True)
class GroupSession:
    """Holds the agent of a group at work in `place`; `section` counts the group.

    Carried from one task to the next: `models`, and `summary` of the group's last session, for the
    next prompt. `cumulative` is the sum of the tokens of each task's last request so far.
    """

    run: RunContext
    place: TaskPlace
    models: ModelPair
    agent: Agent | None = None
    section: int | None = None
    summary: str | None = None
    cumulative: int = 0
    _opened: list[Fact] = field(default_factory=list[Fact])

    async def enter(self, section: int, session: Path | None = None) -> Agent:
        """The agent of the group. If it has none, one is opened on the session in a file, or on a
        new session."""
        if self.agent is None:
            folder = self.place.folder
            self.agent = await self.run.setup.agents.open_agent(
                self.models.current, folder, session
            )
            self.section, self.cumulative = section, 0
            self._opened = await self.agent.start()
        return self.agent

    def news(self) -> list[Fact]:
        """The events of a session that was just opened, once."""
        events, self._opened = self._opened, []
        return events

    def cancel(self) -> None:
        """Stop what its agent does now."""
        if self.agent is not None:
            self.agent.cancel()

    async def let_be(self) -> None:
        """Stop what its agent does now, but none of its commands: the next run takes them over."""
        if self.agent is not None:
            await self.agent.leave()
            self.agent.cancel()

    async def leave(self) -> None:
        """Let go of the agent. A failed save is reported, never raised."""
        agent, self.agent = self.agent, None
        if agent is not None:
            try:
                await agent.close()
            except HoldfastError as error:
                self.run.say(str(error))

    async def attempt(
        self,
        prompt: str,
        *,
        log: Path,
        publish: Callable[[Fact], None],
        open_calls: Collection[str] = (),
    ) -> TaskAttempt:
        """Send a prompt on the session, "" to continue where its last attempt failed; `open_calls`
        get their results first.

        Nothing is raised: a failure is the attempt's.
        """
        assert self.agent is not None
        try:
            return await attempt(
                self.agent,
                prompt,
                log=log,
                publish=publish,
                stopping=lambda: self.run.ending,
                open_calls=open_calls,
                recorded=self.run.setup.recorded,
            )
        except HoldfastError as error:
            self.run.say(f"  {error}")
            return TaskAttempt("failed", classify_error(error), str(error))

    async def summarise(
        self, *, log: Path, publish: Callable[[Fact], None]
    ) -> tuple[str, TaskAttempt]:
        """The session's summary of its work, and what it cost; the session is then closed.

        Without an answer the summary says so.
        """
        made = TaskAttempt("failed")
        if self.agent is not None:
            made = await self.attempt(prompts.SUMMARY, log=log, publish=publish)
        await self.leave()
        summary = made.answer.strip() if made.outcome == "done" else ""
        return summary or prompts.NO_SUMMARY, made
