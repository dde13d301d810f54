"""The search for the first state in which a command fails, by halves. Pure.

It follows `git bisect`: states that can't be judged are skipped, and if the change lies among them,
all of them are named. What to do next is a function of the verdicts so far, so a search that was
interrupted goes on from its verdicts alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from tui.core.dataclass import dataclass

Verdict: TypeAlias = Literal["passes", "fails", "skipped"]
Verdicts: TypeAlias = Mapping[int, Verdict]
"""What is known of the states, by their numbers from 0."""

SKIP: Final = 125
"""The exit code of a command for a state that it can't judge, as for `git bisect run`."""
CODES: Final = 128
"""From here on an exit code says that something is wrong with the command itself."""
_GOLDEN: Final = 0.618034
"""Steps of this part of a range reach all of its parts soon."""


@dataclass(frozen=True, slots=True)
class Judge:
    """The number of the state to be judged next. `left` is about how many more there will be."""

    state: int
    left: int


@dataclass(frozen=True, slots=True)
class FirstFailure:
    """The command passes in the state `passes` and fails in `fails`. Those between were skipped: if
    there are any, the change is in one of them or in `fails`."""

    passes: int
    fails: int

    @property
    def candidates(self) -> range:
        """The states of which one is the first in which the command fails."""
        return range(self.passes + 1, self.fails + 1)


@dataclass(frozen=True, slots=True)
class NoFirstFailure:
    """There is no change from passing to failing to be found: the command `passes` in the last
    state that can be judged, `fails` in the first, or none could be judged: `unjudged`."""

    reason: Literal["passes", "fails", "unjudged"]
    state: int


Next: TypeAlias = Judge | FirstFailure | NoFirstFailure


def next_step(count: int, verdicts: Verdicts) -> Next:
    """Decide what to do about `count` states: which one to judge, or what was found."""
    last = _bound(count - 1, -1, verdicts, "fails")
    if not isinstance(last, int):
        return last
    first = _bound(0, last, verdicts, "passes")
    if isinstance(first, NoFirstFailure) and first.reason == "unjudged":
        return NoFirstFailure("fails", last)
    if not isinstance(first, int):
        return first
    inside = {n: one for n, one in verdicts.items() if first < n < last}
    low = max((n for n, one in inside.items() if one == "passes"), default=first)
    high = min((n for n, one in inside.items() if one == "fails" and n > low), default=last)
    open_ = [n for n in range(low + 1, high) if n not in verdicts]
    if not open_:
        return FirstFailure(low, high)
    skipped = sum(low < n < high for n, one in inside.items() if one == "skipped")
    # Away from what was skipped: what doesn't build comes in runs.
    place = (0.5 + skipped * _GOLDEN) % 1 * len(open_)
    return Judge(open_[int(place)], len(open_).bit_length())


def verdict_of(codes: Sequence[int]) -> Verdict:
    """The verdict on a state by the exit codes of the command's runs there: it fails if half of
    them or more failed, and can't be judged if one of them says so."""
    if SKIP in codes:
        return "skipped"
    failed = sum(code != 0 for code in codes)
    return "fails" if 2 * failed >= len(codes) else "passes"


def is_flaky(codes: Sequence[int]) -> bool:
    """True if some runs of a command passed and some failed in one state."""
    judged = {code == 0 for code in codes if code != SKIP}
    return len(judged) > 1


def is_decided(codes: Sequence[int], runs: int) -> bool:
    """True if further runs, up to `runs`, can't change the verdict on a state."""
    failed = sum(code != 0 for code in codes)
    return SKIP in codes or 2 * failed >= runs or 2 * (runs - len(codes) + failed) < runs


def _bound(
    start: int, end: int, verdicts: Verdicts, wanted: Verdict
) -> int | Judge | NoFirstFailure:
    """The state nearest to `start`, in the direction of `end`, that is known to have the wanted
    verdict; what is to be judged to know it; where there is none, why."""
    other: int | None = None
    for n in _towards(start, end):
        if other is not None and abs(n - start) > abs(other - start):
            continue
        match verdicts.get(n):
            case None:
                return Judge(n, 1)
            case "skipped":
                continue
            case verdict if verdict == wanted:
                return n
            case _:
                other = n
    if other is None:
        return NoFirstFailure("unjudged", start)
    return NoFirstFailure("passes" if wanted == "fails" else "fails", other)


def _towards(start: int, end: int) -> Iterator[int]:
    """Yield states from one end towards another, which is not included: in longer and longer steps,
    and then those that were left out."""
    direction = 1 if end > start else -1
    taken: list[int] = []
    distance = 0
    while distance < abs(end - start):
        taken.append(start + direction * distance)
        distance = 2 * distance + 1
    yield from taken
    yield from (n for n in range(start, end, direction) if n not in taken)
