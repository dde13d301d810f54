"""Collects what ran in a span of time, from the files. Blocks; changes nothing.

Only session files that were changed since the span began are opened: one that was written before
has no record of it. A file whose name has a later time than its last change is opened, too: a
clock jumped.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tui.app import background
from tui.app.background import BackgroundSession
from tui.app.morning.commits import verify_commits
from tui.app.morning.findings import Morning, NightFinding, NightSpan, SessionNight
from tui.app.morning.session_night import damage, session_night
from tui.app.morning.session_work import LiveSession, NightScope
from tui.app.reports.usage_table import unknown_prices
from tui.app.unattended_commands import UnattendedCommand, unattended_commands
from tui.context.usage import Amount, Bill, BilledSession, bills_in
from tui.core.config import Price
from tui.core.dataclass import dataclass
from tui.core.errors import SessionError
from tui.core.facts import DEFAULT_PROFILE
from tui.core.formatting import plural
from tui.core.gc_pause import gc_pause
from tui.core.paths import Folders, shorten
from tui.core.text_cleaning import one_line
from tui.session import importers
from tui.session.catalog import (
    ReadProgress,
    SessionFileState,
    id_of,
    parent_of,
    scan,
    scan_children,
    unreadable_folders,
)
from tui.session.reader import LoadedSession, read
from tui.session.records import can_be_typed

_NAMES: Final[Mapping[str, str]] = {
    "claude_code": "Claude Code",
    "codex": "Codex",
    "opencode": "opencode",
    "openclaw": "OpenClaw",
    "pi": "pi",
}


@dataclass(frozen=True, slots=True)
class NightPlaces:
    """The places to look in: the program's folders, those of other agents, and the workspace that
    is meant (None for all)."""

    home: Folders
    others: Mapping[importers.Format, Sequence[Path]]
    workspace: Path | None = None


def morning_of(
    place: NightPlaces,
    span: NightSpan,
    prices: Mapping[str, Mapping[str, Price]],
    now: datetime,
    progress: ReadProgress = lambda _done, _of: None,
) -> Morning:
    """Collect all that is known of the sessions in a span, the one that began first first."""
    home, usual = place.home, prices[""]

    def may_be_in(file: SessionFileState) -> bool:
        return _may_be_in(file, span)

    morning = Morning(span, now, str(place.workspace or ""))
    unattended = background.sessions(home, now)
    processes = {os.path.realpath(one.path): one for one in unattended}
    with gc_pause():
        billed = bills_in(home, progress, among=may_be_in)
        by_path = {one.file[1]: one for one in billed}
        bills, family = _bills_by_session(billed), _family(billed)
        children: dict[str, list[str]] = {}
        for file in filter(may_be_in, scan_children(home, place.workspace)):
            children.setdefault(str(parent_of(Path(file[1]))), []).append(file[1])
        seen: set[str] = set()
        files = [file[1] for file in scan(home, place.workspace) if may_be_in(file)]
        for path in sorted(files, key=os.path.basename):
            about = by_path.get(path)
            night = SessionNight(id_of(Path(path)), path, _command(path))
            loaded = _load(path)
            if isinstance(loaded, SessionError):
                night.state = "unreadable"
                night.rows = [NightFinding("unknown", f"{loaded.message} {loaded.hint}".strip())]
                morning.sessions.append(night)
                continue
            copied: set[str] = set()
            if path in family:
                ids = {record.id for record in loaded.records}
                copied, seen = ids & seen, seen | ids
            known = _known(about, processes.get(os.path.realpath(path)))
            below = [*_sub_agents(children.get(path, ()), NightScope(span, now, usual, known))]
            if session_night(night, loaded, NightScope(span, now, usual, known, copied, below)):
                _pay(night, bills.get(path, ()), span, prices)
                morning.sessions.append(night)
            elif _is_odd(night, loaded, span) and not copied:
                morning.sessions.append(night)
    verify_commits(morning.sessions)
    _commands(morning, unattended_commands(home))
    morning.sessions.sort(key=lambda one: one.first)
    models = [model for model, amount in morning.by_model().items() if amount.unpriced]
    if models:
        morning.rows.append(NightFinding("unknown", unknown_prices(models)))
    morning.rows += [
        NightFinding("unknown", f"Can't read {shorten(one)}: what ran there isn't in this report.")
        for one in unreadable_folders(home, place.workspace)
    ]
    morning.rows += _others(place, span)
    return morning


def _sub_agents(paths: Iterable[str], setting: NightScope) -> Iterator[SessionNight]:
    """Yield what the sub-agents of a session did in the span. One whose file is no sound session
    is named."""
    for path in sorted(paths):
        night = SessionNight(id_of(Path(path)), path, _command(path))
        loaded = _load(path)
        if isinstance(loaded, SessionError):
            night.rows = [NightFinding("unknown", loaded.message)]
            yield night
        elif session_night(night, loaded, setting) or _is_odd(night, loaded, setting.span):
            yield night


def _family(billed: Iterable[BilledSession]) -> frozenset[str]:
    """The files of forks, and of the sessions that they came from."""
    every = [*billed]
    origins = {one.about.origin for one in every if one.about.origin}
    return frozenset(one.file[1] for one in every if one.about.origin or one.about.id in origins)


def _may_be_in(file: SessionFileState, span: NightSpan) -> bool:
    """True if a file can have a record of the span, by its time of change and its name."""
    changed, path, _ = file
    begun = _named_time(path)
    if begun is not None and span.until is not None and begun > span.until:
        return False
    if not changed or changed >= span.since.timestamp() * 1e9:
        return True
    return begun is not None and begun >= span.since


def _named_time(path: str) -> datetime | None:
    """The time in the name of a session's file; None for one that was named otherwise."""
    name = os.path.basename(path).partition("-")[0]  # noqa: PTH119 - of thousands
    try:
        return datetime.strptime(name, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None


def _load(path: str) -> LoadedSession | SessionError:
    try:
        return read(Path(path))
    except SessionError as error:
        return error


def _known(about: BilledSession | None, process: BackgroundSession | None) -> LiveSession:
    running = about is not None and about.running
    if process is None:
        return LiveSession(running)
    live = process.running and (process.here or running)
    waits = live and process.state == "waiting"
    typed = can_be_typed(process.id)
    return LiveSession(
        running or live,
        one_line(process.words),
        one_line(process.detail) or "a question" if waits else "",
        f"holdfast attach {process.id}" if waits and typed else "",
    )


def _command(path: str) -> str:
    """The command that opens a session; "" where its id can't be typed as it is."""
    id_ = id_of(Path(path))
    return f"holdfast -r {id_}" if can_be_typed(id_) else ""


def _is_odd(night: SessionNight, loaded: LoadedSession, span: NightSpan) -> bool:
    """True if a file without a record of the span has to be named all the same, with the reason."""
    night.folder = loaded.header.cwd
    if loaded.findings or not loaded.records:
        night.state = "damaged" if loaded.findings else "empty"
        words = "It changed in this time; what was done in it can't be read."
        night.rows = [*damage(loaded), NightFinding("unknown", words)]
        return bool(loaded.findings)
    night.state = "not known"
    words = (
        "The file changed, but no record in it is of this time: a copy, or a clock that was set."
    )
    night.rows = [NightFinding("unknown", words)]
    return span.until is None and not loaded.unsent


def _bills_by_session(billed: Iterable[BilledSession]) -> dict[str, list[Bill]]:
    """The bills of each session's file, with those of sub-agents whose end it doesn't have."""
    found: dict[str, list[Bill]] = {}
    for one in billed:
        parent = parent_of(one.path)
        owner = str(parent) if parent.is_file() else one.file[1]
        found.setdefault(owner, []).extend(one.bills)
    return found


def _pay(
    night: SessionNight,
    bills: Iterable[Bill],
    span: NightSpan,
    prices: Mapping[str, Mapping[str, Price]],
) -> None:
    """Add what a session was billed for in the span."""
    for bill in bills:
        if span.holds(bill.time):
            price = bill.price(prices.get(bill.profile, prices[""]))
            amount = Amount.of(bill, price)
            night.spent.setdefault(bill.model, Amount()).add(amount)
            night.paid.setdefault(bill.profile or DEFAULT_PROFILE, Amount()).add(amount)


def _commands(morning: Morning, commands: Collection[UnattendedCommand]) -> None:
    """Say which commands were left behind by sessions that nobody has open."""
    by_path = {one.path: one for one in morning.sessions}
    for command in commands:
        night = by_path.get(command.path)
        if night is None:
            continue
        stop = f"holdfast stop {night.id}" if night.command and command.state == "running" else ""
        words = f"A command that it left {command.words}"
        night.rows.append(NightFinding("unfinished", words, "", command.since, command=stop))


def _others(place: NightPlaces, span: NightSpan) -> list[NightFinding]:
    """A row for each other agent whose sessions changed in the span: they aren't looked into."""
    since = span.since.timestamp() * 1e9
    until = span.until.timestamp() * 1e9 if span.until else float("inf")
    found: dict[str, int] = {}
    for format_, changed, _, _ in importers.scan(place.others):
        if since <= changed <= until:
            found[format_] = found.get(format_, 0) + 1
    return [
        NightFinding(
            "unknown", f"{plural(count, 'session')} of {_NAMES.get(name, name)}: not looked into."
        )
        for name, count in found.items()
    ]
