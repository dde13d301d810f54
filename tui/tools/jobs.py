"""Background commands: run_command starts them, command_status reads and stops them. A command
that runs in front can be moved to them.

All of their output goes to a private file; `Job.read` returns what is new since the last time. If
that is long, it is also written to a file of its own, as the full output of that one call.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

from tui.core.clock import Clock, SystemClock
from tui.core.config import Guard
from tui.core.errors import ToolError
from tui.core.messages import RawOutput
from tui.tools.output_capture import SPILL_AFTER, Cleaner, Overwrites, Spill
from tui.tools.process import Process, Starter, outcome

_TICK_S = 0.1
_CHUNK = 1 << 20
_TAIL_BYTES = 16 * 1024

StoppedBy: TypeAlias = Literal["", "model", "person", "program"]
"""Who stopped a command; "" where it ended by itself, or still runs."""


@dataclass(frozen=True, slots=True)
class JobOutput:
    """What a background command printed since the last read: cleaned, and only the two ends if
    it is long. `full` is a file with all of it."""

    text: str
    raw: RawOutput
    full: Path | None = None


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a background command comes from. `call_id` is of the call that started it, or of the
    person's own command; `moved_by` says who moved it from the front, "" where it began as one;
    `hidden`: the model does not hear of it. `seconds` is how long it has run already."""

    call_id: str = ""
    moved_by: Literal["", "person"] = ""
    hidden: bool = False
    seconds: float = 0.0


class Job:
    """One background command, made when its process has been started.

    `end_read`: its end was returned by `read`.
    """

    def __init__(
        self,
        job_id: str,
        command: str,
        process: Process,
        spill: Spill,
        *,
        clock: Clock,
        origin: Origin,
        read: tuple[int, int] = (0, 0),
    ) -> None:
        """`read`: how much of what is written, and of all that came, the model has already."""
        self.id = job_id
        self.command = command
        self.pid = process.pid
        self.origin = origin
        self.stopped_by: StoppedBy = ""
        self.end_read = False
        self._process = process
        self._spill = spill
        self._clock = clock
        self._started = clock.monotonic() - origin.seconds
        self._took: float | None = None
        self.since: datetime = clock.now() - timedelta(seconds=origin.seconds)
        self._cleaner = Cleaner()
        self._read_up_to, self._accounted = read
        self._watch = asyncio.create_task(self._until_end())

    @property
    def seconds(self) -> float:
        """How long it has run, or ran."""
        return self._clock.monotonic() - self._started if self._took is None else self._took

    @property
    def bytes(self) -> int:
        """How much it has printed."""
        return self._spill.offered

    @property
    def stopped(self) -> bool:
        return bool(self.stopped_by)

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

    def at_end(self, call: Callable[[], None]) -> None:
        """Call this once it has ended."""
        self._watch.add_done_callback(lambda _: call())

    async def stop(self, by: StoppedBy = "model") -> None:
        """End its whole group; nothing happens when it has ended."""
        if not self.ended:
            self.stopped_by = by
            await self._process.end(self._clock)
            await asyncio.wait({self._watch}, timeout=1.0)

    async def read(self, *, spill: Path, limits: Guard) -> JobOutput:
        """The output since the last read. If it is long, all of it is written to `spill`."""
        ended, lost = self.ended, self._spill.stopped
        self.end_read = ended
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

    def tail(self, *, lines: int, chars: int) -> str:
        """The last lines that it printed, cleaned. Blocks."""
        end = self._spill.written
        start = max(0, end - _TAIL_BYTES)
        with suppress(OSError), self.path.open("rb") as file:
            file.seek(start)
            cleaner, overwrites = Cleaner(), Overwrites()
            text = overwrites.feed(cleaner.feed(file.read(end - start), final=True))
            text += overwrites.close()
            text = text.partition("\n")[2] if start and "\n" in text else text
            return "\n".join(text.rstrip().split("\n")[-lines:])[-chars:]
        return ""

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
            self._took = self._clock.monotonic() - self._started


class Jobs:
    """All background commands of one program. `close` leaves none running."""

    def __init__(self, clock: Clock | None = None) -> None:
        """`began` and `ended` are called with each job, at its beginning and at its end."""
        self.began: Callable[[Job], None] = lambda _: None
        self.ended: Callable[[Job], None] = lambda _: None
        self._clock = clock or SystemClock()
        self._jobs: dict[str, Job] = {}
        self._in_front: list[asyncio.Event] = []

    async def start(
        self,
        command: str,
        *,
        cwd: Path,
        path: Path,
        limits: Guard | None = None,
        env: Mapping[str, str] | None = None,
        starter: Starter | None = None,
        call_id: str = "",
    ) -> Job:
        """Run `command` in the background, its output in a private file at `path`."""
        spill = Spill(path, limits or Guard())
        process = await Process.start(command, cwd=cwd, sink=spill.write, env=env, starter=starter)
        return self._add(command, process, spill, Origin(call_id))

    @contextmanager
    def in_front(self) -> Generator[asyncio.Event]:
        """While a command runs in front: the event is set once the person wants it moved."""
        wanted = asyncio.Event()
        self._in_front.append(wanted)
        try:
            yield wanted
        finally:
            self._in_front.remove(wanted)

    def move(self) -> int:
        """Let the commands that run in front be moved here. Returns how many there are."""
        for wanted in self._in_front:
            wanted.set()
        return len(self._in_front)

    async def adopt(
        self,
        command: str,
        process: Process,
        copy_to: Callable[[Spill], None],
        *,
        path: Path,
        limits: Guard,
        origin: Origin,
    ) -> Job:
        """Keep a command that runs in front, in the background. `copy_to` writes what it printed so
        far to a private file at `path`, where the rest of its output goes. Cancelled, it does so
        all the same: else the command would belong to nobody."""
        spill = Spill(path, limits)
        read = (0, 0)

        def hand_over() -> Callable[[bytes], None]:
            nonlocal read
            copy_to(spill)
            read = spill.written, spill.offered
            return spill.write

        moving = asyncio.ensure_future(asyncio.to_thread(process.redirect, hand_over))
        try:
            await asyncio.shield(moving)
        finally:
            if not moving.done():
                await asyncio.wait({moving})
            job = self._add(command, process, spill, origin, read)
        return job

    def _add(
        self,
        command: str,
        process: Process,
        spill: Spill,
        origin: Origin,
        read: tuple[int, int] = (0, 0),
    ) -> Job:
        id_, clock = f"job-{len(self._jobs) + 1}", self._clock
        job = Job(id_, command, process, spill, clock=clock, origin=origin, read=read)
        self._jobs[id_] = job
        self.began(job)
        job.at_end(lambda: self.ended(job))
        return job

    def get(self, job_id: str) -> Job:
        """One that the model knows. Raises ToolError that names those there are."""
        known_ones = {job.id: job for job in self.known}
        if job_id in known_ones:
            return known_ones[job_id]
        known = ", ".join(known_ones)
        raise ToolError(
            f"No background command {job_id!r}.",
            hint=f"Known: {known}." if known else "None was started in this session.",
        )

    def list(self) -> tuple[Job, ...]:
        """Every job of this session, oldest first."""
        return tuple(self._jobs.values())

    @property
    def known(self) -> tuple[Job, ...]:
        """Those that the model knows."""
        return tuple(job for job in self._jobs.values() if not job.origin.hidden)

    async def close(self) -> None:
        """Stop all (SIGTERM, then SIGKILL), side by side. Cancelled, it kills at once."""
        try:
            await asyncio.gather(*(job.stop("program") for job in self.list()))
        finally:
            for job in self.list():
                if not job.ended:
                    job.kill()
                if job.origin.hidden:  # its output is kept no longer than it can be looked at
                    with suppress(OSError):
                        job.path.unlink()
                        job.path.parent.rmdir()


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
