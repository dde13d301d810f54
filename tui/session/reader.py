"""Reads a session file, however damaged. Never writes, never raises for damage."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from io import BytesIO, FileIO
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from tui.core.clock import timestamp
from tui.core.dataclass import dataclass, replace
from tui.core.errors import SessionError, os_error_as
from tui.core.gc_pause import gc_pause
from tui.core.messages import string_of
from tui.session.chain import CHAIN
from tui.session.drafts import NOTHING, DraftReader, UnsentWork
from tui.session.field_types import leave_out_odd
from tui.session.jsonl import Findings, JsonLine, parse, split
from tui.session.records import PROFILE, VERSION, Finding, Header, Record, profile_in

END_BYTES = 128 * 1024
"""Number of bytes read from either end of a long session for a look at it."""

_HEAD_FIELDS = ("type", "id", "parent", "time", CHAIN)
_UNREAD = ("skipped", "the last line is cut short")
"""How the findings begin that are about a line of which nothing is left."""
_BEFORE = JsonLine(0, 0, None)
"""The place of a record that was read earlier."""

_Place: TypeAlias = tuple[JsonLine, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class LoadedSession:
    """A session as read. `records` are all records in the order of the file, without the drafts.

    `lines` has the line number of each record; `unsent` is the result of the drafts. `children` are
    the sub-agents' sessions that another program's file holds; ours have files of their own.
    """

    path: Path
    header: Header
    records: tuple[Record, ...]
    findings: tuple[Finding, ...]
    lines: tuple[int, ...] = ()
    unsent: UnsentWork = NOTHING
    children: tuple[LoadedSession, ...] = ()

    @property
    def branch(self) -> list[Record]:
        """The active branch: the records from the root to the last leaf of the file."""
        return active_branch(self.records)


def read(path: Path) -> LoadedSession:
    """Read a whole session file. Blocks; streams, so memory is that of the records.

    Raises SessionError only if the file itself cannot be read.
    """
    findings, drafts = Findings(), DraftReader()
    with open_session(path) as stream, gc_pause():
        state = os.fstat(stream.fileno())
        with _readable(path):
            objects = list(_without_drafts(parse(split(stream.read), findings), drafts))
        if not state.st_size:
            findings.add("B45", "line 1 (byte 0)", "the whole file is empty")
        return _assemble(path, objects, state.st_mtime, findings, drafts.unsent())


def read_ends(path: Path) -> LoadedSession:
    """The first and last END_BYTES of a long session, as if nothing were between. Blocks.

    The active branch is the part of it in the last bytes, followed by the part in the first ones.
    The findings are those of the lines that were read. Raises SessionError as `read` does.
    """
    findings, drafts = Findings(), DraftReader()
    with open_session(path) as stream:
        state = os.fstat(stream.fileno())
        if state.st_size <= 2 * END_BYTES:
            return read(path)
        with _readable(path):
            head = stream.read(END_BYTES)
            tail = os.pread(stream.fileno(), END_BYTES, state.st_size - END_BYTES)
    head = head[: head.rfind(b"\n") + 1]
    start = tail.find(b"\n") + 1
    far = state.st_size - END_BYTES + start
    lines = chain(_lines(head), _lines(tail[start:], offset=far))
    objects = list(_without_drafts(parse(lines, findings), drafts))
    seen = _assemble(path, objects, state.st_mtime, Findings(), drafts.unsent())
    return replace(seen, findings=findings.all())  # the gap is no damage


def read_end(path: Path, size: int) -> list[Record]:
    """The part of the active branch that is in the last `size` bytes of a session. Blocks.

    Raises SessionError as `read` does.
    """
    with open_session(path) as stream:
        state = os.fstat(stream.fileno())
        start = max(0, state.st_size - size)
        with _readable(path):
            data = os.pread(stream.fileno(), size, start)
    data = data[data.find(b"\n") + 1 :] if start else data
    objects = list(_without_drafts(parse(_lines(data), Findings()), DraftReader()))
    return _assemble(path, objects, state.st_mtime, Findings(), NOTHING).branch


def records_of(data: bytes) -> list[Record]:
    """The records in whole lines of a session, in their order; what can't be read is left out."""
    objects = list(_without_drafts(parse(_lines(data), Findings()), DraftReader()))
    return list(_assemble(Path(), objects, 0.0, Findings(), NOTHING).records)


def grown(before: Sequence[Record], data: bytes) -> tuple[list[Record], int]:
    """All records of a session that had those `before` and grew by whole lines, in their order, and
    how many of the lines can't be read. Blocks."""
    findings = Findings()
    objects = _without_drafts(parse(_lines(data), findings), DraftReader())
    entries = [place for place in objects if place[1].get("type") != "session"]
    known = {record.id for record in before}
    came = _records(entries, before[-1].time if before else "", findings)
    came = [place for place in came if place[1].id not in known]
    linked = _linked([*((_BEFORE, record) for record in before), *came], Findings())
    unread = sum(finding.action.startswith(_UNREAD) for finding in findings.all())
    records = with_payers((record for _, record in linked), before[0].payer if before else "")
    return [*records], unread


def _lines(data: bytes, offset: int = 0) -> Iterator[JsonLine]:
    for line in split(BytesIO(data).read):
        yield msgspec.structs.replace(line, offset=line.offset + offset)


def _without_drafts(places: Iterable[_Place], drafts: DraftReader) -> Iterator[_Place]:
    """The objects, without the bytes they were read from, and without those that are no records:
    drafts, and what begins a chain."""
    for line, value in places:
        kind = value.get("type")
        drafts.see(kind, value)
        if kind not in ("draft", CHAIN):
            yield JsonLine(line.number, line.offset, None), value


def _assemble(
    path: Path, objects: Sequence[_Place], changed: float, findings: Findings, unsent: UnsentWork
) -> LoadedSession:
    """A session from the objects of its lines. `changed` is the file's time of change."""
    header, entries = _header(path, objects, changed, findings)
    linked = _linked(_records(entries, header.created, findings), findings)
    records = with_payers((record for _, record in linked), header.profile)
    lines = tuple(line.number for line, _ in linked)
    return LoadedSession(path, header, records, findings.all(), lines, unsent)


def with_payers(records: Iterable[Record], profile: str) -> tuple[Record, ...]:
    """Records in the order of their file, each with who paid then: `profile` is that of the
    header."""
    paid: list[Record] = []
    for record in records:
        if record.type == PROFILE:
            profile = profile_in(record)
        paid.append(replace(record, payer=profile) if record.payer != profile else record)
    return tuple(paid)


def active_branch(records: Sequence[Record]) -> list[Record]:
    """The records from the root to the last leaf, in order. Parents must be sound."""
    before = None
    for record in records:
        if record.parent != before:
            break
        before = record.id
    else:
        return [*records]  # there is one branch only
    parents = {record.parent for record in records}
    leaf = next((record.id for record in reversed(records) if record.id not in parents), None)
    return path_to(records, leaf)


def path_to(records: Iterable[Record], id_: str | None) -> list[Record]:
    """The records from the root to the one of that id, in order; none where there is no such."""
    by_id = {record.id: record for record in records}
    path: list[Record] = []
    while id_ and (record := by_id.get(id_)) is not None:
        path.append(record)
        id_ = record.parent
    path.reverse()
    return path


def open_session(path: Path) -> FileIO:
    """Open a regular file for reading. Raises SessionError for anything else, without blocking."""
    with _readable(path):
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(file).st_mode):
        return FileIO(file)
    os.close(file)
    raise SessionError(f"{path} isn't a session: not a regular file.", hint="Name a .jsonl file.")


def _readable(path: Path) -> AbstractContextManager[None]:
    """Within, a file that cannot be read is a SessionError."""
    hint = "List the sessions with `holdfast sessions list --all`."
    return os_error_as(SessionError, f"Can't read {path}", hint=hint)


def _header(
    path: Path, objects: Sequence[_Place], changed: float, findings: Findings
) -> tuple[Header, list[_Place]]:
    """The header, and the other objects. A missing header is made up, in memory only."""
    entries = [place for place in objects if place[1].get("type") != "session"]
    headers = [value for _, value in objects if value.get("type") == "session"]
    fields: dict[str, Any] = headers[0] if headers else {}
    if not fields and objects:
        findings.add("B54", "line 1 (byte 0)", "the header is missing; one is made up in memory")
    first = entries[0][1] if entries else {}
    made = timestamp(datetime.fromtimestamp(changed, UTC))
    version = fields.get("version")
    header = Header(
        id=string_of(fields.get("id")) or path.stem.rsplit("-", 1)[-1],
        created=string_of(fields.get("created")) or string_of(first.get("time")) or made,
        cwd=string_of(fields.get("cwd")),
        app=string_of(fields.get("app")),
        version=version if isinstance(version, int) else VERSION,
        origin=string_of(fields.get("origin")) or None,
        parent_session=string_of(fields.get("parent_session")),
        parent_call=string_of(fields.get("parent_call")),
        started=string_of(fields.get("started")),
        profile=string_of(fields.get("profile")),
    )
    return header, entries


def _records(
    objects: Iterable[_Place], created: str, findings: Findings
) -> list[tuple[JsonLine, Record]]:
    """Objects as records (the objects are emptied of the head fields). Copies are left out."""
    records: list[tuple[JsonLine, Record]] = []
    by_id: dict[str, Record] = {}
    clashes = False
    time, last = created, None
    for line, value in objects:
        kind, own_id, parent = value.get("type"), value.get("id"), value.get("parent")
        if not isinstance(kind, str) or not kind:
            findings.add("B56", line.where, "skipped: a record without a type")
            continue
        named = string_of(own_id)
        id_ = named or f"line-{line.number}-{len(records)}"
        if not named or "parent" not in value or not (parent is None or isinstance(parent, str)):
            findings.add("B53", line.where, "linked to the record before it: no id or no parent")
            parent = last
        time = string_of(value.get("time")) or time
        # the head is in the attributes of the record
        for name in _HEAD_FIELDS:
            value.pop(name, None)
        if odd := leave_out_odd(kind, value):
            findings.add("B56", line.where, f"odd fields left out or repaired: {', '.join(odd)}")
        record = Record(kind, id_, parent, time, value)
        # a copy is harmless; another record with the same id needs an id of its own
        before = by_id.get(id_)
        if before is not None:
            if before == record:
                findings.add("B44", line.where, "left out: a copy of an earlier record")
                continue
            findings.add("B44", line.where, f"another record had the id {id_}: it gets a new one")
            clashes = True
        records.append((line, record))
        by_id[id_] = record
        last = id_
    return _with_ids_of_their_own(records) if clashes else records


def _with_ids_of_their_own(records: list[tuple[JsonLine, Record]]) -> list[tuple[JsonLine, Record]]:
    """Give records that share an id different ones. The last one keeps it.

    A record that names such an id as its parent means the record that had the id at that point of
    the file. If two records with one id have the same parent, the later one is linked below the
    earlier one, so that neither is on a side branch.
    """
    remaining = Counter(record.id for _, record in records)
    bearer: dict[str, tuple[str, str | None]] = {}  # by id: the record now meant, and its parent
    renamed: list[tuple[JsonLine, Record]] = []
    for place, (line, record) in enumerate(records):
        remaining[record.id] -= 1
        id_ = f"{record.id}-{line.number}-{place}" if remaining[record.id] else record.id
        earlier = bearer.get(record.id)
        if earlier is not None and earlier[1] == record.parent:
            parent: str | None = earlier[0]
        else:
            parent = bearer[record.parent][0] if record.parent in bearer else record.parent
        bearer[record.id] = (id_, record.parent)
        renamed.append((line, replace(record, id=id_, parent=parent)))
    return renamed


def _linked(
    records: list[tuple[JsonLine, Record]], findings: Findings
) -> list[tuple[JsonLine, Record]]:
    """The records with valid parents: from every one, the links lead to a root without cycles.

    A group of records whose top has lost its parent is linked to the record before it in the
    file. The top of a cycle is the record that closes it.
    """
    parents = {record.id: record.parent for _, record in records}
    rooted: set[str] = set()  # from here, the links lead to a root
    bridges: dict[str, str | None] = {}
    before: str | None = None
    for _, record in records:
        path: dict[str, None] = {}
        id_: str | None = record.id
        while id_ is not None and id_ in parents and id_ not in rooted and id_ not in path:
            path[id_] = None
            id_ = parents[id_]
        if id_ is not None and id_ not in rooted:
            bridges[next(reversed(path))] = before
        rooted.update(path)
        before = record.id
    linked: list[tuple[JsonLine, Record]] = []
    for line, record in records if bridges else ():
        if record.id in bridges:
            findings.add("B53", line.where, "linked to the record before it: its own is lost")
            record = replace(record, parent=bridges[record.id])  # noqa: PLW2901 - with its new parent
        linked.append((line, record))
    return linked or records
