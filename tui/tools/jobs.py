"""Background commands: run_command starts them, command_status reads and stops them. A command in
the foreground can be moved to them.

All of their output goes to a private file; `Job.read` returns what is new since the last time. If
that is long, it is also written to a file of its own, as the full output of that one call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from tui.core.clock import Clock, SystemClock
from tui.core.config import Guard
from tui.core.dataclass import dataclass
from tui.core.errors import StorageError, ToolError
from tui.core.facts.work import END_UNKNOWN
from tui.core.messages import RawOutput, string_of
from tui.core.private_files import open_private, private_link
from tui.keeper.command import PlainStarter, Starter, SupervisedCommand, TerminalSize
from tui.tools.output_capture import (
    SPILL_AFTER,
    Cleaner,
    keep_output,
    truncation_reason,
)
from tui.tools.process import outcome, start_command
from tui.tools.terminal_text import TerminalText

if TYPE_CHECKING:
    from tui.tools.terminal_link import TerminalLink

_TICK_S = 0.1
_CHUNK = 1 << 20
_TAIL_BYTES = 16 * 1024
_WISH: ContextVar[asyncio.Event | None] = ContextVar("_WISH", default=None)
"""Set once the command of the call that is carried out here is to be moved as soon as it runs."""

StoppedBy: TypeAlias = Literal["", "model", "person", "program"]
"""The one who stopped a command; "" if it ended by itself, or still runs."""


@dataclass(frozen=True, slots=True)
class JobOutput:
    """The output of a background command since the last read: cleaned, and only the two ends if it
    is long. `full` is a file with all of it."""

    text: str
    raw: RawOutput
    full: Path | None = None


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a background command.

    `call_id` is that of the call that started it, or of the person's own command; `moved_by` is who
    moved it from the foreground, "" if it began in the background; `hidden`: the model is not
    informed of it. `seconds` is how long it has run already. `taken_over`: an earlier run of the
    program had it.
    """

    call_id: str = ""
    moved_by: Literal["", "person"] = ""
    hidden: bool = False
    seconds: float = 0.0
    taken_over: bool = False


@dataclass(frozen=True, slots=True)
class EndedJob:
    """A job of an earlier run, by the record of its end. `lost`: it is not known how it ended, or
    whether it did."""

    name: str
    lost: bool = False


class Job:
    """One background command, made when it has been started.

    `end_read`: its end was returned by `read`.
    """

    def __init__(
        self,
        job_id: str,
        command: SupervisedCommand,
        path: Path,
        *,
        place: Path,
        clock: Clock,
        limits: Guard,
        origin: Origin,
        read: int = 0,
    ) -> None:
        """`path` is the file with its output, `place` its lasting name; `read`: the bytes of the
        output that the model has."""
        self.id = job_id
        self.terminal = _terminal_of(command, origin)
        """Its terminal, if it has one."""
        self.command = string_of(command.call.get("command"))
        self.pid = command.pid
        self.path = path
        self.origin = origin
        self.stopped_by: StoppedBy = ""
        self.end_read = False
        self.kept = command
        self._place = place
        self._limits = limits
        self._clock = clock
        self._started = clock.monotonic() - origin.seconds
        self._took: float | None = None
        self.since: datetime = clock.now() - timedelta(seconds=origin.seconds)
        self._cleaner = Cleaner()
        self._read_up_to = self._accounted = read
        self._bytes = 0
        self._watch = asyncio.create_task(self._until_end())

    @property
    def process(self) -> str:
        """Its process, in words: the number is not known if its keeper was killed at once."""
        return f"process {self.pid}" if self.pid else "process unknown"

    @property
    def seconds(self) -> float:
        """Seconds that it has run, or ran."""
        return self._clock.monotonic() - self._started if self._took is None else self._took

    @property
    def bytes(self) -> int:
        """Number of bytes that it has printed."""
        end = self.kept.end
        return end.bytes if end is not None else self._written

    @property
    def _written(self) -> int:
        """Number of those bytes that are in the file."""
        end = self.kept.end
        if end is not None:
            return end.written
        with suppress(OSError):
            self._bytes = self.kept.size
        return self._bytes

    @property
    def _lost(self) -> str:
        """The reason why the file does not hold all; "" if it does, as far as is known."""
        end = self.kept.end
        return truncation_reason(end, self._limits) if end is not None else ""

    @property
    def stopped(self) -> bool:
        return bool(self.stopped_by)

    @property
    def ended(self) -> bool:
        return self._watch.done()

    @property
    def exit_code(self) -> int | None:
        """The exit code as the shell numbers it (128 + n for signal n); None while it runs, or if
        not known."""
        end = self.kept.end
        return None if end is None or end.lost else outcome(end.returncode)[0]

    def state(self) -> str:
        """Return its state in words: `running`, `stopped`, `exit code 1`, `killed by SIGTERM`, `end
        unknown`."""
        end = self.kept.end
        if not self.ended or end is None:
            return "running"
        if end.lost:
            return END_UNKNOWN
        return "stopped" if self.stopped else outcome(end.returncode)[1]

    async def wait(self, seconds: float) -> bool:
        """Wait for its end, at most `seconds`. True if it has ended. Cancelling leaves it
        running."""
        until = self._clock.monotonic() + seconds
        while not self.ended and self._clock.monotonic() < until:
            await asyncio.wait({self._watch}, timeout=_TICK_S)
        return self.ended

    def at_end(self, call: Callable[[], None]) -> None:
        """Call a function once it has ended; never if the program ends first."""
        self._watch.add_done_callback(lambda watch: None if watch.cancelled() else call())

    async def stop(self, by: StoppedBy = "model") -> None:
        """End the whole command; does nothing if it has ended."""
        if not self.ended:
            self.stopped_by = by
            await self.kept.stop(self._clock)
            await asyncio.wait({self._watch}, timeout=1.0)

    async def read(self, *, spill: Path, limits: Guard) -> JobOutput:
        """Return the output since the last read. If it is long, all of it is written to `spill`."""
        ended, lost = self.ended, self._lost
        self.end_read = ended
        if self.terminal is not None:
            text = f"{(await self.terminal.refresh()).text}\n"
            data = text.encode()
            return JobOutput(text, RawOutput(len(data), text.count("\n"), False, "", data))
        start, end = self._read_up_to, self._written
        size = end - start if not lost else self.bytes - self._accounted
        look = partial(_read_span, self.path, start, end, spill=spill, limits=limits, whole=ended)
        seen = await asyncio.to_thread(look)
        self._read_up_to, self._accounted = end, self._accounted + size
        if not ended:
            await asyncio.to_thread(self.kept.note, read=end)
        terminal = TerminalText()
        text = terminal.feed(self._cleaner.feed(seen.head)).final
        # Of a long output, the middle is left out; an escape sequence across the gap must not join.
        if seen.tail:
            text += terminal.close().final
            text += f"\n\n[… the middle of {size} bytes isn't shown here …]\n\n"
            self._cleaner = Cleaner()
            text += terminal.feed(self._cleaner.feed(seen.tail)).final
        if ended:
            text += terminal.feed(self._cleaner.feed(b"", final=True)).final
        text += terminal.close().final
        part = bool(seen.tail) or size > end - start
        data = seen.head if seen.full is None and not part else None
        raw = RawOutput(size, seen.lines, part, seen.lost or lost, data, terminal.dropped)
        return JobOutput(text, raw, seen.full)

    def tail(self, *, lines: int, chars: int) -> str:
        """Return the last lines that it printed, cleaned; of a terminal, those of its last screen.
        Blocks."""
        if self.terminal is not None:
            return "\n".join(self.terminal.screen.text.split("\n")[-lines:])[-chars:]
        end = self._written
        start = max(0, end - _TAIL_BYTES)
        with suppress(OSError), open_private(self.path) as file:
            file.seek(start)
            terminal = TerminalText()
            text = terminal.feed(Cleaner().feed(file.read(end - start), final=True)).final
            text += terminal.close().final
            text = text.partition("\n")[2] if start and "\n" in text else text
            return "\n".join(text.rstrip().split("\n")[-lines:])[-chars:]
        return ""

    @property
    def output_note(self) -> str:
        """The place of the whole output, in words; "" while there is none."""
        if not self._written:
            return ""
        note = f"; no more is kept: {self._lost}" if self._lost else ""
        what = "all output" if self.terminal is None else "recording (asciicast)"
        return f"{what}: {self.path}{note}"

    def settle(self) -> None:
        """Remove what a later run would need: its end is recorded. Blocks."""
        self.kept.discard()
        if not self._written:
            self.path.unlink(missing_ok=True)

    async def _until_end(self) -> None:
        await self.kept.wait()
        self._took = self._clock.monotonic() - self._started
        if self.terminal is not None:
            await self.terminal.finish()
        if self.path == self.kept.output:
            with suppress(OSError, StorageError):
                self.path = await asyncio.to_thread(private_link, self.path, self._place)


class JobWatcher(Protocol):
    """Hears of each job."""

    def began(self, job: Job) -> None: ...
    def ended(self, job: Job) -> None: ...


class Jobs:
    """All background commands of one program. `close` leaves none running."""

    def __init__(
        self,
        clock: Clock | None = None,
        starter: Starter | None = None,
        session: Path | None = None,
    ) -> None:
        """`starter` starts commands that nothing confines; `session` is the file that they belong
        to."""
        self.watcher: JobWatcher | None = None
        self.leaving = False
        """True if running commands are left to the next run of the program, see `leave`."""
        self.first_number = 1
        """Number of the next job, if the session has had some before."""
        self.ended_before: Mapping[str, EndedJob] = {}
        """Jobs whose end an earlier run recorded, but not the result of their call: by their
        calls."""
        self.session = str(session.absolute()) if session else ""
        """Noted with each command, so that its owner is known once the program is gone."""
        self._own = None if starter else PlainStarter()
        self.starter: Starter = starter or self._own or PlainStarter()
        self._clock = clock or SystemClock()
        self._jobs: dict[str, Job] = {}
        self._in_front: list[asyncio.Event] = []
        self._coming: list[asyncio.Event] = []

    async def start(
        self,
        line: str,
        *,
        cwd: Path,
        path: Path,
        folder: Path | None = None,
        limits: Guard | None = None,
        env: Mapping[str, str] | None = None,
        starter: Starter | None = None,
        call_id: str = "",
        elsewhere: bool = True,
        terminal: TerminalSize | None = None,
        walls: str = "",
    ) -> Job:
        """Run `line` in the background, kept in `folder`, its output in a private file at
        `path`; in a terminal of that size if one is given. `walls` is the level of the sandbox
        around it, "" for none."""
        limits, job_id = limits or Guard(), self._next_id()
        call = {"call_id": call_id, "job": job_id, "session": self.session}
        if terminal is not None:
            call |= {"terminal": (terminal.rows, terminal.cols), "walls": walls}
        command = await start_command(
            line,
            cwd=cwd,
            folder=folder or path.with_suffix(".kept"),
            call={**call, "at": self._clock.now().isoformat()},
            limits=limits,
            env=env,
            starter=starter or self.starter,
            # Outside of a session nothing could find it again, so it ends with the program.
            timeout=None if self.session else 0.0,
            elsewhere=elsewhere,
            terminal=terminal,
        )
        return await self.adopt(command, path=path, limits=limits, origin=Origin(call_id))

    @contextmanager
    def coming(self) -> Generator[None]:
        """Hold while a command is looked at that is to run in the foreground: one that is shown can
        be moved, although hooks or a question come before its start."""
        wanted = asyncio.Event()
        self._coming.append(wanted)
        before = _WISH.set(wanted)
        try:
            yield
        finally:
            _WISH.reset(before)
            self._coming.remove(wanted)

    @contextmanager
    def in_front(self) -> Generator[asyncio.Event]:
        """Yield an event while a command runs in the foreground: it is set once the command is to
        be moved, or left."""
        wanted = asyncio.Event()
        wish = _WISH.get()
        if self.leaving or (wish is not None and wish.is_set()):
            wanted.set()
        self._in_front.append(wanted)
        try:
            yield wanted
        finally:
            self._in_front.remove(wanted)

    def move(self) -> int:
        """Ask the commands in the foreground to move here. Returns how many there are."""
        asked = self._in_front or self._coming
        for wanted in asked:
            wanted.set()
        return len(asked)

    def leave(self) -> None:
        """Let everything that runs continue without this program: a later run takes it over."""
        self.leaving = True
        self.move()

    def stay(self) -> None:
        """Undo `leave`: nothing continues without this program."""
        self.leaving = False

    async def adopt(
        self,
        command: SupervisedCommand,
        *,
        path: Path,
        limits: Guard | None = None,
        origin: Origin,
        read: int = 0,
        job_id: str = "",
    ) -> Job:
        """Add a command that runs already, or was left by an earlier run. Its output gets the name
        `path` too, or the first free one next to it, if that is on the same disk. If cancelled, it
        is added all the same: otherwise the command would belong to nobody."""
        job_id = job_id or self._next_id()
        about = {"job": job_id, "session": self.session}
        naming = asyncio.ensure_future(asyncio.to_thread(_named, command, path, about, origin))
        try:
            await asyncio.shield(naming)
        finally:
            # Even if cancelled, the job is made once its output has its name.
            if not naming.done():
                await asyncio.wait({naming})
            job = Job(
                job_id,
                command,
                naming.result(),
                place=path,
                clock=self._clock,
                limits=limits or Guard(),
                origin=origin,
                read=read,
            )
            self._jobs[job_id] = job
            if (watcher := self.watcher) is not None:
                watcher.began(job)
                job.at_end(lambda: watcher.ended(job))
        return job

    def _next_id(self) -> str:
        taken = [int(number) for name in self._jobs if (number := name[4:]).isdigit()]
        return f"job-{max([self.first_number - 1, *taken]) + 1}"

    def get(self, job_id: str) -> Job:
        """Return a job that the model knows. Raises ToolError that names those there are."""
        known_ones = {job.id: job for job in self.known}
        if job_id in known_ones:
            return known_ones[job_id]
        known = ", ".join(known_ones)
        raise ToolError(
            f"No background command {job_id!r}.",
            hint=f"Known: {known}." if known else "None was started in this session.",
        )

    def of_call(self, call_id: str) -> Job | None:
        """Return the job that a call began, or that it was moved to."""
        return next((job for job in self._jobs.values() if job.origin.call_id == call_id), None)

    def list(self) -> tuple[Job, ...]:
        """Return every job of this session, oldest first."""
        return tuple(self._jobs.values())

    @property
    def known(self) -> tuple[Job, ...]:
        """The jobs that the model knows."""
        return tuple(job for job in self._jobs.values() if not job.origin.hidden)

    async def close(self) -> None:
        """Stop all jobs (SIGTERM, then SIGKILL), at the same time; after `leave` they keep running.
        If cancelled, it kills at once."""
        try:
            if not self.leaving:
                await asyncio.gather(*(job.stop("program") for job in self.list()))
        finally:
            for job in self.list():
                if not job.ended and not self.leaving:
                    job.kept.kill()
                if job.origin.hidden and not self.leaving:
                    with suppress(OSError):  # kept no longer than it can be viewed
                        job.path.unlink()
                        job.path.parent.rmdir()
                if self.leaving:
                    job.kept.close()
                if job.terminal is not None:
                    job.terminal.close()
            if self._own is not None:
                await asyncio.to_thread(self._own.close)


def _terminal_of(command: SupervisedCommand, origin: Origin) -> TerminalLink | None:
    size = command.call.get("terminal")
    if not size:
        return None
    from tui.tools.terminal_link import TerminalLink  # noqa: PLC0415 - most commands have none

    return TerminalLink(command.folder, (size[0], size[1]), taken_over=origin.taken_over)


def _named(
    command: SupervisedCommand, path: Path, about: Mapping[str, str], origin: Origin
) -> Path:
    """Note the owner of a command, and give its output its lasting name. Blocks."""
    of_origin = {"call_id": origin.call_id, "moved_by": origin.moved_by, "hidden": origin.hidden}
    command.note(**about, **of_origin)
    if about["session"]:  # otherwise nothing could find it later, and it ends with this program
        command.without_limit()
    if known := string_of(command.call.get("path")):
        return Path(known)
    with suppress(OSError, StorageError):
        if command.output.stat().st_dev == _disk_of(path):
            named = private_link(command.output, path)
            command.note(path=str(named))
            return named
    return command.output


def _disk_of(path: Path) -> int:
    """Return the disk of a file whose folder may not exist yet."""
    return next(one for one in path.parents if one.exists()).stat().st_dev


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
    """Read the bytes of a file from `start` to `end`, in bounded memory; a long span is copied to
    `spill`."""
    if start == end:
        return _Span()
    half = limits.memory_chars // 2
    lines, last = 0, b""
    with open_private(path) as file:
        file.seek(start)
        short = end - start <= 2 * half
        head = file.read(end - start if short else half)
        file.seek(start)
        remaining = end - start
        while remaining and (chunk := file.read(min(remaining, _CHUNK))):
            remaining -= len(chunk)
            lines, last = lines + chunk.count(b"\n"), chunk[-1:]
        tail = b""
        if not short:
            file.seek(end - half)
            tail = file.read(half)
            cut = next((n for n in range(4) if tail[n : n + 1] < b"\x80" or tail[n] >= 0xC0), 0)
            tail = tail[cut:]  # not the rest of a character
    lines += last != b"\n"
    if end - start <= min(SPILL_AFTER, 2 * half):
        return _Span(head, tail, lines)
    try:
        full = keep_output(path, spill, start=start, end=None if whole and not start else end)
    except (OSError, StorageError) as error:
        return _Span(head, tail, lines, lost=str(error))
    return _Span(head, tail, lines, full)
