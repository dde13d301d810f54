"""The words for where placed tasks are, and the states that a person sees of them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tui.batch.cluster.entry import ActiveTask, Losses, TaskEntry
from tui.batch.cluster.sight import DriverSight, PlacedStates
from tui.batch.state import RunState, TaskState


def sight(*entries: TaskEntry, **facts: Any) -> DriverSight:
    """The tasks that a driver has seen, each with its key."""
    usual: dict[str, Any] = {
        "engine": "slurm",
        "slots": 2,
        "lease_s": 90.0,
        "keys": {entry.key: entry.tasks for entry in entries},
        "entries": {entry.key: entry for entry in entries},
        "still_s": {},
        "lives": {},
    }
    return DriverSight(**{**usual, **facts})


def waiting(**fields: Any) -> TaskEntry:
    usual: dict[str, Any] = {"key": "1", "tasks": (0,)}
    return TaskEntry(**{**usual, **fields})


@pytest.mark.parametrize(
    ("entry", "facts", "label", "why"),
    [
        (waiting(), {}, "no machine", "It waits for a free machine: all 2 are taken."),
        (waiting(), {"lives": {"1": "waits"}}, "in queue", "It waits in the queue of slurm."),
        (waiting(), {"lives": {"1": "lives"}}, "starting", "Its worker is starting."),
        (waiting(), {"skipped": {0}, "lives": {"1": "waits"}}, "skipped",
         "It is skipped in this run."),
        (waiting(), {"pausing": True}, "paused", "Paused: p continues."),
        (waiting(), {"is_over": True}, "", "The next run continues with it."),
        (waiting(), {"out_of_money": True}, "budget",
         "It waits for the budget: what is left is reserved."),
        (waiting(), {"engine_problem": "Nobody answers."}, "engine", "Nobody answers."),
        (waiting(), {"delays": {"1": 29.5}}, "again 29 s",
         "Its workers ended without it; the next one starts in 29 s."),
        (waiting(cancelled=True), {}, "canceled", "It was canceled with --reset."),
        (waiting(state="running", host="n1"), {}, "", ""),
        (waiting(state="running", host="n1"), {"asking": {0: "run_command(ls)"}}, "asks you",
         "run_command(ls)"),
        (waiting(state="running"), {"still_s": {"1": 40.0}}, "silent 40 s",
         "No sign of life for 40 s; its lease runs out in 50 s."),
        (waiting(state="running"), {"still_s": {"1": 3.0}, "ended": {"1"}}, "worker gone",
         "Its worker has ended; its lease runs out in 1 min 27 s."),
    ],
)  # fmt: skip
def test_what_a_task_waits_for_is_said(
    entry: TaskEntry, facts: dict[str, Any], label: str, why: str
) -> None:
    place = dict(sight(entry, **facts).tasks())[0]
    assert (place.label, place.why) == (label, why)
    assert place.host == entry.host


def test_of_a_group_the_task_at_work_is_running_and_the_others_wait_for_it() -> None:
    group = waiting(
        tasks=(3, 4, 5), state="running", host="n1", attempt=2, losses=Losses(count=1),
        spent_usd=0.5, active=ActiveTask(4, "s"),
    )  # fmt: skip
    seen = sight(group, waiting(key="2", tasks=(7,), state="done"))
    places = dict(seen.tasks())
    assert seen.running() == (4,)
    assert seen.hosts() == {"n1": 1}
    assert [places[index].label for index in (3, 4, 5)] == ["with group", "", "group next"]
    assert (places[4].attempt, places[4].losses, places[4].spent_usd) == (2, 1, 0.5)
    assert 7 not in places


def test_a_task_whose_worker_is_gone_is_counted_on_no_host() -> None:
    gone = waiting(state="running", host="n1")
    assert sight(gone, ended={"1"}).hosts() == {}


def state(*tasks: TaskState) -> RunState:
    return RunState(task_file="/x", sha256="", started_at="", tasks=tasks)


def task(index: int, **fields: Any) -> TaskState:
    return TaskState(index=index, group="g", task="x", **fields)


def test_states_are_those_of_the_store_until_a_task_is_taken_and_unchanged_ones_stay() -> None:
    book = state(task(0), task(1), task(2, status="completed"), task(3))
    at_work = waiting(state="running", attempt=2, active=ActiveTask(0, "abc"))
    lost = waiting(key="2", tasks=(1, 3), attempt=1, active=ActiveTask(1, "def"))
    done = waiting(key="3", tasks=(2,), state="done")
    states = PlacedStates()
    shown = states.over(book, sight(at_work, lost, done))
    assert [one.status for one in shown.tasks] == [
        "running", "interrupted", "completed", "pending"
    ]  # fmt: skip
    assert [one.session_id for one in shown.tasks] == ["abc", "def", None, None]
    moved = msgspec.structs.replace(lost, state="running", attempt=2)
    again = states.over(book, sight(at_work, moved, done))
    assert [one.status for one in again.tasks][:2] == ["running", "running"]
    assert again.tasks[0] is shown.tasks[0]
    assert again.tasks[3] is shown.tasks[3]


def test_the_session_of_a_group_is_that_of_the_tasks_it_came_to() -> None:
    group = waiting(tasks=(0, 1, 2), state="running", attempt=1, active=ActiveTask(1, "abc"))
    shown = PlacedStates().over(state(task(0), task(1), task(2)), sight(group))
    assert [one.status for one in shown.tasks] == ["pending", "running", "pending"]
    assert [one.session_id for one in shown.tasks] == ["abc", "abc", None]


def test_a_task_that_was_given_up_can_still_be_opened() -> None:
    given_up = waiting(state="given_up", attempt=3, active=ActiveTask(0, "abc"))
    (shown,) = PlacedStates().over(state(task(0, status="failed")), sight(given_up)).tasks
    assert (shown.status, shown.session_id) == ("failed", "abc")
