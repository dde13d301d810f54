"""Checkpoints: whatever happens to a workspace, its files come back byte for byte."""

from __future__ import annotations

import errno
import os
import random
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from subprocess import Popen, run

import pytest

from tests.permissions.sandbox.test_swapped_folders import FLIP
from tui.session.checkpoints import scan, store
from tui.session.checkpoints.entries import CheckpointError
from tui.session.checkpoints.restore import restore
from tui.session.checkpoints.store import CheckpointStore

Tree = dict[str, tuple[str, int, bytes]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    return root


@pytest.fixture
def checkpoints(root: Path, tmp_path: Path) -> Iterator[CheckpointStore]:
    made = CheckpointStore(tmp_path / "data" / "checkpoints.sqlite3", root)
    yield made
    made.close()


def tree(root: Path) -> Tree:
    """Everything below a folder: what it is, its mode, its content."""
    found: Tree = {}
    for path in sorted(root.rglob("*")):
        if ".git" in path.parts:
            continue
        state = path.lstat()
        mode, name = stat.S_IMODE(state.st_mode), str(path.relative_to(root))
        if stat.S_ISLNK(state.st_mode):
            found[name] = ("link", 0, os.fsencode(path.readlink()))
        elif stat.S_ISDIR(state.st_mode):
            found[name] = ("folder", mode, b"")
        elif stat.S_ISREG(state.st_mode):
            found[name] = ("file", mode, path.read_bytes())
    return found


def back(checkpoints: CheckpointStore, to: str) -> list[str]:
    """Bring everything back; what each path came to, in words."""
    now = checkpoints.take()
    done = restore(checkpoints.difference(to, now.id), checkpoints)
    return [f"{each.outcome} {each.path.name} {each.detail}".strip() for each in done]


def test_everything_comes_back(root: Path, checkpoints: CheckpointStore) -> None:
    (root / "src" / "deep").mkdir(parents=True)
    (root / "empty").mkdir(mode=0o750)
    (root / "src" / "crlf.txt").write_bytes(b"a\r\nb\r\n")
    (root / "src" / "deep" / "data.bin").write_bytes(bytes(range(256)))
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    (root / "secret").write_text("x")
    (root / "secret").chmod(0o600)
    (root / "link").symlink_to("src/crlf.txt")
    (root / "dangling").symlink_to("/nowhere/at/all")
    (root / os.fsdecode(b"od\xffd\nname")).write_text("odd")
    before, first = tree(root), checkpoints.take()
    shutil.rmtree(root / "src")
    (root / "src").write_text("now a file")
    (root / "empty").rmdir()
    (root / "run.sh").chmod(0o644)
    (root / "secret").unlink()
    (root / "secret").mkdir()
    (root / "secret" / "inner").write_text("y")
    (root / "link").unlink()
    (root / "link").write_text("no link")
    (root / "dangling").unlink()
    (root / "dangling").symlink_to("secret")
    (root / os.fsdecode(b"od\xffd\nname")).unlink()
    (root / "new" / "folder").mkdir(parents=True)
    (root / "new" / "folder" / "file").write_text("new")
    assert all(said.startswith(("restored", "deleted")) for said in back(checkpoints, first.id))
    assert tree(root) == before


def test_a_state_that_is_the_same_is_the_same_checkpoint(
    root: Path, checkpoints: CheckpointStore
) -> None:
    (root / "a").write_text("1")
    first = checkpoints.take()
    assert checkpoints.take().id == first.id
    (root / "a").write_text("1")  # other times, the same content
    assert checkpoints.take().id == first.id
    (root / "a").write_text("2")
    second = checkpoints.take()
    assert (second.files, second.changed) == (1, ("a",))


def test_a_change_that_keeps_size_and_time_is_found(
    root: Path, checkpoints: CheckpointStore
) -> None:
    file = root / "a"
    file.write_text("one")
    checkpoints.take()
    times = file.stat()
    file.write_text("two")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert checkpoints.take().changed == ("a",)


def test_git_neither_changes_nor_is_changed(root: Path, checkpoints: CheckpointStore) -> None:
    """No filter, no attribute, no hook, no line ending: a nested repository is plain files."""
    nested = root / "vendor" / "lib"
    nested.mkdir(parents=True)
    for folder in (root, nested):
        run(["git", "init", "-q"], cwd=folder, check=True)
        run(["git", "config", "filter.x.clean", "touch ran; cat"], cwd=folder, check=True)
    (root / ".gitattributes").write_text("* text=auto eol=lf ident filter=x\n")
    (root / "a.txt").write_bytes(b"$Id$\r\n")
    (nested / "b.txt").write_bytes(b"b\r\n")
    heads = [(folder / ".git" / "HEAD").read_bytes() for folder in (root, nested)]
    before, first = tree(root), checkpoints.take()
    (root / "a.txt").write_bytes(b"$Id$\n")
    (nested / "b.txt").unlink()
    (nested / ".git" / "HEAD").write_text("ref: refs/heads/other\n")
    back(checkpoints, first.id)
    assert tree(root) == before
    assert (root / ".git" / "HEAD").read_bytes() == heads[0]
    assert (nested / ".git" / "HEAD").read_text() == "ref: refs/heads/other\n"
    assert not list(root.rglob("ran"))


def test_ignored_files_are_stored_up_to_a_size(
    root: Path, checkpoints: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "IGNORED_FILES_MAX", 5)
    monkeypatch.setattr(store, "IGNORED_FILE_BYTES_MAX", 100)
    run(["git", "init", "-q"], cwd=root, check=True)
    (root / ".gitignore").write_text("build/\nlarge/\n.env\n*.bin\nnode_modules\n")
    (root / ".env").write_text("KEY=1")
    (root / "dump.bin").write_bytes(b"x" * 101)
    for folder, files in (("build", 3), ("large", 9), ("node_modules", 1)):
        (root / folder).mkdir()
        for number in range(files):
            (root / folder / f"{number}.o").write_text(f"{number}")
    first = checkpoints.take()
    names = [path.name for path in checkpoints.omitted()]
    assert names == ["dump.bin", "large", "node_modules"]
    (root / ".env").write_text("KEY=2")
    shutil.rmtree(root / "build")
    (root / "large" / "0.o").write_text("changed")
    (root / "dump.bin").write_bytes(b"y" * 102)
    second = checkpoints.take()
    assert second.files == 0  # git ignores all of it
    done = back(checkpoints, first.id)
    assert "lost dump.bin no copy: it was too large, or the disk was full" in done
    assert (root / ".env").read_text() == "KEY=1"
    assert (root / "build" / "2.o").read_text() == "2"
    assert (root / "large" / "0.o").read_text() == "changed"


def test_an_ignored_folder_that_grows_is_left_alone(
    root: Path, checkpoints: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "IGNORED_FILES_MAX", 5)
    run(["git", "init", "-q"], cwd=root, check=True)
    (root / ".gitignore").write_text("out/\n")
    (root / "out" / "in").mkdir(parents=True)
    (root / "out" / "in" / "0").write_text("0")
    first = checkpoints.take()
    for number in range(1, 9):
        (root / "out" / "in" / str(number)).write_text("x")
    second = checkpoints.take()
    done = back(checkpoints, first.id)
    assert any("whose files aren't kept" in said for said in done)
    assert len(list((root / "out" / "in").iterdir())) == 9
    assert checkpoints.take().id == second.id


def test_a_folder_that_cannot_be_read_keeps_what_is_known(
    root: Path, checkpoints: CheckpointStore
) -> None:
    (root / "shut" / "in").mkdir(parents=True)
    (root / "shut" / "in" / "a").write_text("1")
    before, first = tree(root), checkpoints.take()
    for mode in (0o000, 0o400, 0o100):  # no account for root
        (root / "shut").chmod(mode)
        changed = checkpoints.difference(first.id, checkpoints.take().id)
        assert [change.path.name for change in changed] == ["shut"]
        back(checkpoints, first.id)
        assert tree(root) == before


def test_what_somebody_changed_meanwhile_is_left_alone(
    root: Path, checkpoints: CheckpointStore
) -> None:
    (root / "a").write_text("1")
    first = checkpoints.take()
    (root / "a").write_text("2")
    changes = checkpoints.difference(first.id, checkpoints.take().id)
    (root / "a").write_text("3")
    (done,) = restore(changes, checkpoints)
    assert done.outcome == "changed since"
    assert (root / "a").read_text() == "3"


def test_a_file_that_something_is_mounted_over_comes_back(
    root: Path, checkpoints: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a.txt").write_text("old")
    first = checkpoints.take()
    (root / "a.txt").write_text("other")
    mounted = (root / "a.txt").stat().st_ino

    def busy(*_: object, **_more: object) -> None:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    now = checkpoints.take()
    monkeypatch.setattr(os, "replace", busy)
    (done,) = restore(checkpoints.difference(first.id, now.id), checkpoints)
    assert (done.outcome, (root / "a.txt").read_text()) == ("restored", "old")
    assert (root / "a.txt").stat().st_ino == mounted
    assert sorted(path.name for path in root.iterdir()) == ["a.txt"]


def test_nothing_is_written_through_a_link(root: Path, checkpoints: CheckpointStore) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (root / "folder").mkdir()
    (root / "folder" / "a").write_text("1")
    first = checkpoints.take()
    shutil.rmtree(root / "folder")
    (root / "folder").symlink_to(outside)
    (outside / "a").write_text("mine")
    changes = checkpoints.difference(first.id, checkpoints.take().id)
    assert {each.outcome for each in restore(changes, checkpoints)} == {"restored"}
    assert (outside / "a").read_text() == "mine"
    assert (root / "folder" / "a").read_text() == "1"
    assert not (root / "folder").is_symlink()


def test_another_program_sees_the_same_checkpoints(
    root: Path, checkpoints: CheckpointStore, tmp_path: Path
) -> None:
    (root / "a").write_text("1")
    first = checkpoints.take()
    other = CheckpointStore(tmp_path / "data" / "checkpoints.sqlite3", root)
    assert other.take().id == first.id
    (root / "a").write_text("2")
    (root / "b").write_text("b")
    second = other.take()
    assert checkpoints.take().id == second.id
    (root / "b").unlink()
    third = checkpoints.take()
    assert [change.path.name for change in other.difference(first.id, third.id)] == ["a"]
    other.close()
    files = list((tmp_path / "data").iterdir())
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in files)


def test_a_damaged_file_is_put_aside(
    root: Path, checkpoints: CheckpointStore, tmp_path: Path
) -> None:
    (root / "a").write_text("1")
    first = checkpoints.take()
    checkpoints.close()
    file = tmp_path / "data" / "checkpoints.sqlite3"
    file.write_bytes(b"no database at all" * 1000)
    again = CheckpointStore(file, root)
    with pytest.raises(CheckpointError, match="damaged"):
        again.take()
    assert again.take().id != first.id
    with pytest.raises(CheckpointError, match="isn't stored any more"):
        again.difference(first.id, first.id)
    again.close()


def test_old_checkpoints_are_dropped(root: Path, tmp_path: Path) -> None:
    made = CheckpointStore(tmp_path / "checkpoints.sqlite3", root, keep_bytes=300_000)
    taken: list[str] = []
    for _ in range(12):
        (root / "noise").write_bytes(random.randbytes(100_000))
        taken.append(made.take().id)
        made.prune()
    with pytest.raises(CheckpointError):
        made.difference(taken[0], taken[-1])
    last = (root / "noise").read_bytes()
    (root / "noise").write_bytes(b"")
    back(made, taken[-1])
    assert (root / "noise").read_bytes() == last
    assert (tmp_path / "checkpoints.sqlite3").stat().st_size < 1_000_000
    made.close()


def test_what_the_disk_has_no_room_for_is_stored_once_it_has(
    root: Path, checkpoints: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "small").write_text("s")
    (root / "large").write_bytes(b"l" * 50_000)

    def little_room(_: CheckpointStore) -> int:
        return 10_000

    monkeypatch.setattr(CheckpointStore, "_room", little_room)
    taken = checkpoints.take()
    assert taken.skipped == 1
    assert [path.name for path in checkpoints.omitted()] == ["large"]
    (root / "small").write_text("t")
    (root / "large").write_bytes(b"m")
    assert sorted(back(checkpoints, taken.id)) == [
        "lost large no copy: it was too large, or the disk was full", "restored small"
    ]  # fmt: skip
    (root / "large").write_bytes(b"l" * 50_000)
    assert checkpoints.take().skipped == 1
    monkeypatch.undo()
    taken = checkpoints.take()
    assert taken.skipped == 0
    (root / "large").unlink()
    assert back(checkpoints, taken.id) == ["restored large"]


def test_a_checkpoint_that_fails_gives_its_room_back(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        (root / f"{number}").write_bytes(os.urandom(100_000))
    checkpoints = CheckpointStore(tmp_path / "checkpoints.sqlite3", root)

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(CheckpointStore, "_put", fail)
    with pytest.raises(CheckpointError, match="No space left"):
        checkpoints.take()
    assert sum(path.stat().st_size for path in tmp_path.glob("checkpoints*")) < 200_000
    checkpoints.close()


def test_a_folder_with_too_many_files_has_none(
    root: Path, checkpoints: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "ENTRIES_MAX", 10)
    for number in range(12):
        (root / str(number)).mkdir()
    with pytest.raises(CheckpointError, match="more than 10 files"):
        checkpoints.take()


def test_pipes_and_the_programs_own_folders_are_passed_over(root: Path, tmp_path: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / ".holdfast").mkdir()
    (root / ".holdfast" / "MEMORY.md").write_text("x")
    (root / "own").mkdir()
    (root / "own" / "session").write_text("x")
    made = CheckpointStore(root / "own" / "checkpoints.sqlite3", root, skip=[root / "own"])
    first = made.take()
    (root / "own" / "session").write_text("y")
    (root / ".holdfast" / "MEMORY.md").write_text("y")
    assert made.take().id == first.id
    made.close()


def _names(root: Path) -> list[Path]:
    return [path for path in sorted(root.rglob("*")) if ".git" not in path.parts]


def _write(chance: random.Random, root: Path) -> None:
    folders = [root, *(path for path in _names(root) if path.is_dir() and not path.is_symlink())]
    place = chance.choice(folders) / f"n{chance.randrange(12)}"
    if not place.is_dir():
        place.unlink(missing_ok=True)
        place.write_bytes(chance.randbytes(chance.randrange(200)))


def _folder(chance: random.Random, root: Path) -> None:
    place = root / f"d{chance.randrange(4)}" / f"d{chance.randrange(3)}"
    if not any(path.is_symlink() or path.is_file() for path in (place, place.parent)):
        place.mkdir(parents=True, exist_ok=True)


def _remove(chance: random.Random, root: Path) -> None:
    if names := _names(root):
        path = chance.choice(names)
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _mode(chance: random.Random, root: Path) -> None:
    if names := [path for path in _names(root) if not path.is_symlink()]:
        path = chance.choice(names)
        modes = [0o500, 0o700, 0o755] if path.is_dir() else [0o400, 0o600, 0o644, 0o755]
        path.chmod(chance.choice(modes))


def _link(chance: random.Random, root: Path) -> None:
    place = root / f"l{chance.randrange(6)}"
    if not place.is_dir() or place.is_symlink():
        place.unlink(missing_ok=True)
        place.symlink_to(chance.choice(["n1", "d1", "/etc/passwd", "nowhere", "."]))


def _move(chance: random.Random, root: Path) -> None:
    if names := _names(root):
        path, to = chance.choice(names), root / f"m{chance.randrange(6)}"
        if not os.path.lexists(to):
            path.rename(to)


STEPS: list[Callable[[random.Random, Path], None]] = [
    _write, _write, _write, _folder, _remove, _mode, _link, _move,
]  # fmt: skip


@pytest.mark.parametrize("seed", range(30))
def test_random_changes_are_taken_back(seed: int, root: Path, checkpoints: CheckpointStore) -> None:
    chance = random.Random(seed)
    taken: list[tuple[str, Tree]] = []
    for _ in range(6):
        for _ in range(chance.randrange(1, 12)):
            with suppress(PermissionError):  # of no account for root
                chance.choice(STEPS)(chance, root)
        taken.append((checkpoints.take().id, tree(root)))
    for _ in range(4):
        to, before = chance.choice(taken)
        back(checkpoints, to)
        assert tree(root) == before


def test_a_folder_that_becomes_a_link_meanwhile_is_not_followed(
    root: Path, tmp_path: Path, checkpoints: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "deep/er").mkdir(parents=True)
    (root / "deep/er/file").write_text("inside")
    outside = tmp_path / "outside"
    (outside / "er").mkdir(parents=True)
    for name in ("er/file", "secret", "er/secret"):
        (outside / name).write_text("THE SECRET")
    ignored = scan._ignored  # pyright: ignore[reportPrivateUsage]

    def exchanged(folder: Path) -> object:
        (root / "deep").rename(root / "kept")
        (root / "deep").symlink_to(outside)
        return ignored(folder)

    monkeypatch.setattr(scan, "_ignored", exchanged)
    checkpoints.take()
    file = tmp_path / "data/checkpoints.sqlite3"
    stored = b"".join(path.read_bytes() for path in file.parent.iterdir())
    assert b"THE SECRET" not in stored
    assert b"deep/secret" not in stored


@pytest.mark.slow
def test_folders_that_are_exchanged_all_the_time(
    root: Path, tmp_path: Path, checkpoints: CheckpointStore
) -> None:
    outside = tmp_path / "outside"
    for place, text in ((root / "deep", "inside"), (outside, "THE SECRET")):
        for number in range(60):
            (place / f"d{number}").mkdir(parents=True)
            (place / f"d{number}/file").write_text(text)
    (outside / "d1/only-outside").write_text("THE SECRET")
    (root / "link").symlink_to(outside)
    flipping = Popen([sys.executable, "-c", FLIP], cwd=root)
    try:
        first = checkpoints.take()
        for _ in range(30):
            now = checkpoints.take()
            restore(checkpoints.difference(first.id, now.id), checkpoints)
    finally:
        flipping.kill()
        flipping.wait()
    stored = b"".join(path.read_bytes() for path in (tmp_path / "data").iterdir())
    assert b"THE SECRET" not in stored
    assert b"only-outside" not in stored
    files = [path for path in outside.rglob("*") if path.is_file()]
    assert len(files) == 61
    assert {path.read_text() for path in files} == {"THE SECRET"}
