"""What a run needs of the rest: its runner, the agents, the one model side of all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from tui.agent.agent import Agent
from tui.agent.composition import known_model, make_agent, make_provider, make_servers
from tui.agent.limits import Limits
from tui.batch import permission_asker
from tui.batch.attempt import Attempt
from tui.batch.command.plan import Plan
from tui.batch.events import BatchEvent
from tui.batch.run_config import Setup
from tui.batch.runner import Runner
from tui.core.clock import Clock
from tui.permissions.types import Approver
from tui.provider.base import ModelInfo, Provider
from tui.session.session import Session


class Workshop:
    """Makes what a run needs of the rest: its runner, the agents, and what all of them share: the
    model's side and the MCP servers.

    `approver` answers what the rules leave open. Close it at the end.
    """

    def __init__(
        self,
        planned: Plan,
        publish: Callable[[BatchEvent], None],
        *,
        approver: Approver,
        clock: Clock,
    ) -> None:
        self._plan, self._approver, self._clock = planned, approver, clock
        self._provider: Provider = make_provider(planned.launch, clock)
        self._servers = make_servers(planned.launch)
        self.runner = Runner(
            Setup(
                task_file=planned.task_file,
                target=planned.target,
                isolation=planned.isolation,
                open_agent=self._open_agent,
                ask=self._ask,
                model_info=self._model_info,
                models=planned.models,
                clock=clock,
                publish=publish,
                batch=planned.launch.config.batch,
                threshold=planned.launch.config.compaction.threshold,
                stops=planned.stops,
                boot=planned.boot.shown,
            )
        )

    async def close(self) -> None:
        """Leave the servers and the model's side."""
        try:
            if self._servers is not None:
                await self._servers.close()
        finally:
            await self._provider.aclose()

    async def _open_agent(self, model: str) -> Agent:
        agent = await asyncio.to_thread(self._new_agent)
        if agent.model != model:
            agent.use_model(self._model_info(model))
        return agent

    def _new_agent(self) -> Agent:
        launch = self._plan.launch
        most = self._plan.stops.cost_usd
        if most is not None:
            launch = replace(launch, limits=Limits(max_cost=max(0.0, most - self.runner.spent_usd)))
        session = Session.create(self._plan.target, folders=launch.folders, clock=self._clock)
        agent = make_agent(
            launch,
            session,
            self._approver,
            clock=self._clock,
            provider=permission_asker.Shared(self._provider),
            servers=self._servers,
        )
        self._plan = replace(self._plan, launch=replace(self._plan.launch, notices=()))
        return agent

    async def _ask(self, question: str) -> Attempt:
        launch = self._plan.launch
        model = launch.model if launch.practice else launch.config.small_model
        return await permission_asker.ask(
            self._provider, model, question, launch.config.prices.get(model)
        )

    def _model_info(self, name: str) -> ModelInfo:
        return replace(known_model(self._plan.launch, name), id=name)
