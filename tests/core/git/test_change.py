"""A change as git tells it, in real repositories."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tui.core.errors import HoldfastError, UsageError
from tui.core.git.change import ChangedFile, GitChange, change_since

WHO = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
LINES = "".join(f"line {n}\n" for n in range(1, 41))


class Repository:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.git("init", "-q")

    def git(self, *words: str) -> str:
        done = subprocess.run(
            ["git", *WHO, *words], cwd=self.folder, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def write(self, **files: str) -> None:
        for name, text in files.items():
            (self.folder / name).write_text(text)

    def commit(self, **files: str) -> str:
        self.write(**files)
        self.git("add", "-A")
        self.git("commit", "-qm", "x")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def there(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "repo")
    made.commit(a=LINES, b="old\n", c="moved\n" * 9)
    return made


def by_path(change: GitChange) -> dict[str, ChangedFile]:
    return {one.path: one for one in change.files}


def test_a_branch_its_uncommitted_changes_and_new_files_are_one_change(there: Repository) -> None:
    base = there.git("rev-parse", "HEAD")
    there.git("checkout", "-qb", "feature")
    there.git("mv", "c", "moved")
    there.git("rm", "-q", "b")
    there.commit(a=LINES.replace("line 20\n", "line twenty\n"))
    there.git("checkout", "-q", "main")
    there.commit(elsewhere="not of this change\n")
    there.git("checkout", "-q", "feature")
    there.write(new="one\ntwo\n", a=LINES.replace("line 20\n", "line XX\nline XXI\n"))
    change = change_since(there.folder)
    assert (change.base, change.commit, change.top) == ("main", base, there.folder)
    found = by_path(change)
    assert {path: one.kind for path, one in found.items()} == {
        "a": "changed",
        "b": "deleted",
        "moved": "renamed",
        "new": "untracked",
    }
    assert found["moved"].before == "c"
    assert "+line XXI\n" in found["a"].text
    assert [found["a"].shows(line) for line in (16, 17, 21, 24, 25)] == [
        False,
        True,
        True,
        True,
        False,
    ]
    assert found["b"].shows(1)
    assert found["new"].lines == (range(1, 3),)
    assert change_since(there.folder, "main").files == change.files


def test_on_the_default_branch_it_is_what_is_not_committed(there: Repository) -> None:
    assert change_since(there.folder).files == ()
    there.write(b="new\n")
    change = change_since(there.folder)
    assert change.base == "HEAD"
    assert [one.path for one in change.files] == ["b"]


def test_the_remote_says_which_branch_is_the_default(there: Repository, tmp_path: Path) -> None:
    there.git("branch", "-m", "trunk")
    clone = tmp_path / "clone"
    there.git("clone", "-q", str(there.folder), str(clone))
    copy = Repository(clone)
    copy.git("checkout", "-qb", "feature")
    copy.commit(b="new\n")
    assert change_since(clone).base == "origin/trunk"
    assert change_since(clone, "trunk").base == "trunk"
    copy.git("branch", "-D", "trunk")
    assert change_since(clone, "trunk").base == "origin/trunk"


def test_before_the_first_commit_all_files_are_new(tmp_path: Path) -> None:
    fresh = Repository(tmp_path / "fresh")
    fresh.write(a="1\n", b="2\n")
    fresh.git("add", "a")
    change = change_since(fresh.folder)
    assert {one.path: one.kind for one in change.files} == {"a": "added", "b": "untracked"}


def test_what_is_no_text_is_named(there: Repository, tmp_path: Path) -> None:
    inner = Repository(tmp_path / "inner")
    inner.commit(x="1\n")
    there.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner.folder), "s")
    (there.folder / "data").write_bytes(b"\0" * 99)
    there.git("add", "data")
    (there.folder / "loose").write_bytes(b"\0\1")
    (there.folder / "link").symlink_to("/etc/passwd")
    (there.folder / "odd\nname\udcff").write_text("x\n")
    Repository(there.folder / "nested").commit(y="1\n")
    found = by_path(change_since(there.folder))
    why = {path: one.why for path, one in found.items()}
    assert why["s"].startswith("a submodule")
    assert why["data"] == why["loose"] == "a binary file"
    assert "link" in why["link"]
    assert why["nested/"] == "a repository of its own"
    assert "+x\n" in found[os.fsdecode(b"odd\nname\xff")].text
    assert not any("root:" in one.text for one in found.values())


def test_settings_of_the_repository_change_nothing_and_run_nothing(there: Repository) -> None:
    for key, value in {
        "diff.external": "touch ran; echo",
        "diff.noprefix": "true",
        "diff.mnemonicPrefix": "true",
        "color.ui": "always",
        "diff.relative": "true",
        "diff.context": "0",
        "diff.renames": "false",
        "core.fsmonitor": "touch ran",
    }.items():
        there.git("config", key, value)
    (there.folder / ".gitattributes").write_text("a diff=evil\n")
    there.git("config", "diff.evil.textconv", "touch ran; cat")
    there.write(a=LINES.replace("line 5\n", "five\n"))
    text = by_path(change_since(there.folder))["a"].text
    assert text.startswith("diff --git a/a b/a\n")
    assert "\n line 4\n-line 5\n+five\n line 6\n" in text
    assert not (there.folder / "ran").exists()


def test_a_conflict_is_listed_once(there: Repository) -> None:
    there.git("checkout", "-qb", "feature")
    there.commit(b="mine\n")
    there.git("checkout", "-q", "main")
    there.commit(b="theirs\n")
    subprocess.run(
        ["git", *WHO, "merge", "feature"], cwd=there.folder, check=False, capture_output=True
    )
    assert [one.path for one in change_since(there.folder).files] == ["b"]


@pytest.mark.parametrize("base", ["nosuch", "-x", "--output=ran", "a..b", ""])
def test_a_base_that_is_none_is_named(there: Repository, base: str) -> None:
    if not base:
        assert change_since(there.folder, base).files == ()
        return
    with pytest.raises(UsageError, match="no branch or commit"):
        change_since(there.folder, base)
    assert not (there.folder / "ran").exists()


def test_no_repository(tmp_path: Path) -> None:
    with pytest.raises(HoldfastError, match="git repository"):
        change_since(tmp_path)
