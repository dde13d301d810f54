"""What a confined command costs in counts that do not vary: processes that the program starts for
it, syncs, and bytes of the record."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import Yes, events_of, make_agent
from tests.support.provider import ScriptedProvider, call, say
from tui.agent.agent import Agent
from tui.core.clock import SystemClock
from tui.core.config import SandboxSettings
from tui.core.paths import folders
from tui.core.workspace import Workspace
from tui.permissions.sandbox import git_walls
from tui.permissions.sandbox.confinement import Confinement
from tui.session.session import Session

SYNCS = 5
"""The prompt, the call, its begin, its result and the answer; all that came since with each."""
RECORD_BYTES = 5_500
PROCESSES_AT_FIRST = 8
"""The zygote, and what git is asked once."""


class Counts:
    """Counts what the program does from now on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.started = self.syncs = 0
        start, data_sync, sync = subprocess.Popen.__init__, os.fdatasync, os.fsync

        def started(*args: Any, **options: Any) -> None:
            self.started += 1
            start(*args, **options)

        def data_synced(file: int) -> None:
            self.syncs += 1
            data_sync(file)

        def synced(file: int) -> None:
            self.syncs += 1
            sync(file)

        monkeypatch.setattr(subprocess.Popen, "__init__", started)
        monkeypatch.setattr(os, "fdatasync", data_synced)
        monkeypatch.setattr(os, "fsync", synced)


@pytest.fixture
async def confinement(tmp_path: Path) -> AsyncIterator[Confinement]:
    root = tmp_path / "work"
    root.mkdir()
    (root / "file").write_text("text\n")
    for words in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", "-C", str(root), *words], check=True)  # noqa: ASYNC221
    workspace = Workspace.at(root, ceiling="/")
    made = Confinement(SandboxSettings(), workspace, tmp_path / "session", tmp_path / "cache")
    yield made
    await made.close()


async def agent_of(confinement: Confinement, *lines: str) -> Agent:
    if not await confinement.levels():
        pytest.skip(confinement.reason)
    root, clock = confinement.workspace.root, SystemClock()
    turns = [
        turn
        for number, line in enumerate(lines)
        for turn in ([call("run_command", f"c{number}", command=line)], say("ok"))
    ]
    return make_agent(
        root, ScriptedProvider(*turns), approver=Yes(), confinement=confinement,
        session=Session.create(root, folders=folders(), clock=clock),
    )  # fmt: skip


async def test_a_command_starts_no_process_beside_its_own(
    confinement: Confinement, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_walls, "_SETTLED_NS", 0)  # nothing changed git's files just now
    counts = Counts(monkeypatch)
    agent = await agent_of(confinement, *["touch new; echo ran"] * 3)
    await events_of(agent, "go")
    assert 0 < counts.started <= PROCESSES_AT_FIRST
    for _ in range(2):
        counts.started = 0
        await events_of(agent, "go")
        assert counts.started == 0
    await agent.close()


async def test_a_command_is_synced_and_written_once(
    confinement: Confinement, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = await agent_of(confinement, *["touch new; seq 10"] * 2)
    await events_of(agent, "go")
    path = agent.session.path
    assert path is not None
    counts, size = Counts(monkeypatch), path.stat().st_size
    await events_of(agent, "go")
    print(counts.syncs, path.stat().st_size - size)
    assert counts.syncs <= SYNCS
    assert path.stat().st_size - size <= RECORD_BYTES
    await agent.close()
