"""What runs beside an agent bears its mark before it can start anything: real programs that start
another one at once."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.support.clock import PATIENCE_S
from tests.support.machine import needs_proc
from tui.agent.hook_process import HookProcess
from tui.app.confined_program import Bounds, run_to_end
from tui.core.config import SandboxSettings
from tui.core.workspace import Workspace
from tui.keeper.mark import marked
from tui.permissions.sandbox.confinement import Confinement
from tui.settings.hook_files import Hook
from tui.tools.mcp.mending import OpenRequests
from tui.tools.mcp.transport import open_process

pytestmark = [needs_proc]

TRIES = 12
"""Half of those that were marked once they ran had started another program by then."""
QUICK = "(cat /proc/self/limits >{into}.new; mv {into}.new {into}) & "
"""The limits of a program that is started at once, as it is read after its parent has gone."""


async def is_marked(into: Path) -> bool:
    async with asyncio.timeout(PATIENCE_S):
        while not into.exists():  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.005)
    line = next(line for line in into.read_text().splitlines() if line.startswith("Max file locks"))
    return "unlimited" not in line


async def a_hook(folder: Path, program: str) -> None:
    await HookProcess(Hook("Stop", "", f"{program}wait"), folder, PATIENCE_S).run(b"{}")


async def a_server(folder: Path, program: str) -> None:
    with (folder / "errors").open("w") as errors:
        words = ["/bin/sh", "-c", f"{program}cat"]
        async with open_process(words, OpenRequests(), env=os.environ, cwd=folder, errors=errors):
            async with asyncio.timeout(PATIENCE_S):
                while not [*folder.glob("into-*[0-9]")]:  # noqa: ASYNC110 - as above
                    await asyncio.sleep(0.005)


async def a_check(folder: Path, program: str) -> None:
    state, workspace = folder / "state", Workspace.at(folder, ceiling="/")
    confinement = Confinement(SandboxSettings(), workspace, state / "session", state / "cache")
    words = ["/bin/sh", "-c", f"{program}wait"]
    ended = await run_to_end(confinement, words, os.environ, Bounds(walls=False))
    assert not ended.code, ended
    await confinement.close()


@pytest.mark.parametrize("start", [a_hook, a_server, a_check])
async def test_what_it_starts_at_once_is_marked(
    tmp_path: Path, start: Callable[[Path, str], Awaitable[None]]
) -> None:
    for number in range(TRIES):
        folder = tmp_path / str(number)
        folder.mkdir()
        into = folder / f"into-{number}"
        await start(folder, QUICK.format(into=into))
        assert await is_marked(into)


def test_a_program_is_started_as_it_would_be_without_the_mark(tmp_path: Path) -> None:
    env = {"PATH": os.defpath, "odd-name": "ä", "EMPTY": ""}
    words = ["/bin/sh", "-c", "kill -PIPE $$; exit 3"]
    died = subprocess.run(marked(words, env, tmp_path), env=env, check=False)
    assert died.returncode == -signal.SIGPIPE
    words = [sys.executable, "-S", "-c", "import os; print(os.getcwd(), dict(os.environ))"]
    plain, with_mark = (
        subprocess.run(one, env=env, cwd=tmp_path, capture_output=True, check=True).stdout
        for one in (words, marked(words, env, tmp_path))
    )
    assert with_mark == plain


@pytest.mark.parametrize("name", ["no-such-program", "./no-such-program"])
def test_a_program_that_is_not_there_fails_as_it_would(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileNotFoundError):
        subprocess.run(marked([name], os.environ, tmp_path), cwd=tmp_path, check=False)
