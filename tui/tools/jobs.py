"""Background commands: run_command starts them, command_status reads and stops them.

All of their output goes to a private file; `Job.read` returns what is new since the last time. If
that is long, it is also written to a file of its own, as the full output of that one call.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tui.core.clock import Clock, SystemClock
from tui.core.config import Guard
from tui.core.errors import ToolError
from tui.core.messages import RawOutput
from tui.tools.output_capture import SPILL_AFTER, Cleaner, Overwrites, Spill
from tui.tools.process import Process, Starter, outcome

_TICK_S = 0.1
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class JobOutput:
    """What a background command printed since the last read: cleaned, and only the two ends if
    it is long. `full` is a file with all of it."""

    text: str
    raw: RawOutput
    full: Path | None = None


class Job:
    """One background command, made when its process has been started."""

    def __init__(
        self, job_id: str, command: str, process: Process, spill: Spill, clock: Clock
    ) -> None:
        self.id = job_id
        self.command = command
        self.pid = process.pid
        self.stopped = False
        self.seconds = 0.0
        self._process = process
        self._spill = spill
        self._clock = clock
        self._started = clock.monotonic()
        self._cleaner = Cleaner()
        self._read_up_to = 0
        self._accounted = 0
        self._watch = asyncio.create_task(self._until_end())

    @property
    def path(self) -> Path:
        """The file with its output; there once it has printed something."""
        return self._spill.path

    @property
    def ended(self) -> bool:
        return self._watch.done()

    @property
    def exit_code(self) -> int | None:
        """As the shell numbers it (128 + n for signal n); None while it runs."""
        code = self._process.returncode
        return None if code is None else outcome(code)[0]

    def state(self) -> str:
        """In words: `running`, `stopped`, `exit code 1`, `killed by SIGTERM`."""
        code = self._process.returncode
        if not self.ended or code is None:
            return "running"
        return "stopped" if self.stopped else outcome(code)[1]

    async def wait(self, seconds: float) -> bool:
        """Whether it has ended, waiting at most `seconds`. Cancelling leaves it running."""
        until = self._clock.monotonic() + seconds
        while not self.ended and self._clock.monotonic() < until:
            await asyncio.wait({self._watch}, timeout=_TICK_S)
        return self.ended

    async def stop(self) -> None:
        """End its whole group; nothing happens when it has ended."""
        if not self.ended:
            self.stopped = True
            await self._process.end(self._clock)
            await asyncio.wait({self._watch}, timeout=1.0)

    async def read(self, *, spill: Path, limits: Guard) -> JobOutput:
        """The output since the last read. If it is long, all of it is written to `spill`."""
        if not self.ended:
            self.seconds = self._clock.monotonic() - self._started
        ended, lost = self.ended, self._spill.stopped
        start, end = self._read_up_to, self._spill.written
        size = end - start if not lost else self._spill.offered - self._accounted
        look = partial(_read_span, self.path, start, end, spill=spill, limits=limits, whole=ended)
        seen = await asyncio.to_thread(look)
        self._read_up_to, self._accounted = end, self._accounted + size
        overwrites = Overwrites()
        text = overwrites.feed(self._cleaner.feed(seen.head))
        if seen.tail:
            text += overwrites.close()
            text += f"\n\n[… the middle of {size} bytes isn't shown here …]\n\n"
            self._cleaner = Cleaner()
            text += overwrites.feed(self._cleaner.feed(seen.tail))
        if ended:
            text += overwrites.feed(self._cleaner.feed(b"", final=True))
        text += overwrites.close()
        part = bool(seen.tail) or size > end - start
        data = seen.head if seen.full is None and not part else None
        raw = RawOutput(size, seen.lines, part, seen.lost or lost, data, overwrites.dropped)
        return JobOutput(text, raw, seen.full)

    @property
    def output_note(self) -> str:
        """The place of the whole output, in words; "" while there is none."""
        if not self._spill.written:
            return ""
        note = f"; no more is kept: {self._spill.stopped}" if self._spill.stopped else ""
        return f"all output: {self.path}{note}"

    def kill(self) -> None:
        """At once, without grace and without waiting."""
        self._process.close()

    async def _until_end(self) -> None:
        try:
            await self._process.wait(None)
            if not await self._process.drain():
                await self._process.end(self._clock)
                await self._process.drain()
        finally:
            self._process.close()
            self._spill.close()
            self.seconds = self._clock.monotonic() - self._started


class Jobs:
    """All background commands of one program. `close` leaves none running."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._jobs: dict[str, Job] = {}

    async def start(
        self,
        command: str,
        *,
        cwd: Path,
        path: Path,
        limits: Guard | None = None,
        env: Mapping[str, str] | None = None,
        starter: Starter | None = None,
    ) -> Job:
        """Run `command` in the background, its output in a private file at `path`."""
        spill = Spill(path, limits or Guard())
        process = await Process.start(command, cwd=cwd, sink=spill.write, env=env, starter=starter)
        job = Job(f"job-{len(self._jobs) + 1}", command, process, spill, self._clock)
        self._jobs[job.id] = job
        return job

    def get(self, job_id: str) -> Job:
        """Raises ToolError that names the jobs there are."""
        if job_id in self._jobs:
            return self._jobs[job_id]
        known = ", ".join(self._jobs)
        raise ToolError(
            f"No background command {job_id!r}.",
            hint=f"Known: {known}." if known else "None was started in this session.",
        )

    def list(self) -> tuple[Job, ...]:
        """Every job of this session, oldest first."""
        return tuple(self._jobs.values())

    async def close(self) -> None:
        """Stop all (SIGTERM, then SIGKILL), side by side. Cancelled, it kills at once."""
        try:
            await asyncio.gather(*(job.stop() for job in self.list()))
        finally:
            for job in self.list():
                if not job.ended:
                    job.kill()


@dataclass(frozen=True, slots=True)
class _Span:
    head: bytes = b""
    tail: bytes = b""
    lines: int = 0
    full: Path | None = None
    lost: str = ""


def _read_span(
    path: Path, start: int, end: int, *, spill: Path, limits: Guard, whole: bool
) -> _Span:
    """The bytes of a file from `start` to `end`, in bounded memory; a long span is copied to
    `spill`."""
    if start == end:
        return _Span()
    half = limits.memory_chars // 2
    copy = Spill(spill, limits) if end - start > min(SPILL_AFTER, 2 * half) else None
    linked = copy is not None and whole and start == 0 and _linked(path, spill)
    lines, last = 0, b""
    with path.open("rb") as file:
        file.seek(start)
        short = end - start <= 2 * half
        head = file.read(end - start if short else half)
        file.seek(start)
        left = end - start
        while left and (chunk := file.read(min(left, _CHUNK))):
            left -= len(chunk)
            lines, last = lines + chunk.count(b"\n"), chunk[-1:]
            if copy is not None and not linked:
                copy.write(chunk)
        tail = b""
        if not short:
            file.seek(end - half)
            tail = file.read(half)
            cut = next((n for n in range(4) if tail[n : n + 1] < b"\x80" or tail[n] >= 0xC0), 0)
            tail = tail[cut:]  # not the rest of a character
    lines += last != b"\n"
    if linked:
        return _Span(head, tail, lines, spill)
    if copy is None:
        return _Span(head, tail, lines)
    copy.close()
    return _Span(head, tail, lines, copy.path if copy.written else None, copy.stopped)


def _linked(path: Path, spill: Path) -> bool:
    """Give a file that will not change a second name, if the disk supports that."""
    with suppress(OSError):
        os.link(path, spill, follow_symlinks=False)
        return True
    return False
