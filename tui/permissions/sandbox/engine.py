"""Runs commands behind walls: chooses an engine that really works on this machine, and starts it.

The port is `Sandbox.start`: its result has the `pid`, `returncode` and `wait` of an asyncio
process, so that code that runs commands handles both in the same way.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import secrets
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any

from tui.core.dataclass import dataclass, field
from tui.core.errors import HoldfastError
from tui.core.files import replace_file
from tui.core.workspace import safe_search_path
from tui.keeper.command import Keep, start_supervised
from tui.keeper.parent import MonitorReport, WarmParent
from tui.permissions.sandbox import bubblewrap, kernel_filters, seatbelt
from tui.permissions.sandbox.environment import (
    caches_elsewhere,
    clean_environment,
    without_server_info,
)
from tui.permissions.sandbox.observed import Observed
from tui.permissions.sandbox.walls import COPIES, COPIES_INSIDE, Level, Plan, Walls, plan, prepare

_ROOT = str(Path(__file__).parents[3])
_PROBE_S = 10.0
_ASK_S = 10.0
_RUN = (
    "import sys; sys.path.insert(0, sys.argv[1])\n"
    "from tui.permissions.sandbox.zygote import run; run(sys.argv[2])"
)
_CURES = (
    (
        "setting up uid map",
        "this system doesn't allow user namespaces to programs without a profile",
    ),
    ("Creating new namespace failed", "this system doesn't allow user namespaces"),
    ("new namespaces", "this system doesn't allow user namespaces"),
    ("uid_map", "this system doesn't allow user namespaces to programs without a profile"),
    ("RTM_NEWADDR", "no private network is allowed here, as in some containers"),
    ("no network of its own", "no private network is allowed here, as in some containers"),
    ("mount proc", "/proc is partly covered here, as in some containers"),
    ("mounting proc", "/proc is partly covered here, as in some containers"),
)


class Engine(StrEnum):
    BUBBLEWRAP = "bubblewrap"
    LAUNCHER = "launcher"
    LANDLOCK = "landlock"
    SEATBELT = "seatbelt"


ENGINES = (Engine.BUBBLEWRAP, Engine.LAUNCHER, Engine.LANDLOCK)
"""The engines in order of choice. Landlock enforces the read-only level only. Seatbelt, which is
macOS's, is used only if the settings name it."""


class SandboxError(HoldfastError):
    """A command was not started, because its walls could not be built."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result of trying an engine here; `reason` says why it does not run, "" if it does."""

    engine: Engine
    reason: str = ""

    @property
    def ok(self) -> bool:
        return not self.reason


@dataclass(slots=True)
class Confined:
    """A running command, with the interface of an asyncio process.

    `pid` leads a group of the command's processes: `killpg` works on it. When `returncode` is set,
    nothing that the command started runs any more.
    """

    pid: int
    rest: bool = False
    """True if something still ran when the command itself had ended; it was stopped."""
    returncode: int | None = None
    _ended: asyncio.Event = field(default_factory=asyncio.Event)
    _report: asyncio.Task[None] | None = None

    async def wait(self) -> int:
        await self._ended.wait()
        assert self.returncode is not None
        return self.returncode

    def follow(self, report: MonitorReport) -> None:
        """Wait for the monitor's report in a separate task."""
        self._report = asyncio.create_task(self._follow(report))

    async def _follow(self, report: MonitorReport) -> None:
        message = await report.next()
        report.close()
        self.rest = bool(message.get("rest"))
        status = message.get("status")
        self.returncode = -9 if status is None else os.waitstatus_to_exitcode(status)
        self._ended.set()


def warm_parent() -> WarmParent:
    """Create the process that starts confined and plain commands."""
    return WarmParent("tui.permissions.sandbox.zygote")


class Sandbox:
    """Starts commands with one engine. `close` ends all that still runs and the network."""

    def __init__(self, engine: Engine, parent: WarmParent | None = None) -> None:
        """`parent` starts the commands; it may be shared."""
        self.engine = engine
        self.parent = parent or warm_parent()
        self._landlock = -1
        self._plans: dict[Level, tuple[Walls, Observed, Plan]] = {}

    async def start(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        walls: Walls,
        level: Level,
        output: int,
        errors: int | None = None,
    ) -> Confined:
        """Run `argv` (its program by full path) behind the walls; both outputs go to `output`, or
        errors to `errors` if that is given.

        It ends with the program. Raises SandboxError if it cannot be started, WallError if the
        walls cannot be built.
        """
        make = self._request(argv, cwd, environment, walls, level)
        report = MonitorReport()
        try:
            with report.theirs as theirs:
                await asyncio.to_thread(self.parent.request, make, output, theirs.fileno(), errors)
            running = Confined(await report.process())
        except OSError as error:
            report.close()
            raise SandboxError(f"The command was not started: {error}.") from error
        except BaseException:
            report.close()  # the monitor continues, but nobody reads its report
            raise
        running.follow(report)
        return running

    async def start_supervised(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        walls: Callable[[], Walls],
        level: Level,
        keep: Keep,
    ) -> tuple[int, MonitorReport]:
        """Start a command under a keeper, so that it outlives the program. `walls` is called in a
        thread."""

        def make() -> dict[str, Any]:
            return self._request(argv, cwd, environment, walls(), level)()

        try:
            return await start_supervised(self.parent, make, keep)
        except OSError as error:
            raise SandboxError(f"The command was not started: {error}.") from error

    def _request(
        self,
        argv: Sequence[str],
        cwd: Path,
        environment: Mapping[str, str],
        walls: Walls,
        level: Level,
    ) -> Callable[[], dict[str, Any]]:
        """Return a function that makes a command's request, in a thread. Raises SandboxError."""
        if self.engine is Engine.LANDLOCK and level is not Level.READ_ONLY:
            raise SandboxError(
                "Without namespaces, only commands that write nothing can be confined.",
                hint="This one has to run outside, or not at all.",
            )
        if self.engine is Engine.SEATBELT:
            return lambda: seatbelt.request(argv, walls, level, cwd=cwd, environment=environment)
        return lambda: self._spec(argv, cwd, environment, walls, self._plan(walls, level))

    def command(
        self,
        argv: Sequence[str],
        cwd: Path,
        environment: Mapping[str, str],
        walls: Walls,
        level: Level,
    ) -> list[str]:
        """Return the words that start `argv` behind the walls, once, for code that starts programs
        itself.

        Blocks. Raises SandboxError or WallError.
        """
        if self.engine is Engine.SEATBELT or (
            self.engine is Engine.LANDLOCK and level is not Level.READ_ONLY
        ):
            raise SandboxError(f"{self.engine} can't confine it to the level {level}.")
        spec = self._spec(argv, cwd, environment, walls, self._plan(walls, level))
        path = walls.session / f"start-{secrets.token_hex(8)}"
        replace_file(path, json.dumps(spec).encode())
        return [sys.executable, "-I", "-S", "-c", _RUN, _ROOT, str(path)]

    async def ports(self) -> list[int]:
        """The TCP ports that commands listen on in the session's own network."""
        return (await self._ask({"ask": "ports"}))[0].get("ports", [])

    async def connect(self, port: int) -> socket.socket:
        """Connect to such a port. Raises OSError."""
        message, files = await self._ask({"ask": "connect", "port": port})
        if not files:
            raise OSError(message.get("error") or "the sandbox has ended")
        return socket.socket(fileno=files[0])

    async def _ask(self, question: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
        """Ask the zygote about the network; there is none before the first command."""
        if not self.parent.started:
            return {}, []
        answer, theirs = socket.socketpair()
        with answer:
            with theirs:
                await asyncio.to_thread(self.parent.send, question, [theirs.fileno()])
            answer.settimeout(_ASK_S)
            return await asyncio.to_thread(_receive_with_file, answer)

    def close(self) -> None:
        """Close the zygote's socket. The zygote ends, and everything that it started except for
        kept commands."""
        self.parent.close()

    def _plan(self, walls: Walls, level: Level) -> Plan:
        """Plan the walls, and make the private folders that they bind. The last plan of a level is
        used again if all that it saw looks the same. Blocks. Raises WallError."""
        prepare(walls)
        match self._plans.get(level):
            case (known, observed, made) if known == walls and observed.hold():
                return made
            case _:
                observed = Observed()
                made = plan(walls, level, observed)
                self._plans[level] = walls, observed, made
                return made

    def _spec(
        self, argv: Sequence[str], cwd: Path, env: Mapping[str, str], walls: Walls, made: Plan
    ) -> dict[str, Any]:
        folder = os.path.realpath(cwd)
        if self.engine is not Engine.LANDLOCK and folder.startswith(made.temporary):
            folder = "/tmp" + folder.removeprefix(made.temporary)  # noqa: S108
        env = without_server_info(clean_environment(env, walls.keep_env))
        temporary = "/tmp"  # noqa: S108 - as commands name it
        if self.engine is Engine.LANDLOCK:  # it cannot replace the folder
            env["TMPDIR"] = temporary = made.temporary
        if made.level is Level.READ_ONLY:
            env = caches_elsewhere(temporary) | env
        machine = os.uname().machine
        if self._landlock < 0:
            from tui.permissions.sandbox.system_calls import landlock_version  # noqa: PLC0415

            self._landlock = landlock_version()
        alone = self.engine is Engine.LANDLOCK
        program = kernel_filters.call_filter(
            machine, alone=alone, signals_scoped=self._landlock >= 6
        )
        if alone:
            landlock = kernel_filters.read_only(made, self._landlock)
        else:
            landlock = kernel_filters.scope(self._landlock) if made.network else None
        return {
            "engine": self.engine.value,
            "network": made.network,
            "mounts": made.mounts,
            "movable": made.movable,
            "copies": [os.path.realpath(walls.session / COPIES), COPIES_INSIDE],
            "argv": list(argv),
            "env": env,
            "cwd": folder,
            "filter": base64.b64encode(program).decode(),
            "landlock": landlock,
            **(_of_bubblewrap(walls, made, folder) if self.engine is Engine.BUBBLEWRAP else {}),
        }


def _of_bubblewrap(walls: Walls, made: Plan, folder: str) -> dict[str, Any]:
    return {
        "bubblewrap_path": _bubblewrap(walls) or "bwrap",
        "bubblewrap": bubblewrap.arguments(made, folder),
    }


def _receive_with_file(answer: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Receive the next message and the files that came with it. Blocks."""
    with suppress(OSError, ValueError):
        message, files, _, _ = socket.recv_fds(answer, 65_536, 1, socket.MSG_CMSG_CLOEXEC)
        return json.loads(message), files
    return {}, []


async def run_to_end(
    sandbox: Sandbox,
    argv: Sequence[str],
    walls: Walls,
    level: Level,
    environment: Mapping[str, str] | None = None,
) -> tuple[int, str]:
    """Run a short command; return its exit code and output."""
    with tempfile.TemporaryFile() as output:
        running = await sandbox.start(
            argv,
            cwd=walls.workspace,
            environment=os.environ if environment is None else environment,
            walls=walls,
            level=level,
            output=output.fileno(),
        )
        code = await running.wait()
        output.seek(0)
        return code, output.read().decode(errors="replace")


async def probe(engine: Engine, walls: Walls, parent: WarmParent | None = None) -> ProbeResult:
    """Try an engine for real once, instead of only looking for a program. `parent` starts what is
    tried; it stays warm if the engine works."""
    if engine is Engine.SEATBELT and not shutil.which(seatbelt.PROGRAM):
        return ProbeResult(engine, f"{seatbelt.PROGRAM} is missing")
    if engine is not Engine.SEATBELT and sys.platform != "linux":
        return ProbeResult(engine, f"not for {sys.platform}")
    if engine is Engine.BUBBLEWRAP and not _bubblewrap(walls):
        return ProbeResult(engine, "bubblewrap isn't installed")
    if engine is Engine.LANDLOCK:
        from tui.permissions.sandbox.system_calls import landlock_version  # noqa: PLC0415

        if reason := kernel_filters.refusal(os.uname().machine, landlock_version()):
            return ProbeResult(engine, reason)
    sandbox, works = Sandbox(engine, parent), False
    # A private network and folders to write: no other level needs more rights of the system.
    level = Level.READ_ONLY if engine is Engine.LANDLOCK else Level.WORKSPACE
    try:
        async with asyncio.timeout(_PROBE_S):
            code, output = await run_to_end(sandbox, ["/bin/sh", "-c", ":"], walls, level)
        if code:
            return ProbeResult(engine, _in_words(output.strip() or f"exit code {code}"))
        works = True
    except SandboxError as error:
        return ProbeResult(engine, _in_words(str(error)))
    except TimeoutError:
        return ProbeResult(engine, f"it didn't respond within {_PROBE_S:g} s")
    finally:
        if parent is None or not works:
            await asyncio.to_thread(sandbox.close)
    return ProbeResult(engine)


async def choose(
    walls: Walls, parent: WarmParent | None = None
) -> tuple[Engine | None, list[ProbeResult]]:
    """Choose the first engine that works here; also return the results so far. None: nothing
    confines. `parent` is as for `probe`."""
    asked: list[ProbeResult] = []
    for engine in ENGINES:
        asked.append(await probe(engine, walls, parent))
        if asked[-1].ok:
            return engine, asked
    return None, asked


def _bubblewrap(walls: Walls) -> str | None:
    """Find bubblewrap, but never one that a command could have put into the workspace."""
    path, roots = os.environ.get("PATH", ""), (walls.workspace, *walls.added)
    found = shutil.which("bwrap", path=path)
    folder = os.path.dirname(found or "")  # noqa: PTH120
    if found is None or safe_search_path(folder, roots) == folder:
        return found
    return shutil.which("bwrap", path=safe_search_path(path, roots))


def _in_words(text: str) -> str:
    for mark, words in _CURES:
        if mark in text:
            return f"{words} ({text.splitlines()[-1]})"
    return text.splitlines()[-1]
