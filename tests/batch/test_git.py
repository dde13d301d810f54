"""Isolation by git, against real repositories."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tui.batch.git import RUNNING, GitIsolation
from tui.batch.isolation import IsolationError
from tui.core.errors import UsageError


def git(repo: Path, *args: str) -> str:
    done = subprocess.run(["git", *args], cwd=repo, check=True, capture_output=True, text=True)
    return done.stdout


def make_repo(at: Path) -> Path:
    at.mkdir(parents=True)
    git(at, "init", "-q", "-b", "main")
    git(at, "config", "user.email", "test@example.org")
    git(at, "config", "user.name", "Test")
    (at / ".gitignore").write_text("*.o\n")
    (at / "a.txt").write_text("a\n")
    (at / "dir").mkdir()
    (at / "dir" / "b.txt").write_text("b\n")
    (at / "TASKS.md").write_text("- [ ] one\n")
    git(at, "add", "-A")
    git(at, "commit", "-qm", "first")
    return at


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo")


def isolation(repo: Path) -> GitIsolation:
    found = GitIsolation.find(repo, repo / "TASKS.md")
    assert found
    return found


def head(repo: Path) -> str:
    return git(repo, "rev-parse", "HEAD").strip()


def log(repo: Path) -> list[str]:
    return git(repo, "log", "--format=%s").splitlines()


def status(repo: Path) -> str:
    return git(repo, "status", "--porcelain")


def files(repo: Path) -> dict[str, str]:
    """Everything in the work tree but git's own."""
    found: dict[str, str] = {}
    for folder, names, here in os.walk(repo):
        names[:] = [name for name in names if name != ".git"]
        for name in here:
            path = Path(folder) / name
            shown = os.readlink(path) if path.is_symlink() else path.read_bytes().decode("latin-1")
            found[str(path.relative_to(repo))] = shown
    return found


def test_success_is_one_commit_on_the_branch(repo: Path):
    held = isolation(repo)
    held.check()
    base = held.begin()
    (repo / "a.txt").write_text("changed\n")
    (repo / "new dir").mkdir()
    (repo / "new dir" / "ü.txt").write_text("new\n")
    (repo / "dir" / "b.txt").unlink()
    (repo / "x.o").write_text("ignored\n")
    (repo / "TASKS.md").write_text("- [x] one\n")
    (repo / ".holdfast").mkdir()
    (repo / ".holdfast" / "boot.md").write_text("boot")
    commit = held.keep("Do one\n\nTask 1 of 3")
    assert commit == head(repo) != base
    assert git(repo, "rev-parse", "HEAD^").strip() == base
    assert git(repo, "log", "-1", "--format=%B").strip() == "Do one\n\nTask 1 of 3"
    changed = git(repo, "-c", "core.quotePath=off", "show", "--format=", "--name-status", "HEAD")
    assert changed.splitlines() == ["M\ta.txt", "D\tdir/b.txt", "A\tnew dir/ü.txt"]
    assert status(repo).splitlines() == [" M TASKS.md", "?? .holdfast/"]
    held.check()


def test_success_without_a_change_is_no_commit(repo: Path):
    held = isolation(repo)
    base = held.begin()
    (repo / "TASKS.md").write_text("- [x] one\n")
    assert held.keep("nothing") == ""
    assert head(repo) == base


def test_what_the_task_committed_by_itself_becomes_one_commit(repo: Path):
    held = isolation(repo)
    base = held.begin()
    for name in ("one", "two"):
        (repo / name).write_text(name)
        git(repo, "add", "-A")
        git(repo, "commit", "-qm", name)
    (repo / "three").write_text("three")
    held.keep("All three")
    assert log(repo) == ["All three", "first"]
    assert git(repo, "rev-parse", "HEAD^").strip() == base
    assert status(repo) == ""


def test_one_clean_commit_of_the_task_stays_as_it_is(repo: Path):
    held = isolation(repo)
    held.begin()
    (repo / "one").write_text("one")
    git(repo, "add", "one")
    git(repo, "commit", "-qm", "The agent's own words")
    assert held.keep("Ours") == head(repo)
    assert log(repo) == ["The agent's own words", "first"]


def test_the_task_file_is_taken_out_of_a_commit_of_the_task(repo: Path):
    held = isolation(repo)
    held.begin()
    (repo / "one").write_text("one")
    (repo / "TASKS.md").write_text("- [x] one\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "with the task file")
    held.keep("One")
    assert git(repo, "show", "--format=", "--name-only", "HEAD").split() == ["one"]
    assert (repo / "TASKS.md").read_text() == "- [x] one\n"


def test_a_failed_task_leaves_the_tree_as_it_was(repo: Path):
    before = files(repo)
    held = isolation(repo)
    base = held.begin()
    (repo / "a.txt").write_text("changed\n")
    (repo / "dir" / "b.txt").unlink()
    (repo / "dir").rmdir()
    (repo / "dir").write_text("now a file")
    (repo / "deep" / "er").mkdir(parents=True)
    (repo / "deep" / "er" / "x").write_text("x")
    git(repo, "add", "deep")
    os.symlink("a.txt", repo / "link")
    ref = held.undo("run/3-task 1..2")
    assert files(repo) == before
    assert not (repo / "deep").exists()
    assert status(repo) == ""
    assert head(repo) == base
    assert ref == "refs/holdfast/run/3-task-1-2"
    assert git(repo, "show", f"{ref}:deep/er/x") == "x"
    assert git(repo, "show", f"{ref}:dir") == "now a file"
    assert git(repo, "rev-parse", f"{ref}^").strip() == base


def test_commits_of_a_failed_task_are_taken_back_and_kept(repo: Path):
    held = isolation(repo)
    base = held.begin()
    (repo / "one").write_text("one")
    (repo / "TASKS.md").write_text("- [~] one\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "half done")
    (repo / "two").write_text("two")
    ref = held.undo("attempt")
    assert head(repo) == base
    assert not (repo / "one").exists()
    assert not (repo / "two").exists()
    assert (repo / "TASKS.md").read_text() == "- [~] one\n"
    assert git(repo, "log", "--format=%s", ref).splitlines() == [
        "holdfast: attempt",
        "half done",
        "first",
    ]
    held.check()


def test_ignored_files_are_left_alone(repo: Path):
    held = isolation(repo)
    held.begin()
    (repo / "x.o").write_text("built")
    (repo / "y").write_text("y")
    held.undo("attempt")
    assert (repo / "x.o").read_text() == "built"
    assert not (repo / "y").exists()


def test_a_repository_inside_is_left_alone(repo: Path):
    held = isolation(repo)
    held.begin()
    make_repo(repo / "inner")
    (repo / "y").write_text("y")
    held.undo("attempt")
    assert (repo / "inner" / "a.txt").exists()
    assert not (repo / "y").exists()


def test_a_dirty_tree_is_refused_with_advice(repo: Path):
    (repo / "TASKS.md").write_text("edited")
    isolation(repo).check()
    (repo / "a.txt").write_text("mine")
    for n in range(6):
        (repo / f"new{n}").write_text("mine")
    with pytest.raises(UsageError, match=r"a\.txt, new0, new1, new2, new3 and 2 more") as caught:
        isolation(repo).check()
    assert "stash" in caught.value.hint


def test_30_a_locked_index_is_named_before_any_work(repo: Path):
    git_isolation = isolation(repo)
    (repo / ".git" / "index.lock").touch()
    with pytest.raises(UsageError, match=r"\.git/index\.lock exists"):
        git_isolation.check()
    with pytest.raises(IsolationError, match=r"\.git/index\.lock exists"):
        git_isolation.begin()
    (repo / ".git" / "index.lock").unlink()
    git_isolation.check()
    assert git_isolation.begin()


def test_a_merge_in_progress_is_refused(repo: Path):
    (repo / ".git" / "MERGE_HEAD").write_text(head(repo))
    with pytest.raises(UsageError, match="merge is in progress"):
        isolation(repo).check()


def test_a_task_that_leaves_the_branch_stops_the_run(repo: Path):
    held = isolation(repo)
    held.begin()
    git(repo, "switch", "-qc", "other")
    (repo / "one").write_text("one")
    for act in (held.keep, held.undo):
        with pytest.raises(IsolationError, match="switched from refs/heads/main"):
            act("label")
    assert (repo / "one").read_text() == "one"


def test_a_killed_run_is_put_back(repo: Path):
    isolation(repo).begin()
    (repo / "a.txt").write_text("half")
    (repo / "new").write_text("half")
    after = isolation(repo)
    ref = after.recover("killed")
    assert git(repo, "show", f"{ref}:new") == "half"
    assert status(repo) == ""
    assert isolation(repo).recover("again") == ""
    assert RUNNING not in git(repo, "for-each-ref")


def test_what_a_killed_run_was_at_goes_on_from_where_it_began(repo: Path):
    base = isolation(repo).begin()
    (repo / "a.txt").write_text("half")
    after = isolation(repo)
    assert after.resume()
    (repo / "a.txt").write_text("whole")
    change = after.keep("make it")
    after.finish()
    assert git(repo, "show", "-s", "--format=%P %s", change).split() == [base, "make", "it"]
    assert git(repo, "show", f"{change}:a.txt") == "whole"
    assert not isolation(repo).resume(), "nothing runs any more"


def test_where_somebody_moved_on_after_a_kill_nothing_goes_on(repo: Path):
    isolation(repo).begin()
    git(repo, "commit", "-q", "--amend", "-m", "another")
    assert not isolation(repo).resume()
    git(repo, "reset", "-q", "--hard", RUNNING)
    assert isolation(repo).resume()
    (repo / ".git" / "index.lock").touch()
    assert isolation(repo).resume(), "the task's own command may be at it"
    (repo / ".git" / "MERGE_HEAD").touch()
    assert not isolation(repo).resume()


def test_before_the_first_commit(tmp_path: Path):
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "config", "user.email", "test@example.org")
    git(tmp_path, "config", "user.name", "Test")
    held = isolation(tmp_path)
    held.check()
    assert held.begin() == ""
    (tmp_path / "one").write_text("one")
    held.undo("attempt")
    assert not (tmp_path / "one").exists()
    held.begin()
    (tmp_path / "two").write_text("two")
    held.keep("Two")
    assert log(tmp_path) == ["Two"]


def test_a_folder_below_the_top(repo: Path):
    held = GitIsolation.find(repo / "dir", repo / "dir" / "TASKS.md")
    assert held
    held.begin()
    (repo / "a.txt").write_text("changed above")
    (repo / "dir" / ".holdfast").mkdir()
    (repo / "dir" / ".holdfast" / "x").write_text("ours")
    held.keep("Change above")
    assert git(repo, "show", "--format=", "--name-only", "HEAD").split() == ["a.txt"]


def test_outside_of_git_there_is_none(tmp_path: Path):
    assert GitIsolation.find(tmp_path, tmp_path / "TASKS.md") is None


_NAMES = st.sampled_from(
    ["a.txt", "dir/b.txt", "dir", "new", "new/x", "a.txt/x", "dir/sub/y", "-q", "* [x]"]
)
_STEPS = st.lists(
    st.tuples(st.sampled_from(["write", "delete", "add", "commit", "link"]), _NAMES), max_size=10
)


@pytest.mark.slow
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=_STEPS)
def test_whatever_a_task_does_undo_brings_the_tree_back(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str]]
):
    repo = make_repo(tmp_path_factory.mktemp("any") / "repo")
    before, base = files(repo), head(repo)
    held = isolation(repo)
    held.begin()
    for what, name in steps:
        act(repo, what, name)
    held.undo("attempt")
    assert files(repo) == before
    assert head(repo) == base
    assert status(repo) == ""


def act(repo: Path, what: str, name: str) -> None:
    """One thing that a task may do; what is impossible there is left out."""
    path = repo / name
    try:
        match what:
            case "write":
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"written {name}\n")
            case "delete":
                path.unlink()
                if path.parent != repo:
                    path.parent.rmdir()
            case "link":
                os.symlink("a.txt", path)
            case "add":
                git(repo, "--literal-pathspecs", "add", "--", name)
            case _:
                git(repo, "add", "-A")
                git(repo, "commit", "-qm", f"commit {name}")
    except (OSError, subprocess.CalledProcessError):
        pass


def test_what_a_kill_left_of_a_file_being_replaced_is_no_change(repo: Path) -> None:
    remains = repo / ".holdfast-0123456789abcdef.tmp"
    remains.write_text("half")
    (repo / "mine.tmp").write_text("whole")
    isolation = GitIsolation.find(repo, repo / "TASKS.md")
    assert isolation is not None
    with pytest.raises(UsageError, match=r"changes: mine\.tmp\."):
        isolation.check()
    assert not remains.exists()
