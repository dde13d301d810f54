"""The session of a task, read from a real store while it grows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tui.batch.cluster.entry import ActiveTask, TaskEntry
from tui.batch.cluster.lease import StoredTask
from tui.batch.cluster.task_store import TaskStore
from tui.batch.cluster.worker_session import WorkerSession

FOLDER = "data/sessions/repo/20261130T090000Z-"


def line(number: int) -> bytes:
    before = f"r{number - 1}" if number else None
    record = {"type": "user", "id": f"r{number}", "parent": before, "time": "2026-11-30T09:00:00Z"}
    return json.dumps({**record, "text": f"line {number}"}).encode() + b"\n"


@dataclass
class Worker:
    """Writes the session of one task into a store, as a driver sees it."""

    store: TaskStore
    seen: StoredTask | None = None
    reads: list[list[str]] = field(default_factory=list[list[str]])

    def last_seen(self, key: str) -> StoredTask | None:
        assert key == "1"
        return self.seen

    def put(self, files: Mapping[str, bytes | None], session: str = "abc") -> None:
        entry = TaskEntry(key="1", tasks=(0,), active=ActiveTask(0, session))
        upon = self.seen.commit if self.seen else ""
        commit = self.store.commit(entry.to_message(), upon=upon, files=files)
        self.seen = StoredTask(commit, entry)


def piece(begin: int, session: str = "abc") -> str:
    return f"{FOLDER}{session}.jsonl/{begin:012d}"


def read(session: WorkerSession) -> list[str]:
    assert session.is_behind
    session.read()
    assert not session.is_behind
    return [record.id for record in session.records]


@pytest.fixture
def worker(tmp_path: Path) -> Worker:
    store = TaskStore.at(str(tmp_path / "store.git"), tmp_path / "mirror")
    store.make()
    return Worker(store)


def test_each_piece_is_read_once(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    session = WorkerSession(worker.store, worker, "1")
    assert not session.is_behind
    wanted: list[list[str]] = []
    read_all = TaskStore.read_all

    def counted(store: TaskStore, files: Mapping[str, str]) -> dict[str, bytes]:
        wanted.append([*files])
        return read_all(store, files)

    monkeypatch.setattr(TaskStore, "read_all", counted)
    worker.put({piece(0): line(0) + line(1), f"{FOLDER}other.jsonl/{0:012d}": line(7)})
    assert read(session) == ["r0", "r1"]
    worker.put({piece(200): line(2)})
    assert read(session) == ["r0", "r1", "r2"]
    worker.put({})  # the lease was renewed
    assert read(session) == ["r0", "r1", "r2"]
    assert wanted == [[piece(0)], [piece(200)], []]
    assert session.begun == 1


def test_a_session_that_was_written_anew_is_read_anew(worker: Worker) -> None:
    session = WorkerSession(worker.store, worker, "1")
    worker.put({piece(0): line(0), piece(100): line(1)})
    assert read(session) == ["r0", "r1"]
    worker.put({f"{FOLDER}abc.jsonl": None, piece(0): line(5)})
    assert read(session) == ["r5"]
    assert session.begun == 2


def test_the_session_after_another_one_takes_its_place(worker: Worker) -> None:
    session = WorkerSession(worker.store, worker, "1")
    worker.put({piece(0): line(0)})
    assert read(session) == ["r0"]
    worker.put({piece(0, "def"): line(3)}, session="def")
    assert read(session) == ["r3"]
    worker.put({piece(90, "def"): line(4)}, session="def")
    assert read(session) == ["r3", "r4"]
    assert session.begun == 2
