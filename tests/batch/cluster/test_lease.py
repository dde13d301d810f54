"""A worker's hold on its task, with a clock of the test's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.batch.test_git import head, make_repo
from tui.batch.cluster.entry import TaskEntry
from tui.batch.cluster.lease import (
    LOSSES,
    Lease,
    LeaseLostError,
    LeasePace,
    StoredTask,
    change,
    lost,
    read_task,
    refuse,
)
from tui.batch.cluster.task_store import TASKS, TaskStore
from tui.batch.cluster.workplace import TaskSnapshot
from tui.core.clock import SystemClock

REF = f"{TASKS}run/00001"


@dataclass
class Hand(SystemClock):
    """A clock that stands still until it is moved."""

    at: float = 0.0

    def monotonic(self) -> float:
        return self.at

    def wait(self, seconds: float) -> None:
        self.at += max(seconds, 3e5)


@dataclass
class Holder:
    """Says what it hears of its lease."""

    said: list[str]

    def lose(self) -> None:
        self.said.append("lost")

    def poll(self) -> None: ...


@pytest.fixture
def store(tmp_path: Path) -> TaskStore:
    made = TaskStore.at(str(tmp_path / "store.git"), tmp_path / "mirror")
    made.make()
    assert made.move({REF: ("", made.commit(TaskEntry(key="00001").to_message()))})
    return made


Make = Callable[..., Lease]


@pytest.fixture
def lease(store: TaskStore) -> Make:
    def make(clock: Hand | None = None, said: list[str] | None = None) -> Lease:
        return Lease(
            store, REF, LeasePace(1e6), clock or Hand(), Holder(said if said is not None else [])
        )

    return make


def taken(lease: Lease, clock: Hand | None = None) -> StoredTask | None:
    return lease.take("/place", wait=(clock or Hand()).wait)


def test_a_waiting_task_is_taken_once(lease: Make, store: TaskStore) -> None:
    one, clock = lease(), Hand()
    assert taken(one)
    other = lease(clock)
    renewing = iter([one.renew])

    def wait(seconds: float) -> None:
        clock.wait(seconds)
        next(renewing)()

    assert other.take("/place", wait=wait) is None
    assert read_task(store, REF).entry.attempt == 1


def test_a_worker_that_stands_still_is_replaced(lease: Make, store: TaskStore) -> None:
    said: list[str] = []
    gone, clock = lease(said=said), Hand()
    assert taken(gone)
    assert taken(lease(clock), clock)
    assert clock.at >= 1e6
    entry = read_task(store, REF).entry
    assert (entry.attempt, entry.losses) == (2, 1)
    with pytest.raises(LeaseLostError):
        gone.renew()
    assert said == ["lost"]
    assert read_task(store, REF).entry == entry


def test_a_lease_that_was_not_renewed_is_not_fresh(lease: Make) -> None:
    clock = Hand()
    one = lease(clock)
    assert taken(one)
    assert one.is_fresh
    clock.at += 7e5
    assert not one.is_fresh
    one.renew()
    assert one.is_fresh


def test_a_task_that_loses_its_workers_is_given_up(store: TaskStore, lease: Make) -> None:
    for _ in range(LOSSES):
        assert taken(lease())
        assert lost(store, REF, read_task(store, REF), "the worker was gone")
    entry = read_task(store, REF).entry
    assert entry.state == "given_up"
    assert taken(lease()) is None


def test_what_the_last_answer_may_have_cost_stays_reserved(store: TaskStore, lease: Make) -> None:
    assert taken(lease())
    found = read_task(store, REF)
    now = change(store, REF, found, spent_usd=1.0, next_usd=0.25)
    assert now
    after = lost(store, REF, now, "gone")
    assert after
    assert (after.entry.spent_usd, after.entry.reserved_usd) == (1.0, 0.25)


def test_a_refusal_is_no_attempt(store: TaskStore) -> None:
    refuse(store, REF, "another version")
    entry = read_task(store, REF).entry
    assert (entry.state, entry.attempt) == ("waiting", 0)
    assert [one.reason for one in entry.refusals] == ["another version"]


def test_a_finished_task_is_moved_by_nobody_again(store: TaskStore, lease: Make) -> None:
    one = lease()
    assert taken(one)
    one.finish(state="done")
    for again in (one.renew, lambda: one.finish(state="waiting")):
        with pytest.raises(LeaseLostError):
            again()
    assert read_task(store, REF).entry.state == "done"


def test_a_refusal_takes_no_task_from_its_worker(store: TaskStore, lease: Make) -> None:
    one = lease()
    assert taken(one)
    refuse(store, REF, "another version")
    one.renew()
    assert not read_task(store, REF).entry.refusals


def test_a_cancelled_task_is_lost_to_its_worker(store: TaskStore, lease: Make) -> None:
    one = lease()
    assert taken(one)
    assert change(store, REF, read_task(store, REF), cancelled=True)
    with pytest.raises(LeaseLostError):
        one.renew()
    assert taken(lease()) is None


def test_the_work_of_one_state_stays_in_the_next(
    store: TaskStore, lease: Make, tmp_path: Path
) -> None:
    repo = make_repo(tmp_path / "repo")
    one = lease()
    assert taken(one)
    commit = head(repo)
    files = {"private/x": b"1"}
    one.put(TaskSnapshot(files, (commit,), commit, (commit,), repo), spent_usd=0.5)
    one.renew()
    found = read_task(store, REF)
    assert store.parents(found.commit)[1:] == [commit]
    assert store.read(found.commit, "private/x") == b"1"
    assert (found.entry.head, found.entry.place) == (commit, "/place")
    assert found.entry.spent_usd == 0.5
