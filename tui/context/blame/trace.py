"""The lines of a file, followed through its states. Pure, but for the sources that are passed in.

A line that two states share keeps its origin; a new one has that of the step between them. What a
formatter has only written in another way keeps its origin, and so does what moved in one step,
what a rewind or git brought back, and what git took over from another state that is known.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, Protocol, cast

from tui.context.blame.line_map import MOVED_CHARS, LineMap, LineRun, Reformatted, letters
from tui.context.blame.reformatting import substance
from tui.context.blame.steps import RecordedStep, seconds_of
from tui.context.blame.timeline import CLAIMED, GONE, PERSON, StateChange
from tui.core.dataclass import dataclass, field
from tui.core.workspace import worktree_of

_LEFT: Final = 16
"""States that git left, which it may bring back in part."""
_LOOKED_BACK: Final = 64
"""The last states in which a line is looked for that a merge brought back."""
_LINE_CHARS: Final = 10
"""Letters and digits of one line that tell it from all others."""
_REFORMATTED: Final[Mapping[str, Reformatted]] = {
    "formatter": "all",
    "command": "lines",
    "person": "lines",
    "job": "lines",
}
"""What may have another form after a step, by its kind."""
_BRINGS_BACK: Final = frozenset({"git", "rewind", "person", "lost"})


class StepOrigin(NamedTuple):
    """The origin of a line: the step that wrote it, or all that may have, and why that isn't
    certain; `formatters` are the steps that only wrote it in another way."""

    makers: tuple[RecordedStep, ...]
    why: str = ""
    formatters: tuple[RecordedStep, ...] = ()

    @property
    def certain(self) -> bool:
        return len(self.makers) == 1 and self.makers[0].kind != "lost"


class Traced(NamedTuple):
    """A state by the hash of its content, with the origin of each line."""

    digest: str
    origins: Sequence[StepOrigin]


NOTHING: Final = Traced("", ())


class LineSource(NamedTuple):
    """The origin that a line has by the commit that it came with, and its place in the file of that
    commit, by its hash. None for a commit that was made here: the states of the file tell who wrote
    it."""

    origin: StepOrigin | None
    digest: str
    place: int


class CommittedFile(Protocol):
    """A file as a commit has it."""

    @property
    def digest(self) -> str: ...

    def sources(self, places: Sequence[int]) -> Sequence[LineSource | None]:
        """The origins of the lines at some places. Asks git."""
        ...


class BlameSources(Protocol):
    """The contents of a file, and what git made of it."""

    def lines(self, digest: str) -> Sequence[str] | None:
        """The lines of a content with a hash; None where it isn't kept."""
        ...

    def line_map(self, old: str, new: str, reformatted: Reformatted) -> LineMap | None:
        """The lines of a content that those of another come from, both by their hashes; None where
        the new one isn't kept."""
        ...

    def edit_map(self, old: str, new: str) -> LineMap | None:
        """The same for an edit that a formatter ran after."""
        ...

    def words(self, step: RecordedStep) -> str:
        """The request of a step's call, word for word; "" where that isn't known."""
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
    missing: dict[str, float] = field(default_factory=dict[str, float])
    """When the file was last seen to be missing in a place, before its first state there."""
    places: Mapping[str, Sequence[StateChange]] = field(
        default_factory=dict[str, Sequence[StateChange]]
    )
    left: deque[Traced] = field(default_factory=lambda: deque[Traced](maxlen=_LEFT))

    def run(self, places: Mapping[str, Sequence[StateChange]]) -> None:
        """Go through the states of all places, by their time."""
        self.places = places
        self.missing = {
            place: found[0].since for place, found in places.items() if found and found[0].since
        }
        steps = [(change.time, place, change) for place in places for change in places[place]]
        for _, place, change in sorted(steps, key=lambda one: one[0]):
            self.step(place, change)

    def step(self, place: str, change: StateChange) -> None:
        """Go on to a new state of the file in one place."""
        before = self.now.get(place)
        makers = (*self.pending.pop(place, ()), *change.makers)
        if not change.digest:
            if before is not None and before.origins:
                self.left.append(before)
            self.now[place] = NOTHING
            return
        why = (change.why or GONE) if len(makers) > 1 else ""
        state = self._next(place, before, change, StepOrigin(makers, why))
        if state is None:
            self.pending[place] = list(makers)
            return
        self.now[place] = self.seen[change.digest] = state
        self.since[place] = change.time

    def _next(
        self, place: str, before: Traced | None, change: StateChange, origin: StepOrigin
    ) -> Traced | None:
        """The next state; None where its content isn't kept."""
        kinds = {step.kind for step in origin.makers}
        digest = change.digest
        known = self.seen.get(digest)
        merged = None
        if kinds & {"git", "person", "command", "job", "lost"} and "edit" not in kinds:
            merged = self.sources.merged(place, change.since, change.time)
        by_git = "git" in kinds or merged is not None
        made = "edit" in kinds and not change.first
        if known is not None and (kinds & _BRINGS_BACK or by_git or (before is None and not made)):
            if before is not None and by_git:
                self.left.append(before)
            return known
        if before is None:
            return self._first(place, change, origin, made, merged)
        found = self._followed(before, change, origin.makers[0])
        if found is None:
            return None
        if by_git:
            self._take_over(place, before, digest, found, merged)
            self.left.append(before)
        elif kinds <= {"person", "lost"}:
            self._copied(place, digest, found)
        self._worded(digest, found, origin)
        return Traced(digest, _filled(found, origin))

    def _first(
        self,
        place: str,
        change: StateChange,
        origin: StepOrigin,
        made: bool,
        merged: CommittedFile | None,
    ) -> Traced | None:
        """The first state in a place; `made` there by a call."""
        lines = self.sources.lines(change.digest)
        if lines is None:
            return None
        if made:
            return Traced(change.digest, [origin] * len(lines))
        found: list[StepOrigin | None] = [None] * len(lines)
        times = {**self.missing, **self.since}
        others = [(time, one) for one, time in times.items() if one != place and time < change.time]
        if origin.makers[0].kind == "before" and others:  # a work tree begins with what is in git
            rank = min(others, key=lambda one: (worktree_of(Path(one[1])) is not None, one[0]))
            since, other = rank
            origin = self._meanwhile(other, change.time)
            merged = self.sources.merged(other, since, change.time)
            found = self._followed(self.now.get(other, NOTHING), change, PERSON) or found
        self._take_over(place, NOTHING, change.digest, found, merged)
        self._worded(change.digest, found, origin)
        return Traced(change.digest, _claimed(lines, _filled(found, origin), change))

    def _meanwhile(self, place: str, time: float) -> StepOrigin:
        """The steps that may have changed the file in a place since its last state there, before
        the next."""
        coming = (change for change in self.places[place] if change.time > time)
        change = next(coming, None)
        if change is None or PERSON not in change.makers:
            return StepOrigin((PERSON,))
        makers = tuple(one for one in change.makers if seconds_of(one.time) <= time)
        return StepOrigin(makers, change.why if len(makers) > 1 else "")

    def _followed(
        self, before: Traced, change: StateChange, maker: RecordedStep
    ) -> list[StepOrigin | None] | None:
        """The origins of the lines that were there before, in whatever form; None for new ones.
        None where the content isn't kept."""
        if change.formatter is not None:
            mapped = self.sources.edit_map(before.digest, change.digest)
        else:
            reformatted: Reformatted = _REFORMATTED.get(maker.kind, "nothing")
            mapped = self.sources.line_map(before.digest, change.digest, reformatted)
        if mapped is None:
            return None
        formatter = change.formatter or maker
        found: list[StepOrigin | None] = [None] * mapped.length
        for new, old, size, rewritten in mapped.runs:
            part = before.origins[old : old + size]
            found[new : new + size] = (_by(one, formatter) for one in part) if rewritten else part
        return found

    def _take_over(
        self,
        place: str,
        before: Traced,
        digest: str,
        found: list[StepOrigin | None],
        merged: CommittedFile | None,
    ) -> None:
        """Fill in the origins of lines that git took over, from the states that are known, and from
        its commits."""
        if None not in found:
            return
        known = [*self.left, *(one for other, one in self.now.items() if other != place)]
        self._take(digest, found, [one for one in known if one is not before], range(len(found)))
        if merged is not None and None in found:
            shared = self._shared(merged.digest, digest, "lines")  # formatted since
            open_ = [(i, j) for i, j in shared if found[j] is None]
            sources = merged.sources([i for i, _ in open_]) if open_ else ()
            for (_, j), source in zip(open_, sources, strict=True):
                found[j] = self._committed(source) if source else None
            here = {j for (_, j), source in zip(open_, sources, strict=True) if source}
            if any(found[j] is None for j in here):  # it is older than what is left
                self._take(digest, found, [*self.seen.values()][-_LOOKED_BACK:], here)
        self._put_elsewhere(before, digest, found)

    def _take(
        self,
        digest: str,
        found: list[StepOrigin | None],
        states: Iterable[Traced],
        places: Collection[int],
    ) -> None:
        """Fill in the origins of lines at some places from the states that share most of them."""
        matches = [
            {j: state.origins[i] for i, j in self._shared(state.digest, digest) if j in places}
            for state in states
            if state.origins
        ]
        while matches:
            best = max(matches, key=lambda match: sum(found[j] is None for j in match))
            taken = [j for j in best if found[j] is None]
            if not taken:
                break
            for j in taken:
                found[j] = best[j]
            matches.remove(best)

    def _committed(self, source: LineSource) -> StepOrigin | None:
        origins = self.seen.get(source.digest, NOTHING).origins
        if source.place < len(origins):
            return origins[source.place]
        return source.origin

    def _worded(self, digest: str, found: list[StepOrigin | None], origin: StepOrigin) -> None:
        """Fill in the origins of new lines that one alone of those who may have made them was asked
        to write, word for word."""
        asked = [(step, self.sources.words(step)) for step in origin.makers] if origin.why else []
        texts = [(step, substance(words)) for step, words in asked if words]
        lines = self.sources.lines(digest) or () if texts else ()
        after, at = list(map(substance, lines)), 0
        while at < len(after):
            ends = [(_end_of_words(found, after, at, text), step) for step, text in texts]
            end, step = max(ends, key=lambda one: one[0])
            alone = sum(one == end for one, _ in ends) == 1
            if alone and letters(lines[at:end]) >= _LINE_CHARS:
                found[at:end] = [StepOrigin((step,))] * (end - at)
            at = max(end, at + 1)

    def _put_elsewhere(self, before: Traced, digest: str, found: list[StepOrigin | None]) -> None:
        """Fill in the origins of single lines that were somewhere else in the file: a merge puts
        them in another order."""
        if None not in found:
            return
        lines = self.sources.lines(digest) or ()
        old = self.sources.lines(before.digest) or ()
        places = {text: i for i, text in enumerate(old)}
        counts = Counter(old), Counter(lines)
        for j, text in enumerate(lines):
            once = counts[0][text] == counts[1][text] == 1
            if found[j] is None and once and letters((text,)) >= _LINE_CHARS:
                found[j] = before.origins[places[text]]

    def _runs(self, old: str, new: str, reformatted: Reformatted = "nothing") -> list[LineRun]:
        mapped = self.sources.line_map(old, new, reformatted)
        return mapped.runs if mapped else []

    def _shared(
        self, old: str, new: str, reformatted: Reformatted = "nothing"
    ) -> list[tuple[int, int]]:
        """The lines that two contents share, by their places in both."""
        runs = self._runs(old, new, reformatted)
        return [(run.old + k, run.new + k) for run in runs for k in range(run.size)]

    def _copied(self, place: str, digest: str, found: list[StepOrigin | None]) -> None:
        """Fill in the origins of blocks that another work tree has, or this one had on another
        branch: git took them over, though HEAD doesn't say so, as after a squash."""
        others = (state for other, state in self.now.items() if other != place)
        for state in (*others, *self.left):
            if not state.origins or None not in found:
                continue
            lines = self.sources.lines(digest) or ()
            for j, i, size, _ in self._runs(state.digest, digest):
                at = 0
                while at < size:
                    end = at
                    while end < size and found[j + end] is None:
                        end += 1
                    if letters(lines[j + at : j + end]) >= MOVED_CHARS:
                        found[j + at : j + end] = state.origins[i + at : i + end]
                    at = end + 1


def _filled(found: list[StepOrigin | None], origin: StepOrigin) -> list[StepOrigin]:
    """The origins of all lines: new ones have that of the step."""
    at = -1
    with suppress(ValueError):
        while True:
            at = found.index(None, at + 1)
            found[at] = origin
    return cast("list[StepOrigin]", found)


def _end_of_words(
    found: Sequence[StepOrigin | None], after: Sequence[str], at: int, text: str
) -> int:
    """The end of the lines from a place on that have no origin yet, and are in a text as a whole;
    both by their substance."""
    end, joined = at, ""
    while end < len(after) and found[end] is None and joined + after[end] in text:
        joined, end = joined + after[end], end + 1
    return end


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


def _by(origin: StepOrigin, formatter: RecordedStep) -> StepOrigin:
    """An origin with one more formatter; some of the last ones are named."""
    if origin.formatters[-1:] == (formatter,):
        return origin
    return origin._replace(formatters=(*origin.formatters[-2:], formatter))
