"""Commands behind walls: what they reach and how they end; all else is as without walls."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.permissions.sandbox.conftest import MARK, Scene, runnable, sleepers
from tests.support.clock import PATIENCE_S
from tui.permissions.sandbox import engine as engines
from tui.permissions.sandbox import seatbelt
from tui.permissions.sandbox.engine import Engine, Sandbox, SandboxError, choose, probe, run_to_end
from tui.permissions.sandbox.git_walls import git_places, with_git
from tui.permissions.sandbox.proof import prove
from tui.permissions.sandbox.walls import Level, WallError

READ, WRITE, NETWORK = Level.READ_ONLY, Level.WORKSPACE, Level.NETWORK


async def test_the_levels(sandbox: Sandbox, scene: Scene) -> None:
    assert (await scene.run(sandbox, "touch new", READ))[0] == 1
    assert (await scene.run(sandbox, "touch new && touch ~/.cache/x", WRITE)) == (0, "")
    assert (scene.workspace / "new").exists()
    assert (scene.walls.cache / ".cache/x").exists()
    assert not (scene.walls.home / ".cache").exists()
    talk = "exec 3<>/dev/tcp/127.0.0.1/@PORT@ && echo reached"
    code, output = await scene.run(sandbox, talk, WRITE)
    assert code != 0
    assert "refused" in output
    assert (await scene.run(sandbox, talk, NETWORK)) == (0, "reached\n")


async def test_an_address_elsewhere_is_unreachable(sandbox: Sandbox, scene: Scene) -> None:
    _, output = await scene.run(sandbox, "exec 3<>/dev/tcp/192.0.2.1/80", READ)
    assert "Network is unreachable" in output


async def test_toolchains_run_and_are_read_only(sandbox: Sandbox, scene: Scene) -> None:
    code, output = await scene.run(sandbox, "~/.local/bin/tool; echo x >> ~/.local/bin/tool", WRITE)
    assert code != 0
    assert "the tool runs" in output
    assert "Read-only file system" in output


async def test_two_commands_share_tmp_and_loopback(sandbox: Sandbox, scene: Scene) -> None:
    assert await scene.run(sandbox, "echo shared > /tmp/note", READ) == (0, "")
    assert await scene.run(sandbox, "cat /tmp/note", WRITE) == (0, "shared\n")
    assert (scene.walls.session / "tmp").stat().st_mode & 0o777 == 0o700
    server = (
        "import socket; s = socket.create_server(('127.0.0.1', 7654)); open('/tmp/up', 'w');"
        "c = s.accept()[0]; c.sendall(b'answered'); c.close()"
    )
    client = "until [ -e /tmp/up ]; do :; done; cat < /dev/tcp/127.0.0.1/7654"
    (_, _), (code, output) = await asyncio.gather(
        scene.run(sandbox, f'python3 -c "{server}"', WRITE), scene.run(sandbox, client, READ)
    )
    assert (code, output) == (0, "answered")


async def test_only_its_own_processes_are_seen(sandbox: Sandbox, scene: Scene) -> None:
    _, output = await scene.run(sandbox, "echo /proc/[0-9]*", READ)
    assert output == "/proc/1 /proc/2\n"


@pytest.mark.parametrize("code", [0, 1, 42, 127])
async def test_exit_codes(any_engine: Engine, scene: Scene, code: int) -> None:
    sandbox = Sandbox(any_engine)
    try:
        assert await scene.run(sandbox, f"echo out; echo err >&2; exit {code}", READ) == (
            code,
            "out\nerr\n",
        )
    finally:
        await asyncio.to_thread(sandbox.close)


async def test_a_signal_ends_a_command_as_without_walls(any_engine: Engine, scene: Scene) -> None:
    sandbox = Sandbox(any_engine)
    reading, writing = os.pipe()
    try:
        running = await sandbox.start(
            [shutil.which("bash") or "/bin/sh", "-c", "echo ready; read < <(sleep 4321)"],
            cwd=scene.workspace, environment=scene.environment, walls=scene.walls, level=READ,
            output=writing,
        )  # fmt: skip
        os.close(writing)
        assert await asyncio.to_thread(os.read, reading, 100) == b"ready\n"
        os.killpg(running.pid, signal.SIGTERM)
        async with asyncio.timeout(PATIENCE_S):
            code = await running.wait()
            assert await asyncio.to_thread(os.read, reading, 100) == b""
    finally:
        os.close(reading)
        await asyncio.to_thread(sandbox.close)
    assert code in ({143} if any_engine is Engine.BUBBLEWRAP else {-15})


async def test_output_comes_while_it_runs(sandbox: Sandbox, scene: Scene) -> None:
    reading, writing = os.pipe()
    (scene.walls.session / "tmp").mkdir(mode=0o700)
    go = scene.walls.session / "tmp/go"
    os.mkfifo(go)
    running = await sandbox.start(
        [shutil.which("bash") or "/bin/sh", "-c", "echo one; read < /tmp/go; echo two"],
        cwd=scene.workspace, environment=scene.environment, walls=scene.walls, level=READ,
        output=writing,
    )  # fmt: skip
    os.close(writing)
    assert await asyncio.to_thread(os.read, reading, 100) == b"one\n"
    await asyncio.to_thread(go.write_text, "go")
    assert await asyncio.to_thread(os.read, reading, 100) == b"two\n"
    assert await running.wait() == 0
    os.close(reading)


async def test_close_ends_what_still_runs(any_engine: Engine, scene: Scene) -> None:
    sandbox = Sandbox(any_engine)
    running = await sandbox.start(
        ["/bin/sh", "-c", f"sleep {scene.long} & setsid sleep {scene.long}"], cwd=scene.workspace,
        environment=scene.environment, walls=scene.walls, level=READ, output=2,
    )  # fmt: skip
    await asyncio.to_thread(sandbox.close)
    async with asyncio.timeout(PATIENCE_S):
        assert await running.wait() == -9
        while sleepers(scene):  # noqa: ASYNC110 - the kernel sends no event
            await asyncio.sleep(0)


async def test_a_zygote_that_was_killed_is_replaced(sandbox: Sandbox, scene: Scene) -> None:
    assert await scene.run(sandbox, "true", READ) == (0, "")
    assert sandbox.parent.pid
    os.kill(sandbox.parent.pid, signal.SIGKILL)
    os.waitid(os.P_PID, sandbox.parent.pid, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222 - it is dead
    assert await scene.run(sandbox, "echo again", READ) == (0, "again\n")


STUCK = """\
import os, sys
words = os.read(int(sys.argv[2]), 1 << 20).split(b"\\0")
info = int(words[words.index(b"--info-fd") + 1])
inner = os.fork()
if inner:
    os.write(info, b'{"child-pid": %d}' % inner)
os.close(info)
os.execv("/bin/sleep", ["sleep", sys.argv[-1]])
"""


@pytest.fixture
def namespaces(probe_folder: Path) -> None:
    runnable(Engine.LAUNCHER, probe_folder)


@pytest.mark.usefixtures("namespaces")
async def test_nothing_outlives_a_bubblewrap_that_is_killed_while_it_starts(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Version 0.8 has an inner process that ends with the outer one only from a moment on that it
    reaches late; this stand-in never does."""
    plain = tmp_path / "plain"  # nothing in it is mounted
    plain.mkdir()
    stand_in = tmp_path / "bin/bwrap"
    stand_in.parent.mkdir()
    stand_in.write_text(f"#!{sys.executable} -IS\n{STUCK}")
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", str(stand_in.parent), prepend=os.pathsep)
    sandbox = Sandbox(Engine.BUBBLEWRAP)
    await sandbox.start(
        ["/bin/sleep", scene.long], cwd=plain, environment=scene.environment,
        walls=replace(scene.walls, workspace=plain), level=READ, output=2,
    )  # fmt: skip
    zygote = sandbox.parent.pid
    async with asyncio.timeout(PATIENCE_S):
        while len(sleepers(scene)) < 2:  # noqa: ASYNC110 - the kernel sends no event
            await asyncio.sleep(0)
    children = Path(f"/proc/{zygote}/task/{zygote}/children").read_text()
    for process in (*map(int, children.split()), zygote):
        assert process
        os.kill(process, signal.SIGKILL)
    async with asyncio.timeout(PATIENCE_S):
        while sleepers(scene):  # noqa: ASYNC110 - the kernel sends no event
            await asyncio.sleep(0)
    await asyncio.to_thread(sandbox.close)


async def test_many_at_once(any_engine: Engine, scene: Scene) -> None:
    sandbox = Sandbox(any_engine)
    try:
        runs = [scene.run(sandbox, f"echo {number}", READ) for number in range(12)]
        assert await asyncio.gather(*runs) == [(0, f"{number}\n") for number in range(12)]
    finally:
        await asyncio.to_thread(sandbox.close)


async def test_a_long_command_and_environment(sandbox: Sandbox, scene: Scene) -> None:
    scene.environment |= {f"LONG_{number}": "x" * 100_000 for number in range(5)}
    code, output = await scene.run(sandbox, f"echo ${{#LONG_4}} # {'y' * 100_000}", READ)
    assert (code, output) == (0, "100000\n")


async def test_a_program_that_does_not_exist(any_engine: Engine, scene: Scene) -> None:
    sandbox = Sandbox(any_engine)
    try:
        if any_engine is Engine.BUBBLEWRAP:
            code, output = await run_to_end(sandbox, ["/nowhere/x"], scene.walls, READ)
            assert code != 0
            assert "/nowhere/x" in output
        else:
            with pytest.raises(SandboxError, match="/nowhere/x: No such file"):
                await run_to_end(sandbox, ["/nowhere/x"], scene.walls, READ)
    finally:
        await asyncio.to_thread(sandbox.close)


async def test_a_workspace_behind_a_link(sandbox: Sandbox, scene: Scene) -> None:
    link = scene.walls.home / "link"
    link.symlink_to(scene.workspace)
    scene.walls = replace(scene.walls, workspace=link)
    assert await scene.run(sandbox, "touch ~/link/new; ls ~/.ssh 2>&1 | grep -c No", WRITE) == (
        0,
        "1\n",
    )
    assert (link / "new").exists()


async def test_a_workspace_in_the_home_folder(sandbox: Sandbox, scene: Scene) -> None:
    inside = scene.walls.home / "src/project"
    inside.mkdir(parents=True)
    (scene.walls.home / "src/other").write_text(MARK)
    scene.walls = replace(scene.walls, workspace=inside)
    assert await scene.run(sandbox, "touch new; ls ..", WRITE) == (0, "project\n")
    assert (inside / "new").exists()


@pytest.mark.parametrize("folder", ["/", "/home", "/tmp", "/proc", "@HOME@", "@HOME@/.."])
async def test_a_workspace_that_holds_too_much(scene: Scene, folder: str) -> None:
    walls = replace(scene.walls, workspace=Path(scene.filled(folder)))
    with pytest.raises(WallError, match=r"must hide|belongs to the system"):
        await run_to_end(Sandbox(Engine.LAUNCHER), ["/bin/true"], walls, READ)


async def test_everyday_git(sandbox: Sandbox, scene: Scene) -> None:
    scene.walls = with_git(scene.walls, git_places(scene.workspace, scene.environment))
    script = "echo x >> file.txt; git add -A && git commit -qm two && git checkout -q -b side"
    script += "&& git stash list && git log --oneline | wc -l"
    assert await scene.run(sandbox, script, WRITE) == (0, "2\n")
    assert (await scene.run(sandbox, "git status && git diff HEAD~1", READ))[0] == 0


async def test_a_worktree_commits_into_its_repository(sandbox: Sandbox, scene: Scene) -> None:
    tree = scene.base / "home/tree"
    subprocess.run(  # noqa: ASYNC221 - nothing else runs here
        ["git", "-C", str(scene.workspace), "worktree", "add", "-q", str(tree)],
        env=scene.environment, check=True,
    )  # fmt: skip
    folder = (scene.workspace / ".git").resolve()
    scene.walls = replace(scene.walls, workspace=tree)
    scene.walls = with_git(scene.walls, git_places(tree, scene.environment))
    assert folder in scene.walls.git
    script = "touch a && git add a && git commit -qm tree && git log --oneline | wc -l"
    assert await scene.run(sandbox, script, WRITE) == (0, "2\n")
    for planted in (".git", f"{folder}/worktrees/tree/commondir", f"{folder}/config"):
        code, output = await scene.run(sandbox, f"echo x > {planted}", WRITE)
        assert code != 0, output


async def test_a_socket_that_was_opened_by_name(sandbox: Sandbox, scene: Scene) -> None:
    link = "import socket; socket.socket(socket.AF_UNIX).connect('@SOCKET@')"
    assert (await scene.run(sandbox, f'python3 -c "{link}"', READ))[0] != 0
    scene.walls = replace(scene.walls, sockets=(scene.outside / "socket",))
    assert await scene.run(sandbox, f'python3 -c "{link}"', READ) == (0, "")


async def test_landlock_alone_runs_nothing_that_writes(scene: Scene) -> None:
    with pytest.raises(SandboxError, match="Without namespaces"):
        await run_to_end(Sandbox(Engine.LANDLOCK), ["/bin/true"], scene.walls, WRITE)


async def test_every_wall_is_proved(any_engine: Engine, scene: Scene) -> None:
    proofs = await prove(any_engine, scene.walls)
    assert len(proofs) == 5
    assert [proof for proof in proofs if not proof.holds] == []
    assert list(scene.walls.session.glob("*-*")) == []


async def test_a_refused_engine_means_the_next(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, any_engine: Engine
) -> None:
    async def only(engine: Engine, *_: object) -> engines.ProbeResult:
        return engines.ProbeResult(engine, "" if engine is any_engine else "refused")

    monkeypatch.setattr(engines, "probe", only)
    chosen, asked = await choose(scene.walls)
    assert chosen is any_engine
    before = engines.ENGINES[: engines.ENGINES.index(any_engine)]
    assert tuple(result.engine for result in asked if not result.ok) == before


async def test_a_probe_says_why(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    result = await probe(Engine.BUBBLEWRAP, scene.walls)
    assert not result.ok
    assert "isn't installed" in result.reason


async def test_a_socket_in_a_folder_that_can_be_read_cannot_be_reached(
    sandbox: Sandbox, scene: Scene
) -> None:
    scene.walls = replace(scene.walls, readable=(scene.outside,))
    connect = "import socket; socket.socket(socket.AF_UNIX).connect('@SOCKET@'); print('in')"
    for level in (Level.READ_ONLY, Level.NETWORK):
        _, output = await scene.run(sandbox, f'cat @OUTSIDE@/file; python3 -c "{connect}"', level)
        assert output.startswith("as it was")
        assert not scene.reached()
    scene.walls = replace(scene.walls, sockets=(scene.outside / "socket",))
    _, output = await scene.run(sandbox, f'python3 -c "{connect}"', Level.READ_ONLY)
    assert output == "in\n"


async def test_macos_runs_commands_behind_a_profile(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = tmp_path / "sandbox-exec"
    stand_in.write_text('#!/bin/sh\necho "$2" > "$TMPDIR/profile"\nshift 2\nexec "$@"\n')
    stand_in.chmod(0o755)
    monkeypatch.setattr(seatbelt, "PROGRAM", str(stand_in))
    assert (await probe(Engine.SEATBELT, scene.walls)).ok
    sandbox = Sandbox(Engine.SEATBELT)
    assert await scene.run(sandbox, "echo ran ${MY_API_KEY-}", WRITE) == (0, "ran\n")
    assert "(deny default)" in (scene.walls.session / "tmp" / "profile").read_text()
    monkeypatch.setattr(seatbelt, "PROGRAM", str(tmp_path / "nothing"))
    assert not (await probe(Engine.SEATBELT, scene.walls)).ok
