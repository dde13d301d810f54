"""The states of the files in a session, one after the other: what each call left behind.

Checkpoints hold the states around commands. Between two of them, each write of a file tool is a
state, too: its result names the file and the hash of what it wrote, and the content is in a
checkpoint, in the copy that the next write kept, or still in the file, or the call gives it again.
Reading contents blocks.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, TypeAlias

from tui.context.content_search import ContentSearch, WritingCall, calls_in
from tui.context.file_changes import READ_MAX, FileChange, changes, objection
from tui.core.dataclass import dataclass, replace
from tui.core.messages import string_of
from tui.session.checkpoints.entries import NEVER, CheckpointError, Kind, PathEntry
from tui.session.checkpoints.scratch import State, folders_above
from tui.session.checkpoints.store import CheckpointStore
from tui.session.records import CHECKPOINT, FILE_CHANGE, Record

By: TypeAlias = Literal["call", "job", "rewind", "others"]
"""Who made a state: a call, a background command, a rewind; anybody else."""
_NEW_FILE: Final = 0o644
_BY: Final[Mapping[object, By]] = {"call": "call", "job": "job", "rewind": "rewind"}


@dataclass(frozen=True, slots=True)
class FilesState:
    """A state of the files: a checkpoint, with the `writes` of file tools since. `place` is that of
    the record in the session by which it was there, `before` that of the state before it. `next` is
    the checkpoint that follows, "" for none."""

    checkpoint: str
    place: int
    before: int
    by: By = "others"
    call_id: str = ""
    writes: tuple[FileChange, ...] = ()
    next: str = ""

    @property
    def key(self) -> str:
        """A name that tells it from all others of the session."""
        return f"{self.checkpoint}+{len(self.writes)}" if self.writes else self.checkpoint


def states_of(records: Sequence[Record], root: Path) -> list[FilesState]:
    """List the states of the files below `root` in a branch of a session, oldest first."""
    found: list[FilesState] = []
    writes: tuple[FileChange, ...] = ()
    for place, record in enumerate(records):
        last = found[-1] if found else None
        before = last.place if last else -1
        if record.type == CHECKPOINT:
            id_ = string_of(record.data.get("checkpoint"))
            by: By = _BY.get(record.data.get("by"), "others")
            if by != "others":  # it ran beside them: nobody knows what came first
                while last is not None and last.writes:
                    found.pop()
                    last = found[-1] if found else None
                before = last.place if last else -1
            if not id_ or (last is not None and id_ == last.checkpoint and not last.writes):
                continue
            call_id = string_of(record.data.get("call_id")) if by == "call" else ""
            found.append(FilesState(id_, place, before, by, call_id))
            writes = ()
        elif last is not None and (written := _written(record, root)):
            writes = (*writes, *written)
            call_id = string_of(record.data.get("call_id"))
            found.append(FilesState(last.checkpoint, place, before, "call", call_id, writes))
    following = ""
    for n, state in reversed([*enumerate(found)]):
        if state.writes:
            found[n] = replace(state, next=following)
        else:
            following = state.checkpoint
    return found


def _written(record: Record, root: Path) -> list[FileChange]:
    if record.type not in {"tool_result", FILE_CHANGE}:
        return []
    return [one for one in changes([record]) if root in one.path.parents]


class SessionFiles:
    """The files of a session's states, from its checkpoints and from what its record keeps.
    `copies` is the folder of the copies that file tools keep."""

    def __init__(self, store: CheckpointStore, root: Path, copies: Path | None = None) -> None:
        self.store, self.root = store, root
        self._copies = copies
        self._kept = ContentSearch(READ_MAX, [store])
        self._base: dict[bytes, PathEntry] = {}
        self._at = ""

    def learn(self, records: Sequence[Record]) -> None:
        """Remember where the contents are that the file tools of a session wrote."""
        calls = calls_in(records)
        for record in records:
            call_id = string_of(record.data.get("call_id"))
            for change in _written(record, self.root):
                if objection(change, self.root, self._copies):
                    continue
                if change.before is not None and change.before_sha256:
                    self._kept.may_be_in(change.before_sha256, str(change.before))
                if change.after_sha256 is None:
                    continue
                path, before = str(change.path), change.before_sha256 or ""
                self._kept.may_be_in(change.after_sha256, path)
                call = WritingCall(calls, call_id, path, before)
                self._kept.written_by(change.after_sha256, call)

    def content(self, digest: bytes) -> bytes:
        """The content with a SHA-256. Raises CheckpointError where it is kept nowhere, and the
        calls of the record don't give it."""
        data = self._kept.find(digest.hex())
        return self.store.content(digest) if data is None else data  # says why it can't

    def lent(self, path: bytes) -> Path | None:  # noqa: ARG002 - others do
        """Nothing stands in for a path whose content isn't kept."""
        return None

    def state(self, state: FilesState) -> State:
        """All entries of a state. Raises CheckpointError where it isn't kept any more."""
        base = self._checkpoint(state.checkpoint)
        if not state.writes:
            return dict(base)
        made = dict(base)
        later = self._later(state)
        for change in state.writes:
            path = os.fsencode(change.path.relative_to(self.root))
            if change.after_sha256 is None:
                made.pop(path, None)
                continue
            digest = bytes.fromhex(change.after_sha256)
            after, old = later.get(path), made.get(path)
            if after is not None and after.digest == digest:
                made[path] = after
            else:
                mode = old.mode if old is not None and old.kind is Kind.FILE else _NEW_FILE
                size = len(self.content(digest))
                ignored = old.ignored if old is not None else False
                made[path] = PathEntry(Kind.FILE, mode, size, NEVER, digest, ignored)
            for folder in folders_above(path):
                made.setdefault(folder, PathEntry(Kind.FOLDER, 0o755, 0, NEVER, None, False))
        return made

    def _checkpoint(self, id_: str) -> Mapping[bytes, PathEntry]:
        """The entries of a checkpoint, from those of the one that was asked for before."""
        if not self._at:
            stored = self.store.states([id_])
            if not stored:
                raise CheckpointError("Its checkpoint isn't stored any more.")
            self._base = {p: one for p, one in stored[0].entries.items() if one is not None}
        elif id_ != self._at:
            for change in self.store.difference(self._at, id_):
                path = os.fsencode(change.path.relative_to(self.root))
                if change.new is None:
                    self._base.pop(path, None)
                else:
                    self._base[path] = change.new
        self._at = id_
        return self._base

    def _later(self, state: FilesState) -> dict[bytes, PathEntry]:
        """The entries that the next checkpoint has differently: it knows the modes of new files."""
        if not state.next:
            return {}
        with suppress(CheckpointError):
            return {
                os.fsencode(change.path.relative_to(self.root)): change.new
                for change in self.store.difference(state.checkpoint, state.next)
                if change.new is not None
            }
        return {}
