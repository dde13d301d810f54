"""A worker's hold on its task: taken, renewed, and lost, by moving one ref of the store.

Whoever moved the ref last has the task. A worker that could not move it for too long by its own
clock sends no request before it has moved it again; one whose ref was moved by another has lost
the task, and ends. Clocks of different machines are never compared.
"""

from __future__ import annotations

import secrets
import socket
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final, Protocol, TypeVar

import msgspec

from tui.batch.cluster.entry import Losses, Refusal, TaskEntry
from tui.batch.cluster.task_store import MADE, TASKS, CommitDraft, StoreError, TaskStore
from tui.batch.cluster.workplace import TaskSnapshot
from tui.core.clock import Clock
from tui.core.dataclass import dataclass

T = TypeVar("T")

LOSSES: Final = 3
"""Workers that a task may lose, without getting further, before it is given up."""
_LARGE: Final = 1_000_000
"""New bytes of a state that are sent ahead of it: an upload may take longer than the lease."""
LOSSES_IN_ALL: Final = 10
"""Workers that it may lose at all: one that kills them after a few requests gets further each
time."""


@dataclass(frozen=True, slots=True)
class LeasePace:
    """The times of a lease, in seconds, from the one that the run's settings name: `lost`, without
    a change as one reader saw it, after which a running task counts as lost."""

    lost: float

    @property
    def renewed(self) -> float:
        """The time after which a worker renews its lease."""
        return self.lost * 0.3

    @property
    def safe(self) -> float:
        """The time since the last renewal after which nothing is sent without another one."""
        return self.lost * 0.6

    @property
    def poll(self) -> float:
        """The time between two looks at the ref: a cancelled task ends within twice that."""
        return min(5.0, self.lost / 18)


class LeaseLostError(Exception):
    """Another worker has the task, or it was cancelled."""


@dataclass(frozen=True, slots=True)
class StoredTask:
    """A task as the store has it: the commit, and the state in it."""

    commit: str
    entry: TaskEntry


def ref_of(run: str, key: str) -> str:
    """The ref of a task."""
    return f"{TASKS}{run}/{key}"


def read_task(store: TaskStore, ref: str) -> StoredTask:
    """Read a task from the store. Raises StoreError, EntryError."""
    commit = store.refs(ref).get(ref)
    if commit is None:
        raise StoreError(f"The store has no task {ref.removeprefix(TASKS)}.")
    store.fetch({ref: commit})
    return StoredTask(commit, store.entry(commit))


def change(store: TaskStore, ref: str, found: StoredTask, **changes: Any) -> StoredTask | None:
    """Move a task to another state, with its files as they are. None where somebody else moved
    it meanwhile. Raises StoreError."""
    number = found.entry.number + 1
    entry = msgspec.structs.replace(found.entry, number=number, **changes)
    commit = store.commit(entry.to_message(), upon=found.commit, works=_work(store, found))
    return StoredTask(commit, entry) if store.move({ref: (found.commit, commit)}) else None


def refuse(store: TaskStore, ref: str, reason: str) -> None:
    """Say in the store why this machine can't take a task: that is no attempt. A task that somebody
    works on is theirs alone."""
    while (found := read_task(store, ref)).entry.state == "waiting":
        said = Refusal(host=socket.gethostname(), reason=reason)
        if change(store, ref, found, refusals=(*found.entry.refusals, said)[-20:]):
            return


def lost(store: TaskStore, ref: str, found: StoredTask, why: str) -> StoredTask | None:
    """Take a task from a worker that is gone: it waits for the next one, or is given up. None
    where it was moved meanwhile."""
    return change(store, ref, found, **_without(found.entry, why))


def _without(entry: TaskEntry, why: str) -> dict[str, Any]:
    """The changes of a task's state when its worker is gone."""
    before = entry.losses
    losses = Losses(
        count=1 if entry.requests > before.requests + 1 else before.count + 1,
        in_all=before.in_all + 1,
        requests=entry.requests,
    )
    ends = losses.count >= LOSSES or losses.in_all >= LOSSES_IN_ALL
    return {
        "state": "given_up" if ends else "waiting",
        "ended": f"{why} on {entry.host}" if entry.host else why,
        "losses": losses,
        "reserved_usd": entry.reserved_usd + entry.next_usd,
        "next_usd": 0.0,
        "holder": "",
    }


def _work(store: TaskStore, found: StoredTask) -> Sequence[str]:
    """The commits that a state's files lie in: the next one has them, too."""
    return store.parents(found.commit)[1:] if found.entry.head else []


class LeaseHolder(Protocol):
    """The worker that holds a lease. Both are called from the lease's thread."""

    def lose(self) -> None:
        """The lease is gone; called once."""
        ...

    def poll(self) -> None:
        """The store was read just now. May raise StoreError."""
        ...


class Lease:
    """The hold on the task of `ref`. `take` first; from then on a thread renews it, and tells the
    `holder` when it is gone. All else blocks."""

    def __init__(
        self, store: TaskStore, ref: str, pace: LeasePace, clock: Clock, holder: LeaseHolder
    ) -> None:
        self.store, self._ref, self._pace = store, ref, pace
        self._clock, self._holder = clock, holder
        self._moving = threading.Lock()
        self._over = threading.Event()
        self._at: StoredTask | None = None
        self._pending: dict[str, StoredTask] = {}
        """States that were put into the store, and may come there late, until one is there."""
        self._name = secrets.token_hex(8)
        self._place = ""
        self._renewed = 0.0
        self.is_lost = False

    @property
    def stored(self) -> StoredTask:
        """The task as this worker last put it into the store."""
        assert self._at is not None
        return self._at

    @property
    def is_held(self) -> bool:
        """True from `take` until it is lost, or was finished."""
        return self._at is not None and not self._over.is_set()

    def take(self, place: str, *, wait: Callable[[float], None] = time.sleep) -> StoredTask | None:
        """Take the task; returns it as it was found. None where it is over, or somebody else has
        it. One that another worker seems to have is watched until its state changes, or long
        enough to count as lost."""
        found = read_task(self.store, self._ref)
        began = self._clock.monotonic()
        while not found.entry.is_over and not found.entry.cancelled:
            entry = found.entry
            if entry.holder == self._name:  # taken just now, though the answer to that was lost
                self._hold(found, place)
                return found
            if entry.state == "running":
                if self._clock.monotonic() - began < self._pace.lost:
                    wait(self._pace.poll)
                    now = read_task(self.store, self._ref)
                    if now.commit != found.commit:
                        if now.entry.state == "running":
                            return None
                        began = self._clock.monotonic()
                else:
                    now = lost(self.store, self._ref, found, "the worker was gone")
                    if now is None:
                        now = read_task(self.store, self._ref)
                        if now.entry.state == "running":
                            return None  # it was renewed just now
                found = now
                continue
            if self._begin(found, place):
                return found
            found, began = read_task(self.store, self._ref), self._clock.monotonic()
        return None

    def _begin(self, found: StoredTask, place: str) -> bool:
        self._renewed = self._clock.monotonic()
        entry = found.entry
        at = change(
            self.store,
            self._ref,
            found,
            state="running",
            attempt=entry.attempt + 1,
            holder=self._name,
            host=socket.gethostname(),
        )
        if at is not None:
            self._hold(at, place)
        return at is not None

    def _hold(self, at: StoredTask, place: str) -> None:
        self._at, self._place = at, place
        threading.Thread(target=self._keep, name="lease", daemon=True).start()

    def _keep(self) -> None:
        """Renew the lease for as long as it is held, and notice when it is not."""
        while not self._over.wait(self._pace.poll):
            try:
                if self._clock.monotonic() - self._renewed > self._pace.renewed:
                    self.renew()
                elif not self._is_held():
                    self._lose()
                self._holder.poll()
            except StoreError:
                continue  # what is next sent waits for it
            except LeaseLostError:
                return

    def _is_held(self) -> bool:
        """True if the store has the task as this worker last put it there."""
        with self._moving:
            return self._is_in_store()

    def _is_in_store(self) -> bool:
        return self._is_ours(self.store.refs(self._ref).get(self._ref))

    def _is_ours(self, commit: str | None) -> bool:
        """True if a commit is the last one of this worker's, also one that landed though the answer
        to its push was lost."""
        if commit in self._pending:
            self._at = self._pending[commit]
            self._pending.clear()
        return commit == self.stored.commit

    def _lose(self) -> None:
        if not self.is_lost and not self._over.is_set():
            self.is_lost = True
            self._over.set()
            self._holder.lose()

    def renew(self) -> None:
        """Say that the work goes on. Raises LeaseLostError, StoreError."""
        self._move()

    def put(self, snapshot: TaskSnapshot, **changes: Any) -> None:
        """Put the task's present state into the store; that renews the lease. A store that can't
        be reached is waited for. Raises LeaseLostError."""
        with self._sent_ahead(snapshot):
            self._move(snapshot, patient=True, **changes)

    @property
    def is_fresh(self) -> bool:
        """True if nobody can have taken the task meanwhile, by this machine's own clock."""
        return not self.is_lost and self._clock.monotonic() - self._renewed < self._pace.safe

    def finish(self, snapshot: TaskSnapshot | None = None, **changes: Any) -> None:
        """Put the task's last state into the store, and hold it no longer. Raises
        LeaseLostError."""
        with self._sent_ahead(snapshot):
            self._move(snapshot, patient=True, last=True, **changes)

    def fail(self, why: str) -> None:
        """Give the task back after a failure that is no task's. Raises LeaseLostError."""
        self.finish(**_without(self.stored.entry, why))

    @contextmanager
    def _sent_ahead(self, snapshot: TaskSnapshot | None) -> Generator[None]:
        """Have what is new in a large snapshot in the store before the task's ref is moved to it:
        until then the lease is renewed as ever. Raises LeaseLostError."""
        if snapshot is not None:
            self.store.bring(snapshot.new, snapshot.repository)
        if snapshot is None or self.store.is_here or self._size(snapshot) < _LARGE:
            yield
            return
        ref = f"{MADE}{self._ref.removeprefix(TASKS)}"
        draft = CommitDraft("holdfast: on its way\n", works=snapshot.works, files=snapshot.files)
        self._reach(partial(self.store.send, ref, draft), patient=True)
        try:
            yield
        finally:
            with suppress(StoreError):
                self.store.drop(ref)

    def _size(self, snapshot: TaskSnapshot) -> int:
        """The bytes of a snapshot that the store doesn't have."""
        files = sum(len(data) for data in snapshot.files.values() if data)
        return files + self.store.size(snapshot.works, _work(self.store, self.stored))

    def _move(
        self,
        snapshot: TaskSnapshot | None = None,
        *,
        patient: bool = False,
        last: bool = False,
        **changes: Any,
    ) -> None:
        """Move the task to its next state; after the `last` one no renewal that waited here does
        so again."""
        with self._moving:
            while not self._over.is_set():
                if self._pending:
                    self._reach(self._is_in_store, patient=patient)
                at = self.stored
                entry = msgspec.structs.replace(at.entry, number=at.entry.number + 1, **changes)
                if snapshot is None:
                    works, files = _work(self.store, at), None
                else:
                    entry = msgspec.structs.replace(entry, head=snapshot.head, place=self._place)
                    works, files = snapshot.works, snapshot.files
                message = entry.to_message()
                commit = self.store.commit(message, upon=at.commit, works=works, files=files)
                self._pending[commit] = StoredTask(commit, entry)
                if self._reach(partial(self._push, at.commit, commit), patient=patient):
                    if last:
                        self._over.set()
                    return
                if not self._reach(self._is_in_store, patient=patient):
                    break
        self._lose()
        raise LeaseLostError

    def _push(self, old: str, commit: str) -> bool:
        """Move the ref to a pending state. False where it was moved meanwhile."""
        before = self._clock.monotonic()
        if held := self.store.move({self._ref: (old, commit)}):
            self._at, self._renewed = self._pending[commit], before
            self._pending.clear()
        return held

    def _reach(self, step: Callable[[], T], *, patient: bool) -> T:
        """Take a step in the store, which is waited for if `patient`, for as long as the task is
        held. Raises LeaseLostError, and StoreError unless patient."""
        while True:
            try:
                return step()
            except StoreError:
                if not patient:
                    raise
            if self._over.wait(self._pace.poll):
                raise LeaseLostError
