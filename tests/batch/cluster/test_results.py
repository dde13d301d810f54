"""Results that are taken from a store, and places that are made from it, in real repositories."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from tests.batch.test_git import git, head, make_repo
from tests.support.clock import FakeClock
from tui.batch.cluster.entry import TaskEntry
from tui.batch.cluster.lease import StoredTask
from tui.batch.cluster.results import Result, take
from tui.batch.cluster.run_spec import STATE_FILE, TASK_FILE, RunSpec
from tui.batch.cluster.task_store import TaskStore
from tui.batch.cluster.workplace import Workplace
from tui.batch.state import RunState, TaskState
from tui.core.paths import folders


@pytest.fixture
def store(tmp_path: Path) -> TaskStore:
    made = TaskStore.at(str(tmp_path / "store.git"), tmp_path / "mirror")
    made.make()
    return made


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo")


def state() -> RunState:
    task = TaskState(index=0, group="ungrouped", task="one")
    return RunState(task_file="/x/TASKS.md", sha256="0", started_at="2026-11-30", tasks=(task,))


def spec(repo: Path) -> RunSpec:
    return RunSpec(
        run="R",
        version="1",
        python="3.11",
        base=head(repo),
        branch="main",
        inside="",
        task_file="TASKS.md",
        options={},
        config={},
        trusts_all=False,
        granted={},
        identity={"GIT_AUTHOR_NAME": "Ann", "GIT_AUTHOR_EMAIL": "ann@example.org"},
        confined=False,
    )


def put_run(store: TaskStore, repo: Path) -> str:
    files = {TASK_FILE: b"- [ ] one\n", STATE_FILE: msgspec.json.encode(state())}
    objects = repo / ".git" / "objects"
    run = store.commit(spec(repo).to_message(), works=[head(repo)], files=files, objects=objects)
    assert store.move({"refs/holdfast/runs/R": ("", run)}, objects)
    store.fetch([run])
    return run


def test_a_lost_task_is_as_it_was_in_the_next_place(
    store: TaskStore, repo: Path, tmp_path: Path
) -> None:
    run = put_run(store, repo)
    first = store.commit(TaskEntry(key="1", tasks=(0,)).to_message())
    entry = TaskEntry(key="1", tasks=(0,))
    place = Workplace(tmp_path / "place", spec(repo))
    assert not place.make(store, run, first, entry)
    (place.top / "a.txt").write_text("changed\n")
    (place.top / "dir" / "b.txt").unlink()
    (place.top / "new.txt").write_text("new\n")
    sessions = place.place / "data" / "sessions" / "work"
    sessions.mkdir(parents=True)
    record = sessions / "s.jsonl"
    record.write_bytes(b'{"n":1}\n')
    one = place.snapshot()
    commit = store.commit("x", upon=first, works=one.works, files=one.files, objects=one.objects)
    record.write_bytes(b'{"n":1}\n{"n":2}\n{"torn')
    two = place.snapshot()
    at = TaskEntry(key="1", tasks=(0,), head=two.head, place=str(place.place))
    commit = store.commit(
        at.to_message(), upon=commit, works=two.works, files=two.files, objects=two.objects
    )
    assert store.move({"refs/holdfast/tasks/R/1": ("", commit)}, two.objects)
    elsewhere = TaskStore.at(store.address, tmp_path / "mirror2")
    elsewhere.fetch([run, commit])
    again = Workplace(place.place, spec(repo))
    assert again.make(elsewhere, run, commit, at)
    assert git(again.top, "status", "--porcelain").split("\n")[:-1] == [
        " M a.txt",
        " D dir/b.txt",
        "?? new.txt",
    ]
    assert record.read_bytes() == b'{"n":1}\n{"n":2}\n'
    assert git(again.top, "config", "user.name") == "Ann\n"
    record.write_bytes(b'{"n":1}\n{"n":2}\n{"n":3}\n')
    assert [name for name in again.snapshot().files if name.endswith("s.jsonl/000000000016")]


def finished(store: TaskStore, repo: Path, files: dict[str, bytes]) -> StoredTask:
    run = put_run(store, repo)
    git(repo, "commit", "-q", "--allow-empty", "-m", "one")
    done, objects = head(repo), repo / ".git" / "objects"
    git(repo, "reset", "-q", "--hard", "HEAD~")
    task = msgspec.structs.replace(state().tasks[0], status="completed", change=done, attempts=1)
    ended = msgspec.structs.replace(state(), tasks=(task,))
    entry = TaskEntry(key="1", tasks=(0,), state="done", head=done)
    made = {
        "private/run/state.json": msgspec.json.encode(ended),
        "refs.json": json.dumps({"refs/holdfast/kept": done, "refs/heads/main": done}).encode(),
        **files,
    }
    begun = store.commit(TaskEntry(key="1", tasks=(0,)).to_message())
    message = entry.to_message()
    commit = store.commit(message, upon=begun, works=[done], files=made, objects=objects)
    assert store.move({"refs/holdfast/tasks/R/1": ("", commit)}, objects)
    store.fetch([commit, run])
    return StoredTask(commit, entry)


def taken(store: TaskStore, found: StoredTask, repo: Path, home: Path) -> Result:
    where = folders({"HOLDFAST_HOME": str(home)})
    return take(store, found, (0,), repo, "task-1", folders=where, clock=FakeClock())


def test_a_result_is_a_branch_to_be_merged_and_may_be_taken_twice(
    store: TaskStore, repo: Path, tmp_path: Path
) -> None:
    before = head(repo)
    found = finished(store, repo, {"private/run/logs/001-1.log": b"said\n"})
    for _ in range(2):
        (task,) = taken(store, found, repo, tmp_path / "home").tasks
        assert (task.status, task.worktree) == ("unmerged", "task-1")
        assert git(repo, "rev-parse", "worktree-task-1").strip() == found.entry.head
        assert git(repo, "rev-parse", "refs/holdfast/kept").strip() == found.entry.head
        assert (repo / ".holdfast" / "run" / "logs" / "001-1.log").read_text() == "said\n"
    assert head(repo) == before, "what a store says of branches of the person's counts for nothing"


def test_a_log_with_an_odd_name_stays_in_the_store(
    store: TaskStore, repo: Path, tmp_path: Path
) -> None:
    odd = {"private/run/logs/sub/x.log": b"x", "private/run/logs/.bashrc": b"x"}
    result = taken(store, finished(store, repo, odd), repo, tmp_path / "home")
    assert len(result.problems) == 2
    assert not (repo / ".holdfast" / "run" / "logs").exists()


def test_a_damaged_pack_is_named_and_the_rest_is_taken(
    store: TaskStore, repo: Path, tmp_path: Path
) -> None:
    found = finished(store, repo, {"packs/session-1.zip": b"no pack"})
    result = taken(store, found, repo, tmp_path / "home")
    assert "stays in the store" in result.problems[0]
    assert [task.status for task in result.tasks] == ["unmerged"]
