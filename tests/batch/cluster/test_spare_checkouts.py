"""Checkouts that one task leaves to the next: nothing of the first is in them."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.batch.cluster.test_results import put_run, repo, spec, store
from tests.batch.test_git import git
from tui.batch.cluster.entry import TaskEntry
from tui.batch.cluster.task_store import TaskStore
from tui.batch.cluster.workplace import Workplace

__all__ = ["repo", "store"]


def replace_folder(top: Path) -> None:
    (top / "dir" / "b.txt").unlink()
    (top / "dir").rmdir()
    (top / "dir").symlink_to("/etc")


def replace_file(top: Path) -> None:
    (top / "a.txt").unlink()
    (top / "a.txt").mkdir()
    (top / "a.txt" / "inner").write_text("x")


def write_with_the_old_times(top: Path) -> None:
    path = top / "a.txt"
    before = path.stat()
    path.write_text("x" * before.st_size)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def forge_the_index(top: Path) -> None:
    (top / "a.txt").write_text("forged\n")
    git(top, "add", "a.txt")
    git(top, "update-index", "--assume-unchanged", "a.txt")


def plant_settings(top: Path) -> None:
    git(top, "config", "core.trustctime", "false")
    (top / ".git" / "info" / "exclude").write_text("*\n")
    (top / ".git" / "hooks" / "post-checkout").write_text("#!/bin/sh\n")
    (top / "ignored").write_text("x")
    write_with_the_old_times(top)


def lock_up(top: Path) -> None:
    (top / "a.txt").chmod(0o400)
    (top / "dir").chmod(0o500)


def nest(top: Path) -> None:
    git(top, "init", "-q", "inner")
    (top / "inner" / "x").write_text("x")
    (top / ".gitignore").write_text("hidden\n")
    (top / "hidden").mkdir()
    (top / "hidden" / "x").write_text("x")


DEEDS = [
    replace_folder,
    replace_file,
    write_with_the_old_times,
    forge_the_index,
    plant_settings,
    lock_up,
    nest,
]


def all_in(top: Path) -> dict[str, tuple[int, bytes]]:
    """Mode and content of all that is in a checkout, but for what the program itself makes."""
    found = dict[str, tuple[int, bytes]]()
    for folder, names, files in os.walk(top):
        names[:] = [name for name in names if name not in {".git", ".holdfast"}]
        for name in (*names, *files):
            path = Path(folder, name)
            state = path.lstat()
            whole = path.read_bytes() if stat.S_ISREG(state.st_mode) else b""
            found[str(path.relative_to(top))] = stat.S_IMODE(state.st_mode), whole
    return found


@pytest.mark.parametrize("deed", DEEDS)
def test_the_next_task_has_the_files_as_they_were(
    store: TaskStore, repo: Path, tmp_path: Path, deed: Callable[[Path], None]
) -> None:
    (repo / "same.txt").write_text("the same\n")
    git(repo, "add", "same.txt")
    git(repo, "commit", "-qm", "same")
    run = put_run(store, repo)
    one, two = (Workplace(tmp_path / "run" / name, spec(repo)) for name in "12")
    entry = TaskEntry(key="1", tasks=(0,))
    begun = store.commit(entry.to_message())
    one.make(store, run, begun, entry)
    fresh, made = all_in(one.top), one.top.stat().st_ino
    untouched = (one.top / "same.txt").stat().st_ino
    deed(one.top)
    one.remove(spare=True)
    assert not one.place.exists()
    two.make(store, run, begun, entry)
    assert two.top.stat().st_ino == made
    assert (two.top / "same.txt").stat().st_ino == untouched, "it isn't written again"
    assert all_in(two.top) == fresh
    assert git(two.top, "status", "--porcelain") == ""
    assert git(two.top, "log", "--format=%s").split() == ["same", "first"]
    assert not (two.top / ".git" / "hooks" / "post-checkout").exists()


def test_a_checkout_that_cannot_be_renewed_is_made_anew(
    store: TaskStore, repo: Path, tmp_path: Path
) -> None:
    run = put_run(store, repo)
    one, two = (Workplace(tmp_path / "run" / name, spec(repo)) for name in "12")
    entry = TaskEntry(key="1", tasks=(0,))
    begun = store.commit(entry.to_message())
    one.make(store, run, begun, entry)
    fresh = all_in(one.top)
    one.remove(spare=True)
    (spare,) = (tmp_path / "run" / "spare").iterdir()
    (spare / "note").write_bytes(b"torn")
    two.make(store, run, begun, entry)
    assert all_in(two.top) == fresh
