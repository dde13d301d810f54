"""Everyday commands of real projects work in the workspace level, or say what they need."""

from __future__ import annotations

import os
import pwd
import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.permissions.sandbox.conftest import Scene
from tui.core.workspace import Workspace
from tui.permissions.named_needs import named_needs
from tui.permissions.sandbox.engine import Sandbox
from tui.permissions.sandbox.explain import Met, explain_failure
from tui.permissions.sandbox.git_walls import git_places, with_git
from tui.permissions.sandbox.walls import Level

pytestmark = pytest.mark.slow

COMMANDS = (Path(__file__).parent / "everyday.txt").read_text(encoding="utf-8").splitlines()
NEEDS = {
    "curl -sS https://example.test/": "needs the network",
    "pip download six": "needs the network",
    "touch ~/.bashrc": "needs to write ~/.bashrc",
    "git branch -m topic subject": (
        "needs to write .git/config, which git runs or trusts later: git can do that if it is "
        "the whole command"
    ),
}
"""The commands that the level does not let do what they are for."""
ELSEWHERE = {
    "git push origin main": "does not appear to be a git repository",
    "docker ps": "Cannot connect to the Docker daemon",
}
"""Those that fail without walls, too, and how."""


def is_there(command: str) -> bool:
    """Whether the programs that a command begins with are installed here."""
    first = shlex.split(re.split(r"&&|\|", command)[0])[0]
    return first.startswith(".") or shutil.which(first) is not None


async def test_everyday_commands_work_or_say_what_they_need(sandbox: Sandbox, scene: Scene) -> None:
    scene.walls = with_git(scene.walls, git_places(scene.workspace, scene.environment))
    rustup = Path(pwd.getpwuid(os.getuid()).pw_dir, ".rustup")
    scene.environment["RUSTUP_HOME"] = str(rustup)  # the scene has a home of its own
    wrong: list[str] = []
    for command in filter(is_there, COMMANDS):
        try:
            code, output = await scene.run(sandbox, command, Level.WORKSPACE)
        except TimeoutError:
            wrong.append(f"{command}: it did not end")
            continue
        met = Met.in_output(output, (), denies=False)
        workspace = Workspace(scene.workspace)
        named = named_needs(command, scene.workspace, workspace, scene.walls.home)
        said = explain_failure(met, Level.WORKSPACE, scene.walls, named, failed=code != 0)
        assert said
        if command in ELSEWHERE:
            as_meant = ELSEWHERE[command] in output
        else:
            as_meant = (NEEDS[command] == said.needs) if command in NEEDS else code == 0
        if not as_meant:
            wrong.append(f"{command}: {code}, {said.needs}: {output[-300:]}")
    assert not wrong, "\n".join(wrong)
