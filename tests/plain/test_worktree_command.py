"""/worktree in plain lines, in real repositories."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.plain.face import talking, until
from tests.support.world import World
from tui.app.worktree_session import leave
from tui.core.git.repository import Repository
from tui.core.git.worktree import Worktree


def git(repo: Path, *args: str) -> str:
    done = subprocess.run(["git", *args], cwd=repo, check=True, capture_output=True, text=True)
    return done.stdout.rstrip("\n")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    top = tmp_path / "repo"
    top.mkdir()
    git(top, "init", "-q", "-b", "main")
    git(top, "config", "user.email", "test@example.org")
    git(top, "config", "user.name", "Test")
    (top / "a.txt").write_text("a\n")
    git(top, "add", "-A")
    git(top, "commit", "-qm", "first")
    return top


@pytest.fixture
def tree(repo: Path) -> Worktree:
    return Repository.of(repo).enter("fix", repo).tree


def commit(tree: Worktree, name: str) -> None:
    (tree.path / name).write_text("work\n")
    git(tree.path, "add", "-A")
    git(tree.path, "commit", "-qm", name)


async def heard(folder: Path, line: str, until_said: str, *answers: str) -> str:
    """What is said after a command in a session that works in a folder."""
    async with talking(World(folder), answers=answers) as (_, face):
        face.prompts.append(line)
        await until(lambda: until_said in face.text)
        return face.text


async def test_in_one_it_shows_where_it_is(tree: Worktree, repo: Path) -> None:
    commit(tree, "b.txt")
    (tree.path / "c.txt").write_text("new\n")
    said = await heard(tree.path, "/worktree", "Now:")
    assert "Worktree fix" in said
    assert "Branch: worktree-fix" in said
    assert f"Made from: main in {repo}" in said
    assert "Commits: 1 ahead of main" in said
    assert "Now: 1 changed file (c.txt), 1 commit that main lacks" in said


async def test_list_marks_the_one_it_is_in(tree: Worktree, repo: Path) -> None:
    Repository.of(repo).enter("other", repo)
    said = await heard(tree.path, "/worktree list", "2 worktrees in")
    assert "fix (here), worktree-fix, nothing changed" in said
    assert "other, worktree-other, nothing changed" in said


async def test_without_any_it_says_how_to_start_one(repo: Path) -> None:
    assert "holdfast --worktree NAME" in await heard(repo, "/worktree", "No worktrees here.")


async def test_merge_names_what_is_not_committed_first(tree: Worktree, repo: Path) -> None:
    commit(tree, "b.txt")
    (tree.path / "c.txt").write_text("new\n")
    async with talking(World(tree.path), answers=["2"]) as (_, face):
        face.prompts.append("/worktree merge")
        await until(lambda: face.asked)
        assert "1 file in fix isn't committed and won't be merged." in face.text
        assert "c.txt" in face.text
    assert not (repo / "b.txt").exists()
    said = await heard(tree.path, "/worktree merge", "Merged", "1")
    assert f"Merged 1 commit of fix into main in {repo}." in said
    assert (repo / "b.txt").exists()
    assert (tree.path / "c.txt").exists()


async def test_merge_from_the_checkout_takes_a_name(tree: Worktree, repo: Path) -> None:
    commit(tree, "b.txt")
    await heard(repo, "/worktree merge fix", "Merged 1 commit of fix into main")
    said = await heard(repo, "/worktree merge nope", "There is no worktree nope.")
    assert "There are: fix." in said


async def test_removing_asks_where_something_would_be_lost(tree: Worktree, repo: Path) -> None:
    (tree.path / "c.txt").write_text("new\n")
    async with talking(World(repo), answers=["2"]) as (_, face):
        face.prompts.append("/worktree remove fix")
        await until(lambda: face.asked)
        assert "1 changed file (c.txt)" in face.text
    assert tree.path.exists()
    said = await heard(repo, "/worktree remove fix", "Removed the worktree fix.", "1")
    assert "saved: git show refs/holdfast/worktrees/fix-" in said
    assert not tree.path.exists()


async def test_the_one_it_is_in_goes_on_leaving_unless_it_changed(
    tree: Worktree, repo: Path
) -> None:
    commit(tree, "b.txt")
    said = await heard(tree.path, "/worktree remove", "when you leave it", "1")
    assert "/quit" in said
    assert tree.path.exists()
    (tree.path / "late.txt").write_text("late\n")
    assert leave(tree)[0] == "The worktree fix stays: it changed after you removed it."
    (tree.path / "late.txt").unlink()
    assert leave(tree) == [
        "Removed the worktree fix.",
        "Its branch worktree-fix is still there.",
    ]
    assert git(repo, "log", "--format=%s", "-1", "worktree-fix") == "b.txt"


async def test_other_words_are_refused_with_those_there_are(repo: Path, tmp_path: Path) -> None:
    said = await heard(repo, "/worktree sell", "can't 'sell'")
    assert "/worktree merge [NAME]" in said
    said = await heard(repo, "/worktree remove", "doesn't work in a worktree")
    assert "/worktree list" in said
    said = await heard(tmp_path, "/worktree", "isn't in a git repository")
    assert "git init" in said


def test_leaving_one_with_commits_says_how_to_merge_them(tree: Worktree) -> None:
    commit(tree, "b.txt")
    assert leave(tree) == [
        "The worktree fix stays: 1 commit that main lacks.",
        "Back to it: holdfast -w fix · merge: git merge worktree-fix",
    ]


def test_leaving_one_that_is_gone_says_so(tree: Worktree, repo: Path) -> None:
    git(repo, "worktree", "remove", "--force", str(tree.path))
    assert leave(tree)[0].startswith("The worktree fix is gone.")


async def test_one_that_git_would_not_stand_in_is_named_among_the_others(
    tree: Worktree, repo: Path
) -> None:
    Repository.of(repo).enter("other", repo)
    (tree.path / ".git").unlink()
    said = await heard(repo, "/worktree list", "2 worktrees in")
    assert f"{tree.path}/.git isn't what git uses: it would act on {repo}." in said
    assert "other, worktree-other, nothing changed" in said
    said = await heard(repo, "/worktree remove fix", "isn't what git uses")
    assert "git worktree repair" in said
