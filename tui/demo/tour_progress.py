"""The progress of the tour, and the text of its panel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tui.core.dataclass import dataclass
from tui.core.facts import Fact
from tui.demo import tour_steps
from tui.demo.guide import Guide
from tui.demo.tour_steps import Cue, Observations, TourStep, Words
from tui.session.records import Record

TITLE: Final = "tour · "
"""The start of the panel's title."""


@dataclass(frozen=True, slots=True)
class PanelText:
    """The panel's text, keys in backticks."""

    title: str
    happened: str
    now: str
    """The keys to press next."""
    lay: str = ""
    """The prompt to put into the input line."""
    over: bool = False
    """True if no step follows."""


class Tour(Guide[TourStep]):
    """The steps, and the current one. `damaged` is the id of a session to repair."""

    def __init__(self, damaged: str, steps: Sequence[TourStep] = tour_steps.STEPS) -> None:
        super().__init__(steps, tour_steps.END)
        self.seen = Observations()
        self.damaged = damaged
        self._happened = tour_steps.OPENING

    def panel_text(self) -> PanelText:
        """Return the panel's current text, wherever the person is."""
        number = "the end" if self.over else f"{self.at + 1} of {len(self.steps)}"
        cue = self._cue()
        lay = cue.lay.replace("{damaged}", self.damaged)
        in_sight = self.seen.at in {tour_steps.CHAT, tour_steps.BUSY, tour_steps.REPAIR}
        news = _words(cue.news, self.seen) or (self._happened if in_sight else "")
        return PanelText(f"{TITLE}{number} · {self.step.title}", news, cue.say, lay, self.over)

    def hear(self, event: Fact) -> None:
        """Record an event."""
        self.seen.hear(event)

    def observe(self, at: str, *, narrow: bool, output: bool, records: Sequence[Record]) -> None:
        """Record where the person is, and go on if the step is done."""
        seen = self.seen
        seen.at, seen.records = at, records
        seen.narrow, seen.output = narrow, output
        seen.been.add(at)
        if not self.over and self.step.done(seen):
            self._go(self.at + 1, f"✓ {_words(self.step.happened, seen)}")

    def skip(self) -> None:
        """Go on, whether or not the step was done."""
        if not self.over:
            self._go(self.at + 1, "")

    def back(self) -> None:
        """Go back to the step before."""
        if self.at:
            self._go(self.at - 1, "")

    def restart(self) -> None:
        self._go(0, tour_steps.OPENING)

    def _go(self, to: int, happened: str) -> None:
        before, self.seen = self.seen, Observations()
        self.seen.at, self.seen.records = before.at, before.records
        self.seen.narrow, self.seen.output = before.narrow, before.output
        self.seen.been.add(before.at)
        self._happened = happened
        self.go(to)

    def _cue(self) -> Cue:
        fitting = (h for h in self.step.cues if h.at == self.seen.at and h.when(self.seen))
        usual = tour_steps.GENERAL.get(self.seen.at, tour_steps.ELSEWHERE)
        return next(fitting, usual)


def _words(words: Words, seen: Observations) -> str:
    return words if isinstance(words, str) else words(seen)
