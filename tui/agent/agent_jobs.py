"""The background commands of one agent and its sub-agents, for its front end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui.agent.agent_context import AgentContext
from tui.agent.background_jobs import BackgroundJobs, OwnedJob
from tui.agent.sub_agent_list import SubAgentList
from tui.core.dataclass import dataclass

if TYPE_CHECKING:
    from tui.agent.shell_output import ShellOutput


@dataclass(frozen=True, slots=True)
class AgentJobs:
    """Shows, moves and leaves the background commands of this run of the program."""

    _ctx: AgentContext
    _watched: BackgroundJobs
    _sub_agents: SubAgentList

    @property
    def all(self) -> Sequence[OwnedJob]:
        """The commands of the session, then those of its sub-agents."""
        own = [OwnedJob(job) for job in self._ctx.toolbox.jobs.list()]
        return [*own, *self._sub_agents.jobs]

    @property
    def running(self) -> int:
        """Number of background commands that run, those of sub-agents too."""
        return sum(not owned.job.ended for owned in self.all)

    @property
    def own_run(self) -> bool:
        """True if a background command of the session itself runs."""
        return not all(job.ended for job in self._ctx.toolbox.jobs.list())

    @property
    def wakes(self) -> bool:
        """True if a turn is due because a background command has ended (`jobs.wake`)."""
        return self._ctx.config.jobs.wake and self._watched.unreported

    @property
    def output(self) -> ShellOutput:
        """Stores what the person's own commands print, and cuts it for the model."""
        from tui.agent.shell_output import ShellOutput  # noqa: PLC0415 - on demand

        ctx = self._ctx
        folder = ctx.workspace.tool_results
        return ShellOutput(folder, ctx.guard_limits, self._watched, ctx.toolbox.outputs)

    def move_to_background(self) -> int:
        """Let the commands that run in front continue in the background: their calls get a result
        at once. Returns how many there are."""
        return self._ctx.toolbox.jobs.move() + self._sub_agents.move_to_background()

    def leave(self) -> None:
        """Let what runs continue without this program, once the agent closes."""
        self._ctx.toolbox.jobs.leave()
        self._sub_agents.leave()

    def stay(self) -> None:
        """Nobody takes over what runs: closing the agent ends it."""
        self._ctx.toolbox.jobs.stay()
        self._sub_agents.stay()

    async def ports(self) -> dict[int, int]:
        """The ports that background commands listen on inside the sandbox, each with the one at
        127.0.0.1 that leads there, 0 where none does."""
        confinement = self._ctx.toolbox.confinement
        return await confinement.ports() if confinement is not None and self.own_run else {}

    async def forward(self, port: int) -> int:
        """Open one of `ports` at 127.0.0.1; the number it got there."""
        assert self._ctx.toolbox.confinement is not None
        return await self._ctx.toolbox.confinement.forward(port)
