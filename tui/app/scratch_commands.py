"""Commands in a scratch copy of a workspace, behind the usual walls, without an agent.

The workspace itself is hidden from them, but for what they are lent of it: a program that finds it
by its path would otherwise be judged by the files that are there now. Everything blocks.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import Final, Protocol

from tui.agent.confined_programs import confinement_of
from tui.agent.launch import Launch
from tui.core.dataclass import dataclass, replace
from tui.core.errors import HoldfastError, UsageError
from tui.core.redaction import child_environment
from tui.core.workspace import Workspace
from tui.permissions.sandbox.confinement import Confinement
from tui.permissions.sandbox.environment import clean_environment
from tui.permissions.sandbox.walls import Level

OUTPUT_MAX: Final = 64_000
"""Bytes of a command's output that are kept, the last ones."""
_READ: Final = 65_536


@dataclass(frozen=True, slots=True)
class ScratchResult:
    """The end of a command. `code` is its exit code, that of a shell (128 and more) where a signal
    ended it, and TIMED_OUT after its time was over; `output` are the last bytes that it printed."""

    code: int
    output: bytes
    seconds: float
    timed_out: bool = False

    @property
    def text(self) -> str:
        return self.output.decode("utf-8", "replace")


TIMED_OUT: Final = 124
"""The exit code of what took too long, as `timeout` has it."""


class _Running(Protocol):
    """A command that runs; `pid` leads its group."""

    @property
    def pid(self) -> int: ...
    async def wait(self) -> int: ...


@dataclass(slots=True)
class ScratchCommands:
    """Runs commands in the folder `folder`. Use `scratch_commands` to make one."""

    folder: Path
    confined: bool
    _confinement: Confinement
    _runner: asyncio.Runner

    def run(self, argv: Sequence[str], timeout_s: float | None = None) -> ScratchResult:
        """Run a command to its end, with all that it started. Raises HoldfastError where it can't
        be started, OSError."""
        kept = clean_environment(child_environment(), self._confinement.settings.keep_env)
        env = {name: value for name, value in kept.items() if not name.startswith("GIT_")}
        env |= {"GIT_CEILING_DIRECTORIES": str(self.folder.parent), "PWD": str(self.folder)}
        named = str(self.folder / argv[0]) if "/" in argv[0] else argv[0]
        found = shutil.which(named, path=_path(env))
        if found is None:  # as a shell has it: the state may lack a program of its own
            return ScratchResult(127, f"{argv[0]}: not found, or no program".encode(), 0.0)
        return self._runner.run(self._run([found, *argv[1:]], env, timeout_s))

    async def _run(
        self, argv: Sequence[str], env: Mapping[str, str], timeout_s: float | None
    ) -> ScratchResult:
        began, kept = time.monotonic(), bytearray()
        reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(writing, True)
        loop = asyncio.get_running_loop()
        try:
            try:
                running = await self._start(argv, env, writing)
            finally:
                os.close(writing)
            loop.add_reader(reading, _keep_end, reading, kept)
            timed_out = False
            try:
                async with asyncio.timeout(timeout_s):
                    await running.wait()
            except TimeoutError:
                timed_out = True
            finally:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(running.pid, signal.SIGKILL)
                code = await running.wait()
                loop.remove_reader(reading)
            while _keep_end(reading, kept):
                pass
        finally:
            os.close(reading)
        seconds = time.monotonic() - began
        code = TIMED_OUT if timed_out else code
        return ScratchResult(128 - code if code < 0 else code, bytes(kept), seconds, timed_out)

    async def _start(self, argv: Sequence[str], env: Mapping[str, str], output: int) -> _Running:
        if self.confined:
            return await self._confinement.start(argv, self.folder, env, Level.WORKSPACE, output)
        return await asyncio.create_subprocess_exec(
            *argv,
            cwd=self.folder,
            env=dict(env),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )

    def lend(self, folders: Iterable[Path]) -> None:
        """Let commands read these parts of the workspace, by their own paths."""
        own = self._confinement.workspace
        readable = (*own.readable, *(path for path in folders if path not in own.readable))
        self._confinement.workspace = replace(own, readable=readable)


@contextmanager
def scratch_commands(launch: Launch, workspace: Path, what: str) -> Generator[ScratchCommands]:
    """Make a scratch folder, and what runs commands in it; both are gone at the end. `workspace` is
    the folder that is hidden from them. Raises UsageError where nothing confines them."""
    with (
        tempfile.TemporaryDirectory(prefix=f"holdfast-{what}-", ignore_cleanup_errors=True) as made,
        asyncio.Runner() as runner,
    ):
        folder = Path(os.path.realpath(made)) / "files"
        folder.mkdir()
        confinement = confinement_of(launch, what).around(
            Workspace.at(folder), f"{what} {token_hex(8)}"
        )
        confinement.hidden = (*confinement.hidden, workspace)
        confinement.cache = confinement.folder / "cache"  # builds of the workspace trust theirs
        confined = launch.config.sandbox.engine != "off"
        try:
            if confined and Level.WORKSPACE not in runner.run(confinement.levels()):
                raise UsageError(
                    f"Commands run in the sandbox, and there is none here: {confinement.reason}.",
                    hint="holdfast doctor says more. Or run it without one: --no-sandbox",
                )
            yield ScratchCommands(folder, confined, confinement, runner)
        finally:
            with suppress(HoldfastError):
                runner.run(confinement.close())


def _keep_end(pipe: int, kept: bytearray) -> bool:
    """Read what a pipe has now, and keep the last bytes. False where there is nothing to read."""
    try:
        data = os.read(pipe, _READ)
    except BlockingIOError:
        return False
    kept += data
    del kept[:-OUTPUT_MAX]
    return bool(data)


def _path(env: Mapping[str, str]) -> str:
    return env.get("PATH") or os.defpath
