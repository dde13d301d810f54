"""Where the tour stands: which step, what is said of it, and when it goes on. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tui.agent.events import Event
from tui.demo.tour.observations import BUSY, CHAT, REPAIR, Seen
from tui.demo.tour.steps import ELSEWHERE, END, GENERAL, OPENING, STEPS, Hint, Step, Words
from tui.provider.practice.script import Fault
from tui.session.records import Record

TITLE: Final = "tour · "
"""How the title of the panel begins."""


@dataclass(frozen=True, slots=True)
class Said:
    """What the panel says. `keys` in backticks; `lay` is the prompt to be laid ready; `over` means
    that no step follows."""

    title: str
    happened: str
    now: str
    lay: str = ""
    over: bool = False


class Tour:
    """A row of steps. `damaged` is the id of a session that is in need of repair."""

    def __init__(self, damaged: str, steps: Sequence[Step] = STEPS) -> None:
        self.steps = tuple(steps)
        self.at = 0
        self.seen = Seen()
        self.damaged = damaged
        self._happened = OPENING
        self._struck = False

    @property
    def step(self) -> Step:
        """The one that is asked for now; END after the last."""
        return self.steps[self.at] if self.at < len(self.steps) else END

    @property
    def over(self) -> bool:
        return self.at >= len(self.steps)

    def said(self) -> Said:
        """What to say now, wherever the person is."""
        number = "the end" if self.over else f"{self.at + 1} of {len(self.steps)}"
        hint = self._hint()
        lay = hint.lay.replace("{damaged}", self.damaged)
        here = self.seen.at in {CHAT, BUSY, REPAIR}
        news = _words(hint.news, self.seen) or (self._happened if here else "")
        return Said(f"{TITLE}{number} · {self.step.title}", news, hint.say, lay, self.over)

    def hear(self, event: Event) -> None:
        """Take note of an event."""
        self.seen.hear(event)

    def look(self, at: str, *, narrow: bool, records: Sequence[Record]) -> None:
        """Take note of where the person is, and go on if the step is done."""
        seen = self.seen
        seen.at, seen.narrow, seen.records = at, narrow, records
        seen.been.add(at)
        if not self.over and self.step.done(seen):
            self._go(self.at + 1, f"✓ {_words(self.step.happened, seen)}")

    def skip(self) -> None:
        """Go on, whether or not the step was done."""
        if not self.over:
            self._go(self.at + 1, "")

    def back(self) -> None:
        """Take the step before once more."""
        if self.at:
            self._go(self.at - 1, "")

    def restart(self) -> None:
        self._go(0, OPENING)

    def strike(self, model: str) -> Fault | None:  # noqa: ARG002 - as `Strikes` has it
        """The fault that the next attempt meets: that of the step, once."""
        if self.step.fault is None or self._struck:
            return None
        self._struck = True
        return self.step.fault

    def _go(self, to: int, happened: str) -> None:
        before, self.seen = self.seen, Seen()
        self.seen.at, self.seen.narrow = before.at, before.narrow
        self.seen.records = before.records
        self.seen.been.add(before.at)
        self.at, self._happened, self._struck = to, happened, False

    def _hint(self) -> Hint:
        fitting = (h for h in self.step.hints if h.at == self.seen.at and h.when(self.seen))
        usual = GENERAL.get(self.seen.at, ELSEWHERE)
        return next(fitting, usual)


def _words(words: Words, seen: Seen) -> str:
    return words if isinstance(words, str) else words(seen)
