"""`holdfast work` in this process, on machines where something is wrong."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tui
from tests.batch.cluster.test_workers_found_again import Cluster, Driving
from tests.batch.test_git import git, log, make_repo
from tests.e2e.test_run import turn
from tui.app.options.parser import parse
from tui.batch.cluster import run_spec, worker, workplace
from tui.batch.cluster.disk_space import is_full
from tui.batch.cluster.driver import PlacedRunner
from tui.batch.cluster.entry import TaskEntry
from tui.batch.cluster.lease import lost, read_task
from tui.batch.cluster.task_store import StoreError, TaskStore
from tui.batch.events import FromAgent, TaskStarted
from tui.core.facts import StorageChanged

VERSION = tui.__version__
NO_ROOM = os.strerror(errno.ENOSPC)


class Placed:
    """A run of one task in a store, and workers on this machine."""

    def __init__(self, folder: Path, confined: bool) -> None:
        self.folder = folder
        self.repo = make_repo(folder / "repo")
        (self.repo / "TASKS.md").write_text("- [ ] one\n")
        tool = '{name = "write_file", input = {path = "made.txt", content = "made"}}'
        script = folder / "script.toml"
        script.write_text(turn(text="A step.", tool=tool) + turn(text="Done."))
        self.driving = Driving(self.repo, folder)
        words = ["--practice-script", str(script), "--yolo"]
        asyncio.run(self.driving.drive(Cluster(lambda: None), PlacedRunner.leave, words, confined))
        self.store = TaskStore.at(str(folder / "store.git"), folder / "mine")
        (self.ref,) = self.store.refs("refs/holdfast/tasks/")

    @property
    def entry(self) -> TaskEntry:
        return read_task(self.store, self.ref).entry

    def work(self) -> int:
        name = self.ref.removeprefix("refs/holdfast/tasks/")
        words = ["work", name, "--store", self.store.address]
        return worker.run(parse([*words, "--scratch", str(self.folder / "scratch")]))

    def history(self) -> list[str]:
        said = log_of(self.store, self.ref)
        return [line.removeprefix("holdfast: task 00001 is ") for line in said]


def log_of(store: TaskStore, ref: str) -> list[str]:
    return git(Path(store.address), "log", "--first-parent", "--format=%s", ref).splitlines()[::-1]


@pytest.fixture
def placed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Placed]:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(worker, "_die_with_parent", lambda: None)
    # it would be this very process, 20 s after a test that loses its task
    monkeypatch.setattr(worker, "end_by_force", lambda: None)

    def make(*, confined: bool = False) -> Placed:
        return Placed(tmp_path, confined)

    return make


def test_a_worker_that_fits_does_the_task(placed: Callable[..., Placed]) -> None:
    run = placed()
    assert run.work() == worker.EXIT_DONE
    assert (run.entry.state, run.entry.attempt, run.entry.refusals) == ("done", 1, ())
    assert run.work() == worker.EXIT_LOST, "it is over"


@pytest.mark.parametrize("what", ["version", "python", "sandbox"])
def test_a_machine_that_does_not_fit_refuses_and_that_is_no_attempt(
    placed: Callable[..., Placed], monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    run = placed(confined=what == "sandbox")
    if what == "version":
        monkeypatch.setattr(tui, "__version__", "0.0.1")
    if what == "python":
        monkeypatch.setattr(worker, "python_version", lambda: "3.99")
    assert run.work() == worker.EXIT_REFUSED
    entry = run.entry
    assert (entry.state, entry.attempt, entry.losses.count, entry.requests) == ("waiting", 0, 0, 0)
    (refusal,) = entry.refusals
    python = run_spec.python_version()
    made = f"the run was made with {VERSION} and Python {python}."
    assert (
        refusal.reason
        == {
            "version": f"This is Holdfast 0.0.1 with Python {python}; {made}",
            "python": f"This is Holdfast {VERSION} with Python 3.99; {made}",
            "sandbox": "Commands can't be confined on this machine, and the run wants it.",
        }[what]
    )


def full(owner: Any, name: str, when: Callable[..., bool], error: Exception) -> Callable[..., Any]:
    """A function that fails for want of room whenever it is to."""
    real = getattr(owner, name)

    def call(*given: Any, **more: Any) -> Any:
        if when(*given):
            raise error
        return real(*given, **more)

    return call


def test_a_place_without_room_refuses_and_another_machine_does_the_task(
    placed: Callable[..., Placed], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = placed()
    error = OSError(errno.ENOSPC, NO_ROOM)
    with monkeypatch.context() as patch:
        patch.setattr(
            workplace, "replace_file", full(workplace, "replace_file", lambda *_: True, error)
        )
        for _ in range(4):
            assert run.work() == worker.EXIT_REFUSED
    entry = run.entry
    assert (entry.state, entry.attempt, entry.losses.count) == ("waiting", 0, 0)
    assert NO_ROOM in entry.refusals[-1].reason
    assert run.work() == worker.EXIT_DONE
    assert run.entry.state == "done"


def test_a_mirror_that_is_full_in_the_middle_gives_the_task_back_with_the_reason(
    placed: Callable[..., Placed], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = placed()
    error = StoreError(f"git fast-import failed: fatal: write error: {NO_ROOM}")
    seen: list[str] = []

    def second(_: TaskStore, message: str, *__: object) -> bool:
        seen.append(message)
        return '"requests":2' in message and '"state":"running"' in message

    with monkeypatch.context() as patch:
        patch.setattr(TaskStore, "commit", full(TaskStore, "commit", second, error))
        assert run.work() == worker.EXIT_REFUSED
    entry = run.entry
    assert (entry.state, entry.losses.count, entry.requests) == ("waiting", 0, 1)
    assert NO_ROOM in entry.ended
    assert NO_ROOM in entry.refusals[-1].reason
    assert run.work() == worker.EXIT_DONE
    assert run.entry.state == "done"
    asyncio.run(run.driving.drive(Cluster(lambda: None), PlacedRunner.stop))
    assert "one" in log(run.repo)
    assert (run.repo / "made.txt").read_text() == "made"


def test_a_store_without_room_is_waited_for(
    placed: Callable[..., Placed], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = placed()
    rest = [None] * 3

    def some(_: TaskStore, word: str, *__: object) -> bool:
        return (
            word == "update-ref" and run.entry.state == "running" and bool(rest) and not rest.pop()
        )

    said = StoreError(f"git push failed: error: remote unpack failed: {NO_ROOM}")
    monkeypatch.setattr(TaskStore, "_reach", full(TaskStore, "_reach", some, said))
    monkeypatch.setattr(worker.LeasePace, "poll", 0.05)
    assert run.work() == worker.EXIT_DONE
    assert rest == []
    assert (run.entry.state, run.entry.attempt, run.entry.refusals) == ("done", 1, ())


def test_a_worker_that_lost_its_task_while_it_was_stopped_sends_nothing_and_ends(
    placed: Callable[..., Placed], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that is stopped for longer than the lease sees it: the task is another's by then."""
    run = placed()
    sent: list[int] = []
    real = worker._Job._put  # pyright: ignore[reportPrivateUsage]

    def put(job: Any, *costs: Any) -> None:
        real(job, *costs)
        sent.append(job.requests)
        if job.requests == 1:
            found = read_task(run.store, run.ref)
            assert lost(run.store, run.ref, found, "the worker was gone")

    monkeypatch.setattr(worker._Job, "_put", put)  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(worker.LeasePace, "safe", -1.0)  # all that was renewed is long ago
    assert run.work() == worker.EXIT_LOST
    assert sent == [1]
    assert [one for one in run.history() if one.startswith("done")] == []
    assert (run.entry.state, run.entry.losses.count, run.entry.requests) == ("waiting", 1, 1)


@pytest.mark.parametrize(
    "said",
    [
        f"Can't write state.json: {NO_ROOM}.",
        f"git fast-import failed: fatal: write error: {os.strerror(errno.EDQUOT)}",
        "git fast-import failed: fatal: sha1 file 'tmp_pack_gffHWP' write error. Out of diskspace",
    ],
)
def test_a_full_disk_is_known_by_the_words_of_the_system_and_of_git(said: str) -> None:
    assert is_full(said)
    assert not is_full("git fetch failed: fatal: couldn't find remote ref")


def test_a_worker_that_cannot_save_its_session_asks_no_model_and_gives_the_task_back(
    placed: Callable[..., Placed], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = placed()
    real = worker._Job.see  # pyright: ignore[reportPrivateUsage]

    def see(job: Any, event: Any) -> None:
        real(job, event)
        if isinstance(event, TaskStarted):
            real(job, FromAgent(0, StorageChanged(saved=False, detail="File too large.")))

    monkeypatch.setattr(worker._Job, "see", see)  # pyright: ignore[reportPrivateUsage]
    assert run.work() == worker.EXIT_REFUSED
    assert (run.entry.state, run.entry.losses.count, run.entry.requests) == ("waiting", 1, 0)
    assert run.entry.ended.startswith("The session can't be saved: File too large.")
