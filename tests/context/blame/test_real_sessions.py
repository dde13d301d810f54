"""Blame of what real agents did: their records are not made up here."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.support.agents import Yes, events_of, make_agent
from tests.support.provider import ScriptedProvider, call, say
from tui.context.blame import FileBlame, blame_file
from tui.core.clock import SystemClock
from tui.core.paths import folders
from tui.session.checkpoints.entries import Checkpoint
from tui.session.checkpoints.store import CheckpointStore, store_of
from tui.session.session import Session


async def worked(root: Path, *answers: object, checkpoints: bool = True) -> str:
    """Two prompts; between them the person adds a line. Returns the session's id."""
    agent = make_agent(
        root,
        ScriptedProvider(*answers),  # type: ignore[arg-type]
        session=Session.create(root, folders=folders(), clock=SystemClock()),
        approver=Yes(),
        open_checkpoints=(lambda: store_of(folders(), root)) if checkpoints else None,
    )
    await events_of(agent, "make the file better")
    file = root / "file.py"
    file.write_text(file.read_text() + "by the person\n")
    await events_of(agent, "go on")
    await agent.close()
    return agent.session.id


def told(found: FileBlame) -> list[str]:
    """For each line the kind of its step and the tool or command; "?" where it is uncertain."""
    steps = [found.makers(n)[0] for n in range(len(found.of))]
    return [
        " ".join(filter(None, [step.kind, step.tool])) if found.certain(n) else "?"
        for n, step in enumerate(steps)
    ]


EDIT = [
    call(
        "edit_file",
        path="file.py",
        edits=[{"old_string": "two\n", "new_string": "by an edit\ntwo\n"}],
    )
]


async def test_edits_commands_and_the_person_are_told_apart(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "file.py").write_text("one\ntwo\n")
    id_ = await worked(
        root,
        [call("read_file", path="file.py")],
        EDIT,
        say("Done."),
        [call("run_command", command="echo by a command >> file.py")],
        say("Done."),
    )
    found, lines = blame_file(root / "file.py", folders())
    assert lines == ["one", "by an edit", "two", "by the person", "by a command"]
    assert told(found) == [
        "before", "edit edit_file", "before", "person", "command run_command",
    ]  # fmt: skip
    step = found.makers(1)[0]
    assert (step.session, step.said, step.answer, step.by) == (
        id_, "make the file better", "once", "person",
    )  # fmt: skip
    assert found.makers(4)[0].said == "go on"
    assert found.makers(4)[0].label == "echo by a command >> file.py"


async def test_a_prompts_checkpoint_that_comes_after_its_commands_intent_is_the_persons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "file.py").write_text("one\ntwo\n")
    take = CheckpointStore.take

    def late(store: CheckpointStore) -> Checkpoint:
        if b"by the person" in (root / "file.py").read_bytes():
            while b'"effect":"run"' not in recorded():
                threading.Event().wait(0.001)
        return take(store)

    def recorded() -> bytes:
        return b"".join(file.read_bytes() for file in folders().data.rglob("*.jsonl"))

    monkeypatch.setattr(CheckpointStore, "take", late)
    await worked(
        root,
        [call("read_file", path="file.py")],
        EDIT,
        say("Done."),
        [call("run_command", command="echo by a command >> file.py")],
        say("Done."),
    )
    found, _ = blame_file(root / "file.py", folders())
    assert told(found) == ["before", "edit edit_file", "before", "person", "command run_command"]


async def test_without_checkpoints_the_file_tools_tell_enough(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "file.py").write_text("one\ntwo\n")
    await worked(
        root,
        [call("read_file", path="file.py")],
        EDIT,
        say("Done."),
        say("Nothing to do."),
        checkpoints=False,
    )
    found, _ = blame_file(root / "file.py", folders())
    assert told(found) == ["before", "edit edit_file", "before", "person"]


async def test_a_patch_that_moves_a_file_keeps_its_lines(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "old.py").write_text("one\ntwo\nthree\n")
    (root / "file.py").write_text("")
    patch = (
        "*** Begin Patch\n*** Update File: old.py\n*** Move to: new.py\n@@\n one\n"
        "+by a patch\n two\n*** End Patch\n"
    )
    await worked(
        root,
        [call("read_file", path="old.py")],
        [call("apply_patch", patch=patch)],
        say("Done."),
        say("Done."),
    )
    found, _ = blame_file(root / "new.py", folders())
    assert told(found) == ["before", "edit apply_patch", "before", "before"]
    assert found.names == (str(root / "old.py"),)


async def test_what_the_person_formats_by_hand_is_still_who_wrote_it(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "file.py").write_text("one = first(1,2)\ntwo\n")
    edit = {"old_string": "two\n", "new_string": "added = call(1,2)\ntwo\n"}
    agent = make_agent(
        root,
        ScriptedProvider(
            [call("read_file", path="file.py")],
            [call("edit_file", path="file.py", edits=[edit])],
            say("Done."),
            say("Nothing to do."),
        ),
        session=Session.create(root, folders=folders(), clock=SystemClock()),
        approver=Yes(),
        open_checkpoints=lambda: store_of(folders(), root),
    )
    await events_of(agent, "make the file better")
    by_hand = "one = first(1, 2)\nmine = by_hand()\nadded = call(1, 2)\ntwo\n"
    (root / "file.py").write_text(by_hand)
    await events_of(agent, "go on")
    await agent.close()
    found, _ = blame_file(root / "file.py", folders())
    assert told(found) == ["before", "person", "edit edit_file", "before"]
