"""Placed runs in which one thing goes wrong, with simulated workers and time."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from socket import gethostname
from typing import Any

import pytest

from tests.batch.cluster.test_engine_faults import (
    LEASE_S,
    FaultyEngine,
    Machines,
    Played,
    begin,
    check,
    finish,
    state_of,
)
from tests.batch.test_git import git, log
from tui.batch.cluster import results
from tui.batch.cluster.engines.port import EngineError, Life
from tui.batch.cluster.lease import read_task, refuse
from tui.batch.cluster.task_store import StoreError, TaskStore
from tui.core.errors import HoldfastError


def store_of(played: Played) -> TaskStore:
    return TaskStore.at(played.machines.address, played.machines.folder / "mine")


def refs_of(played: Played) -> list[str]:
    return sorted(store_of(played).refs("refs/holdfast/tasks/"))


def merged(played: Played) -> list[str]:
    return sorted(line for line in log(played.repo) if line.startswith("made by"))


BOTH = ["made by 00001", "made by 00002"]


class WithoutLogs(FaultyEngine):
    """Its first worker of each task never comes to work, and its log can't be read."""

    def put(self, commands: Mapping[str, Sequence[str]]) -> Mapping[str, str]:
        new = {key: words for key, words in commands.items() if words[1] not in self._programs}
        self._programs.update({words[1]: [] for words in new.values()})
        again = {key: words for key, words in commands.items() if key not in new}
        return {key: words[1] for key, words in new.items()} | dict(super().put(again))

    def fetch(self, handle: str) -> str:
        raise EngineError("The log is gone.")


def test_a_log_that_is_gone_keeps_nobody_from_working(tmp_path: Path) -> None:
    played = begin(tmp_path, 1, 2, 0.0)
    played.engine = WithoutLogs
    finish(played)
    check(played, 2)


class Boasting(FaultyEngine):
    """It starts nobody the first time, and says that they live."""

    def __init__(self, machines: Machines, slots: int) -> None:
        super().__init__(machines, slots)
        self.started: set[str] = set()

    def put(self, commands: Mapping[str, Sequence[str]]) -> Mapping[str, str]:
        new = {key for key in commands if key not in self.started}
        self.started |= new
        started = super().put({key: one for key, one in commands.items() if key not in new})
        return {**{key: commands[key][1] for key in new}, **started}

    def watch(self, handles: Collection[str]) -> Mapping[str, Life]:
        return dict.fromkeys(handles, "lives")


def test_an_engine_that_says_that_the_dead_live_is_not_believed_for_ever(tmp_path: Path) -> None:
    played = begin(tmp_path, 1, 2, 0.0)
    played.engine = Boasting
    finish(played)
    check(played, 2)
    assert "Task 00001: its worker hasn't taken it; another one is started." in played.notices


@pytest.mark.parametrize("begins", [0.01, 20.0])
def test_a_store_that_is_gone_for_a_while_is_waited_for(tmp_path: Path, begins: float) -> None:
    played = begin(tmp_path, 1, 2, 0.0)
    played.machines.world.outages = [(begins, begins + 3 * LEASE_S)]
    finish(played, limit=50.0)
    check(played, 2)
    assert [one for one in played.notices if one.startswith("The store can't be reached")] == [
        "The store can't be reached; it is tried again. The network is gone."
    ]
    assert not [one for one in played.notices if "the worker was gone" in one], "they all lived"


def failing(error: HoldfastError, times: int) -> Callable[..., results.Result]:
    """A function that takes results after so many failures."""
    real, rest = results.take, [error] * times

    def take(*given: Any, **more: Any) -> results.Result:
        if rest:
            raise rest.pop()
        return real(*given, **more)

    return take


def test_a_result_that_finds_no_room_is_taken_once_there_is_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = StoreError("Can't write logs/001-1.log: No space left on device.")
    played = begin(tmp_path, 1, 2, 0.0)
    monkeypatch.setattr(results, "take", failing(full, 1000))
    finish(played)
    assert played.reason == "2 results can't be taken here yet; the store has all of it"
    assert f"The result of task 1 can't be taken yet: {full}" in played.notices
    assert [task.status for task in state_of(played).tasks] == ["pending"] * 2
    monkeypatch.undo()
    paid = played.machines.paid_usd
    finish(played)
    check(played, 2)
    assert played.machines.paid_usd == paid, "nobody works on them again"


def test_a_result_that_is_damaged_fails_its_task_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = begin(tmp_path, 1, 2, 0.0)
    broken = results.ResultError("It has no state of its tasks.")
    monkeypatch.setattr(results, "take", failing(broken, 1))
    finish(played)
    (message,) = [task.message for task in state_of(played).tasks if task.status == "failed"]
    assert message == (
        "Its result can't be read: It has no state of its tasks. It stays in the store."
    )
    assert len(merged(played)) == 1


def test_refusals_of_machines_that_were_mended_since_end_no_run(tmp_path: Path) -> None:
    played = begin(tmp_path, 1, 2, 0.0)

    def refuse_all() -> None:
        for ref in refs_of(played) * 2:
            refuse(store_of(played), ref, "This is Holdfast 0.1.")

    played.engine = Idle
    played.machines.meanwhile = [(10.0, refuse_all)]
    finish(played)
    assert played.reason == "no machine takes tasks of this run: This is Holdfast 0.1."
    assert [read_task(store_of(played), ref).entry.attempt for ref in refs_of(played)] == [0, 0]
    played.engine = FaultyEngine
    finish(played)
    check(played, 2)


class Idle(FaultyEngine):
    """It starts nobody, and says so."""

    def put(self, commands: Mapping[str, Sequence[str]]) -> Mapping[str, str]:
        return {}


def test_somebody_commits_on_the_branch_meanwhile(tmp_path: Path) -> None:
    played = begin(tmp_path, 1, 2, 0.0)

    def commit() -> None:
        (played.repo / "a.txt").write_text("by a person\n")
        git(played.repo, "commit", "-qam", "by a person")

    played.machines.meanwhile = [(5.0, commit)]
    finish(played)
    check(played, 2)
    assert "by a person" in log(played.repo)


def test_results_are_merged_into_the_branch_that_the_run_began_on(tmp_path: Path) -> None:
    played = begin(tmp_path, 1, 2, 0.0)
    played.machines.meanwhile = [(5.0, lambda: git(played.repo, "switch", "-qc", "other"))]
    finish(played)
    assert merged(played) == []
    assert played.reason == "2 tasks couldn't be merged"
    message = state_of(played).tasks[0].message or ""
    assert "is on other, not on main" in message
    git(played.repo, "switch", "-q", "main")
    finish(played)
    assert merged(played) == BOTH


def test_the_folder_of_the_run_is_moved_and_comes_back(tmp_path: Path) -> None:
    played = begin(tmp_path, 1, 2, 0.0)
    away = tmp_path / "away"
    played.machines.meanwhile = [(30.0, lambda: shutil.move(played.repo, away))]
    finish(played)
    assert played.reason.endswith("can't be taken here yet; the store has all of it")
    assert [one for one in played.notices if one.endswith("is gone. It was removed or moved.")]
    shutil.move(away, played.repo)
    finish(played)
    assert merged(played) == BOTH
    assert [task.status for task in state_of(played).tasks] == ["completed"] * 2


def test_a_task_that_kills_its_workers_is_given_up_and_named(tmp_path: Path) -> None:
    played = begin(tmp_path, 1, 2, 0.0)
    played.machines.deadly, played.machines.steps = 1, 5
    finish(played)
    check(played, 2)
    first, second = state_of(played).tasks
    assert first.message == (
        f"Given up: 3 workers were lost with it; the worker was gone on {gethostname()}."
    )
    assert (first.status, first.attempts, second.status) == ("failed", 3, "completed")
