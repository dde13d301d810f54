"""Background commands: started by run_command, looked after by command_status.

Their output goes to a private file, every byte; a look returns what is new since the last one.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from tui.clock import Clock, SystemClock
from tui.errors import ToolError
from tui.tools.capture import MEMORY_CHARS, Cleaner, Spill
from tui.tools.process import Process, outcome

_TICK_S = 0.1


@dataclass(frozen=True, slots=True)
class Running:
    """A background command that has not ended."""

    id: str
    pid: int
    command: str


class Job:
    """One background command."""

    def __init__(self, job_id: str, command: str, spill: Spill, started: float) -> None:
        self.id = job_id
        self.command = command
        self.stopped = False
        self.seconds = 0.0
        self._spill = spill
        self._cleaner = Cleaner()
        self._read_up_to = 0
        self._started = started
        self._process: Process | None = None
        self._watch: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        return self._started_process.pid

    @property
    def path(self) -> Path:
        """The file with its output; there once it has printed something."""
        return self._spill.path

    @property
    def ended(self) -> bool:
        return self._watch is not None and self._watch.done()

    @property
    def exit_code(self) -> int | None:
        """As the shell numbers it (128 + n for signal n); None while it runs."""
        code = self._started_process.returncode
        return None if code is None else outcome(code)[0]

    def state(self) -> str:
        """In words: `running`, `stopped`, `exit code 1`, `killed by SIGTERM`."""
        code = self._started_process.returncode
        if not self.ended or code is None:
            return "running"
        return "stopped" if self.stopped else outcome(code)[1]

    async def start(self, cwd: Path, clock: Clock) -> None:
        self._process = await Process.start(self.command, cwd=cwd, sink=self._spill.write)
        self._watch = asyncio.create_task(self._until_end(clock))

    async def wait(self, seconds: float, clock: Clock) -> bool:
        """Whether it has ended, waiting at most `seconds`. Cancelling leaves it running."""
        until = clock.monotonic() + seconds
        while not self.ended and clock.monotonic() < until:
            await self._settled(_TICK_S)
        return self.ended

    async def stop(self, clock: Clock) -> None:
        """End its whole group; nothing happens when it has ended."""
        if not self.ended:
            self.stopped = True
            await self._started_process.end(clock)
            await self._settled(1.0)

    async def read(self, clock: Clock) -> str:
        """The output since the last look, cleaned; of very much, head and tail."""
        if not self.ended:
            self.seconds = clock.monotonic() - self._started
        self._spill.flush()
        start, end = self._read_up_to, self._spill.written
        self._read_up_to = end
        if end == start:
            return self._cleaner.feed(b"", final=self.ended)
        half = MEMORY_CHARS // 2
        spans = (
            [(start, end)]
            if end - start <= 2 * half
            else [(start, start + half), (end - half, end)]
        )
        pieces = [await asyncio.to_thread(_read_span, self.path, *span) for span in spans]
        texts = [self._cleaner.feed(pieces[0])]
        if len(pieces) > 1:
            texts.append(f"\n\n[… {end - start - 2 * half} bytes are not shown here …]\n\n")
            texts.append(self._cleaner.feed(pieces[1]))
        if self.ended:
            texts.append(self._cleaner.feed(b"", final=True))
        return "".join(texts)

    @property
    def kept(self) -> str:
        """Where the output is, in words."""
        if not self._spill.written:
            return ""
        note = f"; no more is kept: {self._spill.stopped}" if self._spill.stopped else ""
        return f"all output: {self.path}{note}"

    def kill(self) -> None:
        """At once, without grace and without waiting."""
        if self._process is not None:
            self._process.close()

    async def _until_end(self, clock: Clock) -> None:
        process = self._started_process
        try:
            await process.wait(None)
            if not await process.drain():
                await process.end(clock)
                await process.drain()
        finally:
            process.close()
            self._spill.close()
            self.seconds = clock.monotonic() - self._started

    async def _settled(self, seconds: float) -> None:
        if self._watch is not None:
            await asyncio.wait({self._watch}, timeout=seconds)

    @property
    def _started_process(self) -> Process:
        assert self._process is not None
        return self._process


class Jobs:
    """All background commands of one program. `close` leaves none running."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._jobs: dict[str, Job] = {}

    async def start(self, command: str, *, cwd: Path, path: Path) -> Job:
        """Run `command` in the background, its output in a private file at `path`."""
        job = Job(f"job-{len(self._jobs) + 1}", command, Spill(path), self._clock.monotonic())
        self._jobs[job.id] = job
        try:
            await job.start(cwd, self._clock)
        except BaseException:
            del self._jobs[job.id]
            raise
        return job

    def get(self, job_id: str) -> Job:
        """Raises ToolError that names the jobs there are."""
        if job_id in self._jobs:
            return self._jobs[job_id]
        known = ", ".join(self._jobs)
        raise ToolError(
            f"There is no background command {job_id!r}.",
            hint=f"There are: {known}." if known else "None was started in this session.",
        )

    def list(self) -> tuple[Job, ...]:
        """Every job of this session, oldest first."""
        return tuple(self._jobs.values())

    def running(self) -> tuple[Running, ...]:
        return tuple(Running(j.id, j.pid, j.command) for j in self.list() if not j.ended)

    async def close(self) -> None:
        """Stop all (SIGTERM, then SIGKILL), side by side. Cancelled, it kills at once."""
        try:
            await asyncio.gather(*(job.stop(self._clock) for job in self.list()))
        finally:
            for job in self.list():
                if not job.ended:
                    job.kill()


def _read_span(path: Path, start: int, end: int) -> bytes:
    with path.open("rb") as file:
        file.seek(start)
        return file.read(end - start)
