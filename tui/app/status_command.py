"""`[status] command`: a person's own program writes a text at the foot of the screen."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from tui.app.reports import Level
from tui.core.clock import Clock
from tui.core.config import Status
from tui.core.dataclass import asdict, dataclass, field
from tui.core.text_cleaning import one_line

if TYPE_CHECKING:
    from asyncio.subprocess import Process

LIMIT_S: Final = 2.0
"""A command that takes longer is killed."""
_SETTLE_S: Final = 0.2
"""Seconds within which several changes count as one."""
_MOST_BYTES: Final = 64 * 1024
_MOST_CHARS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusFigures:
    """The figures that the command reads as JSON. `cost_usd` is null where a price is unknown,
    `profile` "" for none."""

    model: str
    session_id: str
    title: str
    cwd: str
    branch: str
    tokens: int
    window: int
    cost_usd: float | None
    mode: str
    turns: int
    profile: str = ""


class StatusHolder(Protocol):
    """The conversation, as the status command sees it."""

    def status_figures(self) -> StatusFigures | None:
        """Return how things are now; None before a session is open."""
        ...

    def show_status(self, text: str) -> None:
        """Show the text at the foot of the screen."""

    def say(self, text: str, level: Level) -> None:
        """Say why there is none, once until it works again."""


@dataclass(slots=True, kw_only=True)
class StatusCommand:
    """Runs the command once its input has changed, and at most once in its interval."""

    settings: Status
    cwd: Path
    clock: Clock
    holder: StatusHolder
    _wanted: asyncio.Event = field(default_factory=asyncio.Event)
    _last: tuple[str, StatusFigures] | None = None
    _failed: bool = False

    def use(self, settings: Status) -> None:
        """Take up changed settings."""
        if settings != self.settings:
            self.settings, self._failed = settings, False
            self.holder.show_status("")
            self.poke()

    def poke(self) -> None:
        """Something may have changed."""
        self._wanted.set()

    async def watch(self) -> None:
        """Run it whenever that is due, until cancelled."""
        while True:
            await self._wanted.wait()
            await self.clock.sleep(_SETTLE_S)
            self._wanted.clear()
            command, figures = self.settings.command, self.holder.status_figures()
            if not command or figures is None or (command, figures) == self._last:
                continue
            self._last = command, figures
            await self._run(command, figures)
            await self.clock.sleep(self.settings.interval_s)

    async def _run(self, command: str, figures: StatusFigures) -> None:
        text, problem = await output_of(command, dumps(asdict(figures)), self.cwd)
        self.holder.show_status(text)
        if problem and not self._failed:
            self.holder.say(f"Your status command {problem}.", "warning")
        self._failed = bool(problem)


async def output_of(command: str, given: str, cwd: Path) -> tuple[str, str]:
    """The first line that a shell command prints, fit to be drawn, and what went wrong, "" for
    nothing."""
    from tui.core.redaction import child_environment  # noqa: PLC0415 - for those who have one
    from tui.tools.process import shell  # noqa: PLC0415 - as above

    try:
        process = await asyncio.create_subprocess_exec(
            *shell(),
            command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=cwd,
            env=child_environment(),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return "", f"can't run: {getattr(error, 'strerror', '') or error}"
    try:
        async with asyncio.timeout(LIMIT_S):
            printed, code = await _communicate(process, given.encode())
    except TimeoutError:
        return "", f"took longer than {LIMIT_S:g} s and was stopped"
    finally:
        # it may have started others: they end with it
        if process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if code:
        return "", f"failed (exit code {code})"
    lines = printed.decode("utf-8", "replace").splitlines()
    return one_line(lines[0])[:_MOST_CHARS] if lines else "", ""


async def _communicate(process: Process, given: bytes) -> tuple[bytes, int]:
    """Return its output, as far as that is of use, and its exit code."""
    assert process.stdin
    assert process.stdout
    with suppress(BrokenPipeError, ConnectionResetError):  # it needs not read it
        process.stdin.write(given)
        await process.stdin.drain()
    process.stdin.close()
    printed = bytearray()
    while chunk := await process.stdout.read(_MOST_BYTES):
        printed += chunk[: _MOST_BYTES - len(printed)]
    return bytes(printed), await process.wait()
