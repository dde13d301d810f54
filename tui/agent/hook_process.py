"""Runs the command of a hook: what it is given, what it prints, how it ends."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from tui.agent.hook_answers import OUTPUT_MAX
from tui.core.dataclass import dataclass, field
from tui.core.errors import HoldfastError
from tui.core.files import read_small
from tui.core.redaction import child_environment
from tui.keeper.mark import marked
from tui.settings.hook_files import NO_BYTECODE, PLUGIN_ROOT, Hook
from tui.tools.process import shell

if TYPE_CHECKING:
    from asyncio.subprocess import Process

HookOutcome: TypeAlias = Literal["ok", "blocked", "failed", "timeout", "cancelled"]

_FOLDER: Final = "${CLAUDE_PROJECT_DIR}"
_SETS: Final = "CLAUDE_ENV_FILE"
"""The variable that names a file in which a hook sets variables for commands."""
_SCRIPT_MAX: Final = 1024**2
_SCRIPT_S: Final = 10.0
_OF_SHELLS: Final = frozenset({"_", "SHLVL", "PWD", "OLDPWD", "SHELLOPTS", "BASHOPTS"})
_CHUNK: Final = 64 * 1024
_POLL_S: Final = 0.05
_DRAIN_S: Final = 0.25
"""After its end, for what it had printed."""
_CHANGED: Final = (
    "a script that it names has changed since the session began; trust it in the next session"
)


@dataclass(slots=True)
class HookProcess:
    """Runs the command of a hook."""

    hook: Hook
    root: Path
    limit: float
    session: str = ""
    """The id of the session that it runs for."""
    traceparent: str = ""
    """The span of what it is about."""
    code: int | None = None
    out: bytearray = field(default_factory=bytearray)
    script: str = ""
    """The lines that it wrote for later commands: only a hook of a session that begins can."""

    async def run(self, given: bytes) -> tuple[HookOutcome, str]:
        """Run the hook; return its outcome, and what is wrong then. An interrupt ends it; the
        caller raises."""
        hook = self.hook
        if hook.problem:
            return "failed", hook.problem
        if not await asyncio.to_thread(hook.holds_in, self.root):
            return "failed", _CHANGED
        if hook.event != "SessionStart":
            return await self._run(given, {})
        with tempfile.NamedTemporaryFile(prefix="holdfast-", suffix=".sh") as file:
            ended = await self._run(given, {_SETS: file.name})
            self.script = await asyncio.to_thread(_script_in, Path(file.name))
        return ended

    async def _run(self, given: bytes, more: Mapping[str, str]) -> tuple[HookOutcome, str]:
        given_to_all = child_environment(self.session, self.traceparent)
        environment = {**given_to_all, "CLAUDE_PROJECT_DIR": str(self.root), **more}
        if self.hook.plugin:
            environment |= {PLUGIN_ROOT: str(self.hook.plugin), NO_BYTECODE: "1"}
        try:
            process = await asyncio.create_subprocess_exec(
                *marked(self._words(), environment, self.root),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=self.root,
                env=environment,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            return "failed", f"can't run: {getattr(error, 'strerror', '') or error}"
        try:
            async with asyncio.timeout(self.limit):
                problem = await self._communicate(process, given)
        except asyncio.CancelledError:
            return "cancelled", ""  # so that it is recorded
        except TimeoutError:
            return "timeout", f"took longer than {self.limit:g} s"
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)  # what it left running, too
            _close_pipes(process)
        return "failed" if self.code else "ok", problem

    def _words(self) -> list[str]:
        """The words of its program: a shell's, or its own, in which the folder is filled in."""
        hook = self.hook
        if hook.args is None:
            return [*shell(), hook.command]
        folder = str(self.root)
        return [one.replace(_FOLDER, folder) for one in (hook.command, *hook.args)]

    async def _communicate(self, process: Process, given: bytes) -> str:
        """Wait for its end and what it prints; returns what it wrote to standard error. Something
        that it left running may still hold both: its end is not waited for."""
        assert process.stdin
        assert process.stdout
        assert process.stderr
        err = bytearray()
        writes = asyncio.create_task(_write(process.stdin, given))
        reads = {
            asyncio.create_task(_read(process.stdout, self.out)),
            asyncio.create_task(_read(process.stderr, err)),
        }
        try:
            while process.returncode is None:
                await asyncio.wait(reads, timeout=_POLL_S)
                if all(read.done() for read in reads):
                    await process.wait()
            await asyncio.wait(reads, timeout=_DRAIN_S)
        finally:
            for task in (writes, *reads):
                task.cancel()
            await asyncio.gather(writes, *reads, return_exceptions=True)
        self.code = process.returncode
        return bytes(err[:OUTPUT_MAX]).decode("utf-8", "replace")


def _close_pipes(process: Process) -> None:
    """Close our ends of its pipes. asyncio keeps them open for as long as anything else holds the
    other ends: a process that the hook started in a session of its own, maybe until our end."""
    vars(process)["_transport"].close()


def _script_in(file: Path) -> str:
    """The lines of a file, which a hook may also have removed. Blocks."""
    with suppress(OSError):
        return read_small(file, limit=_SCRIPT_MAX)[0].decode("utf-8", "replace")
    return ""


async def exported(script: str, root: Path, session: str) -> dict[str, str]:
    """Return the variables that lines of hooks set for commands: those of a shell that has run
    them. Raises HoldfastError where it can't say."""
    given = child_environment(session) | {"CLAUDE_PROJECT_DIR": str(root)}
    line = f"set -a; . /dev/stdin >/dev/null; {shutil.which('env') or 'env'} -0"
    process = await asyncio.create_subprocess_exec(
        *marked([*shell(), line], given, root),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=root,
        env=given,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(_SCRIPT_S):
            printed, _ = await process.communicate(script.encode())
    except TimeoutError as error:
        raise HoldfastError(f"They took longer than {_SCRIPT_S:g} s.") from error
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        _close_pipes(process)
    if process.returncode or not printed:
        raise HoldfastError(f"They ended with exit code {process.returncode}.")
    pairs = (one.partition("=") for one in printed.decode("utf-8", "replace").split("\0"))
    return {
        name: value
        for name, _, value in pairs
        if name.isidentifier() and name not in _OF_SHELLS and given.get(name) != value
    }


async def _write(stream: asyncio.StreamWriter, given: bytes) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # it needs not read it
        stream.write(given)
        await stream.drain()
    with suppress(BrokenPipeError, ConnectionResetError):
        stream.close()


async def _read(stream: asyncio.StreamReader, into: bytearray) -> None:
    while chunk := await stream.read(_CHUNK):
        into += chunk[: OUTPUT_MAX + 1 - len(into)]  # one more says that there was more
