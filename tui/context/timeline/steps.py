"""The steps of a timeline: what happened, when, for how long, at what price. Pure."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from tui.context.timeline.checks import Verdict
from tui.context.timeline.sizes import Parts
from tui.core.dataclass import dataclass, field

Kind: TypeAlias = Literal[
    "prompt",
    "request",
    "call",
    "question",
    "wait",
    "agent",
    "job",
    "compaction",
    "break",
    "change",
    "trouble",
    "pause",
    "aside",
]
"""The kinds of steps. A `change` is of what the model sees (pruned, hidden, restored, rewound), an
`aside` a request beside the conversation, `trouble` an error or an interruption, a `pause` time in
which nothing is known to have run, or a clock that jumped."""

LANES: Final[tuple[Kind, ...]] = ("request", "call", "agent", "job", "question", "wait")
"""The kinds with bars of their own, in the order in which they are drawn."""


class RequestInput(Struct, frozen=True, gc=False):
    """The prompt of a request, in tokens: read from the cache, written to it, and neither. The
    parts are estimates by kind, and add up to it. `counted` is False where no server said so."""

    tokens: int
    cached: int
    written: int
    output: int
    thought: int
    parts: Parts
    counted: bool = True

    @property
    def new(self) -> int:
        """The tokens that didn't come from the cache."""
        return self.tokens - self.cached


class TimelineStep(Struct, gc=False):
    """One step. `at` and `end` are its place on the axis; `seconds` is how long it took by the
    clock, which may be longer. `record` is the id of its record, or of the one that began it.

    `usd` is what it cost, None where no price is known, 0 for what costs nothing by itself. `state`
    is "" for what went well, otherwise what became of it. `note` says what else there is to say.
    """

    kind: Kind
    at: float
    end: float
    time: str
    seconds: float
    label: str
    record: str
    state: str = ""
    note: str = ""
    usd: float | None = 0.0
    model: str = ""
    number: int = 0
    """Of a request, its number; of a prompt, how many there were with it."""
    call_id: str = ""
    sent: RequestInput | None = None
    files: tuple[str, ...] = ()
    check: str = ""
    verdict: Verdict = ""
    turned: bool = False
    """The check is red and was not before, or is green again as a whole."""
    lost: str = ""
    """Of a break, its reason in a few words, as far as it is known."""
    tokens: int = 0
    """Of a break, the tokens that were cached again; of a compaction, those that it saved."""

    @property
    def failed(self) -> bool:
        return self.state not in {"", "running", "waiting"}


@dataclass(slots=True)
class Marks:
    """Steps of one sort, by their time and their place."""

    times: array[float] = field(default_factory=lambda: array("d"))
    steps: array[int] = field(default_factory=lambda: array("l"))

    def add(self, time: float, step: int) -> None:
        """Add a step; one that is not before the others."""
        self.times.append(max(time, self.times[-1]) if self.times else time)
        self.steps.append(step)

    def between(self, start: float, end: float) -> range:
        """The marks in a stretch of time, without its end."""
        first = bisect_left(self.times, start)
        return range(first, bisect_left(self.times, end, first))

    def __len__(self) -> int:
        return len(self.steps)


def next_around(places: Sequence[int], at: int, by: int) -> int | None:
    """Find the place after one, or with `by` below 0 before it; behind the last of all comes the
    first. None where there is no other."""
    found = bisect_right(places, at) if by > 0 else bisect_left(places, at) - 1
    place = places[found % len(places)] if places else at
    return None if place == at else place
