"""Waits that a server has asked for, told to all workers that use the same API key. Blocks.

They stand in the store under a fingerprint of the key, salted with the run's name, for each model.
A wait is a span, and begins when a reader first sees it: clocks are not compared.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping

import msgspec

from tui.batch.cluster.task_store import WAITS, TaskStore
from tui.core.clock import Clock

_SUBJECT = "holdfast: waits for a server\n\n"


class _Wait(msgspec.Struct, frozen=True):
    """A wait of some seconds; `id` tells it from another one as long."""

    seconds: float
    id: str


def fingerprint(run: str, key: str) -> str:
    """A name of an API key that tells nothing of it."""
    return hmac.new(run.encode(), key.encode(), "sha256").hexdigest()[:20]


class SharedWaits:
    """The waits of all holders of one API key. `clock` is read by this process alone."""

    def __init__(self, store: TaskStore, run: str, key: str, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._ref = f"{WAITS}{run}/{fingerprint(run, key)}"
        self._commit = ""
        self._known: dict[str, _Wait] = {}
        self._until: dict[str, float] = {}

    def remaining_s(self, model: str) -> float:
        """The seconds that requests to a model have to wait still."""
        return max(0.0, self._until.get(model, 0.0) - self._clock.monotonic())

    def read(self) -> None:
        """Take in what others were asked to wait. Raises StoreError."""
        commit = self._store.refs(self._ref).get(self._ref, "")
        if commit == self._commit:
            return
        self._store.fetch([commit])
        self._take(commit)

    def _take(self, commit: str) -> None:
        waits = _waits_in(self._store, commit)
        for model, wait in waits.items():
            if self._known.get(model) != wait:
                self._until[model] = max(
                    self._until.get(model, 0.0), self._clock.monotonic() + wait.seconds
                )
        self._commit, self._known = commit, waits

    def tell(self, model: str, wait_s: float) -> None:
        """Tell the others of a wait. Raises StoreError."""
        for _ in range(5):
            self.read()
            if self.remaining_s(model) >= wait_s - 1.0:
                return  # somebody has told it
            waits = {**self._known, model: _Wait(wait_s, secrets.token_hex(6))}
            message = _SUBJECT + msgspec.json.encode(waits).decode() + "\n"
            made = self._store.commit(message)
            if self._store.move({self._ref: (self._commit, made)}):
                self._take(made)
                return


class ObservedWaits:
    """The waits of all workers of a run, whatever their keys, as its driver sees them."""

    def __init__(self, store: TaskStore, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._commits: dict[str, str] = {}
        self._until: dict[str, float] = {}
        """The end of each wait, by its id and model."""

    def unread(self, refs: Mapping[str, str]) -> list[str]:
        """Return the commits, of these by their refs, that `take` has not had."""
        return [commit for ref, commit in refs.items() if self._commits.get(ref) != commit]

    def take(self, refs: Mapping[str, str]) -> None:
        """Take in what the mirror has of them. Raises StoreError."""
        now = self._clock.monotonic()
        for ref, commit in refs.items():
            if self._commits.get(ref) != commit:
                for model, wait in _waits_in(self._store, commit).items():
                    self._until.setdefault(f"{wait.id} {model}", now + wait.seconds)
                self._commits[ref] = commit

    def remaining_s(self) -> dict[str, float]:
        """The seconds that some worker has to wait still, by model; without those that are over."""
        now, remaining = self._clock.monotonic(), dict[str, float]()
        for name, end in self._until.items():
            model = name.partition(" ")[2]
            if end > now:
                remaining[model] = max(remaining.get(model, 0.0), end - now)
        return remaining


def _waits_in(store: TaskStore, commit: str) -> dict[str, _Wait]:
    """The waits in a commit of the mirror, by model. Raises StoreError."""
    body = store.message(commit).partition("\n\n")[2]
    return msgspec.json.decode(body, type=dict[str, _Wait])
