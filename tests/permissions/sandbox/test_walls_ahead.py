"""Walls that wait for a command: it runs as behind fresh ones, and only if nothing was moved."""

from __future__ import annotations

import asyncio
import itertools
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.permissions.sandbox.conftest import Scene
from tests.support.clock import PATIENCE_S
from tests.support.processes import gone
from tui.keeper.command import Keep, SupervisedCommand, note
from tui.keeper.folder import STATE
from tui.keeper.parent import MonitorReport
from tui.permissions.sandbox.engine import Engine, Sandbox
from tui.permissions.sandbox.git_walls import git_places, with_git
from tui.permissions.sandbox.walls import Level
from tui.permissions.sandbox.walls_ahead import READY

READ, WRITE = Level.READ_ONLY, Level.WORKSPACE
ITSELF = """\
pwd; umask; ulimit -a; cat <&0; echo "$0 $- $#"; echo /proc/[0-9]*; ls /proc/self/fd | wc -l
env | sort; grep -E '^(Sig|Shd|Cap|NoNew|Seccomp)' /proc/self/status; findmnt -rno TARGET | sort
printf '%s' "it's \\"quoted\\" $ODD"; echo error >&2; exit 7
"""
"""Prints all that a command can tell of how it was started."""


class Desk:
    """Starts kept commands behind the walls of a scene."""

    def __init__(self, sandbox: Sandbox, scene: Scene, level: Level = WRITE) -> None:
        self.sandbox, self.scene, self.level = sandbox, scene, level
        self._numbers = itertools.count()

    async def run(self, line: str, *, at: str = "", **more: str) -> tuple[int, str, int]:
        """Run a line of bash. Returns its code, its output, and the process that kept it."""
        command = await self.start(line, f"kept{next(self._numbers)}", at=at, **more)
        assert await command.wait(PATIENCE_S)
        assert command.end is not None
        output, keeper = command.read().decode(), note(command.folder, STATE)["keeper"]
        await asyncio.to_thread(command.discard)
        return command.end.returncode, output, keeper

    async def start(self, line: str, name: str, *, at: str = "", **more: str) -> SupervisedCommand:
        return await SupervisedCommand.start(
            [shutil.which("bash") or "/bin/sh", "-c", line], cwd=self.scene.workspace / at,
            env=self.scene.environment | more, folder=self.scene.base / name,
            starter=self._start, call={}, limit=1 << 20, min_free=0,
        )  # fmt: skip

    async def _start(
        self, argv: Sequence[str], cwd: Path, environment: Mapping[str, str], keep: Keep
    ) -> tuple[int, MonitorReport]:
        places = git_places(self.scene.workspace, environment)
        return await self.sandbox.start_supervised(
            argv, cwd=cwd, environment=environment, level=self.level, keep=keep,
            walls=lambda: with_git(self.scene.walls, places),
        )  # fmt: skip

    def _built(self, process: int) -> bool:
        line = _line(process)
        if any(_state(one) != "S" for one in (process, *line)):
            return False  # it is still at work
        if self.sandbox.engine is Engine.LAUNCHER:
            return len(line) == 2
        return bool(line) and _is_shell(line[-1])

    async def waiting(self) -> int:
        """Wait until the oldest walls are built. Returns the process that keeps what they get."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                children = _children(self.sandbox.parent.pid or 0)
                oldest = next((one for one in children if _state(one) != "Z"), 0)
                if oldest and self._built(oldest):
                    return oldest
                await asyncio.sleep(0)

    async def all_waiting(self) -> list[int]:
        """Wait until two sets of walls are built. Returns the processes that keep what they get,
        the oldest first."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                built = [*filter(self._built, _children(self.sandbox.parent.pid or 0))]
                if len(built) == READY:
                    return built
                await asyncio.sleep(0)


def _children(process: int) -> list[int]:
    try:
        text = Path(f"/proc/{process}/task/{process}/children").read_text()
    except OSError:
        return []
    return list(map(int, text.split()))


def _state(process: int) -> str:
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return "Z"
    return stat.rpartition(")")[2].split()[0]


def _line(process: int) -> list[int]:
    """What it started, what that started, and so on, where each started one."""
    line: list[int] = []
    while len(children := _children(line[-1] if line else process)) == 1:
        line += children
    return line


def _is_shell(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().startswith(b"/bin/sh\0")
    except OSError:
        return False


@pytest.fixture
def desk(sandbox: Sandbox, scene: Scene) -> Desk:
    return Desk(sandbox, scene)


@pytest.mark.parametrize("level", [READ, WRITE])
async def test_a_command_runs_as_behind_fresh_walls(desk: Desk, level: Level) -> None:
    odd = {"ODD": "a\n'b' $c `d` \\ \x07 ä", "OTHER": ""}
    desk = Desk(desk.sandbox, desk.scene, level)
    code, printed, first = await desk.run(ITSELF, **odd)
    waits = await desk.waiting()
    again_code, again, second = await desk.run(ITSELF, **odd)
    assert first != waits == second
    assert (again_code, again.splitlines()) == (code, printed.splitlines())
    assert code == 7
    assert "/proc/1 /proc/2" in printed


async def test_each_command_finds_its_own_walls(desk: Desk) -> None:
    assert (await desk.run("true"))[0] == 0
    waits = await desk.waiting()
    assert await desk.run("touch /var/tmp/x; echo $$") == (0, "2\n", waits)
    other = await desk.waiting()
    assert await desk.run("ls /var/tmp | wc -l; cat") == (0, "0\n", other)
    assert other != waits


async def test_commands_that_come_at_once_each_find_walls(desk: Desk) -> None:
    assert (await desk.run("true"))[0] == 0
    assert (await desk.run("true", ODD="1"))[0] == 0
    first, second = await desk.all_waiting()
    assert await desk.run("echo 1; touch /var/tmp/x") == (0, "1\n", first)
    assert await desk.run("echo 2; ls /var/tmp | wc -l") == (0, "2\n0\n", second)
    assert not {first, second} & {*await desk.all_waiting()}


async def test_a_command_ends_nothing_that_waits(desk: Desk) -> None:
    assert (await desk.run("true"))[0] == 0
    assert (await desk.run("true"))[0] == 0
    first, second = await desk.all_waiting()
    _, output, keeper = await desk.run("kill -9 -1; echo /proc/[0-9]*")
    assert "No such process" in output
    assert output.endswith("\n/proc/1 /proc/2\n")
    assert keeper == first
    assert await desk.run("echo runs") == (0, "runs\n", second)


async def test_what_was_moved_meanwhile_has_walls_of_its_own(desk: Desk) -> None:
    hooks = desk.scene.workspace / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    assert (await desk.run("echo x > .git/hooks/pre-commit"))[0] != 0
    waits = await desk.waiting()
    hooks.rename(hooks.with_name("before"))
    hooks.mkdir()
    code, output, keeper = await desk.run("echo x > .git/hooks/pre-commit")
    assert keeper != waits
    assert code != 0
    assert "Read-only file system" in output
    assert list(hooks.iterdir()) == []
    assert gone(waits)


async def test_what_was_replaced_meanwhile_is_seen(desk: Desk) -> None:
    tools = desk.scene.walls.home / ".local/bin"
    assert (await desk.run("~/.local/bin/tool"))[:2] == (0, "the tool runs\n")
    waits = await desk.waiting()
    tools.rename(tools.with_name("old"))
    tools.mkdir()
    (tools / "tool").write_text("#!/bin/sh\necho another\n")
    (tools / "tool").chmod(0o755)
    code, output, keeper = await desk.run("~/.local/bin/tool")
    assert (code, output) == (0, "another\n")
    assert keeper != waits


async def test_the_folder_of_a_command_is_the_one_of_that_name_now(desk: Desk) -> None:
    folder = desk.scene.workspace / "-it's a folder"
    folder.mkdir()
    assert (await desk.run("true", at=folder.name))[0] == 0
    waits = await desk.waiting()
    folder.rmdir()
    folder.mkdir()
    (folder / "new").touch()
    assert await desk.run("ls; pwd", at=folder.name) == (0, f"new\n{folder}\n", waits)


async def test_a_new_protected_file_has_its_wall(desk: Desk) -> None:
    assert (await desk.run("true"))[0] == 0
    waits = await desk.waiting()
    (desk.scene.workspace / ".git/config.worktree").write_text("[core]\n")
    code, _, keeper = await desk.run("echo x >> .git/config.worktree")
    assert code != 0
    assert keeper != waits


async def test_a_line_too_long_for_a_script_has_walls_of_its_own(desk: Desk) -> None:
    assert (await desk.run("true"))[0] == 0
    waits = await desk.waiting()
    line = f"echo ran # {'x' * 70_000}"
    code, output, keeper = await desk.run(line)
    assert (code, output) == (0, "ran\n")
    assert keeper != waits


async def test_what_waits_ends_with_the_program(desk: Desk) -> None:
    assert (await desk.run("true"))[0] == 0
    waits = await desk.waiting()
    inner = _line(waits)[-1]
    await asyncio.to_thread(desk.sandbox.close)
    assert gone(waits)
    assert gone(inner)


async def test_a_command_that_was_handed_over_outlives_the_program(desk: Desk) -> None:
    assert (await desk.run("true"))[0] == 0
    waits = await desk.waiting()
    command = await desk.start("until test -e go; do sleep 0.01; done; echo went", "outlives")
    assert note(command.folder, STATE)["keeper"] == waits
    command.close()
    await asyncio.to_thread(desk.sandbox.close)
    taken = SupervisedCommand.take_over(command.folder)
    assert taken is not None
    (desk.scene.workspace / "go").touch()
    assert await taken.wait(PATIENCE_S)
    assert taken.read() == b"went\n"
    await asyncio.to_thread(taken.discard)
