"""How full the context is: the ledger, fed by the agent and told as facts for the screen."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tui.agent.events import ContextMeasured, Event, Notice
from tui.context import request_assembly
from tui.context.history import same_model
from tui.context.token_ledger import Ledger
from tui.context.view import View
from tui.core.errors import StorageError
from tui.provider.base import ModelInfo
from tui.session.records import Record
from tui.tokens import estimate

log = logging.getLogger(__name__)


class Measuring:
    """Owns the ledger of one agent, and keeps the ratio of the model that it asks.

    `layers` are the names and texts of the system prompt; `threshold` is a share of the window;
    `cache` is the folder where ratios are kept, None to keep none.
    """

    def __init__(
        self,
        model: ModelInfo,
        *,
        layers: Sequence[tuple[str, str]],
        tools: Sequence[Mapping[str, Any]],
        records: Sequence[Record],
        threshold: float,
        cache: Path | None,
        think: str = "",
    ) -> None:
        self.ledger = Ledger()
        self._layers, self._tools = layers, tools
        self._threshold, self._cache = threshold, cache
        self._kept = estimate.UNKNOWN
        self._looked = False
        self.use(model)
        self.carry(think)
        self.ledger.resume(records)

    def use(self, model: ModelInfo) -> None:
        """Reckon for a model, with the ratio that earlier sessions found."""
        self._kept = self._ratio(model.id) or estimate.UNKNOWN
        self.ledger.use(model.id, self._kept)

    def tokens_for(self, model: str) -> int:
        """The tokens of the next request to a model, by the ratio that earlier sessions found.

        Where they found none, those of the model that is asked now.
        """
        other = None if same_model(model, self.ledger.model) else self._ratio(model)
        return self.ledger.under(other) if other else self.ledger.tokens

    def carry(self, think: str) -> None:
        """Count what every request carries now: the layers, `think` if any, and the tools."""
        extra = [("think", think)] if think else []
        self.ledger.fixed([*self._layers, *extra], self._tools)

    def offer(self, tools: Sequence[Mapping[str, Any]], think: str) -> None:
        """Count other tools from now on."""
        self._tools = tools
        self.carry(think)

    def look(self, seen: View) -> None:
        """Take from a view how each record stands.

        What a resumed session masked or cut was so before its last answer was measured.
        """
        self.ledger.stand(
            seen.states,
            seen.stands,
            seen.pinned,
            summary=seen.summary.record if seen.summary else None,
            measured=not self._looked,
        )
        self._looked = True

    def facts(self, model: ModelInfo) -> tuple[ModelInfo, list[Event]]:
        """How full the context is, and before that a word where the window was wrong.

        The model comes back with the window that is right.
        """
        held = self.ledger.measure().measured
        found = wide_enough(model, held)
        now = measured(self.ledger, found, self._threshold)
        if found.window == model.window:
            return found, [now]
        said = (
            f"The context holds {held:,} tokens, more than the window of {model.window:,} that was "
            f"known. {found.window:,} is assumed from here."
        )
        return found, [Notice(said), now]

    async def keep(self) -> None:
        """Keep the ratio for the next session with this model."""
        model, ratio = self.ledger.model, self.ledger.ratio
        if self._cache is None or ratio == self._kept:
            return
        self._kept = ratio
        try:
            await asyncio.to_thread(estimate.save_ratio, self._cache, model, ratio)
        except StorageError as error:
            log.warning("%s", error)

    def _ratio(self, model: str) -> float | None:
        return estimate.load_ratio(self._cache, model) if self._cache else None


def measured(ledger: Ledger, model: ModelInfo, threshold: float) -> ContextMeasured:
    """The state of the context as an event."""
    now = ledger.measure()
    return ContextMeasured(
        now.tokens,
        now.measured,
        now.estimated,
        model.window,
        {str(part): size for part, size in now.parts.items()},
        model.source,
        reserve=request_assembly.output_room(model, now.tokens),
        drift=now.drift,
        forecast=ledger.forecast(threshold * model.window),
        saved=now.saved,
        threshold=threshold,
    )


def wide_enough(model: ModelInfo, held: int) -> ModelInfo:
    """The model with a window that holds what it has held already.

    Where more was measured than the window that was known, that was wrong: it is doubled until
    it fits, and assumed. A window that the person or the server named stays: more than that is an
    overflow that nobody told of.
    """
    if held <= model.window or model.source in {"config", "server"}:
        return model
    window = max(1, model.window)
    while window < held:
        window *= 2
    return replace(model, window=window, source="assumed")
