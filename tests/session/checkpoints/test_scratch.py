"""A scratch folder that becomes one state of a workspace after another."""

from __future__ import annotations

import os
import random
import shutil
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import pytest

from tui.session.checkpoints.entries import NEVER, CheckpointError, Kind, PathEntry
from tui.session.checkpoints.scratch import ScratchTree, State
from tui.session.checkpoints.store import CheckpointStore

Tree = dict[str, tuple[str, int, bytes]]


def tree_of(root: Path) -> Tree:
    """Every path below a folder: its kind, mode and content."""
    found: Tree = {}
    for path in root.rglob("*"):
        mode = stat.S_IMODE(path.lstat().st_mode)
        name = str(path.relative_to(root))
        if path.is_symlink():
            found[name] = "link", 0, os.fsencode(path.readlink())
        elif path.is_dir():
            found[name] = "folder", mode | stat.S_IRWXU, b""
        else:
            found[name] = "file", mode, path.read_bytes()
    return found


def state_of(store: CheckpointStore, id_: str) -> State:
    (state,) = store.states([id_])
    return {path: entry for path, entry in state.entries.items() if entry is not None}


def write(path: Path, text: str, mode: int = 0o644) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    for above in path.parents:
        if above.is_symlink() or above.is_file():
            above.unlink()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_text(text)
    path.chmod(mode)


def steps(chance: random.Random, root: Path) -> None:
    """Change a few things at random, as commands do."""
    names = ["a", "b", "d/a", "d/b", "d/e/a", "x/y", "z"]
    for _ in range(chance.randrange(1, 6)):
        path = root / chance.choice(names)
        there = os.path.lexists(path)
        match chance.randrange(6):
            case 0 | 1:
                write(path, chance.choice("pqrs") * 3, chance.choice([0o644, 0o755, 0o444]))
            case 2 if there and not path.is_dir():
                path.unlink()
            case 3 if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            case 4 if not there and path.parent.is_dir():
                path.symlink_to(chance.choice(["nowhere", "..", "/etc"]))
            case _ if not there and path.parent.is_dir():
                path.mkdir()
            case _:
                pass


@pytest.mark.parametrize("seed", range(12))
def test_any_state_after_any_mess_is_exact(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    root, folder, outside = (tmp_path / name for name in ("work", "scratch", "outside"))
    for one in (root, folder, outside):
        one.mkdir()
    (outside / "a").write_text("never touched")
    store = CheckpointStore(tmp_path / "store.sqlite3", root)
    taken: dict[str, tuple[State, Tree]] = {}
    for _ in range(10):
        steps(chance, root)
        id_ = store.take().id
        taken[id_] = state_of(store, id_), tree_of(root)
    scratch = ScratchTree(folder, Source(store.content))
    messes: list[Callable[[], object]] = [
        lambda: None,
        lambda: steps(chance, folder),
        lambda: [
            shutil.rmtree(one) for one in folder.iterdir() if one.is_dir() and not one.is_symlink()
        ],
        lambda: [
            (shutil.rmtree(one), one.symlink_to(outside))
            for one in folder.iterdir()
            if one.is_dir() and not one.is_symlink()
        ],
        lambda: [one.chmod(0) for one in folder.iterdir() if not one.is_symlink()],
        lambda: write(folder / "new" / "deep" / "file", "new"),
    ]
    for _ in range(30):
        state, tree = taken[chance.choice([*taken])]
        scratch.become(state)
        assert tree_of(folder) == tree
        chance.choice(messes)()
    assert tree_of(outside) == {"a": ("file", 0o644, b"never touched")}
    store.close()


def entry(data: bytes | None, kind: Kind = Kind.FILE) -> PathEntry:
    digest = None if data is None else sha256(data).digest()
    return PathEntry(kind, 0o755, 0, NEVER, digest, ignored=False)


@dataclass
class Source:
    """Contents by their hash, and what is lent by its path."""

    known: Callable[[bytes], bytes]
    loans: dict[bytes, Path] = field(default_factory=dict[bytes, Path])

    def content(self, digest: bytes) -> bytes:
        return self.known(digest)

    def lent(self, path: bytes) -> Path | None:
        return self.loans.get(path)


def contents(*known: bytes, loans: dict[bytes, Path] | None = None) -> Source:
    return Source({sha256(data).digest(): data for data in known}.__getitem__, loans or {})


def test_what_a_command_changed_is_named_and_only_that_is_written(tmp_path: Path) -> None:
    scratch = ScratchTree(tmp_path, contents(b"1", b"2"))
    first = {b"a": entry(b"1"), b"b": entry(b"1")}
    assert scratch.become(first) == []
    kept = (tmp_path / "a").stat()
    assert scratch.become(first | {b"b": entry(b"2")}) == []
    assert (tmp_path / "a").stat() == kept
    (tmp_path / "b").write_text("3")
    (tmp_path / "c").write_text("3")
    assert scratch.become(first | {b"b": entry(b"2")}) == [b"b", b"c"]
    assert tree_of(tmp_path) == {"a": ("file", 0o755, b"1"), "b": ("file", 0o755, b"2")}
    assert (tmp_path / "a").stat() == kept


def test_what_has_no_content_is_lent_or_missing(tmp_path: Path) -> None:
    folder, lender = tmp_path / "scratch", tmp_path / "modules"
    folder.mkdir()
    lender.mkdir()
    scratch = ScratchTree(folder, contents(loans={b"node_modules": lender}))
    state = {name: entry(None, Kind.OMITTED) for name in (b"node_modules", b"target")}
    scratch.become(state)
    assert (folder / "node_modules").readlink() == lender
    assert (scratch.lent, scratch.missing) == ([b"node_modules"], [b"target"])
    scratch.become({})
    assert not [*folder.iterdir()]
    assert lender.is_dir()


def test_a_made_up_state_leads_nowhere_else(tmp_path: Path) -> None:
    folder, outside = tmp_path / "scratch", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    target = os.fsencode(outside)
    scratch = ScratchTree(folder, contents(target, b"x"))
    with pytest.raises(CheckpointError, match="is no folder"):
        scratch.become({b"a": entry(target, Kind.LINK), b"a/x": entry(b"x")})
    assert not [*outside.iterdir()]
