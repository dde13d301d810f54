"""What git stores is what lies in the checkout, also while folders are exchanged. Git 2.39.5."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

from tests.core.git.test_checkout import new
from tests.core.git.test_worktrees import commit, git
from tests.support.exchanged_folders import MARK, NAME, exchanging, fill
from tui.core.git import storing
from tui.core.git.checkout import Checkout
from tui.core.git.door import GitError
from tui.core.git.removal import remove
from tui.core.git.repository import Repository
from tui.core.git.storing import store
from tui.core.git.worktree_state import changed_files, index_apart, state_of
from tui.core.paths import folders
from tui.core.real_folders import RealFolders


def entries(checkout: Checkout, env: dict[str, str] | None = None) -> dict[str, str]:
    """The files of an index, with their modes and contents."""
    found: dict[str, str] = {}
    for line in checkout.git("ls-files", "--stage", env=env).splitlines():
        mode, blob = line.split()[:2]
        found[line.partition("\t")[2]] = f"{mode} {checkout.git('cat-file', 'blob', blob)}"
    return found


@pytest.mark.parametrize("part", [1, 64_000_000])
def test_files_are_stored_as_they_are(
    tmp_path: Path, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storing, "_COPIED_BYTES", part)
    top = new(tmp_path / "repo")
    commit(top, "gone", "gone\n")
    commit(top, "was", "was\n")
    (top / ".gitattributes").write_text("*.txt text\n")
    (top / "gone").unlink()
    (top / "was").unlink()
    (top / "was").mkdir()
    (top / "was/new").write_text("new\n")
    (top / "deep").mkdir()
    (top / "deep/lines.txt").write_bytes(b"one\r\ntwo\r\n")
    (top / "deep/.gitattributes").write_text("*.bin -text\n")
    (top / "deep/lines.bin").write_bytes(b"one\r\n")
    (top / "program").write_text("#!/bin/sh\n")
    (top / "program").chmod(0o755)
    (top / "link").symlink_to("nowhere")
    os.mkfifo(top / "pipe")
    paths = ["gone", "was", "was/new", "deep/lines.txt", "deep/lines.bin", "program", "link"]
    checkout = Checkout.of(top)
    store(checkout, [*paths, "pipe", "never there"])
    assert entries(checkout) == {
        "a.txt": "100644 a\n",
        "was/new": "100644 new\n",
        "deep/lines.txt": "100644 one\ntwo\n",
        "deep/lines.bin": "100644 one\r\n",
        "program": "100755 #!/bin/sh\n",
        "link": "120000 nowhere",
    }
    assert git(top, "status", "--porcelain", "--", *paths[3:]).splitlines() == [
        "A  deep/lines.bin", "A  deep/lines.txt", "A  link", "A  program",
    ]  # fmt: skip


def test_a_folder_that_is_a_link_by_now_is_stored_as_the_link(tmp_path: Path) -> None:
    top, outside = new(tmp_path / "repo"), tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text(MARK)
    (top / "deep").symlink_to(outside)
    checkout = Checkout.of(top)
    store(checkout, ["deep/file", "deep"])
    assert entries(checkout)["deep"] == f"120000 {outside}"
    assert "deep/file" not in entries(checkout)


def test_a_worktree_is_saved_with_all_kinds_of_files(tmp_path: Path) -> None:
    top = new(tmp_path / "repo")
    library = new(tmp_path / "library")
    git(top, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "sub")
    git(top, "commit", "-qm", "with a submodule")
    repository = Repository.of(top)
    tree = repository.enter("one", top).tree
    (tree.path / "a.txt").unlink()
    (tree.path / "new").write_text("new\n")
    saved = remove(repository, tree, state_of(tree))
    assert git(top, "show", f"{saved.ref}:new") == "new"
    names = git(top, "ls-tree", "-r", "--name-only", saved.ref).split()
    assert names == [".gitmodules", "new", "sub"]


def test_what_goes_or_cannot_be_read_while_it_is_stored_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = new(tmp_path / "repo")
    (top / "new").write_text("new\n")
    measured = storing._size  # pyright: ignore[reportPrivateUsage]

    def gone_after(folders: RealFolders, path: str) -> int | None:
        size = measured(folders, path)
        (top / path).unlink()
        return size

    monkeypatch.setattr(storing, "_size", gone_after)
    with pytest.raises(GitError, match="can't store new"):
        store(Checkout.of(top), ["new"])


def test_copies_are_where_no_command_reaches_wherever_temporary_files_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top, config = new(tmp_path / "repo"), tmp_path / "gitconfig"
    config.write_text(f'[filter "mine"]\n\tclean = "sh -c \'pwd > {tmp_path}/where; cat\'"\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setattr("tempfile.tempdir", str(top))
    (top / ".gitattributes").write_text("new filter=mine\n")
    (top / "new").write_text("new\n")
    left = folders().data / "apart/left"
    left.mkdir(parents=True)
    os.utime(left, (0, 0))
    with index_apart() as env:
        store(Checkout.of(top), ["new"], env)
        assert top not in Path(env["GIT_INDEX_FILE"]).parents
    where = Path((tmp_path / "where").read_text().strip())
    assert where.parent == (folders().data / "apart").resolve()
    assert not list(where.parent.iterdir())


@pytest.mark.slow
def test_nothing_from_outside_is_stored_or_named_while_folders_are_exchanged(
    tmp_path: Path,
) -> None:
    top, home = new(tmp_path / "repo"), tmp_path / "home"
    fill(top, home)
    checkout, stored = Checkout.of(top), 0
    with exchanging(top):
        for _ in range(60):
            with index_apart() as env:
                names = changed_files(checkout, "all")
                assert not any(NAME in name for name in names)
                with suppress(GitError):
                    store(checkout, [*names, f"deep/{NAME}", f"deep/d1/{NAME}"], env)
                    stored += 1
    assert stored
    objects = checkout.git("cat-file", "--batch-all-objects", "--batch")
    assert "inside" in objects
    assert MARK not in objects
