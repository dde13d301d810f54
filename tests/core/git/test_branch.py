"""The branch and the commit of a folder, read from what git itself wrote."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tui.core.git.branch import branch_of, commit_of, folder_named


def git(folder: Path, *words: str) -> str:
    settings = ("-c", "user.name=a", "-c", "user.email=a@b")
    said = subprocess.run(["git", *settings, *words], cwd=folder, check=True, capture_output=True)
    return said.stdout.decode().strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "one"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def test_a_branch_is_read_loose_packed_and_in_a_worktree(checkout: Path, tmp_path: Path) -> None:
    head = git(checkout, "rev-parse", "HEAD")
    assert (branch_of(checkout), commit_of(checkout)) == ("main", head)
    git(checkout, "pack-refs", "--all")
    assert not (checkout / ".git" / "refs" / "heads" / "main").exists()
    assert commit_of(checkout) == head
    git(checkout, "worktree", "add", "-q", "-b", "side", str(tmp_path / "two"))
    assert (branch_of(tmp_path / "two"), commit_of(tmp_path / "two")) == ("side", head)
    git(checkout, "checkout", "-q", "--detach")
    assert (branch_of(checkout), commit_of(checkout)) == (head[:8], head)


def test_only_the_folder_itself_counts_for_the_commit(checkout: Path) -> None:
    below = checkout / "below"
    below.mkdir()
    assert (branch_of(below), commit_of(below)) == ("main", "")


@pytest.mark.parametrize(
    "head", [b"", b"\xff", b"ref:", b"ref: refs/heads/none", b"12ab", b"x" * 9999]
)
def test_what_is_no_commit_is_none(tmp_path: Path, head: bytes) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_bytes(head)
    (tmp_path / ".git" / "packed-refs").write_bytes(b"\n# pack\nabc\n\xff refs/heads/other\n")
    assert commit_of(tmp_path) == ""


HOSTILE = [
    b"gitdir: ../other/.git\0junk\n",
    b"gitdir: ../other/.git\n\r\n\n",
    b"gitdir: ../other/.git" + b"\n" * 900_000,
    b"gitdir: spaced \n",
    b"gitdir:  ../other/.git\n",
    b"gitdir: ../o\xffther/.git\n",
    b"gitdir:../other/.git",
    b"\0gitdir: ../other/.git",
    b"gitdir: \0",
    b"gitdir: ",
    b"",
]
"""Contents of a `.git` that git may read in another way than it looks."""


@pytest.mark.parametrize("content", HOSTILE, ids=lambda data: repr(data[:30]))
def test_a_link_of_git_is_read_as_git_reads_it(tmp_path: Path, content: bytes) -> None:
    other, place = tmp_path / "other", tmp_path / "place"
    git(tmp_path, "init", "-q", str(other))
    git(tmp_path, "init", "-q", str(tmp_path / os.fsdecode(b"o\xffther")))
    place.mkdir()
    (place / "spaced ").symlink_to("../other/.git")
    (place / ".git").write_bytes(content)
    words = ("git", "-C", str(place), "rev-parse", "--absolute-git-dir")
    said = subprocess.run(words, capture_output=True, check=False)
    named = folder_named(place / ".git", link=True)
    if said.returncode == 0:
        assert os.path.realpath(place / named) == os.fsdecode(said.stdout.rstrip(b"\n"))
    else:
        assert not named or not (place / named).exists()
