"""Copies of sessions (forks, imports, repaired ones) and the trash. Everything here blocks.

A copy is a session of its own with a new id; its header names where it came from. It appears
whole and synced, or not at all. A session that is deleted is moved to the trash folder.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
from collections import deque
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import tui
from tui.core.clock import Clock, timestamp
from tui.core.errors import SessionError, StorageError, os_error_as
from tui.core.facts import DEFAULT_PROFILE, ProfileUsed
from tui.core.files import sync_folder
from tui.core.messages import Block, Message, blocks_of
from tui.core.paths import Folders, shorten
from tui.session.branches import branch_with
from tui.session.chain import all_linked
from tui.session.lock import SessionLock
from tui.session.reader import LoadedSession
from tui.session.records import (
    PROFILE,
    SUB_AGENT,
    Header,
    Record,
    new_id,
    new_session_id,
    profile_in,
)
from tui.session.session import children_of
from tui.session.writer import make_private

_SPEAKING = frozenset({"user", "assistant"})
_ABOUT_ANOTHER = frozenset({"overlay", "pin"})
_DIGITS_MAX = 19
"""A number with so many digits is none of a message."""


def fork(
    loaded: LoadedSession, *, folders: Folders, clock: Clock, at: str = "", cwd: Path | None = None
) -> Path:
    """A new session with the records of another's branch, whole or up to a message.

    `at` is a record's id or the number of a message, counted from 1. The results of an answer's
    calls are included. `cwd` is the workspace if the session names none, or one that is gone, which
    a note in the copy says. Raises SessionError if there is no such message.
    """
    records = up_to(loaded, at) if at else loaded.branch
    header, records = _continued_in(cwd, loaded, records, clock)
    path = place_of(header, folders=folders, clock=clock)
    write_family(path, header, records, loaded.children, clock=clock)
    return path


def take_over(loaded: LoadedSession, *, folders: Folders, clock: Clock, cwd: Path) -> Path:
    """A new session with the conversation of another agent's; the arguments are those of `fork`,
    but a folder that isn't on this machine stays its own."""
    header = header_of(loaded, clock=clock, cwd=cwd)
    path = place_of(header, folders=folders, clock=clock)
    write_family(path, header, loaded.branch, loaded.children, clock=clock)
    return path


def take_in(loaded: LoadedSession, *, folders: Folders, clock: Clock, cwd: Path) -> Path:
    """A new session with all records of one of ours that lies elsewhere, such as an export: every
    branch, with its ids. Raises SessionError where it has no message."""
    check_speaks(loaded)
    header = header_of(loaded, clock=clock, cwd=cwd)
    path = place_of(header, folders=folders, clock=clock)
    write_session(path, header, loaded.records)
    return path


def check_speaks(loaded: LoadedSession) -> None:
    """Raise SessionError for a session without a message: there is nothing to take over."""
    if not any(record.type in _SPEAKING for record in loaded.records):
        raise SessionError(
            f"There is no message in {loaded.path}.",
            hint="`holdfast sessions check FILE` shows what is in a file.",
        )


def write_family(
    path: Path,
    header: Header,
    records: Iterable[Record],
    children: Sequence[LoadedSession],
    *,
    clock: Clock,
) -> None:
    """A new session file, after those of its sub-agents in the folder beside it. Its records name
    the new ones."""
    named: dict[str, dict[str, str]] = {}
    given = list(records)
    wanted = {record.data.get("session") for record in given if record.type == SUB_AGENT}
    for child in (one for one in children if one.header.id in wanted):
        own = replace(
            header_of(child, clock=clock, cwd=Path(header.cwd)),
            parent_session=header.id,
            parent_call=child.header.parent_call,
        )
        place = children_of(path) / f"{clock.now():%Y%m%dT%H%M%SZ}-{own.id}.jsonl"
        write_session(place, own, child.branch)
        named[child.header.id] = {"session": own.id, "path": str(place)}
    write_session(path, header, (_naming(record, named) for record in given))


def _naming(record: Record, named: Mapping[str, dict[str, str]]) -> Record:
    """The record, if it is of a sub-agent, with the new session of that."""
    new = named.get(str(record.data.get("session"))) if record.type == SUB_AGENT else None
    return record if new is None else replace(record, data=record.data | new)


def fork_records(
    header: Header, records: Sequence[Record], *, folders: Folders, clock: Clock, cwd: Path
) -> Path:
    """A new session with records from memory, also those that could not be saved."""
    loaded = LoadedSession(Path(), header, tuple(records), ())
    made, noted = _continued_in(cwd, loaded, records, clock)
    path = place_of(made, folders=folders, clock=clock)
    write_session(path, made, noted)
    return path


def gone_folder(header: Header, here: Path, records: Iterable[Record]) -> str:
    """Say, in a line, that a session's folder is gone and that it continues `here`, and how to have
    its files back; "" where the folder is there. Blocks."""
    old = Path(header.cwd)
    if not header.cwd or old == here or old.is_dir():
        return ""
    gone = f"This session's folder {shorten(old)} no longer exists"
    text = f"{gone}: only its conversation continues, in {shorten(here)}."
    if any(record.type == "checkpoint" for record in records):
        again = f"holdfast -C {shlex.quote(str(old))} -r {header.id}"
        text += f" To restore its files from checkpoints, create that folder, run `{again}` and use"
        text += " /rewind."
    return text


def _continued_in(
    cwd: Path | None, loaded: LoadedSession, records: Sequence[Record], clock: Clock
) -> tuple[Header, Sequence[Record]]:
    """Return the header and the records of a copy, which belongs to `cwd` where the session's
    folder is gone."""
    copied = header_of(loaded, clock=clock, cwd=cwd)
    now = loaded.records[-1].payer if loaded.records else ""
    records = with_payers_of(records, copied.profile, now, clock)
    if cwd is None or not (text := gone_folder(loaded.header, cwd, loaded.records)):
        return copied, records
    last = records[-1].id if records else ""
    id_ = new_id(clock.now(), last)
    note = Record("note", id_, last or None, timestamp(clock.now()), {"text": text})
    return replace(copied, cwd=str(cwd)), [*records, note]


def with_payers_of(
    records: Sequence[Record], payer: str, now: str, clock: Clock
) -> Sequence[Record]:
    """The records of a copy in which the same profiles pay as in the session, `payer` first, and
    `now` goes on: a change may have been recorded on another branch, or behind the last record that
    is copied."""
    copied = list[Record]()
    for record in records:
        if record.type == PROFILE:
            payer = profile_in(record)
        elif record.payer != payer:
            id_ = f"{record.parent or ''}-profile"  # sorts between the two
            copied.append(_payer_changed(payer, record.payer, id_, record.parent, record.time))
            payer, record = record.payer, replace(record, parent=id_)  # noqa: PLW2901
        copied.append(record)
    if copied and payer != now:
        last, time = copied[-1].id, clock.now()
        copied.append(_payer_changed(payer, now, new_id(time, last), last, timestamp(time)))
    return copied


def _payer_changed(before: str, now: str, id_: str, parent: str | None, time: str) -> Record:
    change = ProfileUsed(now or DEFAULT_PROFILE, before or DEFAULT_PROFILE)
    return Record(PROFILE, id_, parent, time, change.to_record())


def write_repaired(
    loaded: LoadedSession, header: Header, messages: Sequence[Message], written: Path
) -> Path:
    """Write a session that holds repaired messages, and a copy of the original file.

    Returns the path of that copy. Raises StorageError.
    """
    branch = loaded.branch
    models = (r.data.get("model") for r in reversed(branch) if r.type == "assistant")
    model = next((model for model in models if isinstance(model, str)), "")
    records = from_messages(messages, model, branch[-1].time if branch else header.created, branch)
    backup = written.with_name(written.name + ".original")
    with os_error_as(StorageError, f"Can't read {loaded.path}"):
        original = loaded.path.read_bytes()
    write_new(backup, original)
    write_session(written, header, records)
    return backup


def header_of(loaded: LoadedSession, *, clock: Clock, cwd: Path | None = None) -> Header:
    """The header of a copy: a new id, and the original as its origin."""
    app = f"holdfast {tui.__version__}"
    origin = loaded.header.origin if ":" in (loaded.header.origin or "") else loaded.header.id
    where = loaded.header.cwd or str(cwd or "")
    return Header(
        new_session_id(),
        timestamp(clock.now()),
        where,
        app,
        origin=origin,
        profile=loaded.header.profile,
    )


def place_of(header: Header, *, folders: Folders, clock: Clock) -> Path:
    """The path for the file of a new session."""
    name = f"{clock.now():%Y%m%dT%H%M%SZ}-{header.id}.jsonl"
    return folders.sessions_of(Path(header.cwd or "/")) / name


def message_at(loaded: LoadedSession, at: str) -> str:
    """The id of the record that `at` names: its id, on any branch, or the number of a message,
    counted from 1. Raises SessionError if there is none."""
    if any(record.id == at for record in loaded.records):
        return at
    if at.isdecimal() and len(at) < _DIGITS_MAX:
        speaking = [record.id for record in loaded.branch if record.type in _SPEAKING]
        if 0 < int(at) <= len(speaking):
            return speaking[int(at) - 1]
    raise SessionError(
        f"No message {at} in {loaded.path}.",
        hint="`holdfast sessions show` numbers the messages; --at takes a number or an id.",
    )


def up_to(loaded: LoadedSession, at: str) -> list[Record]:
    """The records from the root to a message, with the results that belong to it. Raises
    SessionError if there is no such message."""
    id_ = message_at(loaded, at)
    branch = branch_with(loaded, id_)
    end = next(place for place, record in enumerate(branch) if record.id == id_)
    stop = end + 1
    if branch[end].type == "assistant":
        while stop < len(branch) and branch[stop].type not in _SPEAKING:
            stop += 1
    return branch[:stop]


def write_session(path: Path, header: Header, records: Iterable[Record]) -> None:
    """A new session file, written whole and synced. Raises StorageError; overwrites nothing."""
    lines = (header.to_line(), *(record.to_line() for record in records))
    write_new(path, b"".join(all_linked(lines)))


def write_new(path: Path, data: bytes) -> None:
    """A new private file that is there whole or not at all. Raises StorageError if it is there."""
    with new_file(path) as stream:
        stream.write(data)


@contextmanager
def new_file(path: Path) -> Generator[BinaryIO]:
    """The stream of a new private file, which appears whole and synced when the block ends, or not
    at all. Raises StorageError, also if the file is there."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        make_private(path.parent)
        file = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(file, "w+b") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            os.link(draft, path, follow_symlinks=False)  # unlike a rename, never over another
        finally:
            with suppress(OSError):
                draft.unlink()
        sync_folder(path.parent)
    except FileExistsError:
        raise StorageError(f"{path} already exists.", hint="Name another file.") from None
    except OSError as error:
        raise StorageError(f"Can't write {path}: {error.strerror or error}.") from error


def delete(path: Path, *, folders: Folders, clock: Clock) -> Path:
    """Move a session into the trash folder, with those of its sub-agents. Returns where it is now.

    Raises SessionInUseError while a program has it open, SessionError for a file that is not in
    the folder of the sessions.
    """
    real = Path(os.path.realpath(path))
    home = Path(os.path.realpath(folders.sessions))
    if home not in real.parents:
        raise SessionError(
            f"{path} isn't in the sessions folder.", hint="Only sessions there can be deleted."
        )
    target = folders.data / "trash" / real.relative_to(home)
    while target.exists():
        target = target.with_name(f"{target.stem}-{secrets.token_hex(2)}{target.suffix}")
    family = [real, *children_of(real).rglob("*.jsonl")]
    lock = SessionLock(real, clock=clock)
    lock.take()
    try:
        with os_error_as(StorageError, f"Can't delete {path}"):
            make_private(target.parent)
            if (children := children_of(real)).is_dir():
                children.rename(children_of(target))
            real.rename(target)
            sync_folder(real.parent)
            sync_folder(target.parent)
    finally:
        lock.release()
    _forget(family, home, folders)
    return target


def _forget(family: Iterable[Path], home: Path, folders: Folders) -> None:
    """Leave sessions that are gone out of the indexes, by the paths that these know."""
    from tui.session.search import forget  # noqa: PLC0415 - it needs sqlite

    forget(folders.cache, [str(folders.sessions / one.relative_to(home)) for one in family])


def from_messages(
    messages: Sequence[Message], model: str, time: str, sources: Sequence[Record]
) -> list[Record]:
    """Records with the content of messages. `sources` are the records the messages came from.

    The other fields of a source (usage, seconds, receipts) are copied where its content is
    unchanged, and so are intents, and the overlays and pins of records that are still there.
    """
    copy = _Copy(time, sources)
    for type_ in ("title", "directive"):
        last = next((r for r in reversed(sources) if r.type == type_), None)
        if last is not None:
            copy.add(type_, last.data)
    for message in messages:
        blocks = message["content"]
        if message["role"] == "assistant":
            copy.say("assistant", {"model": model}, blocks)
            continue
        for block in blocks:
            if block.get("type") == "tool_result":
                copy.answer(block)
        if others := [b for b in blocks if b.get("type") != "tool_result"]:
            copy.say("user", {}, others)
    for record in sources:
        target = record.data.get("target")
        if record.type in _ABOUT_ANOTHER and isinstance(target, str) and target in copy.became:
            copy.add(record.type, record.data | {"target": copy.became[target]})
    return copy.made


class _Copy:
    """Builds the records of a copy. `became` maps the id of a source to the id of its copy."""

    def __init__(self, time: str, sources: Sequence[Record]) -> None:
        self.made: list[Record] = []
        self.became: dict[str, str] = {}
        self._time = time
        self._results = {str(r.data.get("call_id")): r for r in sources if r.type == "tool_result"}
        self._intents = {str(r.data.get("call_id")): r.data for r in sources if r.type == "intent"}
        self._said: dict[str, deque[Record]] = {}
        for record in sources:
            if record.type in _SPEAKING:
                key = _key(record.type, blocks_of(record.data.get("content")))
                self._said.setdefault(key, deque()).append(record)

    def add(self, type_: str, data: dict[str, Any], source: Record | None = None) -> None:
        parent = self.made[-1].id if self.made else None
        id_ = f"{len(self.made) + 1:014x}{0:06x}"
        self.made.append(Record(type_, id_, parent, self._time, data))
        if source is not None:
            self.became[source.id] = id_

    def say(self, type_: str, known: dict[str, Any], blocks: list[Block]) -> None:
        """A prompt or an answer, with the fields of the first unused source of equal content."""
        same = self._said.get(_key(type_, blocks))
        source = same.popleft() if same else None
        self.add(type_, known | (source.data if source else {}) | {"content": blocks}, source)

    def answer(self, block: Block) -> None:
        """A result, after the intent of its call."""
        id_ = str(block.get("tool_use_id"))
        if id_ in self._intents:
            self.add("intent", self._intents.pop(id_))
        source = self._results.get(id_)
        fields = {"content": block.get("content"), "is_error": bool(block.get("is_error"))}
        self.add("tool_result", (source.data if source else {}) | {"call_id": id_} | fields, source)


def _key(type_: str, blocks: list[Block]) -> str:
    return type_ + json.dumps(blocks, sort_keys=True)
