"""Puts a run together: its runner, its agents, and the provider and MCP servers they share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tui.agent.agent import Agent
from tui.agent.composition import make_agent
from tui.agent.confined_programs import make_servers
from tui.agent.launch import Launch
from tui.agent.limits import Limits, Spent
from tui.agent.model_access import listed_model, make_provider
from tui.batch.attempt import TaskAttempt
from tui.batch.events import BatchEvent
from tui.batch.plan import RunPlan, usual_boot
from tui.batch.run_context import RunContext, RunSetup
from tui.batch.runner import Runner
from tui.core.clock import Clock
from tui.core.errors import HoldfastError
from tui.core.messages import Message, text_block, text_of
from tui.permissions.types import Approver
from tui.provider.base import Completed, ModelInfo, Provider, Request
from tui.provider.prices import price_of
from tui.provider.provider_wrapper import ProviderWrapper
from tui.session.session import Session

if TYPE_CHECKING:
    from tui.tools.mcp import Servers

ANSWER_TOKENS = 1024
PATIENCE_S = 180.0
_SYSTEM = "You judge why a task of an automatic run failed. You answer with JSON alone."


class RunComposition:
    """Holds the runner of a run, and its agents. Must be closed at the end.

    `approver` decides what the rules leave open; `around` wraps the model, beneath the retries.
    """

    def __init__(
        self,
        planned: RunPlan,
        publish: Callable[[BatchEvent], None],
        *,
        approver: Approver,
        clock: Clock,
        around: Callable[[Provider, Clock], Provider] | None = None,
    ) -> None:
        self._agents = TaskAgents(
            planned.launch,
            approver,
            clock,
            planned.stops.cost_usd,
            servers=make_servers(planned.launch),
            around=around,
        )
        self.runner = Runner(
            RunSetup(
                task_file=planned.task_file,
                target=planned.target,
                isolation=planned.isolation,
                worktrees=planned.worktrees,
                agents=self._agents,
                models=planned.models,
                clock=clock,
                publish=publish,
                batch=planned.launch.config.batch,
                threshold=planned.launch.config.compaction.threshold,
                stops=planned.stops,
                boot=planned.boot.shown,
                folders=planned.launch.folders,
                prices=planned.launch.config.prices,
            )
        )
        self._agents.context = self.runner.context

    async def close(self) -> None:
        """Leave the servers and the model's side."""
        await self._agents.close()


class TaskAgents:
    """Makes the agents of a run, which share one provider, and the MCP `servers`, where these are
    given. Must be closed at the end.

    `approver` decides what the rules leave open. With `max_cost` in dollars, an agent may spend
    what `context` has left of it: that of the run, once it is there. `around` wraps the model,
    beneath the retries.
    """

    def __init__(
        self,
        launch: Launch,
        approver: Approver,
        clock: Clock,
        max_cost: float | None,
        *,
        servers: Servers | None = None,
        around: Callable[[Provider, Clock], Provider] | None = None,
    ) -> None:
        self._launch, self._approver, self.clock = launch, approver, clock
        self._max_cost = max_cost
        # the launch itself stays without it: a drill's has no sandbox, hooks, servers or skills
        self._provider: Provider = make_provider(launch.reached(around=around), clock)
        self._servers = servers
        self.context: RunContext | None = None

    async def close(self) -> None:
        """Leave the servers and the model's side."""
        try:
            if self._servers is not None:
                await self._servers.close()
        finally:
            await self._provider.aclose()

    async def open_agent(self, model: str, folder: Path, session: Path | None) -> Agent:
        agent = await asyncio.to_thread(self._new_agent, folder, session)
        if agent.models.current != model:
            agent.models.use(self.model_info(model))
        return agent

    def _new_agent(self, folder: Path, path: Path | None) -> Agent:
        launch = self.launch_in(folder)
        if self._max_cost is not None:
            spent = self.context.spent_usd if self.context else 0.0
            left = max(0.0, self._max_cost - spent)
            launch = replace(launch, limits=Limits(max_cost=left))
        session = Session.open(path, clock=self.clock) if path else self.new_session(launch)
        agent = make_agent(
            launch,
            session,
            self._approver,
            clock=self.clock,
            provider=SharedProvider(self._provider),
            servers=self._servers,
        )
        self._launch = replace(self._launch, notices=())
        return agent

    def new_session(self, launch: Launch) -> Session:
        """The session of work that begins in a folder."""
        root, profile = launch.workspace.root, launch.config.profile
        return Session.create(root, folders=launch.folders, clock=self.clock, profile=profile)

    def launch_in(self, folder: Path) -> Launch:
        """The launch for work in a folder: that of the run, or the same in another folder. What a
        task's tools print in full stays when a worktree is removed."""
        launch, target = self._launch, self._launch.workspace.root
        if folder == target:
            return launch
        results = None if launch.workspace.scratch else launch.workspace.tool_results.parent
        workspace = replace(launch.workspace, root=folder, spare=results, temporary=None)
        return replace(
            launch, workspace=workspace, boot=launch.boot or usual_boot(target, launch.trust)
        )

    async def ask(self, question: str) -> TaskAttempt:
        """One question to the small model, without tools. Raises HoldfastError, after PATIENCE_S
        too."""
        launch = self._launch
        model = launch.model if launch.access.practice else launch.config.small_model
        messages: list[Message] = [{"role": "user", "content": [text_block(question)]}]
        request = Request(model, [text_block(_SYSTEM)], messages, [], ANSWER_TOKENS)
        try:
            async with (
                asyncio.timeout(PATIENCE_S),
                aclosing(self._provider.stream(request)) as parts,
            ):
                async for part in parts:
                    if isinstance(part, Completed):
                        usd = Spent.on(part.usage, price_of(model, launch.config.prices)).usd
                        answer = text_of(part.content)
                        return TaskAttempt("done", answer=answer, usage=part.usage, cost_usd=usd)
        except TimeoutError:
            raise HoldfastError(f"{model} didn't answer within {PATIENCE_S:.0f} s.") from None
        raise HoldfastError(f"{model} didn't finish its answer.")

    def model_info(self, name: str) -> ModelInfo:
        return replace(listed_model(self._launch, name), id=name)


class SharedProvider(ProviderWrapper):
    """A provider that the sessions of a run share: closing one leaves it open.

    So a practice script continues where the last session left it. Whoever made the inner one closes
    it.
    """

    async def aclose(self) -> None:
        """The next session continues with it."""
