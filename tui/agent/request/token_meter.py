"""The fill level of one agent's context, for the current model."""

from __future__ import annotations

import asyncio
import logging

from tui.agent.agent_context import AgentContext
from tui.context import request_assembly
from tui.context.history import same_model
from tui.context.view import View
from tui.core.errors import StorageError
from tui.core.facts import ContextMeasured
from tui.provider.base import ModelInfo
from tui.tokens import estimate

log = logging.getLogger(__name__)


class TokenMeter:
    """The fill level of the context: feeds the ledger, and keeps the token ratio of the model
    asked."""

    def __init__(self, ctx: AgentContext) -> None:
        self._ctx = ctx
        self._saved_ratio = estimate.UNKNOWN
        self._updated = False
        self.use(ctx.link.model)

    def use(self, model: ModelInfo) -> None:
        """Reckon for a model, with the ratio that earlier sessions found."""
        self._saved_ratio = self._ratio(model.id) or estimate.UNKNOWN
        self._ctx.ledger.use(model.id, self._saved_ratio)

    def tokens_for(self, model: str) -> int:
        """The tokens of the next request to a model, by the ratio that earlier sessions found.

        Where they found none, those of the model that is asked now.
        """
        ledger = self._ctx.ledger
        other = None if same_model(model, ledger.model) else self._ratio(model)
        return ledger.under(other) if other else ledger.tokens

    def update(self, view: View) -> None:
        """Take the state of each record from a view.

        What a resumed session masked or cut was so before its last answer was measured.
        """
        self._ctx.ledger.stand(
            view.states,
            view.stands,
            view.pinned,
            summary=view.summary.record if view.summary else None,
            measured=not self._updated,
        )
        self._updated = True

    async def save_ratio(self) -> None:
        """Keep the ratio for the next session with this model."""
        model, ratio = self._ctx.ledger.model, self._ctx.ledger.ratio
        if self._ctx.cache is None or ratio == self._saved_ratio:
            return
        self._saved_ratio = ratio
        try:
            await asyncio.to_thread(estimate.save_ratio, self._ctx.cache, model, ratio)
        except StorageError as error:
            log.warning("%s", error)

    def _ratio(self, model: str) -> float | None:
        return estimate.load_ratio(self._ctx.cache, model) if self._ctx.cache else None

    def _longest(self, model: str) -> int:
        wanted = self._ctx.config.provider.longest_answer(model)
        return wanted or request_assembly.OUTPUT_TOKENS

    def measure(self) -> ContextMeasured:
        """The figures of the next request as it would be now."""
        ledger, model = self._ctx.ledger, self._ctx.link.model
        threshold = self._ctx.config.compaction.threshold
        now, spent = ledger.measure(), self._ctx.spent()
        return ContextMeasured(
            now.tokens,
            now.measured,
            now.estimated,
            model.window,
            {str(part): size for part, size in now.parts.items()},
            model.source,
            reserve=request_assembly.output_room(model, now.tokens, self._longest(model.id)),
            drift=now.drift,
            forecast=ledger.forecast(threshold * model.window),
            saved=now.saved,
            threshold=threshold,
            cache_share=spent.last.cache_share,
            cost_usd=spent.session.usd,
        )
