"""/permissions as an editor: where a rule comes from, what it decided, taking it back, trying."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.agents import make_agent
from tests.support.provider import ScriptedProvider
from tests.support.world import World
from tests.ui.screens.driving import running, say, until
from tui.agent.agent import Agent
from tui.app.commands.permissions import would_run
from tui.app.reports.permissions import rule_rows
from tui.core.config import Permissions
from tui.core.paths import folders
from tui.core.workspace import Workspace
from tui.permissions.gate import Gate
from tui.permissions.policy import Policy
from tui.permissions.types import Answer, Call
from tui.settings.edit import remember_always
from tui.ui.screens.permissions import PermissionsScreen

RULE = "run_command(pytest *)"


def agent_with(root: Path, gate: Gate) -> Agent:
    return make_agent(root, ScriptedProvider(), gate=gate)


def granted(gate: Gate, root: Path, command: str) -> None:
    call = Call("1", "run_command", "run", command, command)
    gate.decide(call, mode="ask", elevated=False, workspace=Workspace.at(root, ceiling="/"))
    gate.record(call, Answer("session"))


def test_each_rule_has_its_origin_and_what_it_decided(tmp_path: Path) -> None:
    (tmp_path / ".holdfast").mkdir()
    folder = tmp_path / ".holdfast" / "config.toml"
    folder.write_text('[permissions]\ndeny = ["run_command(git push*)"]\n')
    mine = tmp_path / "config.toml"
    mine.write_text(f'[permissions]\nallow = ["{RULE}"]\n')
    gate = Gate(Policy.of(allow=[RULE, "read_file"], deny=["run_command(git push*)"]))
    granted(gate, tmp_path, "make x")
    agent = agent_with(tmp_path, gate)
    for by, subject in ((RULE, "pytest"), (RULE, "pytest -q"), ("session", "make x")):
        agent.session.append(
            "permission", tool="run_command", subject=subject, answer="allow", by=by
        )
    assert [row.text for row in rule_rows(agent, mine, tmp_path)] == [
        "run_command(git push*) (this folder's config.toml)",
        f"{RULE} (your config.toml, matched 2 calls)",
        "read_file (the command line or the environment)",
        "run_command(make x *) (this session, matched 1 call)",
    ]


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("ls", "would run without a question, safe"),
        ("pytest -q", "would run without a question"),
        ("make x", "would ask, standard"),
        ("git push", "would be refused"),
        ("rm -r x", "would ask, high-risk"),
    ],
)
def test_a_command_is_tried_without_running_it(tmp_path: Path, command: str, told: str) -> None:
    gate = Gate(Policy.of(allow=[RULE], deny=["run_command(git push*)"]))
    agent = agent_with(tmp_path, gate)
    before = len(agent.session.records)
    assert told in would_run(agent, command)
    assert len(agent.session.records) == before


async def test_a_rule_of_ones_own_is_revoked_for_good() -> None:
    world = World()
    world.permissions = Permissions(allow=(RULE,))
    remember_always(folders(), RULE)
    async with running(world) as (app, pilot):
        assert str(app.chat.prompt_rule.right).startswith("ask first, with 1 exception")
        await say(pilot, "/permissions")
        await until(pilot, lambda: isinstance(app.screen, PermissionsScreen))
        panel = app.screen
        assert isinstance(panel, PermissionsScreen)
        await pilot.press("r")  # on a row that can't be revoked
        assert "revoke" not in str(panel.query_one("#box").border_subtitle)
        await pilot.press("slash", *"pytest", "enter")
        await until(pilot, lambda: "revoke" in str(panel.query_one("#box").border_subtitle))
        await pilot.press("r")
        await until(pilot, lambda: panel.row is None)
        await pilot.press("escape", "escape")
        await until(pilot, lambda: app.screen is app.chat)
        await until(pilot, lambda: not world.agent.permissions.gate.policy.allow)
        await until(pilot, lambda: str(app.chat.prompt_rule.right) == "ask first")
        assert "pytest" not in folders().config_file.read_text()


async def test_a_held_key_takes_back_one_rule() -> None:
    world = World()
    world.permissions = Permissions(allow=(RULE, "run_command(make *)", "run_command(ls *)"))
    async with running(world) as (app, pilot):
        await say(pilot, "/permissions")
        await until(pilot, lambda: isinstance(app.screen, PermissionsScreen))
        panel = app.screen
        assert isinstance(panel, PermissionsScreen)
        await pilot.press("slash", *"run_command", "enter")
        await until(pilot, lambda: "revoke" in str(panel.query_one("#box").border_subtitle))
        for _ in range(5):
            await pilot.press("r")
            await pilot.pause()
        await until(pilot, lambda: "Release r" in str(panel.query_one("#box").border_subtitle))
        assert len(world.agent.permissions.gate.policy.allow) == 2
