"""The lines of a file, followed through its states. Pure, but for the sources that are passed in.

A line that two states share keeps its origin; a new one has that of the step between them. What a
formatter has only written in another way keeps its origin, and so does what moved in one step,
what a rewind or git brought back, and what git took over from another state that is known.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from tui.context.blame.line_match import LineHunk, hunks, matching_blocks
from tui.context.blame.reformatting import made_of, same_substance, substance
from tui.context.blame.steps import RecordedStep
from tui.context.blame.timeline import CLAIMED, GONE, PERSON, StateChange
from tui.core.dataclass import dataclass, field
from tui.core.workspace import worktree_of

_LEFT: Final = 16
"""States that git left, which it may bring back in part."""
_MOVED_LINES: Final = 2
_MOVED_CHARS: Final = 40
"""Letters and digits of a block that is told to have moved, as in git's own blame."""
_PLACES: Final = 50
"""Places of a line from which a block may have moved."""
_BRINGS_BACK: Final = frozenset({"git", "rewind", "person", "lost"})


class StepOrigin(NamedTuple):
    """Whence a line comes: the step that wrote it, or all that may have, and why that isn't
    certain; `formatters` are the steps that only wrote it in another way."""

    makers: tuple[RecordedStep, ...]
    why: str = ""
    formatters: tuple[RecordedStep, ...] = ()

    @property
    def certain(self) -> bool:
        return len(self.makers) == 1 and self.makers[0].kind != "lost"


class Traced(NamedTuple):
    """The lines of a state, each with its origin."""

    lines: Sequence[str]
    origins: Sequence[StepOrigin]


NOTHING: Final = Traced((), ())


class CommittedFile(Protocol):
    """A file as a commit has it."""

    @property
    def lines(self) -> Sequence[str]: ...

    def steps(self) -> Sequence[RecordedStep]:
        """The commit of each line, as a step. Asks git."""
        ...


class BlameSources(Protocol):
    """The contents of a file, and what git made of it."""

    def lines(self, digest: str) -> Sequence[str] | None:
        """The lines of a content with a hash; None where it isn't kept."""
        ...

    def merged(self, place: str, since: float, until: float) -> CommittedFile | None:
        """The file as git left it in a place, if HEAD was moved there, by more than a commit,
        between two moments."""
        ...


def lines_of(data: bytes) -> list[str]:
    """The lines of a content, without their ends."""
    text = data.decode("utf-8", "surrogateescape")
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


@dataclass(slots=True)
class Tracer:
    """Follows the lines of one file in all its places: the workspace, and worktrees of it."""

    sources: BlameSources
    seen: dict[str, Traced] = field(default_factory=dict[str, Traced])
    now: dict[str, Traced] = field(default_factory=dict[str, Traced])
    since: dict[str, float] = field(default_factory=dict[str, float])
    pending: dict[str, list[RecordedStep]] = field(default_factory=dict[str, list[RecordedStep]])
    left: deque[Traced] = field(default_factory=lambda: deque[Traced](maxlen=_LEFT))

    def run(self, places: Mapping[str, Iterable[StateChange]]) -> None:
        """Go through the states of all places, by their time."""
        steps = [(change.time, place, change) for place in places for change in places[place]]
        for _, place, change in sorted(steps, key=lambda one: one[0]):
            self.step(place, change)

    def step(self, place: str, change: StateChange) -> None:
        """Go on to a new state of the file in one place."""
        before = self.now.get(place)
        makers = (*self.pending.pop(place, ()), *change.makers)
        if not change.digest:
            if before is not None and before.lines:
                self.left.append(before)
            self.now[place] = NOTHING
            return
        lines = self.sources.lines(change.digest)
        if lines is None:
            self.pending[place] = list(makers)
            return
        why = (change.why or GONE) if len(makers) > 1 else ""
        self.now[place] = state = self._next(place, before, lines, change, StepOrigin(makers, why))
        self.seen[change.digest] = state
        self.since[place] = change.time

    def _next(
        self,
        place: str,
        before: Traced | None,
        lines: Sequence[str],
        change: StateChange,
        origin: StepOrigin,
    ) -> Traced:
        kinds = {step.kind for step in origin.makers}
        known = self.seen.get(change.digest)
        merged = None
        if kinds & {"git", "person", "command", "job", "lost"} and "edit" not in kinds:
            merged = self.sources.merged(place, change.since, change.time)
        by_git = "git" in kinds or merged is not None
        made = "edit" in kinds and not change.first
        if known is not None and (kinds & _BRINGS_BACK or by_git or (before is None and not made)):
            if before is not None and by_git:
                self.left.append(before)
            return known
        if before is None and made:
            return Traced(lines, [origin] * len(lines))
        if before is None:
            origin, merged = self._begun(place, change, origin)
            found = self._taken_over(place, NOTHING, lines, [None] * len(lines), merged)
            return Traced(lines, _claimed(lines, [one or origin for one in found], change))
        found = self._followed(before, lines, change, origin)
        if by_git:
            found = self._taken_over(place, before, lines, found, merged)
            self.left.append(before)
        elif kinds <= {"person", "lost"}:
            self._copied(place, lines, found)
        return Traced(lines, [one or origin for one in found])

    def _begun(
        self, place: str, change: StateChange, origin: StepOrigin
    ) -> tuple[StepOrigin, CommittedFile | None]:
        """The origin of lines with which a work tree begins, and that no other one is known to have
        had: what was committed since its state was last seen. For the first of all, as it is."""
        others = [(time, other) for other, time in self.since.items() if other != place]
        if origin.makers[0].kind != "before" or not others:
            return origin, None
        since, other = min(others, key=lambda one: (worktree_of(Path(one[1])) is not None, one[0]))
        return StepOrigin((PERSON,)), self.sources.merged(other, since, change.time)

    def _followed(
        self, before: Traced, lines: Sequence[str], change: StateChange, origin: StepOrigin
    ) -> list[StepOrigin | None]:
        """The origins of the lines that were there before, in whatever form; None for new ones."""
        maker = origin.makers[0]
        if maker.kind == "formatter" or (
            maker.kind in {"command", "person", "job"} and same_substance(before.lines, lines)
        ):
            return _reformatted(before, lines, maker)
        blocks = matching_blocks(before.lines, lines)
        found: list[StepOrigin | None] = [None] * len(lines)
        for i, j, size in blocks:
            found[j : j + size] = before.origins[i : i + size]
        if change.formatter is not None:
            for part in hunks(before.lines, lines, blocks):
                if _only_form(before.lines, lines, part):
                    _rewritten(before, lines, part, change.formatter, found)
        _moved(before, lines, _gone(len(before.lines), blocks), found)
        return found

    def _taken_over(
        self,
        place: str,
        before: Traced,
        lines: Sequence[str],
        found: list[StepOrigin | None],
        merged: CommittedFile | None,
    ) -> list[StepOrigin | None]:
        """Fill in the origins of lines that git took over, from the states that are known, and from
        its commits."""
        if None not in found:
            return found
        known = [*self.left, *(one for other, one in self.now.items() if other != place)]
        matches = [
            {
                block.new + k: state.origins[block.old + k]
                for block in matching_blocks(state.lines, lines)
                for k in range(block.size)
            }
            for state in known
            if state.lines and state is not before
        ]
        while matches:
            best = max(matches, key=lambda match: sum(found[j] is None for j in match))
            taken = [j for j in best if found[j] is None]
            if not taken:
                break
            for j in taken:
                found[j] = best[j]
            matches.remove(best)
        if merged is not None and None in found:
            blocks = matching_blocks(merged.lines, lines)
            open_ = [
                (block.old + k, block.new + k)
                for block in blocks
                for k in range(block.size)
                if found[block.new + k] is None
            ]
            steps = merged.steps() if open_ else ()
            for i, j in open_:
                if i < len(steps) and steps[i].kind == "commit":
                    found[j] = StepOrigin((steps[i],))
        return found

    def _copied(self, place: str, lines: Sequence[str], found: list[StepOrigin | None]) -> None:
        """Fill in the origins of blocks that another work tree has: git took them over, though HEAD
        doesn't say so, as after a squash."""
        for other, state in self.now.items():
            if other == place or None not in found:
                continue
            for i, j, size in matching_blocks(state.lines, lines):
                at = 0
                while at < size:
                    end = at
                    while end < size and found[j + end] is None:
                        end += 1
                    if _letters(lines[j + at : j + end]) >= _MOVED_CHARS:
                        found[j + at : j + end] = state.origins[i + at : i + end]
                    at = end + 1


def _letters(lines: Sequence[str]) -> int:
    return sum(map(str.isalnum, "".join(lines)))


def _claimed(
    lines: Sequence[str], origins: Sequence[StepOrigin], change: StateChange
) -> list[StepOrigin]:
    """The origins of the first lines that are known, where another agent's call may have written
    them before."""
    found = list(origins)
    for step, texts in change.claims:
        for n, line in enumerate(lines):
            if line in texts:
                makers = (step, *(one for one in found[n].makers if one != step))
                found[n] = StepOrigin(makers, CLAIMED)
    return found


def _only_form(old: Sequence[str], new: Sequence[str], part: LineHunk) -> bool:
    return part.old < part.old_end and same_substance(
        old[part.old : part.old_end], new[part.new : part.new_end]
    )


def _reformatted(
    before: Traced, lines: Sequence[str], formatter: RecordedStep
) -> list[StepOrigin | None]:
    """The origins of lines that a formatter has written in another way; None for its own."""
    old, new = list(map(substance, before.lines)), list(map(substance, lines))
    blocks = matching_blocks(old, new)
    found: list[StepOrigin | None] = [None] * len(lines)
    for i, j, size in blocks:
        for k in range(size):
            one, same = before.origins[i + k], before.lines[i + k] == lines[j + k]
            found[j + k] = one if same else _by(one, formatter)
    for part in hunks(old, new, blocks):
        _rewritten(before, lines, part, formatter, found)
    return found


def _rewritten(
    before: Traced,
    lines: Sequence[str],
    part: LineHunk,
    formatter: RecordedStep,
    found: list[StepOrigin | None],
) -> None:
    old, new = before.lines[part.old : part.old_end], lines[part.new : part.new_end]
    for n, source in enumerate(made_of(old, new)):
        if source is not None:
            found[part.new + n] = _by(before.origins[part.old + source], formatter)


def _by(origin: StepOrigin, formatter: RecordedStep) -> StepOrigin:
    """An origin with one more formatter; some of the last ones are named."""
    if origin.formatters[-1:] == (formatter,):
        return origin
    return origin._replace(formatters=(*origin.formatters[-2:], formatter))


def _gone(count: int, blocks: Sequence[tuple[int, int, int]]) -> list[int]:
    """The places of old lines that are in no matching block."""
    gone: list[int] = []
    at = 0
    for i, _, size in (*blocks, (count, 0, 0)):
        gone += range(at, i)
        at = i + size
    return gone


def _moved(
    before: Traced, lines: Sequence[str], gone: Sequence[int], found: list[StepOrigin | None]
) -> None:
    """Find blocks that one step took away in one place and put in another."""
    if not gone or None not in found:
        return
    places: dict[str, list[int]] = {}
    for i in gone:
        if any(map(str.isalnum, before.lines[i])):
            places.setdefault(before.lines[i], []).append(i)
    free, end = set(gone), 0
    for j in [n for n, one in enumerate(found) if one is None]:
        if j < end:
            continue
        best, length = -1, 0
        for i in places.get(lines[j], ())[:_PLACES]:
            size = 0
            while i + size in free and _new_as(before.lines[i + size], lines, j + size, found):
                size += 1
            if size > length:
                best, length = i, size
        end = j + length
        if length >= _MOVED_LINES and _letters(lines[j:end]) >= _MOVED_CHARS:
            found[j:end] = before.origins[best : best + length]
            free.difference_update(range(best, best + length))


def _new_as(text: str, lines: Sequence[str], j: int, found: Sequence[StepOrigin | None]) -> bool:
    """True if a new line without an origin has this text."""
    return j < len(lines) and found[j] is None and lines[j] == text
