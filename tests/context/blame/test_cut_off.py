"""Commands that were cut off, or ran from elsewhere: what the record tells of their lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tui.session.checkpoints.store as store_module
from tests.support.blame_world import SimulatedSession, World

ASKED = "asked_line = written(by_the_command)"
OTHER = "other_line = written(by_whomever)"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(store_module, "time", store_module.time)
    made = World(tmp_path / "world", 3)
    yield made
    made.close()


def begun(session: SimulatedSession, command: str) -> str:
    """A command that begins; nothing says that it ends."""
    call = session.call("run_command", {"command": command})
    session.write(
        "intent", call_id=call, tool="run_command", effect="run", args_sha256="", label=command
    )
    session.checkpoint(call=call)
    session.world.tick()
    return call


def appended(world: World, *lines: str) -> None:
    world.put(world.root, [*world.lines(), *((line, "?") for line in lines)])
    world.tick(60)


def told(world: World, *sessions: SimulatedSession) -> dict[str, list[str]]:
    """For each of the two lines, who may have written it."""
    for session in sessions:
        session.save()
    found = world.blame()
    texts = [text for text, _ in world.lines()]
    return {
        text: sorted(one.kind for one in found.makers(texts.index(text)))
        for text in (ASKED, OTHER)
        if text in texts
    }


def test_a_command_that_was_cut_off_wrote_what_it_was_asked_to_word_for_word(
    world: World,
) -> None:
    killed = world.session()
    begun(killed, f"python tools/make.py && cat >> src/module.py <<'END'\n{ASKED}\nEND\n")
    appended(world, ASKED, OTHER)
    assert told(world, killed, world.session()) == {
        ASKED: ["command"],
        OTHER: ["command", "person"],
    }


def test_a_command_that_was_cut_off_is_in_doubt_for_what_is_not_seen_yet(world: World) -> None:
    killed = world.session()
    begun(killed, "python tools/make.py")
    appended(world, OTHER)
    assert told(world, killed) == {OTHER: ["command", "person"]}


def test_a_command_that_can_only_have_written_elsewhere_is_not_in_doubt(world: World) -> None:
    killed = world.session()
    begun(killed, "cat > other.txt <<'END'\nother\nEND\nsleep 9")
    appended(world, OTHER)
    assert told(world, killed, world.session()) == {OTHER: ["person"]}


def test_a_checkpoint_of_another_work_tree_tells_nothing_of_a_command_here(world: World) -> None:
    killed = world.session()
    begun(killed, "python tools/make.py")
    tree = world.root / ".holdfast" / "worktrees" / "tree"
    world.git("worktree", "add", "-q", str(tree))
    world.names[tree] = world.name(world.root)
    world.truth[tree] = list(world.lines())
    there = world.session(tree)
    world.tick()
    appended(world, OTHER)
    assert told(world, killed, there, world.session()) == {OTHER: ["command", "person"]}


def test_a_command_that_had_ended_long_before_its_checkpoint_shares_it_with_the_person(
    world: World,
) -> None:
    killed = world.session()
    call = begun(killed, f"python make.py; echo '{ASKED}' >> src/module.py")
    appended(world, ASKED, OTHER)
    killed.checkpoint("call", call)  # as it is gone on with
    killed.result(call, "run_command", {"seconds": 0.1})
    assert told(world, killed) == {ASKED: ["command"], OTHER: ["command", "person"]}


def test_a_command_of_another_folder_that_names_the_file_may_have_written_it(
    world: World,
) -> None:
    first = world.session()
    tree = world.root / ".holdfast" / "worktrees" / "tree"
    world.git("worktree", "add", "-q", str(tree))
    world.names[tree] = world.name(world.root)
    world.truth[tree] = list(world.lines())
    there = world.session(tree)
    path = world.root / world.name(world.root)

    call = begun(there, f"python make.py; echo '{ASKED}' >> {path}")
    appended(world, ASKED, OTHER)
    there.result(call, "run_command", {"seconds": 60.0})
    assert told(world, first, there, world.session()) == {
        ASKED: ["command"],
        OTHER: ["command", "person"],
    }


def of_another_agent(
    world: World, tool: str, given: dict[str, Any], *, ended: bool = True
) -> SimulatedSession:
    """A session of Claude Code with one call, which leaves no details and no checkpoints."""
    session = SimulatedSession(world, world.root, world.stores[world.root], "abcdef012345")
    session.write("user", content=[], text="Please")
    call = session.call(tool, given)
    session.records = [one for one in session.records if one.type != "permission"]
    world.tick()
    if ended:
        session.result(call, tool, {})
    return session


@pytest.mark.parametrize("seen", [True, False])
@pytest.mark.parametrize(
    ("tool", "given", "ended", "makers"),
    [
        ("Bash", {"command": "python tools/make.py"}, True, ["command", "person"]),
        ("Bash", {"command": "python tools/make.py"}, False, ["command", "person"]),
        ("Bash", {"command": "ls src"}, True, ["person"]),
        ("Bash", {"command": "cat x > src/other.py"}, True, ["person"]),
        ("Edit", {"old_string": "a", "new_string": "b"}, False, ["edit", "person"]),
        ("Read", {}, False, ["person"]),
    ],
)
def test_what_another_agent_may_have_done_without_a_trace_is_not_told_as_the_persons(
    world: World,
    tool: str,
    given: dict[str, Any],
    ended: bool,
    makers: list[str],
    seen: bool,
) -> None:
    session = world.session()
    path = str(world.root / world.name(world.root))
    given = given if "command" in given else {"file_path": path, **given}
    other = of_another_agent(world, tool, given, ended=ended)
    other.save(origin="claude-code:1")
    appended(world, OTHER)
    if seen:
        session.prompt()
    assert told(world, session) == {OTHER: makers}


def test_a_command_without_checkpoints_may_have_written_what_the_next_edit_finds(
    world: World,
) -> None:
    session = world.session()
    session.records = [one for one in session.records if one.type != "checkpoint"]
    session.edit("edit_file", world.changed(world.lines()))
    call = session.call("run_command", {"command": "python tools/make.py"})
    session.write(
        "intent", call_id=call, tool="run_command", effect="run", args_sha256="", label=""
    )
    appended(world, OTHER)
    session.result(call, "run_command", {})
    session.edit("edit_file", [("an edit = made(after_it)", ""), *world.lines()])
    assert told(world, session) == {OTHER: ["command", "person"]}


@pytest.mark.parametrize("gone", [True, False])
def test_a_session_that_took_the_last_checkpoint_and_is_gone_may_have_gone_on(
    world: World, gone: bool
) -> None:
    begun(world.session(), "python tools/make.py")
    last = world.session()
    world.put(world.root, [*world.lines(), ("before it = written(by_hand)", "person")])
    last.prompt()
    world.sessions[0].records = world.sessions[0].records[:2]
    appended(world, OTHER)
    if gone:
        last.records.clear()
    assert told(world, *world.sessions) == {OTHER: ["lost", "person"] if gone else ["person"]}
