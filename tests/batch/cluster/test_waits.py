"""Waits for a server as the driver of a run sees them, by the refs of all keys."""

from __future__ import annotations

from pathlib import Path

from tests.support.clock import FakeClock
from tui.batch.cluster.task_store import WAITS, TaskStore
from tui.batch.cluster.waits import ObservedWaits, SharedWaits


def test_the_longest_wait_of_any_key_is_seen_and_ends(tmp_path: Path) -> None:
    store = TaskStore.at(str(tmp_path / "store.git"), tmp_path / "mirror")
    store.make()
    clock = FakeClock()
    one, two = (SharedWaits(store, "run", key, clock) for key in ("first", "second"))
    seen = ObservedWaits(store, clock)
    one.tell("opus", 30.0)
    two.tell("opus", 50.0)
    two.tell("haiku", 5.0)
    refs = store.refs(f"{WAITS}run/")
    assert sorted(seen.unread(refs)) == sorted(refs.values())
    seen.take(refs)
    assert seen.unread(refs) == []
    assert seen.remaining_s() == {"opus": 50.0, "haiku": 5.0}
    clock.elapsed += 10
    two.tell("haiku", 8.0)  # what is over doesn't begin again with the next one
    seen.take(store.refs(f"{WAITS}run/"))
    assert seen.remaining_s() == {"opus": 40.0, "haiku": 8.0}
    clock.elapsed += 60
    assert seen.remaining_s() == {}
