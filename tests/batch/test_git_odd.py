"""Isolation by git in repositories that are not plain ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.batch.test_git import files, git, head, isolation, log, make_repo, status
from tui.batch.git import RUNNING, GitIsolation
from tui.batch.isolation import IsolationError
from tui.core.errors import UsageError
from tui.core.git import door
from tui.core.git.door import GitError


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo")


def both_ways(repo: Path, found: GitIsolation) -> None:
    """A failed task leaves no trace, a good one becomes one commit."""
    before, base = files(repo), head(repo)
    found.check()
    found.begin()
    (repo / "a.txt").write_text("broken\n")
    (repo / "new.txt").write_text("new\n")
    ref = found.undo("try")
    assert files(repo) == before
    assert head(repo) == base
    assert git(repo, "show", f"{ref}:new.txt") == "new\n"
    found.begin()
    (repo / "a.txt").write_text("good\n")
    assert found.keep("made it") == head(repo)
    found.finish()
    assert log(repo)[0] == "made it"
    assert status(repo) == ""


def test_the_hooks_of_the_person_do_not_run(repo: Path, tmp_path: Path):
    for name in ("post-checkout", "reference-transaction", "pre-commit", "post-index-change"):
        hook = repo / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\necho {name} >> {tmp_path}/ran\nexit 1\n")
        hook.chmod(0o755)
    found = isolation(repo)
    found.begin()
    (repo / "a.txt").write_text("x\n")
    found.undo("try")
    found.begin()
    (repo / "a.txt").write_text("y\n")
    found.keep("y")
    assert not (tmp_path / "ran").exists()


def test_without_an_identity_commits_are_nobodys(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("user.email", "user.name"):
        git(repo, "config", "--unset", name)
    git(repo, "config", "user.useConfigOnly", "true")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    monkeypatch.setenv("EMAIL", "")
    both_ways(repo, isolation(repo))
    assert "@" in git(repo, "log", "-1", "--format=%ae")


def test_the_identity_of_the_environment_counts(repo: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Somebody")
    both_ways(repo, isolation(repo))
    assert git(repo, "log", "-1", "--format=%an").strip() == "Somebody"


def test_variables_do_not_lead_to_another_repository(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    other = make_repo(tmp_path / "other")
    before = head(other)
    git_dir, index = str(other / ".git"), str(other / ".git" / "index")
    monkeypatch.setenv("GIT_INDEX_FILE", index)
    monkeypatch.setenv("GIT_DIR", git_dir)
    found = isolation(repo)
    found.begin()
    (repo / "a.txt").write_text("x\n")
    found.keep("x")
    monkeypatch.delenv("GIT_DIR")
    monkeypatch.delenv("GIT_INDEX_FILE")
    assert log(repo)[0] == "x"
    assert head(other) == before


def test_a_second_work_tree_has_a_run_of_its_own(repo: Path, tmp_path: Path):
    second = tmp_path / "second"
    git(repo, "worktree", "add", "-q", "-b", "side", str(second))
    one, two = isolation(repo), isolation(second)
    one.begin()
    two.begin()
    (repo / "a.txt").write_text("one\n")
    (second / "a.txt").write_text("two\n")
    two.keep("two")
    two.finish()
    assert git(repo, "rev-parse", RUNNING).strip() == head(repo)
    fresh = isolation(repo)
    assert fresh.recover("killed").startswith("refs/holdfast/")
    assert (repo / "a.txt").read_text() == "a\n"
    assert log(second)[0] == "two"


def test_a_repository_of_the_other_hash_before_its_first_commit(tmp_path: Path):
    repo = tmp_path / "new"
    repo.mkdir()
    git(repo, "init", "-q", "-b", "main", "--object-format=sha256")
    git(repo, "config", "user.email", "test@example.org")
    git(repo, "config", "user.name", "Test")
    found = isolation(repo)
    found.check()
    found.begin()
    (repo / "a.txt").write_text("a\n")
    assert len(found.keep("first")) == 64
    assert log(repo) == ["first"]


def test_a_sparse_checkout_keeps_what_is_not_there(repo: Path):
    git(repo, "sparse-checkout", "set", "--no-cone", "/*", "!/dir")
    assert not (repo / "dir").exists()
    both_ways(repo, isolation(repo))
    assert git(repo, "show", "HEAD:dir/b.txt") == "b\n"
    assert not (repo / "dir").exists()


def test_a_submodule_is_left_alone(repo: Path, tmp_path: Path):
    inner = make_repo(tmp_path / "inner")
    git(repo, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "sub")
    git(repo, "commit", "-qm", "sub")
    (repo / "sub" / "a.txt").write_text("mine\n")
    found = isolation(repo)
    found.check()
    found.begin()
    (repo / "a.txt").write_text("x\n")
    found.undo("try")
    assert (repo / "sub" / "a.txt").read_text() == "mine\n"
    assert (repo / "a.txt").read_text() == "a\n"


def test_a_detached_head_stays_detached(repo: Path):
    git(repo, "checkout", "-q", "--detach")
    both_ways(repo, isolation(repo))
    assert git(repo, "rev-parse", "--abbrev-ref", "HEAD").strip() == "HEAD"


def test_a_folder_below_the_top_is_a_target(repo: Path):
    found = GitIsolation.find(repo / "dir", repo / "TASKS.md")
    assert found
    found.begin()
    (repo / "dir" / ".holdfast").mkdir()
    (repo / "dir" / ".holdfast" / "x").write_text("x")
    (repo / "dir" / "c.txt").write_text("c\n")
    found.keep("c")
    assert git(repo, "show", "--name-only", "--format=", "HEAD").split() == ["dir/c.txt"]


def test_another_git_at_work_is_waited_for(repo: Path, monkeypatch: pytest.MonkeyPatch):
    lock = repo / ".git" / "index.lock"
    found = isolation(repo)
    found.begin()
    (repo / "a.txt").write_text("x\n")
    lock.write_text("")
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            lock.unlink()

    monkeypatch.setattr(door, "sleep", wait)
    found.keep("x")
    assert len(waits) == 3
    assert status(repo) == ""
    found.begin()
    (repo / "a.txt").write_text("y\n")
    lock.write_text("")
    with pytest.raises(GitError, match=r"index\.lock"):
        found.keep("y")


def test_a_kept_task_that_nobody_knows_of_is_undone(repo: Path):
    """Killed between the commit and the saved state: the task is run again."""
    found, base = isolation(repo), head(repo)
    found.begin()
    (repo / "a.txt").write_text("x\n")
    made = found.keep("x")
    again = isolation(repo)
    ref = again.recover("killed")
    assert head(repo) == base
    assert (repo / "a.txt").read_text() == "a\n"
    assert git(repo, "rev-parse", f"{ref}^").strip() == made
    assert isolation(repo).recover("killed") == ""


def with_own_filter(repo: Path, ran: Path, pattern: str) -> None:
    (repo / ".gitattributes").write_text(f"{pattern} filter=mine\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "attributes")
    for name in ("clean", "smudge", "process"):
        git(repo, "config", f"filter.mine.{name}", f"touch {ran}; cat")


def test_a_filter_of_the_repositorys_own_settings_never_runs(repo: Path, tmp_path: Path):
    with_own_filter(repo, tmp_path / "ran", "*.bin")
    (repo / "a.txt").touch()
    both_ways(repo, isolation(repo))
    found = isolation(repo)
    found.begin()
    (repo / "new.bin").write_text("new\n")
    with pytest.raises(IsolationError, match=r"new\.bin goes through the filter mine"):
        found.keep("new")
    found.undo("try")
    assert not (tmp_path / "ran").exists()


def test_where_files_need_such_a_filter_no_task_begins(repo: Path, tmp_path: Path):
    with_own_filter(repo, tmp_path / "ran", "a.txt")
    with pytest.raises(UsageError, match=r"a\.txt goes through the filter mine") as raised:
        isolation(repo).check()
    assert "git config --global filter.mine.clean" in raised.value.hint
    assert not (tmp_path / "ran").exists()


def test_a_filter_of_the_persons_own_settings_runs(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    mine = tmp_path / "gitconfig"
    mine.write_text('[filter "mine"]\n\tclean = tr a-z A-Z\n\tsmudge = tr A-Z a-z\n\trequired\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(mine))
    (repo / ".gitattributes").write_text("*.bin filter=mine\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "attributes")
    found = isolation(repo)
    found.check()
    found.begin()
    (repo / "new.bin").write_text("loud\n")
    found.keep("new")
    assert git(repo, "show", "HEAD:new.bin") == "LOUD\n"
    found.begin()
    (repo / "new.bin").write_text("other\n")
    found.undo("try")
    assert (repo / "new.bin").read_text() == "loud\n"


def test_undoing_never_follows_a_link_that_took_the_place_of_a_folder(repo: Path, tmp_path: Path):
    """Committed below a folder that is then a link: what lies at its end isn't the task's."""
    mine = tmp_path / "mine"
    (mine / "empty").mkdir(parents=True)
    (mine / "x").write_text("precious\n")
    found, before = isolation(repo), files(repo)
    found.begin()
    (repo / "d" / "empty").mkdir(parents=True)
    (repo / "d" / "x").write_text("task\n")
    (repo / "d" / "empty" / "y").write_text("task\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "task")
    (repo / "d" / "x").unlink()
    (repo / "d" / "empty" / "y").unlink()
    (repo / "d" / "empty").rmdir()
    (repo / "d").rmdir()
    (repo / "d").symlink_to(mine)
    (repo / ".git" / "info" / "exclude").write_text("/d\n")
    found.undo("try")
    assert (mine / "x").read_text() == "precious\n"
    assert (mine / "empty").is_dir()
    assert (repo / "d").is_symlink()
    (repo / "d").unlink()
    assert files(repo) == before


EXCHANGED = """\
[filter "mine"]
	clean = cat
	smudge = "sh -c 'test -L dir || { mv dir aside; ln -s ../mine dir; }; cat'"
"""
"""Whatever is checked out first, a folder is exchanged then, and git goes on writing by path."""


def test_what_is_put_back_is_not_written_through_a_folder_exchanged_meanwhile(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    mine = tmp_path / "mine"
    mine.mkdir()
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    (repo / ".gitattributes").write_text("dir/a filter=mine\n")
    for name in ("dir/a", "dir/new"):
        (repo / name).write_text("from the repository\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "files")
    (tmp_path / "gitconfig").write_text(EXCHANGED)
    found = isolation(repo)
    found.begin()
    for name in ("dir/a", "dir/b.txt", "dir/new"):
        (repo / name).write_text("task\n")
    found.undo("try")
    assert not list(mine.iterdir())
    assert (repo / "dir/new").read_text() == "from the repository\n"
    assert not (repo / "dir").is_symlink()


def test_a_folder_in_the_place_of_a_file_is_kept_with_what_git_ignores(repo: Path):
    found = isolation(repo)
    found.begin()
    (repo / "a.txt").unlink()
    (repo / "a.txt").mkdir()
    (repo / "a.txt/built.o").write_text("built")
    with pytest.raises(GitError, match=r"can't put a\.txt in its place: .*not empty"):
        found.undo("try")
    assert (repo / "a.txt/built.o").read_text() == "built"


@pytest.mark.parametrize("name", ["index", "packed-refs"])
def test_a_link_in_the_git_folder_is_not_written_through(repo: Path, tmp_path: Path, name: str):
    profile = tmp_path / "profile"
    found = isolation(repo)
    found.begin()
    (repo / "a.txt").write_text("x\n")
    kept = repo / ".git" / name
    profile.write_bytes(kept.read_bytes() if kept.exists() else b"")
    before = profile.read_bytes()
    kept.unlink(missing_ok=True)
    kept.symlink_to(profile)
    with pytest.raises(GitError, match="leads out of the repository"):
        found.keep("x")
    assert profile.read_bytes() == before
