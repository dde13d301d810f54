"""A program of the project's own that runs beside agents, to its end: in the sandbox, with all that
it starts.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Event
from typing import Final, Protocol, TypeAlias

from tui.core.dataclass import dataclass, field
from tui.core.errors import HoldfastError
from tui.core.redaction import child_environment
from tui.keeper.mark import marked
from tui.permissions.sandbox.confinement import Confinement
from tui.permissions.sandbox.environment import clean_environment
from tui.permissions.sandbox.walls import Level

StopSignal: TypeAlias = Event
"""Set when the run ends: programs that run are ended, and no other begins."""
OUTPUT_MAX: Final = 64_000
"""Bytes of a program's output that are kept, the last ones."""
_LOOK_S: Final = 0.1
_READ: Final = 65_536


class ProgramStoppedError(HoldfastError):
    """The run ended while a program ran."""


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    """The end of a program. `code` is its exit code, that of a shell (128 and more) where a signal
    ended it, and TIMED_OUT after its time was over; `output` are the last bytes that it printed,
    stdout and stderr in their order."""

    code: int
    output: bytes
    seconds: float
    timed_out: bool = False

    @property
    def text(self) -> str:
        return self.output.decode("utf-8", "replace")


TIMED_OUT: Final = 124
"""The exit code of what took too long, as `timeout` has it."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The time that a program may take, None for any; what ends it earlier; whether it runs behind
    walls."""

    patience_s: float | None = None
    stopped: StopSignal = field(default_factory=StopSignal)
    walls: bool = True


class _Running(Protocol):
    """A program that runs; `pid` leads its group."""

    @property
    def pid(self) -> int: ...
    async def wait(self) -> int: ...


def environment_of(confinement: Confinement) -> dict[str, str]:
    """The environment of such a program: without secrets, and without git's variables, which lead
    to another repository."""
    kept = clean_environment(child_environment(), confinement.settings.keep_env)
    return {name: value for name, value in kept.items() if not name.startswith("GIT_")}


def run_confined(
    confinement: Confinement, words: Sequence[str], env: Mapping[str, str], bounds: Bounds
) -> ProgramEnd:
    """Run one program as `run_to_end` does, and close `confinement` then. Blocks."""

    async def done() -> ProgramEnd:
        try:
            return await run_to_end(confinement, words, env, bounds)
        finally:
            await confinement.close()

    return asyncio.run(done())


async def run_to_end(
    confinement: Confinement, words: Sequence[str], env: Mapping[str, str], bounds: Bounds
) -> ProgramEnd:
    """Run a program in the workspace of `confinement`. All that it started ends with it.

    Raises ProgramStoppedError, SandboxError if nothing confines it, OSError if it can't be started.
    """
    if bounds.stopped.is_set():
        raise ProgramStoppedError("The run was stopped.")
    root, path = confinement.workspace.root, env.get("PATH") or os.defpath
    named = str(root / words[0]) if "/" in words[0] else words[0]
    found = shutil.which(named, path=path)
    if found is None:  # as a shell has it: the folder may lack a program of its own
        return ProgramEnd(127, f"{words[0]}: not found, or no program".encode(), 0.0)
    program = [found, *words[1:]]
    began, kept = time.monotonic(), bytearray()
    reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    os.set_blocking(writing, True)
    loop = asyncio.get_running_loop()
    try:
        try:
            running = await _start(confinement, program, env, writing, walls=bounds.walls)
        finally:
            os.close(writing)
        loop.add_reader(reading, _keep_end, reading, kept)
        timed_out = False
        try:
            async with asyncio.timeout(bounds.patience_s):
                await _ended(running, bounds.stopped)
        except TimeoutError:
            timed_out = True
        finally:
            code = await _killed(running)
            loop.remove_reader(reading)
        while _keep_end(reading, kept):
            pass
    finally:
        os.close(reading)
    code = TIMED_OUT if timed_out else code
    seconds = time.monotonic() - began
    return ProgramEnd(128 - code if code < 0 else code, bytes(kept), seconds, timed_out)


async def _start(
    confinement: Confinement,
    words: Sequence[str],
    env: Mapping[str, str],
    output: int,
    *,
    walls: bool,
) -> _Running:
    root = confinement.workspace.root
    if walls:
        return await confinement.start(words, root, env, Level.WORKSPACE, output)
    return await asyncio.create_subprocess_exec(
        *marked(words, env, root),
        cwd=root,
        env=dict(env),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )


async def _ended(running: _Running, stopped: StopSignal) -> None:
    """Wait for the end of a program. Raises ProgramStoppedError."""
    end = asyncio.ensure_future(running.wait())
    try:
        while not end.done():
            if stopped.is_set():
                raise ProgramStoppedError("The run was stopped.")
            await asyncio.wait({end}, timeout=_LOOK_S)
    finally:
        end.cancel()


async def _killed(running: _Running) -> int:
    """End a program with all that it started; return its code."""
    end = asyncio.ensure_future(running.wait())
    while True:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(running.pid, signal.SIGKILL)
        # one that has only just begun may not lead its group yet
        await asyncio.wait({end}, timeout=_LOOK_S)
        if end.done():
            return end.result()


def _keep_end(pipe: int, kept: bytearray) -> bool:
    """Read what a pipe has now, and keep the last bytes. False where there is nothing to read."""
    try:
        data = os.read(pipe, _READ)
    except BlockingIOError:
        return False
    kept += data
    del kept[:-OUTPUT_MAX]
    return bool(data)
