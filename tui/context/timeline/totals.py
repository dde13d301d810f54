"""Sums over all steps of a timeline, kept while they come: telling them costs the same however long
the session is. Pure."""

from __future__ import annotations

import heapq
from array import array
from typing import Final

from tui.context.timeline.steps import TimelineStep
from tui.core.dataclass import dataclass, field

_DEAREST: Final = 3


@dataclass(slots=True)
class LostCache:
    """The number of times that the cache was lost for one reason, and the cost of that."""

    times: int = 0
    usd: float = 0.0

    def add(self, step: TimelineStep) -> None:
        """Add a break."""
        self.times += 1
        self.usd += step.usd or 0.0


@dataclass(slots=True)
class Totals:
    """Sums over the steps so far."""

    compactions: int = 0
    stops: int = 0
    """How often somebody stopped it."""
    waited: float = 0.0
    """The seconds by the clock that it waited for the person; the axis draws fewer of them."""
    red_turns: array[int] = field(default_factory=lambda: array("l"))
    """The steps in which a check turned red."""
    idle: float = 0.0
    """The seconds of the axis between the end of a turn and what came next."""
    _dearest: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])
    _lost: dict[str, LostCache] = field(default_factory=dict[str, LostCache])
    _worst: TimelineStep | None = None
    _open: TimelineStep | None = None
    """The last break, while its bill may still come."""

    def end_prompt(self, usd: float, step: int) -> None:
        """Take in what a prompt has cost, now that another one begins."""
        heapq.heappush(self._dearest, (usd, step))
        if len(self._dearest) > _DEAREST:
            heapq.heappop(self._dearest)

    def dearest(self, usd: float, step: int) -> list[tuple[float, int]]:
        """The costs and steps of the dearest prompts, the last one with its cost so far."""
        return heapq.nlargest(_DEAREST, [*self._dearest, (usd, step)])

    def add_break(self, step: TimelineStep, *, billed: bool = True) -> None:
        """Take in a break: with `billed` False, what it costs may still be corrected."""
        if billed:
            self._worst = _add_lost(self._lost, step, self._worst)
        else:
            self.close_break()
            self._open = step

    def close_break(self) -> None:
        """Settle the break that was open."""
        if (step := self._open) is not None:
            self._open = None
            self.add_break(step)

    def lost(self) -> tuple[dict[str, LostCache], TimelineStep | None]:
        """Count the losses of the cache by reason, with the break that cost most."""
        if self._open is None:
            return self._lost, self._worst
        known = {why: LostCache(one.times, one.usd) for why, one in self._lost.items()}
        return known, _add_lost(known, self._open, self._worst)


def _add_lost(
    known: dict[str, LostCache], step: TimelineStep, worst: TimelineStep | None
) -> TimelineStep:
    """Add a break to those known by reason. Returns the worst."""
    known.setdefault(step.lost or "no reason known", LostCache()).add(step)
    return step if worst is None or _cost(step) > _cost(worst) else worst


def _cost(step: TimelineStep) -> tuple[float, int]:
    return step.usd or 0.0, step.tokens
