"""Files and settings of a task's folder here, from the checkout that the run began in."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from tests.batch.cluster.test_results import put_run, spec
from tests.batch.test_git import git, head, make_repo
from tui.batch.cluster.entry import TaskEntry
from tui.batch.cluster.task_store import TaskStore
from tui.batch.cluster.workplace import Workplace

ODD = 'a "quoted" \\ value; # of\ttwo\nlines'


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = make_repo(tmp_path / "repo")
    (repo / ".gitignore").write_text("*.o\n.env\n.holdfast/\n")
    (repo / ".worktreeinclude").write_text(".env\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "ignore")
    (repo / ".env").write_text("SECRET=1\n")
    (repo / "made.o").write_text("object")
    (repo / ".holdfast").mkdir()
    (repo / ".holdfast" / "MEMORY.md").write_text("remember\n")
    git(repo, "tag", "-am", "one", "v1")
    git(repo, "branch", "other")
    git(repo, "branch", "worktree-of-somebody")
    git(repo, "config", "test.odd", ODD)
    git(repo, "config", "test.Sub.Section.name", "x")
    git(repo, "config", "core.autocrlf", "input")
    git(repo, "config", "core.worktree", str(repo))
    (repo / ".git" / "info" / "exclude").write_text("mine\n")
    hook = repo / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\n")
    return repo


def place_of(repo: Path, folder: Path, **more: object) -> tuple[Workplace, tuple[str, ...]]:
    """The folder of a task of a run in the repository, and what is said of it."""
    store = TaskStore.at(str(folder / "store.git"), folder / "mirror")
    store.make()
    run = put_run(store, repo)
    described = msgspec.structs.replace(spec(repo), **more)
    place = Workplace(folder / "place", described)
    begun = store.commit(TaskEntry(key="1", tasks=(0,)).to_message())
    place.make(store, run, begun, TaskEntry(key="1", tasks=(0,)))
    return place, place.bring()


def refs(top: Path) -> list[str]:
    return git(top, "for-each-ref", "--format=%(refname)").split()


def test_a_task_on_this_machine_has_what_a_worktree_has(repo: Path, tmp_path: Path) -> None:
    place, notes = place_of(repo, tmp_path, origin=str(repo))
    top = place.top
    assert (top / ".env").read_text() == "SECRET=1\n"
    assert (top / ".holdfast" / "MEMORY.md").read_text() == "remember\n"
    assert not (top / "made.o").exists()
    assert notes == ("Copied, as git ignores them: .holdfast/MEMORY.md, .env.",)
    assert refs(top) == ["refs/heads/main", "refs/heads/other", "refs/tags/v1"]
    assert git(top, "describe").strip() == "v1"
    assert git(top, "config", "test.odd") == f"{ODD}\n"
    assert git(top, "config", "test.Sub.Section.name") == "x\n"
    assert git(top, "config", "core.autocrlf") == "input\n"
    assert git(top, "rev-parse", "--show-toplevel").strip() == os.path.realpath(top)
    assert (top / ".git" / "info" / "exclude").read_text() == "mine\n"
    assert git(top, "status", "--porcelain") == ""
    assert not (top / ".git" / "hooks" / "pre-commit").exists()
    assert head(repo) in git(top, "log", "--format=%H")


def test_ignored_files_that_a_task_made_are_kept(repo: Path, tmp_path: Path) -> None:
    place, _ = place_of(repo, tmp_path / "scratch" / "s" / "R", origin=str(repo))
    assert place.keep_ignored() == ""
    (place.top / "src").mkdir()
    (place.top / "src" / "new.o").write_text("made")
    (place.top / ".env").write_text("SECRET=2\n")
    (place.top / ".holdfast" / "run" / "note").write_text("the program's")
    said = place.keep_ignored()
    kept = tmp_path / "scratch" / "kept" / "R-place"
    assert said == f"2 ignored files (.env, src/new.o) of the task: moved to {kept}."
    assert (kept / "src" / "new.o").read_text() == "made"
    (place.top / "again.o").write_text("made")
    assert f"(again.o) of the task: moved to {kept}b." in place.keep_ignored()
    place.remove()
    assert sorted(path.name for path in kept.iterdir()) == [".env", "src"]


def test_git_hooks_are_there_where_they_are_to_run(repo: Path, tmp_path: Path) -> None:
    config = {"batch": {"hooks": True}}
    place, _ = place_of(repo, tmp_path, origin=str(repo), config=config)
    assert (place.top / ".git" / "hooks" / "pre-commit").read_text() == "#!/bin/sh\n"


@pytest.mark.parametrize("origin", ["", "/nowhere/any/more"])
def test_elsewhere_a_task_has_what_is_committed(repo: Path, tmp_path: Path, origin: str) -> None:
    place, notes = place_of(repo, tmp_path, origin=origin)
    assert refs(place.top) == ["refs/heads/main"]
    assert not (place.top / ".env").exists()
    assert notes == ()
    assert place.keep_ignored() == ""


def test_a_folder_that_is_made_again_has_it_again(repo: Path, tmp_path: Path) -> None:
    place, first = place_of(repo, tmp_path, origin=str(repo))
    assert place.bring() == ()  # it is there
    place.remove()
    again, notes = place_of(repo, tmp_path / "again", origin=str(repo))
    assert (again.top / ".env").exists()
    assert notes == first


def test_settings_may_have_bytes_that_are_no_text(repo: Path, tmp_path: Path) -> None:
    config = repo / ".git" / "config"
    config.write_bytes(config.read_bytes() + b"[test]\n\tname = M\xfcller\n")
    top = place_of(repo, tmp_path, origin=str(repo))[0].top
    assert b'"M\xfcller"' in (top / ".git" / "config").read_bytes()


def test_a_link_in_the_place_of_attributes_is_not_followed(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret\n")
    (repo / ".git" / "info" / "attributes").symlink_to(tmp_path / "key")
    top = place_of(repo, tmp_path, origin=str(repo))[0].top
    assert [path.name for path in (top / ".git" / "info").iterdir()] == ["exclude"]
