"""The directives in force in a session: switched, recorded, made to count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tui.agent.agent_context import AgentContext
from tui.agent.prompts import Directives, from_json
from tui.agent.request.state import RequestBuilder
from tui.core.facts import DirectivesChanged


class DirectiveState:
    """The directives in force in one session. A resumed one is not elevated until asked again."""

    def __init__(self, ctx: AgentContext, requests: RequestBuilder) -> None:
        recorded = Directives()
        if "directives" in ctx.session.metadata:
            recorded = from_json(ctx.session.directives)
        self.was_elevated = recorded.elevated
        self.now = replace(recorded, elevated=False)
        self._ctx, self._requests = ctx, requests
        requests.think(self.now.think, self.now.effort)
        ctx.state.verbose = self.now.verbose

    def apply(self, changes: Mapping[str, bool | str], *, wait: bool = False) -> None:
        """Switch, and record it. With `wait` another effort counts from the next break on."""
        if not changes.keys() & {"think", "effort"}:
            wait = self._requests.forms.effort_waits
        self.now = self.now.with_changes(changes)
        self._requests.think(self.now.think, self.now.effort)
        self._ctx.state.elevated = self.now.elevated
        self._ctx.state.verbose = self.now.verbose
        self._ctx.workspace = self._ctx.workspace.widen(self.now.elevated)
        self._ctx.recorder.write(DirectivesChanged(**self.now.to_json(), wait=wait))
