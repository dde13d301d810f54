"""Results that are taken from a store, and places that are made from it, in real repositories."""

from __future__ import annotations

import json
import subprocess
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from tests.batch.test_git import git, head, make_repo
from tests.support.clock import FakeClock
from tui.batch.cluster.entry import TaskEntry
from tui.batch.cluster.lease import StoredTask
from tui.batch.cluster.results import Result, take
from tui.batch.cluster.run_spec import STATE_FILE, TASK_FILE, RunSpec
from tui.batch.cluster.task_store import StoreError, TaskStore
from tui.batch.cluster.workplace import Workplace
from tui.batch.state import RunState, TaskState
from tui.core.errors import StorageError
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
    store.bring([head(repo)], repo)
    run = store.commit(spec(repo).to_message(), works=[head(repo)], files=files)
    assert store.move({"refs/holdfast/runs/R": ("", run)})
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
    one = place.snapshot(store)
    place.stored(one)
    commit = store.commit("x", upon=first, works=one.works, files=one.files)
    record.write_bytes(b'{"n":1}\n{"n":2}\n{"torn')
    two = place.snapshot(store)
    at = TaskEntry(key="1", tasks=(0,), head=two.head, place=str(place.place))
    commit = store.commit(at.to_message(), upon=commit, works=two.works, files=two.files)
    assert store.move({"refs/holdfast/tasks/R/1": ("", commit)})
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
    assert [name for name in again.snapshot(store).files if name.endswith("s.jsonl/000000000016")]


def lost(store: TaskStore, repo: Path, place: Workplace) -> tuple[str, TaskEntry]:
    """Put a task as it is at its place into the store, as if its worker were lost then."""
    one = place.snapshot(store)
    store.bring(one.new, one.repository)
    at = TaskEntry(key="1", tasks=(0,), head=one.head, place=str(place.place))
    begun = store.commit("x")
    commit = store.commit(at.to_message(), upon=begun, works=one.works, files=one.files)
    assert store.move({"refs/holdfast/tasks/R/1": ("", commit)})
    store.fetch([commit])
    return commit, at


def begun(store: TaskStore, repo: Path, tmp_path: Path) -> tuple[Workplace, str]:
    run = put_run(store, repo)
    first = store.commit(TaskEntry(key="1", tasks=(0,)).to_message())
    place = Workplace(tmp_path / "place", spec(repo))
    place.make(store, run, first, TaskEntry(key="1", tasks=(0,)))
    return place, run


def test_what_a_linked_folder_leads_to_is_never_put_into_the_store(
    store: TaskStore, repo: Path, tmp_path: Path
) -> None:
    place, _ = begun(store, repo, tmp_path)
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("SECRET")
    private = place.top / ".holdfast"
    (private / "peek").symlink_to(tmp_path / "secret")
    (private / "plans").symlink_to(tmp_path / "secret")
    (private / "run" / "link").symlink_to(tmp_path / "secret" / "key")
    assert not [
        name for name, data in place.snapshot(store).files.items() if b"SECRET" in (data or b"")
    ]


@pytest.mark.parametrize("link", [".holdfast/run", ".holdfast", "TASKS.md"])
def test_a_link_that_the_task_committed_is_not_written_through(
    store: TaskStore, repo: Path, tmp_path: Path, link: str
) -> None:
    place, run = begun(store, repo, tmp_path)
    (place.top / ".holdfast" / "run" / "note").write_text("ATTACK")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("mine")
    aim = outside / "file" if link == "TASKS.md" else outside
    made = git_blob(place.top, str(aim))
    git(place.top, "update-index", "--add", "--cacheinfo", f"120000,{made},{link}")
    git(place.top, "commit", "-qm", "link")
    commit, at = lost(store, repo, place)
    with suppress(StoreError, StorageError):  # or it was replaced
        Workplace(place.place, spec(repo)).make(store, run, commit, at)
    assert sorted(path.name for path in outside.iterdir()) == ["file"]
    assert (outside / "file").read_text() == "mine"


def git_blob(where: Path, text: str) -> str:
    words = ["git", "hash-object", "-w", "--stdin"]
    done = subprocess.run(words, cwd=where, input=text, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_commands_can_read_no_session_of_another_task(
    store: TaskStore, repo: Path, tmp_path: Path
) -> None:
    other = store.commit("x", files={"data/sessions/s.jsonl/000000000000": b"OTHER"})
    assert store.move({"refs/holdfast/tasks/R/2": ("", other)})
    place, _ = begun(store, repo, tmp_path)
    words = ["git", "cat-file", "--batch-all-objects", "--batch"]
    said = subprocess.run(words, cwd=place.top, check=True, capture_output=True).stdout
    assert b"OTHER" not in said
    assert "first" in git(place.top, "log", "--format=%s")


def test_what_did_not_reach_the_store_is_put_there_the_next_time(
    store: TaskStore, repo: Path, tmp_path: Path
) -> None:
    place, _ = begun(store, repo, tmp_path)
    (place.top / ".holdfast" / "run" / "note").write_text("one")
    assert "private/run/note" in place.snapshot(store).files
    again = place.snapshot(store)
    assert "private/run/note" in again.files
    place.stored(again)
    assert "private/run/note" not in place.snapshot(store).files


def finished(store: TaskStore, repo: Path, files: dict[str, bytes]) -> StoredTask:
    run = put_run(store, repo)
    git(repo, "commit", "-q", "--allow-empty", "-m", "one")
    done = head(repo)
    store.bring([done], repo)
    git(repo, "reset", "-q", "--hard", "HEAD~")
    task = msgspec.structs.replace(state().tasks[0], status="completed", change=done, attempts=1)
    ended = msgspec.structs.replace(state(), tasks=(task,))
    entry = TaskEntry(key="1", tasks=(0,), state="done", head=done)
    made = {
        "private/run/state.json": msgspec.json.encode(ended),
        "refs.json": json.dumps(
            {
                "refs/holdfast/20261130/task-1-attempt-2": done,
                "refs/holdfast/20261130/task-9-attempt-1": done,
                "refs/heads/main": done,
            }
        ).encode(),
        **files,
    }
    begun = store.commit(TaskEntry(key="1", tasks=(0,)).to_message())
    message = entry.to_message()
    commit = store.commit(message, upon=begun, works=[done], files=made)
    assert store.move({"refs/holdfast/tasks/R/1": ("", commit)})
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
        kept = git(repo, "for-each-ref", "--format=%(refname)", "refs/holdfast/").split()
        assert kept == ["refs/holdfast/20261130/task-1-attempt-2"]
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
