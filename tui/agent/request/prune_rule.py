"""The rule that old results are pruned by: `prune.when = "auto"` depends on what the server
does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from tui.agent.agent_context import AgentContext
from tui.context.overrides import content_of
from tui.context.record_index import RecordIndex
from tui.context.request_trail import has_thinking
from tui.core.config import Prune
from tui.core.messages import Block, Usage
from tui.provider.base import ModelInfo
from tui.session.records import Record


@dataclass(slots=True)
class PruneRules:
    """Finds in the record of one agent what its server does: bind thinking, or cache."""

    ctx: AgentContext
    _index: RecordIndex = field(default_factory=lambda: RecordIndex({"assistant"}))
    _answers: Sequence[Record] = ()
    _looked_at: int = 0
    _answered: bool = False
    _cached: bool = False
    _signed: bool = False

    def of(self, model: ModelInfo) -> Prune:
        """The rule in force for a model.

        Where a server neither binds thinking nor caches, a change costs nothing, and "auto" is
        "turns". As long as it has not answered it may do both.
        """
        rule = self.ctx.config.prune
        if rule.when != "auto" or self.ctx.link.first_party or model.binds:
            return rule
        self._catch_up()
        if self._cached or self._signed or not self._answered:
            return rule
        return msgspec.structs.replace(rule, when="turns")

    def binds(self, model: ModelInfo) -> bool:
        """True if thinking is refused after something that was changed."""
        if model.binds or (self.ctx.link.first_party and model.source != "assumed"):
            return model.binds
        self._catch_up()
        return self._signed

    def _catch_up(self) -> None:
        """Look at the answers that came since."""
        answers = self._index.of(self.ctx.records)
        if answers is not self._answers:  # another branch
            self._answers, self._looked_at = answers, 0
            self._answered = self._cached = self._signed = False
        for record in answers[self._looked_at :]:
            if record.data.get("server", "") != self.ctx.link.server:
                continue
            usage = Usage.from_json(record.data.get("usage"))
            written = usage.cache_read_input_tokens or usage.cache_creation_input_tokens
            self._answered = True
            self._cached = self._cached or bool(written)
            self._signed = self._signed or any(map(_is_signed, content_of(record)))
        self._looked_at = len(answers)


def _is_signed(block: Block) -> bool:
    """True if it is thinking that a server will look at again."""
    return has_thinking([block]) and bool(block.get("signature") or block.get("data"))
