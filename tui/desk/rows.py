"""The rows of the desk, from what is known of each session. Pure."""

from __future__ import annotations

from datetime import datetime

import msgspec

from tui.app import background
from tui.app.background import BackgroundSession
from tui.app.door.lines import OPEN_STATES, Ended, State
from tui.desk.door_watch import READ_ONLY, DoorSeen
from tui.desk.host import DeskRow
from tui.permissions.asked import summary_of
from tui.session import catalog
from tui.session.catalog import SessionSummary
from tui.session.lock import LockHolder


class EndSeen(msgspec.Struct, frozen=True):
    """The end of a session that was watched meanwhile. `at` is a timestamp; `row` is its row of
    before."""

    ended: Ended
    at: str
    row: DeskRow | None = None
    seen: bool = False


class OpenFile(msgspec.Struct, frozen=True):
    """A session's file that some process writes. `grows`: it did so a short time ago; `since` is
    when the lock was first seen, on a monotonic clock."""

    path: str
    holder: LockHolder
    grows: bool = False
    since: float = 0.0


class SessionTraces(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of a session: by its door, its entry of a background session, its lock, the
    index, the branch of its folder, and how it ended while it was watched."""

    door: DoorSeen | None = None
    entry: BackgroundSession | None = None
    lock: OpenFile | None = None
    saved: SessionSummary | None = None
    end: EndSeen | None = None


def row_of(id_: str, known: SessionTraces, now: datetime) -> DeskRow | None:
    """The row of a session; None where nothing is known of it yet, or any more."""
    door, entry, lock, saved = known.door, known.entry, known.lock, known.saved
    common = DeskRow(
        id=id_,
        path=(saved.path if saved else "") or (entry.path if entry else "")
        or (lock.path if lock else ""),
        title=(saved.title if saved else "") or (entry.title if entry else ""),
        cwd=(entry.cwd if entry else "") or (saved.cwd if saved else ""),
        profile=saved.profile if saved else "",
        cost_usd=entry.cost_usd if entry else None,
        started=(saved.created if saved else "") or (entry.started if entry else ""),
    )  # fmt: skip
    if door is not None and not door.is_silent:
        return _served(common, door, known)
    if entry is not None and entry.running and not _outdated(entry, known.end):
        return _in_background(common, entry, known)
    if lock is not None:
        return _locked(common, lock)
    return _at_rest(common, known, now)


def _served(row: DeskRow, door: DoorSeen, known: SessionTraces) -> DeskRow:
    """The row of a session that its owner tells about."""
    hello, status, entry = door.hello, door.status, known.entry
    if hello is None or status is None:
        running = entry if entry is not None and entry.running else None
        return _with(
            row,
            kind="background" if running else "none",
            pid=running.pid if running else known.lock.holder.pid if known.lock else 0,
            state=running.state if running else "idle",
            detail=running.detail if running else "",
            since=running.since if running else row.started,
            problem=door.problem,
        )
    asked = summary_of(door.asked[0].asked) if door.asked else ""
    return _with(
        row,
        path=hello.path or row.path,
        kind=hello.kind,
        pid=hello.pid,
        cwd=hello.cwd or row.cwd,
        state="waiting" if asked else status.state,
        detail=f"can't save its steps: {status.unsaved}"
        if status.unsaved
        else status.detail or asked,
        questions=door.asked,
        title=status.title or row.title,
        model=status.model,
        profile=status.profile,
        branch=status.branch,
        cost_usd=row.cost_usd if status.cost_usd is None else status.cost_usd,
        since=(door.asked[0].since if door.asked else "") or status.since or row.started,
        problem=door.problem,
    )


def _in_background(row: DeskRow, entry: BackgroundSession, known: SessionTraces) -> DeskRow:
    """The row of a background session without a door: of an older program, or elsewhere."""
    problem = "" if entry.here else f"it runs on {entry.host}; {READ_ONLY} from here"
    if entry.here and known.lock is not None:
        problem = f"its Holdfast is older; {READ_ONLY} from here"
    return _with(
        row,
        kind="background",
        pid=entry.pid,
        state=entry.state,
        detail=entry.detail,
        since=entry.since,
        problem=problem,
    )


def _locked(row: DeskRow, lock: OpenFile) -> DeskRow:
    """The row of a session that something writes which has no door."""
    holder = lock.holder
    if not holder.running:
        problem = f"it may be open on {holder.host}; {READ_ONLY} from here"
        return _with(row, state="saved", since=holder.since, problem=problem)
    return _with(
        row,
        pid=holder.pid,
        state="working" if lock.grows else "idle",
        since=holder.since or row.started,
        problem=f"what runs it can't be watched (-p, a task, an older Holdfast); {READ_ONLY}",
    )


def _at_rest(row: DeskRow, known: SessionTraces, now: datetime) -> DeskRow | None:
    """The row of a session that nobody has open; None where nothing is saved of it either."""
    entry, saved, end = known.entry, known.saved, known.end
    state: State = "saved"
    detail, since, seen = "", saved.updated if saved else row.started, False
    if entry is not None and _outdated(entry, end):
        entry = None
    if entry is not None and now - background.moment(entry.since, now) < background.LISTED:
        state, detail, since, seen = entry.state, entry.detail, entry.since, entry.seen
    elif end is not None and now - background.moment(end.at, now) < background.LISTED:
        state, detail, since, seen = end.ended.state, end.ended.detail, end.at, end.seen
    if state in OPEN_STATES or state == "saved":
        if saved is None:
            return None
        state, seen = "saved", False
        detail = catalog.state_name(saved.state)
    if end is not None and end.row is not None:
        row = _with(row, model=end.row.model)
        row = row if row.cost_usd is not None else _with(row, cost_usd=end.row.cost_usd)
    problem = saved.problems[0] if saved and saved.state == "unreadable" else ""
    return _with(row, state=state, detail=detail, since=since, seen=seen, problem=problem)


def _outdated(entry: BackgroundSession, end: EndSeen | None) -> bool:
    """True if an entry says that a process runs whose end was seen since."""
    return entry.running and end is not None and end.at >= entry.since


def _with(row: DeskRow, **changes: object) -> DeskRow:
    return msgspec.structs.replace(row, **changes)
