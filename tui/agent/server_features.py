"""Features that a server turned out to lack: switched off once per server and model, by record.

A `feature` record stands for each. It names what is left out of the requests from then on, by the
names of `tui.provider.anthropic.convert`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tui.agent.agent_context import AgentContext
from tui.context.record_index import RecordIndex
from tui.core.errors import ProviderError
from tui.core.fact_words import without_feature
from tui.core.facts import FeatureMissing, Notice

FEATURE: Final = "feature"
"""The type of the record."""


@dataclass(frozen=True, slots=True)
class ServerFeatures:
    """The features that the server of one agent does not know, by its models."""

    ctx: AgentContext
    _index: RecordIndex = field(default_factory=lambda: RecordIndex({FEATURE}))
    _unrecorded: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def off(self, model: str) -> frozenset[str]:
        """Return the features that are not used with a model."""
        known = (record.data for record in self._index.of(self.ctx.records))
        recorded = frozenset(
            str(data.get("feature"))
            for data in known
            if data.get("model") == model and data.get("server") == self.ctx.link.server
        )
        return recorded | {feature for feature, of in self._unrecorded if of == model}

    def switch_off(self, error: ProviderError, model: str) -> bool:
        """Leave out of the next request what the server refused in this one, if it named that.

        False where nothing is left to leave out: the same request is never sent again.
        """
        if not error.feature or error.feature in self.off(model):
            return False
        self.note(error.feature, model, error.message, error.request_id)
        self.ctx.publish(Notice(without_feature(error.feature)))
        return True

    def note(self, feature: str, model: str, message: str, request_id: str | None = None) -> None:
        """Record that the server refused something of a model, in these words."""
        self.ctx.record(FeatureMissing(feature, self.ctx.link.server, model, message, request_id))

    def note_with_prompt(self, feature: str, model: str, error: ProviderError) -> None:
        """As `note`, at once in force, but recorded only with the next prompt, if there is one."""
        self._unrecorded.add((feature, model))
        self.ctx.session.with_next_prompt(
            FeatureMissing(feature, self.ctx.link.server, model, error.message, error.request_id)
        )
