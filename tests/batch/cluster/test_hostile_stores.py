"""Stores that somebody else may write: no word in them is an option of git, or a path outside."""

from __future__ import annotations

import os
import shutil
import zlib
from hashlib import sha1
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from tests.batch.cluster.test_results import put_run, spec, state
from tests.batch.test_git import git, head, make_repo
from tests.support.clock import FakeClock
from tui.batch.cluster.entry import TaskEntry
from tui.batch.cluster.lease import StoredTask
from tui.batch.cluster.results import ResultError, take
from tui.batch.cluster.run_spec import spec_of
from tui.batch.cluster.task_store import StoreError, TaskStore
from tui.batch.cluster.workplace import Workplace
from tui.core.paths import folders

DONE = TaskEntry(key="1", tasks=(0,), state="done")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TaskStore:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    made = TaskStore.at(str(tmp_path / "store.git"), tmp_path / "mirror")
    made.make()
    return made


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo")


def raw(store: TaskStore, kind: str, data: bytes) -> str:
    """The id of an object that git itself would not make."""
    whole = f"{kind} {len(data)}\0".encode() + data
    id_ = sha1(whole).hexdigest()
    file = store.mirror / "objects" / id_[:2] / id_[2:]
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(zlib.compress(whole))
    return id_


def test_no_line_of_a_commit_is_an_option_of_git(
    store: TaskStore, repo: Path, tmp_path: Path
) -> None:
    put_run(store, repo)
    mark = tmp_path / "it ran"
    files = {"private/run/state.json": msgspec.json.encode(state()), "refs.json": b"{}"}
    run = store.refs("refs/holdfast/runs/R")["refs/holdfast/runs/R"]
    good = store.commit(DONE.to_message(), upon=run, works=[head(repo)], files=files)
    first, _, message = git(store.mirror, "cat-file", "commit", good).partition("\n\n")
    option = f"parent --upload-pack=touch '{mark}'; git-upload-pack"
    bad = raw(store, "commit", f"{first}\n{option}\n\n{message}".encode())
    tasks = state().tasks
    take(store, StoredTask(bad, DONE), tasks, repo, "w", folders=folders(), clock=FakeClock())
    assert store.parents(bad) == [run, head(repo)]
    assert not mark.exists()


def test_a_result_without_work_is_damaged(store: TaskStore, repo: Path) -> None:
    files = {"private/run/state.json": msgspec.json.encode(state()), "refs.json": b"{}"}
    bad, tasks = store.commit(DONE.to_message(), files=files), state().tasks
    with pytest.raises(ResultError):
        take(store, StoredTask(bad, DONE), tasks, repo, "w", folders=folders(), clock=FakeClock())


@pytest.mark.parametrize("change", ["mine", "--stdin", "refs/heads/mine", "refs/$(touch x)"])
def test_no_result_names_a_branch_of_the_person(store: TaskStore, repo: Path, change: str) -> None:
    git(repo, "branch", "mine")
    one = replace(state().tasks[0], status="completed", change=change)
    there = msgspec.json.encode(replace(state(), tasks=(one,)))
    files = {"private/run/state.json": there, "refs.json": b"{}"}
    put_run(store, repo)
    base, tasks = store.commit("base"), state().tasks
    bad = store.commit(DONE.to_message(), upon=base, works=[head(repo)], files=files)
    with pytest.raises(ResultError, match="names a change"):
        take(store, StoredTask(bad, DONE), tasks, repo, "w", folders=folders(), clock=FakeClock())
    assert "worktree-w" not in git(repo, "branch")


def test_no_commit_that_a_run_names_is_an_option_of_git(store: TaskStore, tmp_path: Path) -> None:
    mark = tmp_path / "it ran"
    with pytest.raises(StoreError):
        store.base(f"--upload-pack=touch '{mark}'; git-upload-pack", tmp_path / "R" / "base.git")
    assert not mark.exists()


@pytest.mark.parametrize("parts", [["..", "..", "outside"], ["{}"], ["../../outside"]])
def test_no_file_of_a_task_is_put_outside_of_its_folders(
    store: TaskStore, repo: Path, tmp_path: Path, parts: list[str]
) -> None:
    run, outside = put_run(store, repo), tmp_path / "outside"
    at, mode = raw(store, "blob", b"x"), "100644"
    for part in reversed(["data", *parts]):
        name = f"{mode} {part.format(outside)}\0".encode()
        at, mode = raw(store, "tree", name + bytes.fromhex(at)), "40000"
    lost = TaskEntry(key="1", tasks=(0,), head=head(repo), place="/elsewhere")
    who = "x <x@localhost> 1 +0000"
    text = f"tree {at}\nauthor {who}\ncommitter {who}\n\n{lost.to_message()}"
    bad = raw(store, "commit", text.encode())
    Workplace(tmp_path / "place", spec(repo)).make(store, run, bad, lost)
    assert not outside.exists()


@pytest.mark.parametrize("name", ["inside", "task_file"])
@pytest.mark.parametrize("path", ["/etc", "../../outside", "a//etc", "a/../../.."])
def test_no_run_leads_out_of_the_folders_of_its_tasks(repo: Path, name: str, path: str) -> None:
    bad = msgspec.structs.replace(spec(repo), **{name: path})
    with pytest.raises(StoreError, match="leads out"):
        spec_of(bad.to_message())


@pytest.mark.parametrize("room", ["logs/refs/holdfast/tasks/R", "refs/holdfast/tasks/R"])
def test_no_link_in_a_store_leads_out_of_it(store: TaskStore, tmp_path: Path, room: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine").write_text("mine\n")
    (store.mirror / room).parent.mkdir(parents=True, exist_ok=True)
    (store.mirror / room).symlink_to(outside)
    for name in ("mine", "new"):
        with pytest.raises(StoreError, match="There is a link"):
            store.move({f"refs/holdfast/tasks/R/{name}": ("", store.commit("x"))})
    assert [path.name for path in outside.iterdir()] == ["mine"]
    assert (outside / "mine").read_text() == "mine\n"


def test_no_settings_of_a_store_choose_the_words_in_its_logs(store: TaskStore) -> None:
    git(store.mirror, "config", "user.name", "x; words of theirs")
    git(store.mirror, "config", "core.logAllRefUpdates", "always")
    ref = "refs/holdfast/tasks/R/1"
    assert store.move({ref: ("", store.commit("x"))})
    assert " holdfast <holdfast@localhost> " in (store.mirror / "logs" / ref).read_text()


def test_a_store_here_fetches_nothing_that_it_lacks(
    store: TaskStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by a git before 2.39.4 either, which doesn't know that it is to fetch nothing."""
    real, programs, mark = shutil.which("git"), tmp_path / "programs", tmp_path / "it ran"
    programs.mkdir()
    (programs / "git").write_text(
        f'#!/bin/sh\nunset GIT_NO_LAZY_FETCH\nexec "{real}" "$@"\n', encoding="utf-8"
    )
    (programs / "git").chmod(0o755)
    git(store.mirror, "config", "core.repositoryFormatVersion", "1")
    git(store.mirror, "config", "extensions.partialClone", "theirs")
    git(store.mirror, "config", "remote.theirs.url", str(store.mirror))
    git(store.mirror, "config", "remote.theirs.uploadpack", f"touch '{mark}'; git-upload-pack")
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    with pytest.raises(StoreError):
        store.move({"refs/holdfast/tasks/R/1": ("", "a" * 40)})
    assert not mark.exists()
