"""The session of a task as the store has it, while a worker writes it: each piece is read once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from tui.batch.cluster.lease import StoredTask
from tui.batch.cluster.task_store import TaskStore
from tui.session.reader import records_of
from tui.session.records import Record

_SESSIONS: Final = "data/sessions"


class StoredTasks(Protocol):
    """The tasks of a run as its driver last saw them; the mirror has them."""

    def last_seen(self, key: str) -> StoredTask | None:
        """Return the state of a task; None before it was seen."""
        ...


class WorkerSession:
    """Follows the session of the task that is `key` in the store.

    `records` are those that were read, and `begun` counts how often they began afresh: with another
    session, or where the worker wrote this one again from its start.
    """

    def __init__(self, store: TaskStore, tasks: StoredTasks, key: str) -> None:
        self._store, self._tasks, self._key = store, tasks, key
        self._commit = self._session = ""
        self.records: list[Record] = []
        self.begun = 0

    @property
    def is_behind(self) -> bool:
        """True if the task has moved since the last `read`."""
        task = self._tasks.last_seen(self._key)
        return task is not None and task.commit != self._commit

    def read(self) -> None:
        """Read what came. Blocks; raises StoreError."""
        task = self._tasks.last_seen(self._key)
        if task is None or task.entry.active is None:
            return
        commit, session = task.commit, task.entry.active.session
        pieces = self._new_pieces(commit, session)
        afresh = pieces is None
        if pieces is None:
            pieces = self._store.files(commit, _SESSIONS)
        contents = self._store.read_all({path: pieces[path] for path in _of(session, pieces)})
        came = records_of(b"".join(contents.values()))
        if afresh:
            self.records = []
            self.begun += 1
        self.records += came
        self._commit, self._session = commit, session

    def _new_pieces(self, commit: str, session: str) -> Mapping[str, str] | None:
        """The ids of what was added to the sessions since the last read, by their paths; None where
        all is to be read."""
        if session != self._session:
            return None
        changes = self._store.changes(self._commit, commit, _SESSIONS)
        if any(changes[path][0] != "A" for path in _of(session, changes)):
            return None
        return {path: id_ for path, (_, id_) in changes.items()}


def _of(session: str, paths: Iterable[str]) -> list[str]:
    """The pieces of a session among some paths, in their order."""
    file = f"-{session}.jsonl"
    return sorted(path for path in paths if path.rpartition("/")[0].endswith(file))
