"""The states that one file had, in order, and who made each: folded from checkpoints and writes.

A checkpoint says what a file was at a moment, and its session's record who may have changed it
since the one before; a file tool's result says from what to what it changed a file. Both name
contents by their hashes. Where hashes link two states through writes, these made the difference;
else those did whose commands ran meanwhile; else the person. Pure.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from tui.context.blame.steps import (
    LATE_S,
    ForeignEdit,
    RecordedStep,
    RecordedWrite,
    SessionSteps,
    TakenCheckpoint,
    seconds_of,
)
from tui.core.dataclass import dataclass, field, replace
from tui.session.checkpoints.entries import Kind, PathEntry
from tui.session.checkpoints.history import PathHistory

GONE: Final = "the checkpoint of that moment isn't kept any more"
NO_RECORD: Final = "the session that took the checkpoint is gone, or its record of it"
COPY_LEFT: Final = "a session that is gone edited a file like this one meanwhile"
UNRECORDED: Final = "it was committed in a worktree whose session is gone, or by hand"
AT_ONCE: Final = "several ran at once"
JOB: Final = "a background command ran, and the person may have edited meanwhile"
UNENDED: Final = "a command ran whose end was never recorded"
UNWATCHED: Final = "a command ran, and no checkpoint shows what it changed"
ELSEWHERE: Final = "a command that names the file ran in another folder meanwhile"
LATE: Final = "the command had ended long before the checkpoint after it"
CLAIMED: Final = "another agent's call says so, and the file before it isn't known"

PERSON: Final = RecordedStep("person")
BEFORE: Final = RecordedStep("before")
LOST: Final = RecordedStep("lost")


@dataclass(frozen=True, slots=True)
class StateChange:
    """A new state of a file: its content by `digest` (hexadecimal; "" where the file was gone), and
    who may have made it of the one before; more than one is uncertain, and `why` says so.

    It was made between `since` and `time`, in seconds since the epoch. `formatter` ran after the
    edit, as a part of the same step. `moved_from` is the path that the file had before.
    """

    digest: str
    makers: tuple[RecordedStep, ...]
    time: float
    since: float = 0.0
    why: str = ""
    formatter: RecordedStep | None = None
    moved_from: str = ""
    first: bool = False
    """True for the first state that is known."""
    claims: tuple[tuple[RecordedStep, frozenset[str]], ...] = ()
    """Lines that other agents' calls say to have written before the first state."""


@dataclass(frozen=True, slots=True)
class StoreView:
    """The checkpoints of one workspace, as far as they are about a file: `root` holds it."""

    root: str
    history: PathHistory


@dataclass(frozen=True, slots=True)
class _Stored:
    """A state of the file in a checkpoint; the one before that was taken at `since`."""

    time: float
    since: float
    n: int
    digest: str
    view: StoreView


@dataclass(slots=True)
class _Interval:
    """The checkpoints of a session between which it, or somebody else, changed the files."""

    low: int
    high: int
    taken: TakenCheckpoint
    session: SessionSteps


@dataclass(slots=True)
class _Fold:
    """The states so far."""

    found: list[StateChange] = field(default_factory=list[StateChange])
    now: str | None = None
    time: float = 0.0
    pending: list[RecordedStep] = field(default_factory=list[RecordedStep])
    """Steps that may have changed the file and left no state of it."""
    claims: list[tuple[RecordedStep, frozenset[str]]] = field(
        default_factory=list[tuple[RecordedStep, frozenset[str]]]
    )

    def becomes(
        self, digest: str, makers: Sequence[RecordedStep], time: float, **more: object
    ) -> None:
        why = str(more.pop("why", ""))
        if self.pending:
            makers, why = _distinct([*self.pending, *makers]), why or GONE
            self.pending = []
        if len(makers) < 2:
            why = ""
        change = StateChange(digest, tuple(makers), time, self.time, why, first=self.now is None)
        claims = tuple(self.claims) if change.first else ()
        self.found.append(replace(change, claims=claims, **more))
        self.now, self.time = digest, time


Rewritten: TypeAlias = Callable[[str | None, ForeignEdit], str | None]
"""Makes the content after another agent's edit of one, and returns its hash; None where the edit
doesn't fit."""


def timeline(
    path: Path,
    sessions: Sequence[SessionSteps],
    views: Sequence[StoreView],
    rewritten: Rewritten,
    until: float = float("inf"),
) -> list[StateChange]:
    """The states of a file up to a moment, from the first one that is known."""
    writes = sorted(_writes(path, sessions), key=lambda one: one[0].time)
    writes = [one for one in writes if one[0].time <= until]
    stored = [one for view in views for one in _stored(view) if one.time <= until]
    unseen = list(_unseen(path, sessions, views))
    intervals = {view.root: _intervals(view, sessions) for view in views}
    taken = _calls_by_time(sessions)
    roots = {*(view.root for view in views), *(session.root for _, session in writes)}
    running = {root: commands_running(path, sessions, root) for root in roots}
    fold = _Fold()
    waiting = list(writes)
    events: list[tuple[float, int, object]] = [
        *((write.time, 0, (write, session)) for write, session in writes),
        *((one.time, 1, one) for one in stored),
        *((step_time, 2, step) for step_time, step in unseen),
        *(
            (edit.time, 3, (edit, session.steps[edit.step]))
            for session in sessions
            for edit in session.foreign
            if edit.path == str(path) and edit.time <= until
        ),
    ]
    for time, rank, event in sorted(events, key=lambda one: one[:2]):
        if rank == 2:
            assert isinstance(event, RecordedStep)
            fold.pending.append(event)
        elif rank == 3:
            _foreign(fold, *event, rewritten)  # type: ignore[misc]
        elif isinstance(event, _Stored):
            if event.digest == fold.now:
                continue
            for linked in _linking(waiting, fold.now, event.digest, time + LATE_S):
                waiting.remove(linked)
                _write(fold, *linked, running)
            if event.digest != fold.now:
                fold.time = max(fold.time, event.since)
                makers, why = _makers(
                    path, event, intervals[event.view.root], taken, fold.now is None
                )
                at = int(time * 1000) / 1000  # as sessions have times, whole milliseconds
                ran = [one for one in running[event.view.root] if one.begun < at <= one.until]
                if ran and fold.now is not None and not any(one.step in makers for one in ran):
                    makers, why = _distinct([*(one.step for one in ran), *makers]), ran[0].why
                fold.becomes(event.digest, makers, time, why=why)
        elif event in waiting:
            waiting.remove(event)  # type: ignore[arg-type]
            _write(fold, *event, running)  # type: ignore[misc]
    return fold.found


def present(
    found: Sequence[StateChange],
    digest: str,
    at: float,
    *,
    seen: float,
    gone: float,
    running: Iterable[CommandInDoubt],
) -> list[StateChange]:
    """The states of a file with the one that it has now, since `at`. `seen` is when the last
    checkpoint was taken that would hold it; 0 for none. `gone` is the same of a session that is
    gone: it may have gone on."""
    last = found[-1] if found else None
    if last is not None and last.digest == digest:
        return list(found)
    since = max(last.time if last else 0.0, seen)
    maker = PERSON if since else BEFORE
    ran = [one for one in running if one.until == float("inf") and one.ended > since]
    ran = ran if since else []
    lost = (LOST,) if maker is PERSON and gone >= since else ()
    makers = (*lost, *_distinct(one.step for one in ran), maker)
    why = NO_RECORD if lost else ran[0].why if ran else ""
    return [*found, StateChange(digest, makers, max(at, since), since, why, first=last is None)]


def last_unrecorded(views: Iterable[StoreView], sessions: Sequence[SessionSteps]) -> float:
    """The time of the last checkpoint of a session that is gone; 0 unless it is the newest."""
    last = 0.0
    for view in views:
        own = view.history.times.keys() - view.history.adopted.values()
        if own and (time := view.history.times[n := max(own)]) > abs(last):
            last = -time if _recorded(n, time, _intervals(view, sessions)) else time
    return max(last, 0.0)


def _write(
    fold: _Fold,
    write: RecordedWrite,
    session: SessionSteps,
    running: Mapping[str, Sequence[CommandInDoubt]],
) -> None:
    if fold.now is None:
        makers = (BEFORE,) if write.before else ()
        if write.before:
            fold.becomes(write.before, makers, write.time - 0.001)
        else:
            fold.now = ""
    elif write.before != fold.now:
        if write.after == fold.now:
            return
        ran = running[session.root]
        ran = [one for one in ran if one.begun < write.time and one.ended > fold.time]
        makers = _distinct([*(one.step for one in ran), PERSON])
        why = ran[0].why if ran else ""
        fold.becomes(write.before, makers, write.time - 0.001, why=why)
    hook = session.steps[write.hook] if write.hook >= 0 else None
    step = session.steps[write.step]
    fold.becomes(write.after, (step,), write.time, formatter=hook, moved_from=write.moved_from)


def _foreign(
    fold: _Fold,
    edit: ForeignEdit,
    step: RecordedStep,
    rewritten: Rewritten,
) -> None:
    digest = rewritten(fold.now, edit)
    if digest is not None:
        if digest != fold.now:
            fold.now = fold.now or ""
            fold.becomes(digest, (step,), edit.time)
    elif fold.now is None:
        texts = "\n".join(new for _, new in edit.passages).split("\n")
        told = frozenset(text for text in texts if any(map(str.isalnum, text)))
        fold.claims.append((step, told))
    else:
        fold.pending.append(step)


def _writes(
    path: Path, sessions: Iterable[SessionSteps]
) -> Iterator[tuple[RecordedWrite, SessionSteps]]:
    """The writes of a file, each once: a fork has those of its origin, a parent those of its
    sub-agents."""
    seen: set[tuple[str, ...]] = set()
    ordered = sorted(sessions, key=lambda one: (bool(one.origin), bool(one.parent) is False))
    name = str(path)
    for session in ordered:
        for write in session.writes:
            if write.path != name or write.before == write.after:
                continue
            step = session.steps[write.step]
            change = (step.call, write.before, write.after)
            keys = {(*change, step.session), (*change, step.time, "of a fork")}
            if keys.isdisjoint(seen):
                yield write, session
            seen |= keys


def _stored(view: StoreView) -> Iterator[_Stored]:
    history = view.history
    adopted = set(history.adopted.values())
    for n, entry in history.states.items():
        if n not in adopted:
            time = history.times.get(n) or history.times.get(history.first, 0.0)
            yield _Stored(time, history.times.get(n - 1, 0.0), n, digest_of(entry), view)


def digest_of(entry: PathEntry | None) -> str:
    """The hash of a file's content; "" for no file, and "?" where its content isn't known."""
    if entry is None or entry.kind is not Kind.FILE:
        return ""
    return entry.digest.hex() if entry.digest is not None else "?"


def _intervals(view: StoreView, sessions: Iterable[SessionSteps]) -> list[_Interval]:
    found: list[_Interval] = []
    for session in sessions:
        if session.root != view.root:
            continue
        for taken in session.checkpoints:
            high = view.history.number(taken.id)
            if high is None:
                continue
            low = view.history.number(taken.last) if taken.last else None
            found.append(_Interval(high - 1 if low is None else low, high, taken, session))
    return found


def _calls_by_time(sessions: Iterable[SessionSteps]) -> list[tuple[float, float, RecordedStep]]:
    """The calls that changed files, with the time in which they did."""
    return [
        (seconds_of(session.steps[one.step].time), one.time, session.steps[one.step])
        for session in sessions
        for one in session.checkpoints
        if one.by == "call" and one.step >= 0
    ]


class CommandInDoubt(NamedTuple):
    """A command that may have changed a file, and left no checkpoint of its own of it: from its
    begin until the next one that was taken there, which shows what it did. `why` it isn't certain.
    `ended` is infinite where that was never recorded."""

    begun: float
    ended: float
    until: float
    step: RecordedStep
    why: str


def commands_running(
    path: Path, sessions: Sequence[SessionSteps], root: str
) -> list[CommandInDoubt]:
    """The commands whose end was never recorded, and those of sessions with another folder than
    that of the checkpoints which name the file."""
    times = sorted(
        one.time for session in sessions if session.root == root for one in session.checkpoints
    )
    found: list[CommandInDoubt] = []

    def note(step: RecordedStep, ended: float | None, why: str) -> None:
        begun = seconds_of(step.time)
        at = bisect_right(times, ended or begun)
        until = times[at] if at < len(times) else float("inf")
        found.append(CommandInDoubt(begun, ended or float("inf"), until, step, why))

    for session in sessions:
        others = _without(session, path)
        if session.root == root:
            for number in session.unended:
                if number not in others:
                    note(session.steps[number], None, UNENDED)
        if session.root == root or path.is_relative_to(session.root):
            for number, ended in session.unwatched:
                if number not in others:
                    note(session.steps[number], ended, UNWATCHED)
        for one in session.elsewhere:
            if one.path == str(path):
                note(session.steps[one.step], one.ended, ELSEWHERE)
    return found


def _without(session: SessionSteps, path: Path) -> set[int]:
    """The steps of commands that were cut off and can't have written to a file."""
    return {number for number, paths in session.at_most if str(path) not in paths}


def _makers(
    path: Path,
    event: _Stored,
    intervals: Sequence[_Interval],
    calls: Sequence[tuple[float, float, RecordedStep]],
    first: bool,
) -> tuple[Sequence[RecordedStep], str]:
    """The steps that may have changed the file before a checkpoint, and why that isn't certain."""
    history = event.view.history
    makers, why = _by_records(path, event, intervals, calls)
    if first and event.n == 1:
        return (BEFORE,), ""
    if first and event.n <= history.first:
        return _distinct([BEFORE, *makers]), GONE
    return makers, why


def _by_records(
    path: Path,
    event: _Stored,
    intervals: Sequence[_Interval],
    calls: Sequence[tuple[float, float, RecordedStep]],
) -> tuple[Sequence[RecordedStep], str]:
    around = [one for one in intervals if one.low < event.n <= one.high]
    late = [one for one in around if one.taken.late]
    if any(one.taken.step in _without(one.session, path) for one in late):
        return (PERSON,), ""
    steps = [
        one.session.steps[one.taken.step]
        for one in around
        if one.taken.by in {"call", "rewind"} and one.taken.step >= 0
    ]
    steps = _distinct(steps)
    if not steps:  # a session's own record says by its order which of its calls had begun
        told = {one.session.id for one in around}
        steps = _distinct(
            step
            for begun, ended, step in calls
            if begun < event.time <= ended and step.session not in told
        )
    if late:
        return [*steps, PERSON], LATE
    if steps:
        return steps, AT_ONCE
    if any(one.taken.by == "job" for one in around):
        return (RecordedStep("job", session=around[0].session.id), PERSON), JOB
    times = event.view.history.times
    here = {n for n in (event.n, event.n - 1) if n in times}
    if all(_recorded(n, times[n], intervals) for n in here):
        return (PERSON,), ""
    return (LOST, PERSON), NO_RECORD


def _recorded(n: int, time: float, intervals: Sequence[_Interval]) -> bool:
    """True if a session is known that took a checkpoint; a later one that found nothing new names
    the same."""
    return any(one.high == n and abs(one.taken.time - time) <= LATE_S for one in intervals)


def _linking(
    waiting: Sequence[tuple[RecordedWrite, SessionSteps]],
    now: str | None,
    wanted: str,
    until: float,
) -> list[tuple[RecordedWrite, SessionSteps]]:
    """The writes that lead to a content, in order: from the present one, else from one that nobody
    has seen. None if they don't."""
    chain: list[tuple[RecordedWrite, SessionSteps]] = []
    early = [one for one in waiting if one[0].time <= until]
    at = now or ""
    for write, session in early:
        if write.before == at:
            chain.append((write, session))
            at = write.after
            if at == wanted:
                return chain
    ends = [n for n, (write, _) in enumerate(early) if write.after == wanted]
    return early[: ends[-1] + 1] if ends else []


def _unseen(
    path: Path, sessions: Iterable[SessionSteps], views: Sequence[StoreView]
) -> Iterator[tuple[float, RecordedStep]]:
    """The commands that changed the file, or may have, and left no checkpoint of it."""
    kept: Mapping[str, PathHistory] = {view.root: view.history for view in views}
    for session in sessions:
        history = kept.get(session.root)
        ends = {one.step: one for one in session.checkpoints if one.by == "call"}
        for number, name in session.named:
            if Path(session.root) / name != path:
                continue
            end = ends.get(number)
            n = history.number(end.id) if history and end else None
            if end and (n is None or history is None or n < history.first):
                yield end.time, session.steps[number]


def _distinct(steps: Iterable[RecordedStep]) -> list[RecordedStep]:
    """Each step once: a fork has those of its origin, made at the same time. The ids of calls come
    again in other sessions, with some servers."""
    once: dict[tuple[str, str, str, str], RecordedStep] = {}
    for step in steps:
        key = (step.kind, step.call or step.prompt or step.session, step.label, step.time)
        once.setdefault(key, step)
    return list(once.values())
