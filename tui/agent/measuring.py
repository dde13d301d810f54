"""How full the context is: the ledger, fed by the agent and told as facts for the screen."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tui import calibration
from tui.agent.events import ContextMeasured, Event, Notice
from tui.context import request
from tui.context.history import same_model
from tui.context.ledger import Ledger
from tui.context.view import View
from tui.errors import StorageError
from tui.provider.base import ModelInfo
from tui.session.records import Record

log = logging.getLogger(__name__)


class Measuring:
    """Owns the ledger of one agent, and what is learned of the model that it asks.

    `layers` are the names and texts of the system prompt; `threshold` is a share of the window;
    `cache` is the folder where calibrations are kept, None to keep none.
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
        self._kept = 0
        self._looked = False
        self.use(model)
        self.carry(think)
        self.ledger.resume(records)

    def use(self, model: ModelInfo) -> None:
        """Reckon for a model, with what earlier sessions learned of it."""
        cache = self._cache
        known = calibration.load(cache, model.id) if cache else calibration.Calibration()
        self._kept = known.answers
        self.ledger.use(model.id, known)

    def tokens_for(self, model: str) -> int:
        """The tokens of the next request to a model, by what earlier sessions learned of it.

        Where they learned nothing, those of the model that is asked now.
        """
        if self._cache is None or same_model(model, self.ledger.model):
            return self.ledger.tokens
        known = calibration.load(self._cache, model)
        return self.ledger.under(known) if known.answers else self.ledger.tokens

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
        """Keep what the answers taught, for the next session with this model."""
        learned = self.ledger.calibration
        if self._cache is None or learned.answers == self._kept:
            return
        self._kept = learned.answers
        model, encoded = self.ledger.model, learned.encoded()
        try:
            await asyncio.to_thread(calibration.save, self._cache, model, encoded)
        except StorageError as error:
            log.warning("%s", error)


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
        reserve=request.output_room(model, now.tokens),
        drift=now.drift,
        forecast=ledger.forecast(threshold * model.window),
        saved=now.saved,
        threshold=threshold,
    )


def wide_enough(model: ModelInfo, held: int) -> ModelInfo:
    """The model with a window that holds what it has held already.

    Where more was measured than the window that was known, that was wrong: it is doubled until
    it fits, and assumed. A window that the person or the server named stays: more than that is an
    overflow that nobody told of (O30).
    """
    if held <= model.window or model.source in {"config", "server"}:
        return model
    window = max(1, model.window)
    while window < held:
        window *= 2
    return replace(model, window=window, source="assumed")
