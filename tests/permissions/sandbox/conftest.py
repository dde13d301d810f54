"""A scene that an attack is judged by: a workspace, what lies outside of it, and listeners."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from tests.support.clock import PATIENCE_S
from tui.permissions.sandbox.engine import ENGINES, Engine, ProbeResult, Sandbox, probe, run_to_end
from tui.permissions.sandbox.walls import Level, Walls

MARK = "the-mark-of-a-secret"


@cache
def probed(engine: Engine, folder: Path) -> ProbeResult:
    """What this machine says of an engine; asked once in a run."""
    walls = Walls(
        workspace=folder / "w", session=folder / "s", cache=folder / "c", home=folder / "h"
    )
    (folder / "w").mkdir(parents=True)
    return asyncio.run(probe(engine, walls))


@pytest.fixture(scope="session")
def probe_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("probe")


def runnable(engine: Engine, folder: Path) -> Engine:
    result = probed(engine, folder / engine)
    if not result.ok:
        pytest.skip(f"{engine}: {result.reason}")
    return engine


@pytest.fixture(params=ENGINES)
def any_engine(request: pytest.FixtureRequest, probe_folder: Path) -> Engine:
    return runnable(request.param, probe_folder)


@pytest.fixture(params=[Engine.BUBBLEWRAP, Engine.LAUNCHER])
def engine(request: pytest.FixtureRequest, probe_folder: Path) -> Engine:
    return runnable(request.param, probe_folder)


@dataclass(slots=True)
class Scene:
    """Real files, sockets and processes around a workspace."""

    base: Path
    walls: Walls
    environment: dict[str, str]
    port: int
    abstract: str
    listeners: list[socket.socket] = field(default_factory=list[socket.socket])

    @property
    def workspace(self) -> Path:
        return self.walls.workspace

    @property
    def outside(self) -> Path:
        return self.base / "outside"

    @property
    def canary(self) -> Path:
        """Made by what an attack has planted, when it is run later."""
        return self.outside / "canary"

    @property
    def long(self) -> str:
        """Seconds of a sleep that only this scene has."""
        return f"4321.{self.port}"

    def filled(self, text: str) -> str:
        names = {
            "WS": self.workspace, "HOME": self.walls.home, "OUTSIDE": self.outside,
            "SECRET": self.walls.home / ".ssh/id", "CANARY": self.canary, "PORT": self.port,
            "SOCKET": self.outside / "socket", "ABSTRACT": self.abstract, "PID": os.getpid(),
            "BASE": self.base, "SLEEP": self.long,
        }  # fmt: skip
        for name, value in names.items():
            text = text.replace(f"@{name}@", str(value))
        return text

    async def run(self, sandbox: Sandbox, script: str, level: Level) -> tuple[int, str]:
        argv = [shutil.which("bash") or "/bin/sh", "-c", self.filled(script)]
        async with asyncio.timeout(PATIENCE_S):
            return await run_to_end(sandbox, argv, self.walls, level, self.environment)

    def reached(self) -> list[str]:
        """The listeners that somebody has connected to."""
        names: list[str] = []
        for listener in self.listeners:
            listener.setblocking(False)
            try:
                listener.accept()[0].close()
                names.append(str(listener.getsockname()))
            except BlockingIOError:
                pass
        return names


def sleepers(scene: Scene) -> list[int]:
    """The processes that an attack has left."""
    numbers = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [number for number in numbers if scene.long.encode() in _words_of(number)]


def _words_of(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    home, outside, workspace = (tmp_path / name for name in ("home", "outside", "work"))
    for folder in (home / ".ssh", home / ".local/bin", home / ".cargo", outside, workspace):
        folder.mkdir(parents=True)
    (home / ".ssh/id").write_text(MARK)
    (home / ".cargo/credentials.toml").write_text(MARK)
    (home / ".netrc").write_text(MARK)
    (home / ".local/bin/tool").write_text("#!/bin/sh\necho the tool runs\n")
    (home / ".local/bin/tool").chmod(0o755)
    (outside / "file").write_text("as it was")
    (workspace / "file.txt").write_text("text\n")
    environment = {
        **os.environ, "HOME": str(home), "MY_API_KEY": MARK, "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@b",
    }  # fmt: skip
    environment.pop("PYTHONPYCACHEPREFIX", "")  # the tests' own, outside the scene's walls
    git = ["git", "-c", "init.defaultBranch=main", "-C", str(workspace)]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], env=environment, check=True)
    walls = Walls(
        workspace=workspace, session=tmp_path / "state/session", cache=tmp_path / "state/cache",
        home=home, search_path=os.environ["PATH"],
    )  # fmt: skip
    walls.session.mkdir(parents=True)
    tcp = socket.create_server(("127.0.0.1", 0))
    by_path, by_name = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    by_path.bind(str(outside / "socket"))
    by_name.bind(f"\0attack-{tmp_path}")
    relative = socket.socket(socket.AF_UNIX)
    with contextlib.chdir(workspace):
        relative.bind("relative")
    listeners = [tcp, by_path, by_name, relative]
    for listener in listeners[1:]:
        listener.listen()
    port = int(tcp.getsockname()[1])
    yield Scene(tmp_path, walls, environment, port, f"attack-{tmp_path}", listeners)
    for listener in listeners:
        listener.close()


@pytest.fixture
async def sandbox(engine: Engine) -> AsyncIterator[Sandbox]:
    made = Sandbox(engine)
    yield made
    await asyncio.to_thread(made.close)
