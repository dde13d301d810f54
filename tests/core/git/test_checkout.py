"""Where git stands: what it may write in, and what is refused before anything is written.

With git 2.39.5. Repositories whose refs are a reftable need git 2.45, and are not tried.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.core.git.test_worktrees import commit, git
from tui.batch.git import GitIsolation
from tui.core.errors import HoldfastError
from tui.core.git import door
from tui.core.git.branch import branch_of
from tui.core.git.door import GitError
from tui.core.git.merge import merge
from tui.core.git.removal import remove
from tui.core.git.repository import Repository
from tui.core.git.worktree_state import state_of

ALLOW = ("-c", "protocol.file.allow=always")


def new(top: Path, *options: str) -> Path:
    top.mkdir(parents=True)
    git(top, "init", "-q", "-b", "main", *options)
    git(top, "config", "user.email", "test@example.org")
    git(top, "config", "user.name", "Test")
    commit(top, "a.txt", "a\n")
    return top


@pytest.fixture(autouse=True)
def identity(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_AUTHOR", "GIT_COMMITTER"):
        monkeypatch.setenv(f"{name}_NAME", "Test")
        monkeypatch.setenv(f"{name}_EMAIL", "test@example.org")


def submodule(place: Path) -> Path:
    new(place / "library")
    outer = new(place / "outer")
    git(outer, *ALLOW, "submodule", "add", "-q", str(place / "library"), "sub")
    git(outer, "commit", "-qm", "with a submodule")
    return outer / "sub"


def submodule_with_settings_for_each(place: Path) -> Path:
    sub = submodule(place)
    git(sub, "config", "extensions.worktreeConfig", "true")
    return sub


def sparse_submodule(place: Path) -> Path:
    """Git itself moves `core.worktree` to the settings of the main worktree."""
    sub = submodule(place)
    git(sub, "sparse-checkout", "set", "--no-cone", "/*")
    assert "core.worktree" not in git(sub, "config", "--list", "--local")
    return sub


def nested_submodule(place: Path) -> Path:
    sub = submodule(place)
    new(place / "deeper")
    git(sub, *ALLOW, "submodule", "add", "-q", str(place / "deeper"), "deep")
    return sub / "deep"


def linked(place: Path) -> Path:
    git(new(place / "repo"), "worktree", "add", "-q", "-b", "side", str(place / "linked"))
    return place / "linked"


def linked_of_a_linked_one(place: Path) -> Path:
    git(linked(place), "worktree", "add", "-q", "-b", "third", str(place / "third"))
    return place / "third"


def linked_by_relative_paths(place: Path) -> Path:
    """As git 2.48 writes them with `worktree.useRelativePaths`."""
    tree = linked(place)
    kept = place / "repo/.git/worktrees/linked"
    (tree / ".git").write_text(f"gitdir: {os.path.relpath(kept, tree)}\n")
    (kept / "gitdir").write_text(f"{os.path.relpath(tree / '.git', kept)}\n")
    return tree


def of_a_bare_one(place: Path) -> Path:
    git(new(place / "repo"), "clone", "-q", "--bare", ".", str(place / "bare.git"))
    git(place / "bare.git", "worktree", "add", "-q", str(place / "main"), "main")
    return place / "main"


def borrowing(place: Path) -> Path:
    git(new(place / "repo"), "clone", "-q", "--shared", ".", str(place / "clone"))
    return place / "clone"


def shallow(place: Path) -> Path:
    commit(new(place / "repo"), "a.txt", "b\n")
    git(place, "clone", "-q", "--depth=1", f"file://{place}/repo", "clone")
    return place / "clone"


def sparse(place: Path) -> Path:
    repo = new(place / "repo")
    (repo / "far").mkdir()
    commit(repo, "far/b.txt", "b\n")
    git(repo, "sparse-checkout", "set", "--no-cone", "/*", "!/far")
    return repo


def detached(place: Path) -> Path:
    repo = new(place / "repo")
    git(repo, "checkout", "-q", "--detach")
    return repo


def below_the_top(place: Path) -> Path:
    repo = new(place / "repo")
    (repo / "dir").mkdir()
    return repo / "dir"


def named_git_folder(place: Path) -> Path:
    repo = new(place / "repo", f"--separate-git-dir={place / 'kept'}")
    git(repo, "config", "core.worktree", str(repo))
    return repo


def sha256(place: Path) -> Path:
    return new(place / "repo", "--object-format=sha256")


@pytest.mark.parametrize(
    "make",
    [
        submodule, sparse_submodule, nested_submodule, linked, linked_of_a_linked_one,
        linked_by_relative_paths, of_a_bare_one, borrowing, shallow, sparse, detached,
        below_the_top, named_git_folder, sha256,
    ],
)  # fmt: skip
def test_in_each_kind_of_repository_the_right_one_is_written(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    folder = make(tmp_path.resolve())
    top = Path(git(folder, "rev-parse", "--show-toplevel"))
    before = git(folder, "rev-parse", "HEAD")
    made = Repository.of(folder).enter("fix", folder)
    assert made.tree.path.parent.parent.parent in {top, tmp_path.resolve() / "repo"}
    assert Path(git(made.folder, "rev-parse", "--show-toplevel")) == made.tree.path
    assert (made.tree.path / "a.txt").exists()
    (made.tree.path / "new.txt").write_text("new\n")
    ref = remove(Repository.of(folder), made.tree, state_of(made.tree)).ref
    assert git(folder, "show", f"{ref}:new.txt") == "new"
    isolation = GitIsolation.find(folder, folder / "tasks.md")
    assert isolation
    isolation.check()
    isolation.begin()
    (top / "a.txt").write_text("task\n")
    done = isolation.keep("task")
    assert git(folder, "rev-parse", "HEAD", "HEAD^").split() == [done, before]
    isolation.finish()


def test_a_submodule_whose_worktrees_would_share_its_folder_keeps_its_git_folder(
    tmp_path: Path,
) -> None:
    """Git 2.39.5 takes `core.worktree` from the shared settings there, relative to the worktree's
    own git folder: a checkout would fall upon the submodule's git folder."""
    sub = submodule_with_settings_for_each(tmp_path)
    kept = tmp_path / "outer/.git/modules/sub"
    commit(sub, "config", "a file that would fall upon the settings\n")
    before = contents(kept)
    with pytest.raises(GitError, match="No worktree was made") as raised:
        Repository.of(sub).enter("fix", sub)
    assert "core.worktree" in raised.value.hint
    assert contents(kept) == before
    assert not (sub / ".holdfast").exists()
    assert git(sub, "branch", "--list", "worktree-fix") == ""
    assert git(sub, "worktree", "prune", "-v") == ""


def with_hostile_link(place: Path) -> Path:
    (place / "hostile").mkdir()
    (place / "hostile/.git").write_text(f"gitdir: {new(place / 'repo')}/.git\n")
    return place / "hostile"


def with_symbolic_link(place: Path) -> Path:
    (place / "hostile").mkdir()
    (place / "hostile/.git").symlink_to(new(place / "repo") / ".git")
    return place / "hostile"


def posing_as_linked(place: Path) -> Path:
    """With a folder of its own, which names it, but isn't one of the repository's worktrees."""
    new(place / "repo")
    hostile = place / "hostile"
    (hostile / "kept").mkdir(parents=True)
    (hostile / ".git").write_text("gitdir: kept\n")
    (hostile / "kept/HEAD").write_text("ref: refs/heads/main\n")
    (hostile / "kept/gitdir").write_text(f"{hostile}/.git\n")
    (hostile / "kept/commondir").write_text(f"{place}/repo/.git\n")
    return hostile


def with_common_folder(place: Path) -> Path:
    new(place / "repo")
    hostile = new(place / "hostile")
    (hostile / ".git/commondir").write_text(f"{place}/repo/.git\n")
    return hostile


def with_files_elsewhere(place: Path) -> Path:
    hostile = new(place / "hostile")
    git(hostile, "config", "core.worktree", str(new(place / "repo")))
    return hostile


def with_files_above(place: Path) -> Path:
    (place / "notes.txt").write_text("mine\n")
    hostile = new(place / "hostile")
    git(hostile, "config", "core.worktree", str(place))
    return hostile


def without_head(place: Path) -> Path:
    outer = new(place / "repo")
    inner = new(outer / "build/dep")
    (inner / ".git/HEAD").unlink()
    return inner


def moved(place: Path) -> Path:
    """A worktree whose repository was moved: its `.git` names the old place."""
    tree = linked(place)
    (place / "repo").rename(place / "elsewhere")
    return tree


def emptied(place: Path) -> Path:
    repo = new(place / "repo")
    shutil.rmtree(repo / ".git")
    (repo / ".git").mkdir()
    return repo


def with_refs_elsewhere(place: Path) -> Path:
    hostile = new(place / "hostile")
    shutil.rmtree(hostile / ".git/refs")
    (hostile / ".git/refs").symlink_to(new(place / "repo") / ".git/refs")
    return hostile


def with_a_branch_elsewhere(place: Path) -> Path:
    hostile = new(place / "hostile")
    (hostile / ".git/refs/heads/a").symlink_to(new(place / "repo") / ".git/refs/heads")
    git(hostile, "symbolic-ref", "HEAD", "refs/heads/a/main")
    return hostile


def with_excludes_elsewhere(place: Path) -> Path:
    hostile = new(place / "hostile")
    (place / "profile").write_text("mine\n")
    (hostile / ".git/info/exclude").unlink()
    (hostile / ".git/info/exclude").symlink_to(place / "profile")
    return hostile


def with_a_log_elsewhere(place: Path) -> Path:
    """Git appends a line to it with each commit, which has words of the commit."""
    hostile = new(place / "hostile")
    (place / "profile").write_text("mine\n")
    (hostile / ".git/logs/refs/heads/main").unlink()
    (hostile / ".git/logs/refs/heads/main").symlink_to(place / "profile")
    return hostile


def with_a_log_elsewhere_by_a_second_link(place: Path) -> Path:
    hostile = new(place / "hostile")
    (place / "profile").write_text("mine\n")
    (hostile / ".git/logs/refs/heads").rename(hostile / ".git/other")
    (hostile / ".git/logs/refs/heads").symlink_to("../../other")
    (hostile / ".git/other/loop").symlink_to("../logs/refs")
    (hostile / ".git/other/main").unlink()
    (hostile / ".git/other/main").symlink_to(place / "profile")
    return hostile


def with_messages_elsewhere(place: Path) -> Path:
    hostile = new(place / "hostile")
    (place / "profile").write_text("mine\n")
    (hostile / ".git/COMMIT_EDITMSG").unlink()
    (hostile / ".git/COMMIT_EDITMSG").symlink_to(place / "profile")
    return hostile


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (with_hostile_link, "belongs elsewhere"),
        (with_symbolic_link, "belongs elsewhere"),
        (posing_as_linked, "belongs elsewhere"),
        (with_common_folder, "belongs elsewhere"),
        (with_files_elsewhere, "isn't what git uses"),
        (with_files_above, "isn't what git uses"),
        (without_head, "isn't what git uses"),
        (moved, "isn't a git repository, and leads to none"),
        (emptied, "isn't a git repository, and leads to none"),
        (with_refs_elsewhere, "leads out of the repository"),
        (with_a_branch_elsewhere, "leads out of the repository"),
        (with_excludes_elsewhere, "leads out of the repository"),
        (with_a_log_elsewhere, "leads out of the repository"),
        (with_a_log_elsewhere_by_a_second_link, "leads out of the repository"),
        (with_messages_elsewhere, "leads out of the repository"),
    ],
)
def test_where_git_would_write_elsewhere_nothing_is_written(
    tmp_path: Path, make: Callable[[Path], Path], words: str
) -> None:
    folder = make(tmp_path.resolve())
    before = contents(tmp_path)
    with pytest.raises(GitError, match=words) as raised:
        Repository.of(folder)
    assert raised.value.hint
    with pytest.raises(GitError, match=words):
        GitIsolation.find(folder, folder / "tasks.md")
    assert contents(tmp_path) == before


def rewritten(tree: Path) -> None:
    """As a command might that got at it: its own folder, with settings that run a program."""
    new(tree / "prepared")
    (tree / ".git").write_text("gitdir: prepared/.git\n")


def gone(tree: Path) -> None:
    (tree / ".git").unlink()


def made_a_repository(tree: Path) -> None:
    (tree / ".git").unlink()
    git(tree, "init", "-q", "-b", "main")
    commit(tree, "a.txt", "other\n")


def led_to_the_main_one(tree: Path) -> None:
    (tree / ".git").write_text("gitdir: ../../../.git\n")


def posing_as_one_of_another(tree: Path) -> None:
    """A worktree that names its folder and is named by it, of a repository that lies inside."""
    kept = new(tree / "prepared") / ".git/worktrees/fix"
    kept.mkdir(parents=True)
    (kept / "HEAD").write_text("ref: refs/heads/main\n")
    (kept / "gitdir").write_text(f"{tree}/.git\n")
    (kept / "commondir").write_text("../..\n")
    (tree / ".git").write_text(f"gitdir: {kept}\n")


@pytest.mark.parametrize(
    "damage",
    [rewritten, gone, made_a_repository, led_to_the_main_one, posing_as_one_of_another],
)
def test_a_worktree_of_ours_that_leads_elsewhere_is_refused_everywhere(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    repo = new(tmp_path.resolve() / "repo")
    made = Repository.of(repo).enter("fix", repo)
    other = Repository.of(repo).enter("other", repo)
    commit(made.folder, "work.txt", "work\n")
    state = state_of(made.tree)
    (repo / "a.txt").write_text("uncommitted\n")
    damage(made.folder)
    before = contents(repo)
    with pytest.raises(GitError):
        Repository.of(made.folder)
    with pytest.raises(GitError):
        Repository.of(repo).enter("fix", repo)
    with pytest.raises(GitError):
        Repository.of(repo).find("fix")
    with pytest.raises(GitError):
        GitIsolation.find(made.folder, repo / "tasks.md")
    with pytest.raises(GitError):
        remove(Repository.of(repo), made.tree, state)
    assert contents(repo) == before | {made.tree.git_dir / "holdfast.lock": b""}
    assert Repository.of(repo).names() == ["fix", "other"]
    remove(Repository.of(repo), other.tree, state_of(other.tree))
    assert (repo / "a.txt").read_text() == "uncommitted\n"


def test_what_was_found_before_stays_what_git_is_told(tmp_path: Path) -> None:
    """A `.git` that is rewritten or lost between two steps leads git nowhere else."""
    repo = new(tmp_path.resolve() / "repo")
    made = Repository.of(repo).enter("fix", repo)
    commit(made.folder, "work.txt", "work\n")
    gone(made.folder)
    assert state_of(made.tree).ahead == 1
    assert made.tree.checkout.git("rev-parse", "--show-toplevel").strip() == str(made.folder)
    merge(made.tree)
    assert (repo / "work.txt").read_text() == "work\n"
    git(repo, "worktree", "repair")
    remove(Repository.of(repo), made.tree, state_of(made.tree))


def test_a_repository_that_loses_its_head_in_a_run_is_not_exchanged_for_the_outer_one(
    tmp_path: Path,
) -> None:
    outer = new(tmp_path / "outer")
    inner = new(outer / "inner")
    isolation = GitIsolation.find(inner, inner / "tasks.md")
    assert isolation
    isolation.begin()
    (outer / "a.txt").write_text("mine\n")
    (inner / "a.txt").write_text("task\n")
    (inner / ".git/HEAD").unlink()
    for step in (lambda: isolation.keep("done"), lambda: isolation.undo("failed")):
        with pytest.raises(HoldfastError):
            step()
    assert (outer / "a.txt").read_text() == "mine\n"
    assert (inner / "a.txt").read_text() == "task\n"
    assert git(outer, "log", "--format=%s") == "write a.txt"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_somebody_elses_repository_is_named(tmp_path: Path) -> None:
    repo = new(tmp_path / "repo")
    os.chown(repo, 65534, 65534)
    os.chown(repo / ".git", 65534, 65534)
    with pytest.raises(GitError, match="belongs to another user") as raised:
        Repository.of(repo)
    assert "safe.directory" in raised.value.hint
    with pytest.raises(GitError, match="belongs to another user"):
        GitIsolation.find(repo, repo / "tasks.md")


def test_the_branch_is_read_without_git(tmp_path: Path) -> None:
    repo = new(tmp_path / "repo")
    git(repo, "worktree", "add", "-q", "-b", "feature/x", str(tmp_path / "linked"))
    (repo / "dir").mkdir()
    assert branch_of(repo / "dir") == "main"
    assert branch_of(tmp_path / "linked") == "feature/x"
    git(repo, "checkout", "-q", "--detach")
    assert branch_of(repo) == git(repo, "rev-parse", "HEAD")[:8]
    assert branch_of(tmp_path) == ""


@pytest.mark.parametrize("head", ["ref: refs/heads/.invalid", "ref: refs/heads/\x1b]0;x", "a\nb"])
def test_a_head_that_names_no_branch_shows_none(tmp_path: Path, head: str) -> None:
    inner = new(new(tmp_path / "repo") / "inner")
    (inner / ".git/HEAD").write_text(head)
    assert branch_of(inner) == ""


def test_a_head_that_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    repo = new(tmp_path / "repo")
    (repo / ".git/HEAD").unlink()
    os.mkfifo(repo / ".git/HEAD")
    assert branch_of(repo) == ""
    (repo / ".git/HEAD").unlink()
    (repo / ".git/HEAD").symlink_to("/dev/zero")
    assert branch_of(repo) == ""


def test_a_pipe_where_git_reads_a_file_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = new(tmp_path / "repo")
    (repo / ".git/config").unlink()
    os.mkfifo(repo / ".git/config")
    monkeypatch.setattr(door, "_ANSWER_S", 0.1)
    with pytest.raises(GitError, match=r"git rev-parse in .* was stopped"):
        Repository.of(repo)


def test_a_git_that_is_too_old_to_be_told_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before 2.31 it takes no settings from variables; the stand-in forgets them."""
    repo = new(tmp_path.resolve() / "repo")
    old = tmp_path / "bin/git"
    old.parent.mkdir()
    old.write_text(f'#!/bin/sh\nunset GIT_CONFIG_COUNT\nexec {shutil.which("git")} "$@"\n')
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{old.parent}:{os.environ['PATH']}")
    with pytest.raises(GitError, match="too old"):
        Repository.of(repo)


def contents(folder: Path) -> dict[Path, bytes]:
    """All files below a folder."""
    found = (Path(place, name) for place, _, names in os.walk(folder) for name in names)
    return {path: path.read_bytes() for path in found}
