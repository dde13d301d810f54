"""The form in which this server's model takes a request: its features, how hard it thinks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tui.agent.agent_context import AgentContext
from tui.agent.request.frame_state import FrameState, form_of
from tui.agent.request.sent import SentRequests
from tui.agent.server_features import ServerFeatures
from tui.context import effort as context_effort
from tui.context.breaks import BREAK
from tui.context.effort import field_of
from tui.context.notices import Form
from tui.context.record_index import RecordIndex
from tui.core.messages import string_of
from tui.provider import catalogue
from tui.provider.base import ModelInfo
from tui.provider.prices import CacheLife
from tui.session.records import Record


@dataclass(slots=True)
class RequestForms:
    """Says of each model what its requests may hold, by what is known and was found of it."""

    ctx: AgentContext
    features: ServerFeatures
    frame: FrameState
    sent: SentRequests
    _choices: RecordIndex = field(default_factory=lambda: RecordIndex({"directive", BREAK}))

    def form(self, model: ModelInfo) -> Form:
        """The ways in which a model is told what others are not."""
        known = form_of(model, first_party=self.ctx.link.first_party)
        off = self.features.off(model.id)
        system_messages = known.system_messages and "system_messages" not in off
        return Form(
            system_messages,
            known.tool_additions and system_messages and "tool_additions" not in off,
            known.turn_effort and system_messages and "turn_effort" not in off,
            known.compaction_blocks and "compaction_blocks" not in off,
        )

    def life(self, model: ModelInfo) -> CacheLife:
        """Return how long the cache keeps what is sent to a model."""
        return "5m" if "cache_life" in self.features.off(model.id) else self.frame.current.life

    def display(self, model: ModelInfo) -> str:
        """Return the form in which thinking comes, where the server leaves the choice."""
        off = self.features.off(model.id)
        wanted = self.ctx.config.thinking.display
        if not self.ctx.link.first_party or "display" in off:
            return ""
        if wanted == "updates" and "updates" in off:
            return "summarized"
        return {"hidden": "omitted"}.get(wanted, wanted)

    def effort(self, model: ModelInfo) -> str | None:
        """The level that a request itself asks for, None for the model's own.

        Where another one can be said at the end it stays what it was in the first request.
        """
        if "effort" in self.features.off(model.id):
            return None
        before = self.sent.last(model)
        if before is not None and self.form(model).turn_effort:
            return string_of(before.data.get("effort")) or None
        if self.form(model).turn_effort and (told := self.frame.last_effort()):
            return field_of(model, told)
        if held := self.held(model):
            return string_of(held.data.get("effort")) or None
        return field_of(model, self.frame.level(model))

    def held(self, model: ModelInfo) -> Record | None:
        """The request whose effort holds on because another one waits for a break."""
        before = self.sent.last(model)
        waits = before is not None and not self.form(model).turn_effort and self.effort_waits
        return before if waits else None

    @property
    def effort_waits(self) -> bool:
        """True if the level of effort that was chosen last waits for a break."""
        return context_effort.waits(self._choices.of(self.ctx.records))

    def checks(self, model: ModelInfo) -> Callable[[str], bool]:
        """True if a model's thinking is refused by `model` after anything that was rendered in
        another way.

        A server of its own kind may bind every signature. Of the API's models it is known which do,
        and that those which do are sent notices in one form.
        """
        if not self.ctx.link.first_party:
            return lambda _author: True
        form = self.form(model)

        def checks(author: str) -> bool:
            info = catalogue.model_info(author)
            return info.source == "assumed" or info.binds or self.form(info) == form

        return checks if model.binds or model.source == "assumed" else lambda _author: False
