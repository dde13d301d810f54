"""The directives in force in a session: switched, recorded, made to count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tui.agent.agent_context import AgentContext
from tui.agent.prompts import Directives, from_json
from tui.agent.request.form import effort_waits
from tui.agent.request.state import RequestState
from tui.core.facts import DirectivesChanged


class DirectiveState:
    """The directives in force in one session. A resumed one is not elevated until asked again."""

    def __init__(self, ctx: AgentContext, requests: RequestState) -> None:
        recorded = Directives()
        if "directives" in ctx.session.metadata:
            recorded = from_json(ctx.session.directives)
        self.was_elevated = recorded.elevated
        self.now = replace(recorded, elevated=False)
        self._ctx, self._requests = ctx, requests
        self._put_in_force()

    def apply(self, changes: Mapping[str, bool | str], *, wait: bool = False) -> None:
        """Switch, and record it. With `wait` another effort counts from the next break on."""
        if not changes.keys() & {"think", "effort"}:
            wait = effort_waits(self._requests)
        self.now = self.now.with_changes(changes)
        self._put_in_force()
        self._ctx.state.elevated = self.now.elevated
        self._ctx.workspace = self._ctx.workspace.widen(self.now.elevated)
        self._ctx.recorder.write(DirectivesChanged(**self.now.to_json(), wait=wait))

    def _put_in_force(self) -> None:
        """Let them count from the next request on."""
        frame, now = self._requests.frame, self.now
        frame.think, frame.effort, self._ctx.state.verbose = now.think, now.effort, now.verbose
