"""Weeks of simulated work with the truth about each line: see `tests.support.blame_world`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

import tui.session.checkpoints.store as store_module
from tests.support.blame_world import World
from tui.context.blame import blame_file, contents
from tui.context.blame.line_map import LineMap, Reformatted, line_map


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The world's time goes with the test."""
    monkeypatch.setattr(store_module, "time", store_module.time)


def worked(folder: Path, seed: int, sessions: int = 4) -> World:
    world = World(folder / str(seed), seed)
    world.work(sessions)
    return world


@pytest.mark.parametrize("seed", range(4))
def test_nearly_every_line_is_told_right(tmp_path: Path, seed: int) -> None:
    world = worked(tmp_path, seed)
    told = world.told()
    wrong = [(text, true, said) for text, true, said in told if true != said]
    assert len(wrong) <= max(2, len(told) // 50), wrong
    kinds = Counter(true.partition(":")[0] for _, true, _ in told)
    assert {"call", "person", "before"} <= set(kinds)
    world.close()


def test_the_answer_is_kept_and_made_again_from_the_record(tmp_path: Path) -> None:
    world = worked(tmp_path, 11)
    first = world.blame()
    assert world.blame() == first
    for file in world.folders.cache.iterdir():
        file.write_bytes(b"damaged")
    assert world.blame() == first
    world.close()


def test_one_more_edit_compares_only_what_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = worked(tmp_path, 12)
    world.blame()
    session = world.session()
    session.edit("edit_file", world.changed(world.lines()))
    session.save()
    compared: list[int] = []

    def counted(old: Sequence[str], new: Sequence[str], reformatted: Reformatted) -> LineMap:
        compared.append(len(new))
        return line_map(old, new, reformatted)

    monkeypatch.setattr(contents, "line_map", counted)
    told = world.blame()
    assert len(compared) <= 3
    for file in world.folders.cache.iterdir():
        file.unlink()
    assert world.blame() == told
    world.close()


def test_lines_of_a_session_that_is_gone_are_uncertain(tmp_path: Path) -> None:
    world = World(tmp_path / "world", 5)
    gone, stays = world.session(), world.session()

    def appended(label: str) -> None:
        world.put(world.root, [*world.lines(), ("by a command", label)])

    gone.command("echo by a command >> src/module.py", appended)
    stays.prompt()
    stays.save()
    (line,) = (said for text, _, said in world.told() if text == "by a command")
    assert line == "?"
    found = world.blame()
    uncertain = [one.why for one in found.origins if len(one.makers) > 1]
    assert uncertain == ["the session that took the checkpoint is gone, or its record of it"]
    world.close()


def test_a_pruned_checkpoint_is_said(tmp_path: Path) -> None:
    world = World(tmp_path / "world", 6)
    session = world.session()

    def appended(label: str) -> None:
        world.put(world.root, [*world.lines(), ("by a command", label)])

    session.command("python tools/make.py", appended)
    session.prompt()
    world.tick(100 * 86_400)
    session.prompt()
    session.store.prune()
    session.save()
    (line,) = (said for text, _, said in world.told() if text == "by a command")
    assert line == "?"
    assert {one.why for one in world.blame().origins} == {
        "the checkpoint of that moment isn't kept any more"
    }
    world.close()


def test_a_command_whose_end_was_never_recorded_may_have_written(tmp_path: Path) -> None:
    world = World(tmp_path / "world", 9)
    killed = world.session()
    world.put(world.root, [*world.lines(), ("before it", "person")])
    call = killed.call("run_command", {"command": "make it"})
    killed.write(
        "intent", call_id=call, tool="run_command", effect="run", args_sha256="", label="make it"
    )
    world.tick(1)
    killed.checkpoint(call=call)
    killed.save()
    world.tick()
    world.put(world.root, [*world.lines(), ("by whom?", "?")])
    session = world.session()
    world.put(world.root, [*world.lines(), ("by the person", "person")])
    session.prompt()
    session.save()
    found, count = world.blame(), len(world.lines())
    makers = {step.label or step.kind for step in found.makers(count - 2)}
    assert makers == {"make it", "person"}
    assert found.certain(count - 1)
    world.close()


def test_background_commands_and_the_person_are_never_mixed_up(tmp_path: Path) -> None:
    world = World(tmp_path / "world", 7)
    session = world.session()
    world.put(world.root, [*world.lines(), ("by whom?", "?")])
    session.checkpoint("job")
    session.save()
    (line,) = (said for text, _, said in world.told() if text == "by whom?")
    assert line == "?"
    world.close()


def test_two_commands_at_once_are_both_named(tmp_path: Path) -> None:
    world = World(tmp_path / "world", 8)
    one, other = world.session(), world.session()

    def outer(_label: str) -> None:
        one.command("make two", inner)

    def inner(label: str) -> None:
        world.put(world.root, [*world.lines(), ("by one of two", label)])

    other.command("make one", outer)
    for session in (one, other):
        session.save()
    found = world.blame()
    makers = {step.label for step in found.makers(len(world.lines()) - 1)}
    assert makers == {"make one", "make two"}
    assert not found.certain(len(world.lines()) - 1)
    world.close()


@pytest.mark.parametrize(
    "pull",
    [("merge", "-q", "--ff-only"), ("merge", "-q", "--no-ff", "--no-edit"), ("rebase", "-q")],
)
def test_a_commit_made_elsewhere_after_the_last_state_is_not_the_persons(
    tmp_path: Path, pull: tuple[str, ...]
) -> None:
    world = World(tmp_path / "world", 9)
    own, theirs = "own_line = written(here)", "their_line = written(elsewhere)"
    first = world.session()
    world.tick()
    clone = tmp_path / "clone"
    world.git("clone", "-q", str(world.root), str(clone))
    there = clone / world.name(world.root)
    there.write_text(f"{theirs}\n{there.read_text()}")
    world.git("commit", "-qam", "from elsewhere", root=clone)
    world.tick()
    if "--ff-only" not in pull:
        world.put(world.root, [*world.lines(), (own, "person")])
        world.commit(words="own work")
    world.git("fetch", "-q", str(clone), "main")
    world.git(*pull, "FETCH_HEAD")
    world.tick()
    world.truth[world.root] = [(theirs, "commit:from elsewhere"), *world.lines()]
    world.session().save()
    first.save()
    assert [one for one in world.told() if one[0] in {own, theirs} and one[1] != one[2]] == []
    world.close()


@pytest.mark.parametrize("ids", ["unique", "repeated"])
def test_a_sub_agents_command_is_its_own_and_nothing_earlier(tmp_path: Path, ids: str) -> None:
    world = World(tmp_path / "world", 10)
    early, late = "early_line = by_hand(1)", "late_line = by_the_command(2)"
    parent, child, other = world.session(), world.session(), world.session()
    again = "call_0" if ids == "repeated" else ""
    other.command("python tools/other.py", lambda _label: None, again)
    parent.call("task", {"prompt": "do it"}, again)
    world.put(world.root, [*world.lines(), (early, "person")])
    parent.prompt()
    call = child.call("run_command", {"command": "python tools/rework.py"}, again)
    parent.checkpoint(call=call)
    world.tick()
    world.put(world.root, [*world.lines(), (late, f"call:{call}")])
    child.result(call, "run_command", {"changed_files": [world.name(world.root)]})
    parent.checkpoint("call", call)
    other.save()
    parent.save()
    child.save(parent=parent.id)
    assert [one for one in world.told() if one[0] in {early, late} and one[1] != one[2]] == []
    step = world.blame().makers(len(world.lines()) - 1)[0]
    assert (step.session, step.label) == (child.id, "python tools/rework.py")
    world.close()


def test_calls_of_two_sessions_with_the_same_id_are_two(tmp_path: Path) -> None:
    world = World(tmp_path / "world", 8)
    one, other = world.session(), world.session()

    def outer(_label: str) -> None:
        one.command("make it", inner, "call_1")

    def inner(label: str) -> None:
        world.put(world.root, [*world.lines(), ("by one of two", label)])

    other.command("make it", outer, "call_1")
    for session in (one, other):
        session.save()
    found = world.blame()
    makers = {step.session for step in found.makers(len(world.lines()) - 1)}
    assert makers == {one.id, other.id}
    world.close()


def test_an_id_that_comes_again_in_a_session_is_another_call(tmp_path: Path) -> None:
    world = World(tmp_path / "world", 9)
    session = world.session()
    for text in ("first", "second"):

        def work(label: str, text: str = text) -> None:
            world.put(world.root, [*world.lines(), (f"the {text} line", label)])

        session.command(f"make the {text}", work, "call_1")
    session.save()
    found, count = world.blame(), len(world.lines())
    labels = [found.makers(count - n)[0].label for n in (2, 1)]
    assert labels == ["make the first", "make the second"]
    world.close()


def test_a_hook_that_formats_the_whole_file_wrote_nothing_of_it(tmp_path: Path) -> None:
    world = World(tmp_path / "world", 13)
    old = [(f"value_{n} = compute('name {n}', [1,2])", "before") for n in range(12)]
    world.put(world.root, old)
    session = world.session()
    added = ("added = compute('by the edit', [1,2])", "")
    new = [*old[6:], added, *old[:6]]  # the edit moves half of it, and the hook formats all
    session.edit("edit_file", new, formatter="ruff format")
    session.save()
    assert [one for one in world.told() if one[1] != one[2]] == []
    formatters = {world.blame().origins[n].formatters != () for n in world.blame().of}
    assert formatters == {True, False}
    world.close()


def test_an_edit_of_what_a_formatter_could_have_changed_is_the_edits(tmp_path: Path) -> None:
    world = World(tmp_path / "world", 13)
    old = [(f"value_{n} = compute('name {n}', ([1,2]))", "before") for n in range(6)]
    world.put(world.root, old)
    session = world.session()
    new = [*old[:3], ("value_3 = compute('name 3', [1,2])", ""), *old[4:]]
    session.edit("edit_file", new, formatter="ruff format")
    session.save()
    assert [one for one in world.told() if one[1] != one[2]] == []
    world.close()


def cloned(world: World, folder: Path) -> Path:
    clone = folder / "clone"
    world.git("clone", "-q", str(world.root), str(clone))
    return clone


def test_a_file_that_a_pull_brought_after_the_last_checkpoint_is_its_commits(
    tmp_path: Path,
) -> None:
    world = World(tmp_path / "world", 14)
    world.session().save()
    world.tick()
    clone = cloned(world, tmp_path)
    (clone / "new.py").write_text("their_line = written(elsewhere)\n")
    world.git("add", "-A", root=clone)
    world.git("commit", "-qm", "from elsewhere", root=clone)
    world.tick()
    world.git("pull", "-q", str(clone), "main")
    found, _ = blame_file(world.root / "new.py", world.folders)
    assert [(step.kind, step.said) for step in found.makers(0)] == [("commit", "from elsewhere")]
    world.close()


def test_a_commit_that_only_formats_what_was_pulled_leaves_it_its_commit(tmp_path: Path) -> None:
    world = World(tmp_path / "world", 15)
    first = world.session()
    world.tick()
    clone = cloned(world, tmp_path)
    there = clone / world.name(world.root)
    there.write_text(f"their_line = written('elsewhere', [1,2])\n{there.read_text()}")
    world.git("commit", "-qam", "from elsewhere", root=clone)
    world.tick()
    world.git("pull", "-q", "--ff-only", str(clone), "main")
    line = ('their_line = written("elsewhere", [1, 2])', "commit:from elsewhere")
    world.put(world.root, [line, *world.lines()])
    world.commit(words="formatted")
    world.tick()
    world.git("commit", "-q", "--allow-empty", "-m", "upstream", root=clone)
    world.git("fetch", "-q", str(clone), "main")
    world.git("rebase", "-q", "FETCH_HEAD")
    world.tick()
    world.session().save()
    first.save()
    assert [one for one in world.told() if one[0] == line[0]] == [(*line, line[1])]
    world.close()


@pytest.mark.parametrize("committed", [(True,), (False,), (True, False), (True, True)])
def test_a_file_that_was_moved_after_the_last_checkpoint_keeps_its_lines(
    tmp_path: Path, committed: tuple[bool, ...]
) -> None:
    world = World(tmp_path / "world", 16)
    session = world.session()
    session.edit("edit_file", world.changed(world.lines()))
    session.prompt()
    session.save()
    world.commit()
    world.tick()
    for with_commit in committed:
        world.rename()
        if with_commit:
            world.commit(words="another name")
    wrong = [one for one in world.told() if one[1] != one[2]]
    assert wrong == []
    world.close()


def test_a_copy_that_a_session_which_is_gone_left_makes_the_person_uncertain(
    tmp_path: Path,
) -> None:
    world = World(tmp_path / "world", 17)
    stays, gone = world.session(), world.session()
    gone.edit("edit_file", [*world.lines(), ("by the one that is gone", "")])
    world.tick(60)
    stays.prompt()
    world.tick(60)
    world.put(world.root, [*world.lines(), ("by the person", "person")])
    world.tick(60)
    stays.prompt()
    stays.save()
    said = {text: said for text, _, said in world.told() if text.startswith("by the")}
    assert said == {"by the one that is gone": "?", "by the person": "person"}
    world.close()


def worked_in_a_tree(world: World, bring: tuple[str, ...], *, stored: bool) -> None:
    """A session has worked and committed in a worktree; the person brings that in, and removes
    the worktree. The session is gone, and unless `stored` its checkpoints are gone, too."""
    begin = world.session()
    world.commit()
    root = world.root / ".holdfast" / "worktrees" / "tree"
    world.git("worktree", "add", "-q", "-b", "worktree-tree", str(root), "HEAD")
    world.names[root] = world.name(world.root)
    world.truth[root] = list(world.lines())
    agent = world.session(root)
    written = [(f"written_in_a_worktree_{n} = made_there({n})", "") for n in range(3)]
    agent.edit("edit_file", [*world.lines(root), *written])
    agent.command("git commit", lambda _: world.commit(root, "in the worktree"))
    world.tick()
    world.put(world.root, [("by the person = written(by_hand)", "person"), *world.lines()])
    world.commit(words="meanwhile")
    world.git(*bring, "worktree-tree")
    world.git("commit", "-qm", "brought in", fails=True)
    world.after_git(world.root, world.lines(), world.lines(root))
    world.git("worktree", "remove", "--force", str(root))
    world.tick()
    begin.prompt()
    begin.save()
    if not stored:
        agent.store.close()
        for file in world.folders.checkpoints.glob("tree-*"):
            file.unlink()


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("bring", [("merge", "-q", "--no-edit"), ("merge", "-q", "--squash")])
def test_what_a_session_that_is_gone_committed_in_a_worktree_is_uncertain(
    tmp_path: Path, bring: tuple[str, ...], stored: bool
) -> None:
    world = World(tmp_path / "world", 5)
    worked_in_a_tree(world, bring, stored=stored)
    told = world.told()
    assert {said for _, true, said in told if true.startswith("call:")} == {"?"}
    assert all(true == said for _, true, said in told if not true.startswith("call:"))
    found = world.blame()
    assert {"lost"} < {step.kind for step in found.makers(len(told) - 1)}
    assert found.origins[found.of[-1]].why
    world.close()


def test_what_is_squashed_of_a_branch_of_this_checkout_keeps_its_lines(tmp_path: Path) -> None:
    world = World(tmp_path / "world", 5)
    session = world.session()
    world.commit()
    world.git("checkout", "-q", "-b", "topic")
    base = world.lines()
    written = [(f"written_on_a_branch_{n} = made_there({n})", "") for n in range(3)]
    session.edit("edit_file", [*base, *written])
    theirs = world.lines()
    world.commit()
    session.prompt()
    world.git("checkout", "-q", "main")
    world.put(world.root, [("by the person = written(by_hand)", "person"), *base])
    world.commit(words="meanwhile")
    session.prompt()
    mine = world.lines()
    world.git("merge", "-q", "--squash", "topic")
    world.commit(words="squashed")
    world.after_git(world.root, mine, theirs)
    session.prompt()
    session.save()
    assert all(true == said for _, true, said in world.told())
    world.close()


def test_what_a_revert_brings_back_of_a_commit_that_no_state_shows_is_the_first_ones(
    tmp_path: Path,
) -> None:
    world = World(tmp_path / "world", 5)
    session = world.session()
    base = world.lines()
    written = [(f"written_by_a_call_{n} = made_there({n})", "") for n in range(3)]
    session.edit("edit_file", [*base, *written])
    made = world.lines()
    shown = [("by the person = written(by_hand)", "person"), *made]
    world.put(world.root, shown)
    world.commit(words="seen by nobody")
    world.put(world.root, made)
    world.tick()
    session.edit("edit_file", base)
    world.commit(words="taken away")
    world.tick()
    world.git("revert", "--no-edit", "HEAD")
    world.after_git(world.root, shown)
    world.tick()
    session.prompt()
    session.save()
    assert [one for one in world.told() if one[1] != one[2]] == []
    world.close()
