"""Checkpoints on another machine: compared and restored as those of the place."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path

import pytest

from tests.session.checkpoints.test_checkpoints import tree
from tui.permissions.rules import GUARDED
from tui.session.checkpoints.entries import CheckpointError, Kind
from tui.session.checkpoints.restore import restore
from tui.session.checkpoints.store import CheckpointStore
from tui.session.checkpoints.transfer import StoredState


def _store(tmp_path: Path, name: str) -> CheckpointStore:
    root = tmp_path / name
    root.mkdir()
    return CheckpointStore(tmp_path / f"{name}.sqlite3", root)


def _change(root: Path, draw: random.Random) -> None:
    """Change the folder somehow: files, modes, links, folders."""
    for _ in range(draw.randint(1, 4)):
        path = root / draw.choice("abcd") / draw.choice("xyz")
        path.parent.mkdir(exist_ok=True)
        if path.is_symlink() or path.exists():
            path.unlink()
        match draw.randint(0, 3):
            case 0:
                path.symlink_to(draw.choice(["../a/x", "nowhere"]))
            case 1:
                path.write_bytes(draw.randbytes(draw.randint(0, 200)))
            case 2:
                path.write_text("same")
                path.chmod(draw.choice([0o644, 0o755, 0o600]))
            case _:
                shutil.rmtree(path.parent)


def _moved(here: CheckpointStore, ids: list[str]) -> list[StoredState]:
    """The checkpoints as they arrive."""
    return [
        StoredState.from_json(json.loads(json.dumps(one.to_json()))) for one in here.states(ids)
    ]


def _contents(store: CheckpointStore, states: list[StoredState]) -> list[bytes]:
    entries = [entry for one in states for entry in one.entries.values() if entry]
    return [store.content(entry.digest) for entry in entries if entry.digest is not None]


@pytest.mark.parametrize("seed", range(8))
def test_each_moved_state_comes_back_whole_and_the_place_sees_no_change(
    tmp_path: Path, seed: int
) -> None:
    draw = random.Random(seed)
    here, there = _store(tmp_path, "here"), _store(tmp_path, "there")
    trees, ids = dict[str, object](), list[str]()
    for _ in range(6):
        _change(here.root, draw)
        id_ = here.take().id
        ids.append(id_)
        trees[id_] = tree(here.root)
    _change(there.root, draw)
    own, mine = there.take().id, tree(there.root)
    wanted = [ids[0], *draw.sample(ids[1:], 3)]
    states = _moved(here, wanted)
    now = there.adopt(states, _contents(here, states), GUARDED)
    assert there.difference(own, now) == []
    assert there.take().files == 0
    for id_ in dict.fromkeys(wanted):
        done = restore(there.difference(id_, there.take().id), there)
        assert {one.outcome for one in done} <= {"restored", "deleted", "unchanged"}
        assert tree(there.root) == trees[id_]
    restore(there.difference(own, there.take().id), there)
    assert tree(there.root) == mine
    here.close()
    there.close()


def test_those_that_are_there_already_are_not_added_again(tmp_path: Path) -> None:
    here, there = _store(tmp_path, "here"), _store(tmp_path, "there")
    (here.root / "a").write_text("one")
    first = here.take().id
    states = _moved(here, [first])
    there.adopt(states, [b"one"], GUARDED)
    (here.root / "a").write_text("two")
    second = here.take().id
    states = _moved(here, [first, second])
    now = there.adopt(states, [b"one", b"two"], GUARDED)
    assert [change.path.name for change in there.difference(first, second)] == ["a"]
    assert there.adopt(states, [], GUARDED) == now
    # and back, with one that was made there
    (there.root / "b").write_text("three")
    third = there.take().id
    back = _moved(there, [first, second, third])
    assert [one.id for one in back] == [first, second, third]
    here.adopt(back, [b"three"], GUARDED)
    assert [change.path.name for change in here.difference(second, third)] == ["a", "b"]
    here.close()
    there.close()


def test_a_content_that_did_not_come_along_is_lost_and_nothing_else(tmp_path: Path) -> None:
    here, there = _store(tmp_path, "here"), _store(tmp_path, "there")
    (here.root / "kept").write_text("kept")
    (here.root / "left").write_text("left out")
    id_ = here.take().id
    there.adopt(_moved(here, [id_]), [b"kept"], GUARDED)
    done = restore(there.difference(id_, there.take().id), there)
    assert {one.path.name: one.outcome for one in done} == {"kept": "restored", "left": "lost"}
    here.close()
    there.close()


def test_a_checkpoint_of_nowhere_is_refused(tmp_path: Path) -> None:
    store = _store(tmp_path, "here")
    now = store.take().id
    with pytest.raises(CheckpointError, match="isn't stored"):
        store.difference("00000000-1", now)
    assert store.states(["00000000-1"]) == []
    store.close()


def test_paths_that_no_file_tool_could_write_are_named(tmp_path: Path) -> None:
    del tmp_path
    entry = [int(Kind.FILE), 0o7777, 0, None, False]
    bad = ["../out", "/etc/passwd", "a//b", "a/./b", ".git/hooks/pre-commit", "s/.GIT/x", ""]
    good = ["a", "a/b", ".gitignore", "…"]
    value = {"checkpoint": "ab-1", "whole": True, "entries": dict.fromkeys([*bad, *good], entry)}
    state = StoredState.from_json(value)
    refused = state.refused(GUARDED)
    assert sorted(map(os.fsdecode, refused)) == sorted(bad)
    kept = state.without(refused)
    assert sorted(map(os.fsdecode, kept.entries)) == sorted(good)
    assert all(each and each.mode == 0o777 for each in kept.entries.values())


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        {"checkpoint": 1, "whole": True, "entries": {}},
        {"checkpoint": "a", "entries": {}},
        {"checkpoint": "a", "whole": True, "entries": {"a": [9, 0, 0, None, False]}},
        {"checkpoint": "a", "whole": True, "entries": {"a": [1, 0, -1, None, False]}},
        {"checkpoint": "a", "whole": True, "entries": {"a": [1, 0, 0, "zz", False]}},
        {"checkpoint": "a", "whole": True, "entries": {"a": "file"}},
    ],
)
def test_what_is_no_state_is_a_value_error(value: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        StoredState.from_json(value)
