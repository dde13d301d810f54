"""A program of the project's own that a run starts beside its agents, in the sandbox. Blocks."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from threading import Event
from typing import Final, TypeAlias

from tui.core.dataclass import dataclass, field
from tui.core.errors import HoldfastError
from tui.permissions.sandbox.confinement import Confinement
from tui.permissions.sandbox.walls import Level

StopSignal: TypeAlias = Event
"""Set when the run ends: programs that run are ended, and no other begins."""
_LOOK_S: Final = 0.1
_OUTPUT_MAX: Final = 256 * 1024**2


class ProgramStoppedError(HoldfastError):
    """The run ended while a program ran."""


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    """The end of a program: its exit code, and the last `SHOWN` bytes of its output, stdout and
    stderr in their order."""

    exit_code: int
    output: bytes


SHOWN: Final = 16_000


@dataclass(frozen=True, slots=True)
class Bounds:
    """The time that a program may take, and what ends it earlier."""

    patience_s: float
    stopped: StopSignal = field(default_factory=StopSignal)


def run_confined(
    confinement: Confinement,
    words: Sequence[str],
    env: Mapping[str, str],
    bounds: Bounds,
    *,
    stdin: bytes = b"",
    walls: bool = True,
) -> ProgramEnd:
    """Run a program in the workspace of `confinement`, which is closed then; without `walls` as it
    is. All that it started ends with it.

    Raises ProgramStoppedError, TimeoutExpired, SandboxError if nothing confines it, OSError if it
    cannot be started or writes without end.
    """

    async def done() -> ProgramEnd:
        try:
            argv = await confinement.command(words, env, Level.WORKSPACE) if walls else words
            root = confinement.workspace.root
            return await asyncio.to_thread(_run, argv, root, env, stdin, bounds)
        finally:
            await confinement.close()

    return asyncio.run(done())


def _run(
    words: Sequence[str], folder: Path, env: Mapping[str, str], stdin: bytes, bounds: Bounds
) -> ProgramEnd:
    """Run a program for as long as it may take and the run goes on. Its output is a file: what it
    leaves running may hold that, and keeps nobody waiting."""
    until = time.monotonic() + bounds.patience_s
    with TemporaryFile() as given, TemporaryFile() as output:
        given.write(stdin)
        given.seek(0)
        with subprocess.Popen(
            words,
            cwd=folder,
            env=env,
            stdin=given,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process:
            try:
                while not bounds.stopped.is_set():
                    with suppress(subprocess.TimeoutExpired):
                        code = process.wait(_LOOK_S)
                        size = os.fstat(output.fileno()).st_size
                        last = os.pread(output.fileno(), SHOWN, max(0, size - SHOWN))
                        return ProgramEnd(code, last)
                    if time.monotonic() > until:
                        raise subprocess.TimeoutExpired(words, bounds.patience_s)
                    if os.fstat(output.fileno()).st_size > _OUTPUT_MAX:
                        raise OSError(errno.EFBIG, "It writes without end")
            finally:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
    raise ProgramStoppedError("The run was stopped.")
