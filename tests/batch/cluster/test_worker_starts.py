"""Workers that never take their task are started ever more seldom."""

from __future__ import annotations

from itertools import pairwise

from tui.batch.cluster.entry import TaskEntry
from tui.batch.cluster.worker_starts import FREE, WorkerStarts


def test_after_some_starts_in_vain_each_waits_longer_than_the_one_before() -> None:
    starts, task, now = WorkerStarts(), TaskEntry(key="1"), 0.0
    begun: list[float] = []
    while now < 3000:
        if starts.is_due(task, now):
            starts.note(task, now)
            begun.append(now)
        now += 1
    waits = [after - before for before, after in pairwise(begun)]
    assert waits[: FREE - 1] == [1.0] * (FREE - 1)
    assert waits[FREE - 1 :] == sorted(waits[FREE - 1 :])
    assert 15 <= waits[FREE - 1] < waits[-1] <= 300


def test_a_task_that_was_taken_starts_at_once_again() -> None:
    starts = WorkerStarts()
    for now in range(FREE):
        starts.note(TaskEntry(key="1"), now)
    assert not starts.is_due(TaskEntry(key="1"), FREE)
    assert starts.is_due(TaskEntry(key="1", attempt=1), FREE)
