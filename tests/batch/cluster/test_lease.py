"""A worker's hold on its task, with a clock of the test's own."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.batch.cluster.test_task_store import far
from tests.batch.test_git import git, head, make_repo
from tests.support.clock import PATIENCE_S
from tui.batch.cluster.entry import TaskEntry
from tui.batch.cluster.lease import (
    LOSSES,
    LOSSES_IN_ALL,
    Lease,
    LeaseLostError,
    LeasePace,
    StoredTask,
    change,
    lost,
    read_task,
    refuse,
)
from tui.batch.cluster.task_store import TASKS, StoreError, TaskStore
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
    made = far(made, tmp_path / "far")
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
    assert (entry.attempt, entry.losses.count) == (2, 1)
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


def test_a_task_that_gets_further_each_time_it_kills_its_worker_is_given_up(
    store: TaskStore,
) -> None:
    found = read_task(store, REF)
    for count in range(1, LOSSES_IN_ALL + 1):
        assert found.entry.state == "waiting"
        begun = change(store, REF, found, state="running", requests=found.entry.requests + 2)
        assert begun
        after = lost(store, REF, begun, "the worker was gone")
        assert after
        assert (after.entry.losses.count, after.entry.losses.in_all) == (1, count)
        found = after
    assert found.entry.state == "given_up"


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


GATE = """#!/bin/sh
read old new ref
case $new in
0000*) echo "$ref 0" >>pushes; exit;;
esac
echo "$ref $(du -sk "$GIT_QUARANTINE_PATH" | cut -f1)" >>pushes
case $ref in refs/holdfast/made/*) echo begun >begun; read go <go;; esac
"""


def gated(store: TaskStore) -> Path:
    """Let the store note what is pushed, and hold back what is sent ahead: it opens `begun`, then
    waits for `go`."""
    place = Path(store.address)
    for name in ("begun", "go"):
        os.mkfifo(place / name)
    hook = place / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(GATE)
    hook.chmod(0o700)
    return place


def pushed(place: Path) -> list[tuple[str, int]]:
    """The first ref of each push to the store, and the kilobytes that came with it."""
    lines = (place / "pushes").read_text().split("\n")[:-1]
    return [(ref, int(size)) for ref, size in map(str.split, lines)]


def large_snapshot(tmp_path: Path) -> TaskSnapshot:
    repo = make_repo(tmp_path / "repo")
    (repo / "large").write_bytes(os.urandom(2_000_000))
    git(repo, "add", "large")
    git(repo, "commit", "-qm", "large")
    files = {"private/x": os.urandom(1_500_000), "data/y": b"1"}
    return TaskSnapshot(files, (head(repo),), head(repo), (head(repo),), repo)


def test_a_lease_is_renewed_while_a_large_state_goes_up(
    store: TaskStore, lease: Make, tmp_path: Path
) -> None:
    clock = Hand()
    one = lease(clock)
    assert taken(one)
    place, snapshot = gated(store), large_snapshot(tmp_path)
    with ThreadPoolExecutor(1) as threads:
        putting = threads.submit(one.put, snapshot, requests=1)
        assert (place / "begun").read_text() == "begun\n"
        clock.at += 7e5
        one.renew()
        assert one.is_fresh
        (place / "go").write_text("go\n")
        putting.result(PATIENCE_S)
    found = read_task(store, REF)
    assert (found.entry.number, found.entry.requests) == (3, 1)
    assert store.read(found.commit, "private/x") == snapshot.files["private/x"]
    sent, renewed, moved, _ = pushed(place)
    assert sent[1] > 3000
    assert (renewed[0], moved[0]) == (REF, REF)
    assert moved[1] < 100, "what was sent ahead isn't sent again"
    assert [*store.refs()] == [REF]


def test_a_small_state_takes_one_push(store: TaskStore, lease: Make, tmp_path: Path) -> None:
    one = lease()
    assert taken(one)
    repo = make_repo(tmp_path / "repo")
    place, commit = gated(store), head(repo)
    one.put(TaskSnapshot({"data/y": b"1"}, (commit,), commit, (commit,), repo))
    assert [ref for ref, _ in pushed(place)] == [REF]


def test_a_lease_that_was_taken_just_before_the_network_went_is_held(
    store: TaskStore, lease: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, gone = TaskStore._reach, list[str]()  # pyright: ignore[reportPrivateUsage]

    def lossy(self: TaskStore, *words: str, **given: Any) -> str:
        said = "" if gone else real(self, *words, **given)
        if gone or words[0] == "push":
            gone.append(words[0])
            raise StoreError("the connection was closed")
        return said

    one, clock = lease(), Hand()
    monkeypatch.setattr(TaskStore, "_reach", lossy)
    with pytest.raises(StoreError):
        taken(one, clock)
    monkeypatch.undo()
    assert taken(one, clock)
    assert clock.at == 0, "it isn't taken for another worker's"
    one.renew()
    assert (read_task(store, REF).entry.attempt, one.is_held) == (1, True)


def test_a_state_is_put_once_the_store_is_back_also_after_a_renewal_in_vain(
    store: TaskStore, tmp_path: Path
) -> None:
    quick = Lease(store, REF, LeasePace(0.9), Hand(), Holder([]))
    assert taken(quick)
    place, gone = Path(store.address), tmp_path / "gone"
    repo = make_repo(tmp_path / "repo")
    commit = head(repo)
    snapshot = TaskSnapshot({"data/y": b"1"}, (commit,), commit, (commit,), repo)
    place.rename(gone)
    with pytest.raises(StoreError):
        quick.renew()
    with ThreadPoolExecutor(1) as threads:
        putting = threads.submit(quick.put, snapshot, requests=1)
        with pytest.raises(TimeoutError):
            putting.result(0.2)
        gone.rename(place)
        putting.result(PATIENCE_S)
    assert read_task(store, REF).entry.requests == 1


def test_a_push_that_lands_late_loses_no_lease(
    store: TaskStore, lease: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store stood still: a push that was given up is carried out before the next one."""
    one = lease()
    assert taken(one)
    real, late = TaskStore.move, list[Any]()

    def move(self: TaskStore, moves: Any) -> bool:
        if not late:
            late.append(moves)
            raise StoreError("the connection was closed")
        real(self, late[0])
        return real(self, moves)

    monkeypatch.setattr(TaskStore, "move", move)
    with pytest.raises(StoreError):
        one.renew()
    one.renew()
    monkeypatch.undo()
    one.renew()
    assert one.is_held
    assert read_task(store, REF).entry == one.stored.entry


@dataclass(frozen=True)
class Gone(TaskStore):
    """A store that can't be reached for so many tries of the main thread's."""

    tries: list[None] = field(default_factory=list[None])

    def _reach(self, *words: str, **given: Any) -> str:
        if self.tries and threading.current_thread() is threading.main_thread():
            self.tries.pop()
            raise StoreError("The network is gone.")
        return super()._reach(*words, **given)


def test_a_store_that_is_gone_when_it_is_renewed_and_put_is_waited_for(
    store: TaskStore, tmp_path: Path
) -> None:
    gone = Gone(store.address, store.mirror, tries=[])
    one = Lease(gone, REF, LeasePace(0.2), Hand(), Holder([]))
    assert taken(one)
    gone.tries.extend([None] * 6)
    with pytest.raises(StoreError):
        one.renew()
    commit = store.commit("work")
    one.put(TaskSnapshot({}, (commit,), commit, (), store.mirror), requests=1)
    assert gone.tries == []
    assert read_task(store, REF).entry.requests == 1
    one.finish(state="done")


def test_a_finished_task_is_not_renewed(store: TaskStore, lease: Make) -> None:
    one = lease()
    assert taken(one)
    one.finish(state="done")
    before = store.refs(REF)
    with pytest.raises(LeaseLostError):
        one.renew()
    assert store.refs(REF) == before


@dataclass(frozen=True)
class Slow(TaskStore):
    """A store whose answers are late: one of these happens meanwhile, the last one first."""

    meanwhile: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])

    def refs(self, *prefixes: str) -> dict[str, str]:
        said = super().refs(*prefixes)
        if self.meanwhile:
            self.meanwhile.pop()()
        return said


def test_whoever_watched_a_task_for_long_takes_it_from_no_worker_that_lives(
    store: TaskStore, lease: Make
) -> None:
    one, clock = lease(), Hand()
    assert taken(one)
    slow = Slow(store.address, store.mirror, meanwhile=[one.renew, lambda: None])
    looked = Lease(slow, REF, LeasePace(1e6), clock, Holder([]))

    def stopped(seconds: float) -> None:
        """It sleeps for longer than the lease."""
        clock.at += 2e6

    assert looked.take("/place", wait=stopped) is None
    assert slow.meanwhile == []
    one.renew()
