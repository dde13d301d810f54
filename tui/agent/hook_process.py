"""Runs the command of a hook: what it is given, what it prints, how it ends."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from tui.agent.hook_answers import OUTPUT_MAX
from tui.core.redaction import child_environment
from tui.settings.hook_files import NO_BYTECODE, PLUGIN_ROOT, Hook
from tui.tools.process import shell

if TYPE_CHECKING:
    from asyncio.subprocess import Process

HookOutcome: TypeAlias = Literal["ok", "blocked", "failed", "timeout", "cancelled"]

_FOLDER: Final = "${CLAUDE_PROJECT_DIR}"
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
    code: int | None = None
    out: bytearray = field(default_factory=bytearray)

    async def run(self, given: bytes) -> tuple[HookOutcome, str]:
        """Run the hook; return its outcome, and what is wrong then. An interrupt ends it; the
        caller raises."""
        hook = self.hook
        if hook.problem:
            return "failed", hook.problem
        environment = child_environment() | {"CLAUDE_PROJECT_DIR": str(self.root)}
        if hook.plugin:
            environment |= {PLUGIN_ROOT: str(hook.plugin), NO_BYTECODE: "1"}
        if not await asyncio.to_thread(hook.holds_in, self.root):
            return "failed", _CHANGED
        try:
            process = await asyncio.create_subprocess_exec(
                *self._words(),
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


async def _write(stream: asyncio.StreamWriter, given: bytes) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # it needs not read it
        stream.write(given)
        await stream.drain()
    with suppress(BrokenPipeError, ConnectionResetError):
        stream.close()


async def _read(stream: asyncio.StreamReader, into: bytearray) -> None:
    while chunk := await stream.read(_CHUNK):
        into += chunk[: OUTPUT_MAX + 1 - len(into)]  # one more says that there was more
