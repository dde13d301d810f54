"""The session of a task as the store has it, while a worker writes it: each piece is read once."""

from __future__ import annotations

from collections.abc import Mapping
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
    session, or where the worker wrote this one anew.
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
        before = self._commit if session == self._session else ""
        changes = self._changes(before, commit, session)
        if before and any(letter != "A" for letter in changes.values()):
            before, changes = "", self._changes("", commit, session)
        came = records_of(self._store.read_joined(commit, sorted(changes))) if changes else []
        if not before:
            self.records = []
            self.begun += 1
        self.records += came
        self._commit, self._session = commit, session

    def _changes(self, old: str, new: str, session: str) -> Mapping[str, str]:
        """The pieces of the session that differ between two states, with git's letters."""
        changes = self._store.changes(old, new, _SESSIONS)
        mine = f"-{session}.jsonl"
        return {
            path: letter
            for path, letter in changes.items()
            if path.rpartition("/")[0].endswith(mine)
        }
