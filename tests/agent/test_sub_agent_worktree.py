"""Sub-agents in git worktrees of their own, in a real repository."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.agent.test_sub_agents import Family, record, results, task
from tests.support.agents import Yes, events_of, make_agent
from tests.support.provider import ScriptedProvider, call, say
from tui.agent.agent import Agent
from tui.context.file_changes import changes
from tui.core import facts
from tui.core.clock import SystemClock
from tui.core.config import SandboxSettings
from tui.core.messages import Block, text_of
from tui.core.paths import Folders
from tui.core.workspace import Workspace
from tui.permissions.gate import Gate
from tui.permissions.policy import Policy
from tui.permissions.sandbox.confinement import Confinement
from tui.provider.base import Request
from tui.session.session import Session
from tui.settings import agent_definitions

BUILDER = """---
name: builder
description: Builds something apart.
isolation: worktree
---
Build it.
"""


def git(repo: Path, *args: str) -> str:
    done = subprocess.run(["git", *args], cwd=repo, check=True, capture_output=True, text=True)
    return done.stdout.rstrip("\n")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "agents").mkdir(parents=True)
    (folder / "agents" / "builder.md").write_text(BUILDER)
    (folder / "a.txt").write_text("a\n")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.email", "test@example.org")
    git(folder, "config", "user.name", "Test")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    return folder


Make = Callable[..., Agent]


@pytest.fixture
def make(root: Path, tmp_path: Path) -> Make:
    folders = Folders(*(tmp_path / name for name in ("config", "data", "cache", "log")))

    def made(provider: ScriptedProvider, **fields: Any) -> Agent:
        session = Session.create(root, folders=folders, clock=SystemClock())
        return make_agent(
            root,
            provider,
            session=session,
            approver=Yes(),
            find_agents=lambda: agent_definitions.load([root / "agents"]),
            **fields,
        )

    return made


def worktrees(root: Path) -> list[Path]:
    return sorted((root / ".holdfast" / "worktrees").glob("*"))


async def test_what_it_writes_stays_apart_and_the_parent_learns_where(
    make: Make, root: Path
) -> None:
    provider = Family(
        [task("a", agent="builder"), task("b", agent="builder")],
        say("Both are done."),
        a=[[call("write_file", path="new.txt", content="by a\n")], say("built a")],
        b=[[call("write_file", path="new.txt", content="by b\n")], say("built b")],
    )
    provider.hold = 2
    agent = make(provider)
    shown = await events_of(agent, "build both")
    assert not (root / "new.txt").exists()
    assert git(root, "status", "--porcelain") == ""
    one, other = worktrees(root)
    assert {(one / "new.txt").read_text(), (other / "new.txt").read_text()} == {
        "by a\n",
        "by b\n",
    }
    for name, answer in results(agent).items():
        (place,) = (path for path in (one, other) if (path / "new.txt").read_text()[3] == name)
        assert f"Its work is in the worktree {place}, branch worktree-{place.name}" in answer
        assert "1 changed file (new.txt)" in answer
        assert f"git merge worktree-{place.name}; commit the changed files there first" in answer
    ends = [one.summary for one in shown if isinstance(one, facts.ToolFinished)]
    assert sorted(end.rpartition(" · ")[2] for end in ends) == [
        f"in worktree {place.name}" for place in (one, other)
    ]
    found = {change.path for change in changes(agent.session.records)}
    assert found == {one / "new.txt", other / "new.txt"}
    asked = text_of(provider.of("a")[0].system)
    assert f"{root}/.holdfast/worktrees/builder-" in asked
    assert "Commit what you finish" in asked
    await agent.close()


async def test_an_unchanged_one_is_removed(make: Make, root: Path) -> None:
    provider = Family(
        [task("a", agent="builder")],
        say("Done."),
        a=[[call("read_file", path="a.txt")], say("it says a")],
    )
    agent = make(provider)
    await events_of(agent, "look")
    assert worktrees(root) == []
    assert git(root, "branch", "--list", "worktree-*") == ""
    assert "which was unchanged and is removed" in results(agent)["a"]
    await agent.close()


async def test_its_commands_run_in_its_own_sandbox(make: Make, root: Path, tmp_path: Path) -> None:
    script = f"touch {root}/outside.txt; echo x > b.txt; git add -A; git commit -qm work\n"
    (root / "work.sh").write_text(script)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "a script")
    provider = Family(
        [task("a", agent="builder")],
        say("Done."),
        a=[[call("run_command", command="sh work.sh")], say("committed")],
    )
    folders = Folders(*(tmp_path / name for name in ("config", "data", "cache", "log")))
    around = Workspace.at(root, ceiling="/")
    walls = Confinement.of_session(SandboxSettings(), around, folders, "the session")
    if not await walls.levels():
        pytest.skip(walls.reason)
    gate = Gate(Policy.of(allow=["run_command"]))
    agent = make(provider, confinement=walls, gate=gate)
    await events_of(agent, "build")
    (place,) = worktrees(root)
    assert not (root / "outside.txt").exists()
    assert git(place, "log", "--format=%s", "-1") == "work"
    assert "1 commit that main lacks · 1 file changed, 1 insertion(+)" in results(agent)["a"]
    assert git(root, "status", "--porcelain") == ""
    await agent.close()


async def test_continued_it_works_in_the_same_place(make: Make, root: Path) -> None:
    def again(request: Request) -> list[Block]:
        said = text_of(request.messages[-1]["content"][0]["content"])
        return [task("a2", resume=said.split("session ")[1][:12], prompt="<a> more")]

    provider = Family(
        [task("a", agent="builder")],
        again,
        say("Done."),
        a=[
            [call("write_file", "toolu_w1", path="new.txt", content="one\n")],
            say("built"),
            [call("write_file", "toolu_w2", path="more.txt", content="two\n")],
            say("built more"),
        ],
    )
    agent = make(provider)
    await events_of(agent, "build twice")
    (place,) = worktrees(root)
    assert (place / "new.txt").read_text() == "one\n"
    assert (place / "more.txt").read_text() == "two\n"
    await agent.close()


async def test_without_a_repository_the_call_fails_with_the_reason(make: Make, root: Path) -> None:
    (root / ".git").rename(root.parent / "moved")
    agent = make(Family([task("a", agent="builder")], say("I see."), a=[]))
    await events_of(agent, "build")
    assert "works in a git worktree only" in results(agent)["a"]
    assert "isn't in a git repository" in results(agent)["a"]
    assert record(agent, "sub_agent") == []
    await agent.close()


def test_another_isolation_is_no_definition(tmp_path: Path) -> None:
    (tmp_path / "odd.md").write_text(BUILDER.replace("worktree", "remote"))
    found = agent_definitions.load([tmp_path])
    assert found.find("builder") is None
    assert "its isolation is 'remote', and only worktree is known" in found.problems[0]
