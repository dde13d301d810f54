"""The search for the first state in which a command fails, by halves. Pure.

It follows `git bisect`: states that can't be judged are skipped, and if the change lies among them,
all of them are named. Where many were skipped, only the edges of that part are searched, since what
doesn't build comes in runs. What to do next is a function of the verdicts so far, so a search that
was interrupted goes on from its verdicts alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

from tui.core.dataclass import dataclass

Verdict: TypeAlias = Literal["passes", "fails", "skipped"]
Verdicts: TypeAlias = Mapping[int, Verdict]
"""What is known of the states, by their numbers from 0."""

SKIP: Final = 125
"""The exit code of a command for a state that it can't judge, as for `git bisect run`."""
CODES: Final = 128
"""From here on an exit code says that something is wrong with the command itself."""
SKIPS: Final = 12
"""Skipped states after which no more are tried in their midst, or at an end."""
_GOLDEN: Final = 0.618034
"""Steps of this part of a range reach all of its parts soon."""


@dataclass(frozen=True, slots=True)
class Judge:
    """The number of the state to be judged next. `left` is about how many more there will be."""

    state: int
    left: int


@dataclass(frozen=True, slots=True)
class FirstFailure:
    """The command passes in the state `passes` and fails in `fails`. Those between were skipped, or
    `untried` among many that were: if there are any, the change is in one of them or in `fails`.
    `fails_before`: it fails in the first state, too, so the search began at a later one."""

    passes: int
    fails: int
    untried: int = 0
    fails_before: bool = False

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
    fails_before = isinstance(first, NoFirstFailure) and first.reason == "fails"
    if isinstance(first, NoFirstFailure):
        first = _passing_before(last, verdicts)
    if not isinstance(first, int):
        return first
    inside = {n: one for n, one in verdicts.items() if first < n < last}
    low = max((n for n, one in inside.items() if one == "passes"), default=first)
    high = min((n for n, one in inside.items() if one == "fails" and n > low), default=last)
    open_ = [n for n in range(low + 1, high) if n not in verdicts]
    skipped = [n for n in range(low + 1, high) if verdicts.get(n) == "skipped"]
    if len(skipped) >= SKIPS:
        open_ = _widest(range(low + 1, skipped[0]), range(skipped[-1] + 1, high))
    if not open_:
        untried = high - low - 1 - len(skipped)
        return FirstFailure(low, high, untried, fails_before)
    # Away from what was skipped: what doesn't build comes in runs.
    place = (0.5 + len(skipped) * _GOLDEN) % 1 if len(skipped) < SKIPS else 0.5
    return Judge(open_[int(place * len(open_))], len(open_).bit_length())


def _widest(*edges: range) -> range:
    """The part that has the most states."""
    return max(edges, key=len)


def _passing_before(last: int, verdicts: Verdicts) -> int | Judge | NoFirstFailure:
    """A state before the last one in which the command passes, where it fails in the first: few are
    tried, nearest first."""
    for n in _towards(last - 1, -1):
        match verdicts.get(n):
            case None:
                return Judge(n, last.bit_length())
            case "passes":
                return n
            case _:
                pass
    return NoFirstFailure("fails", min(n for n, one in verdicts.items() if one == "fails"))


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


def agree(codes: Sequence[int], verdict: Verdict) -> bool:
    """True if each run of a command says the same of a state as the verdict on it."""
    return {verdict_of([code]) for code in codes} == {verdict}


def runs_of_a_named_state(runs: int) -> int:
    """The number of runs that have to agree in the two states that a search ends with, where other
    states have at most `runs`: one run alone may be chance."""
    return max(2, runs)


def is_decided(codes: Sequence[int], runs: int) -> bool:
    """True if further runs, up to `runs`, can't change the verdict on a state."""
    failed = sum(code != 0 for code in codes)
    return SKIP in codes or 2 * failed >= runs or 2 * (runs - len(codes) + failed) < runs


def _bound(
    start: int, end: int, verdicts: Verdicts, wanted: Verdict
) -> int | Judge | NoFirstFailure:
    """The state nearest to `start`, in the direction of `end`, that is known to have the wanted
    verdict; what is to be judged to know it; where there is none, why. Gives up after many that
    were skipped."""
    direction, skipped = (1 if end > start else -1), 0
    other: int | None = None
    tried = _towards(start, end)
    for n in dict.fromkeys([*tried, *range(start, end, direction)]):
        if other is not None and abs(n - start) > abs(other - start):
            continue
        match verdicts.get(n):
            case "skipped":
                skipped += 1
            case None if skipped < max(SKIPS, len(tried)):
                return Judge(n, 1)
            case None:
                break
            case verdict if verdict == wanted:
                return n
            case _:
                other = n
    if other is None:
        return NoFirstFailure("unjudged", start)
    return NoFirstFailure("passes" if wanted == "fails" else "fails", other)


def _towards(start: int, end: int) -> list[int]:
    """States from one end towards another, which is not included, in longer and longer steps."""
    direction = 1 if end > start else -1
    steps = (2**power - 1 for power in range(abs(end - start).bit_length()))
    return [start + direction * step for step in steps]
