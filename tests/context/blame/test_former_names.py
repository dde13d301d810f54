"""Files that got another name and another form at once, or came from elsewhere unseen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import tui.session.checkpoints.store as store_module
from tests.support.blame_world import World
from tui.context.blame import blame_file

OLD = [f"value_{n} = compute('name {n}', [1,2])" for n in range(12)]
NEW = [f'value_{n} = compute("name {n}", [1, 2])' for n in range(12)]
OTHERS = [f"unlike_{n} = measure(of={n}, other={n})" for n in range(12)]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(store_module, "time", store_module.time)
    made = World(tmp_path / "world", 4)
    yield made
    made.close()


def begin(world: World) -> None:
    """One session has seen the file, and another that is taken away with it."""
    world.put(world.root, [(line, "before") for line in OLD])
    (world.root / "src" / "unlike.py").write_text("".join(f"{line}\n" for line in OTHERS))
    world.commit(words="as it was")
    world.session().save()
    world.tick()


def renamed(world: World, root: Path) -> None:
    """The file has another name and another form; git sees two files."""
    (root / world.name(world.root)).unlink()
    (root / "src" / "unlike.py").unlink()
    (root / "src" / "named.py").write_text("".join(f"{line}\n" for line in NEW))
    world.git("add", "-A", root=root)


def kinds(world: World, path: Path) -> set[str]:
    found, lines = blame_file(path, world.folders)
    assert lines == NEW
    return {found.makers(n)[0].kind for n in range(len(lines)) if found.certain(n)}


def test_a_commit_that_renames_and_formats_a_file_leaves_its_lines(world: World) -> None:
    begin(world)
    renamed(world, world.root)
    world.commit(words="named and formatted")
    assert kinds(world, world.root / "src" / "named.py") == {"before"}


def test_a_checkpoint_that_sees_a_file_renamed_and_formatted_leaves_its_lines(
    world: World,
) -> None:
    begin(world)
    renamed(world, world.root)
    world.git("reset", "-q")
    world.session().save()
    assert kinds(world, world.root / "src" / "named.py") == {"before"}


@pytest.mark.parametrize(
    ("old", "new"),
    [("late.py", "named.py"), ("später.py", "benannt größer.py"), ("größe.py", "größe.py")],
)
def test_a_commit_from_elsewhere_that_renames_and_formats_is_looked_through(
    world: World, tmp_path: Path, old: str, new: str
) -> None:
    begin(world)
    clone = tmp_path / "clone"
    world.git("clone", "-q", str(world.root), str(clone))
    (clone / "src" / old).write_text("".join(f"{line}\n" for line in OLD))
    world.git("add", "-A", root=clone)
    world.git("commit", "-qm", "written elsewhere", root=clone)
    world.tick()
    (clone / "src" / old).unlink()
    (clone / "src" / new).write_text("".join(f"{line}\n" for line in NEW))
    world.git("add", "-A", root=clone)
    world.git("commit", "-qm", "named and formatted", root=clone)
    world.tick()
    world.git("pull", "-q", str(clone), "main")
    found, _ = blame_file(world.root / "src" / new, world.folders)
    assert {one.said for n in range(len(NEW)) for one in found.makers(n)} == {"written elsewhere"}


def test_what_a_pull_brought_is_its_commits_also_where_a_worktree_saw_it_first(
    world: World, tmp_path: Path
) -> None:
    begin(world)
    clone = tmp_path / "clone"
    world.git("clone", "-q", str(world.root), str(clone))
    (clone / "src" / "late.py").write_text("".join(f"{line}\n" for line in NEW))
    world.git("add", "-A", root=clone)
    world.git("commit", "-qm", "written elsewhere", root=clone)
    world.tick()
    world.git("pull", "-q", str(clone), "main")
    world.tick()
    tree = world.root / ".holdfast" / "worktrees" / "tree"
    world.git("worktree", "add", "-q", str(tree))
    world.names[tree], world.truth[tree] = "src/late.py", [(line, "") for line in NEW]
    world.session(tree).save()
    world.tick()
    world.session().save()
    found, _ = blame_file(world.root / "src" / "late.py", world.folders)
    assert {one.said for n in range(len(NEW)) for one in found.makers(n)} == {"written elsewhere"}


def test_a_worktree_doubts_what_it_took_over_of_a_command_that_was_cut_off(world: World) -> None:
    killed = world.session()
    call = killed.call("run_command", {"command": "python tools/make.py"})
    killed.write("intent", call_id=call, tool="run_command", effect="run", label="make")
    killed.checkpoint(call=call)
    killed.save()
    world.tick()
    world.put(world.root, [*world.lines(), ("by whom?", "?")])
    world.commit()
    world.tick()
    tree = world.root / ".holdfast" / "worktrees" / "tree"
    world.git("worktree", "add", "-q", str(tree))
    world.names[tree], world.truth[tree] = world.name(world.root), list(world.lines())
    world.session(tree).save()
    world.tick()
    world.session().save()
    found = world.blame()
    assert {one.kind for one in found.makers(len(world.lines()) - 1)} == {"command", "person"}


def test_a_merge_that_puts_lines_elsewhere_leaves_them_to_the_parent_that_had_them(
    world: World, tmp_path: Path
) -> None:
    begin(world)
    clone = tmp_path / "clone"
    world.git("clone", "-q", str(world.root), str(clone))
    there = clone / world.name(world.root)
    theirs = [f"their_line_{n} = written_elsewhere({n})" for n in range(4)]
    there.write_text("".join(f"{line}\n" for line in [*theirs, *OLD]))
    world.git("commit", "-qam", "written elsewhere", root=clone)
    own = [(f"own_line_{n} = written_here({n})", "person") for n in range(4)]
    world.put(world.root, [*own, *world.lines()])
    world.commit(words="own work")
    world.tick()
    world.git("fetch", "-q", str(clone), "main")
    world.git("merge", "-q", "FETCH_HEAD", fails=True)
    rest = [(line, "before") for line in OLD]
    moved = [(line, "commit:written elsewhere") for line in theirs]
    world.put(world.root, [*own, *rest[:6], *moved, *rest[6:]])
    world.git("commit", "-qam", "merged")
    world.tick()
    world.session().save()
    assert [one for one in world.told() if one[1] != one[2]] == []


def test_a_file_of_commits_to_ignore_that_is_missing_hides_no_commit(world: World) -> None:
    begin(world)
    world.git("config", "blame.ignoreRevsFile", "missing.txt")
    found = world.blame()
    assert {found.commits[number].summary for number in found.committed} == {"as it was"}
    assert found.notes == ()


def test_what_a_revert_of_a_revert_brings_back_is_the_first_ones(
    world: World, tmp_path: Path
) -> None:
    begin(world)
    clone = tmp_path / "clone"
    world.git("clone", "-q", str(world.root), str(clone))
    line = "their_line = written(elsewhere)"
    there = clone / world.name(world.root)
    there.write_text(f"{line}\n{there.read_text()}")
    world.git("commit", "-qam", "written elsewhere", root=clone)
    world.tick()
    world.git("pull", "-q", str(clone), "main")
    for _ in range(2):
        world.tick()
        world.git("revert", "--no-edit", "HEAD")
    world.tick()
    world.put(world.root, [(line, "commit:written elsewhere"), *world.lines()])
    world.session().save()
    assert [one for one in world.told() if one[1] != one[2]] == []


@pytest.mark.parametrize("edited", [False, True])
@pytest.mark.parametrize("known_to_git", [False, True])
def test_a_file_that_was_moved_by_hand_and_is_not_seen_yet_keeps_its_lines(
    world: World, known_to_git: bool, edited: bool
) -> None:
    other = world.root / "src" / "unlike.py"
    other.write_text("".join(f"{line}\n" for line in OTHERS))
    session = world.session()
    session.edit("edit_file", world.changed(world.lines()))
    world.tick()
    world.person_edits()
    session.prompt()
    session.save()
    if known_to_git:
        world.commit()
    world.tick()
    before = world.root / world.name(world.root)
    world.names[world.root] = "lib/other.py"
    (world.root / "lib").mkdir()
    before.rename(world.root / "lib" / "other.py")
    other.unlink()
    if edited:
        world.person_edits()
    assert [one for one in world.told() if one[1] != one[2]] == []
    assert world.blame().names == (str(before),)


def test_a_new_file_is_not_made_of_one_that_is_missing_and_unlike_it(world: World) -> None:
    begin(world)
    (world.root / "src" / "unlike.py").unlink()
    world.names[world.root] = "src/new.py"
    world.put(world.root, [(line, "before") for line in NEW])
    assert world.blame().names == ()
