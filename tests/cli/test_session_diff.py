"""`holdfast sessions diff`: what a session and its commands changed, long after."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.support.agents import Yes, events_of, make_agent
from tests.support.provider import ScriptedProvider, call, say
from tui.cli.main import main
from tui.core.clock import SystemClock
from tui.core.paths import folders
from tui.session.checkpoints.store import store_of
from tui.session.session import Session


async def session(root: Path) -> str:
    """Two prompts: the first changes a, the second deletes it and makes b."""
    (root / "a").write_text("one\n")
    agent = make_agent(
        root,
        ScriptedProvider(
            [call("run_command", command="echo two > a; chmod 700 a; printf '\\0' > bin")],
            say("First."),
            [call("run_command", command="rm a"), call("write_file", path="b", content="b\n")],
            say("Second."),
        ),
        session=Session.create(root, folders=folders(), clock=SystemClock()),
        approver=Yes(),
        open_checkpoints=lambda: store_of(folders(), root),
    )
    await events_of(agent, "first")
    (root / "mine").write_text("mine")
    await events_of(agent, "second")
    assert agent.checkpoints
    await agent.checkpoints.now()
    await agent.close()
    return agent.session.id


async def test_the_whole_session_and_from_a_request_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "work"
    root.mkdir()
    id_ = await session(root)
    shutil.rmtree(root)  # only the checkpoints are read
    assert main(["sessions", "diff", id_]) == 0
    out, err = capsys.readouterr()
    assert "-one\n" in out
    assert "+two" not in out
    assert "+b\n" in out
    assert "not shown as text: nothing → 1 bytes" in out
    assert "1 file edited outside Holdfast:\n  mine" in out
    assert "3 files changed by the session." in err
    assert main(["sessions", "diff", id_, "--at", "3"]) == 0
    out, _ = capsys.readouterr()
    assert "-two\n" in out
    assert "bin" not in out
    assert main(["sessions", "diff", id_, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [(one["path"], one["change"]) for one in said["files"]] == [
        ("a", "deleted"),
        ("b", "added"),
        ("bin", "added"),
    ]
    assert [one["path"] for one in said["others"]] == ["mine"]


async def test_what_cannot_be_shown_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "work"
    root.mkdir()
    id_ = await session(root)
    assert main(["sessions", "diff", id_, "--at", "99"]) == 2
    assert "There is no request 99" in capsys.readouterr().err
    shutil.rmtree(folders().checkpoints)
    assert main(["sessions", "diff", id_]) == 1
    assert "isn't stored any more" in capsys.readouterr().err
    assert not folders().checkpoints.exists()
