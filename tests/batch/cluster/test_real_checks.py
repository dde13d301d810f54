"""The harness of many tasks sees what is wrong in the history of a task."""

from __future__ import annotations

import pytest

from tests.batch.cluster.real.checks import problems_of
from tui.batch.cluster.entry import State, TaskEntry


def history(*states: tuple[State, str]) -> list[TaskEntry]:
    """The states of a task, one after the other, each with its holder."""
    return [
        TaskEntry(key="00001", state=state, number=number, holder=holder)
        for number, (state, holder) in enumerate(states)
    ]


@pytest.mark.parametrize(
    ("states", "said"),
    [
        ([("waiting", ""), ("running", "a"), ("done", "a")], []),
        ([("running", "a"), ("waiting", ""), ("running", "b"), ("done", "b")], []),
        ([("running", "a"), ("running", "a")], ["finished 0 times"]),
        ([("running", "a"), ("done", "a"), ("done", "a")], ["finished 2 times"]),
        ([("running", "a"), ("running", "b"), ("done", "b")], ["holder a is followed by b"]),
        (
            [("running", "a"), ("waiting", ""), ("running", "a"), ("done", "a")],
            ["holder a is back"] * 2,
        ),
    ],
)
def test_the_history_of_a_task_is_judged(states: list[tuple[State, str]], said: list[str]) -> None:
    assert [*problems_of(history(*states))] == said


def test_a_state_that_is_missing_is_seen() -> None:
    entries = history(("waiting", ""), ("running", "a"), ("done", "a"))
    assert [*problems_of([entries[0], entries[2]])] == ["state 2 after 0"]
