"""run_command: run a shell command, with a time limit, and end its whole process group."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Annotated, ClassVar

from tui.core.cancellation import to_the_end
from tui.core.dataclass import dataclass, field
from tui.core.errors import ToolError
from tui.core.facts.work import END_UNKNOWN
from tui.core.messages import ToolOutput, text_block
from tui.keeper.command import CommandEnd, SupervisedCommand
from tui.tools.base import CallHost, CallPreview, Effect, Params, Tool, ToolContext, about
from tui.tools.jobs import Job, Origin
from tui.tools.limits.receipt import Keep
from tui.tools.output_capture import Capture
from tui.tools.process import outcome, start_command

_TICK_S = 0.1
_FLOOD_BYTES = 4 * 1024**2
"""Bytes that a command may be ahead of whoever reads. Of more, the newest half is read."""
_BYTES_OF_CHAR = 4
_LIVE_CHARS = 32_000
"""Maximum characters that are streamed per tick; of a flood, the newest."""


class RunCommandParams(Params, frozen=True, forbid_unknown_fields=True, kw_only=True):
    command: Annotated[str, about("The command line, for bash.", min_length=1)]
    timeout: Annotated[float, about("Seconds until it is stopped.", gt=0, le=3600)] = 120
    background: Annotated[bool, about("Return at once with a job id for command_status.")] = False
    cwd: Annotated[str, about("The folder to run it in; the workspace if left out.")] = ""


class RunCommand(Tool[RunCommandParams]):
    name: ClassVar[str] = "run_command"
    effect: ClassVar[Effect] = "run"
    keep: ClassVar[Keep] = "ends"
    params: ClassVar[type[Params]] = RunCommandParams

    def subject(self, params: RunCommandParams) -> str:
        return params.command

    def paths(self, params: RunCommandParams) -> tuple[str, ...]:
        return (params.cwd,) if params.cwd else ()

    async def preview(self, params: RunCommandParams, ctx: ToolContext) -> CallPreview:
        await asyncio.to_thread(self._folder, params, ctx)
        where = f"# in {params.cwd}\n" if params.cwd else ""
        return CallPreview("command", where + params.command)

    def label(self, params: RunCommandParams) -> str:
        first, *more = params.command.strip().splitlines() or [""]
        return first + (" …" if more else "") + (" &" if params.background else "")

    async def run(self, params: RunCommandParams, ctx: ToolContext) -> ToolOutput:
        """Run a command. Exit code 0 is a success, anything else an error. If cancelled, it
        returns only after the process group has ended. The person may move it to the background
        meanwhile."""
        folder = await asyncio.to_thread(self._folder, params, ctx)
        env = ctx.environment
        if params.background:
            job = await ctx.jobs.start(
                params.command,
                cwd=folder,
                path=_job_path(ctx),
                folder=ctx.kept,
                limits=ctx.guard,
                env=env,
                starter=ctx.starter,
                call_id=ctx.call_id,
                elsewhere=ctx.recorded,
            )
            ctx.host.started(job.pid)
            text = f"{_started(job)} {_use(job.id)}"
            return _job_result(text, job)
        call = {"call_id": ctx.call_id, "session": ctx.jobs.session}
        with ctx.jobs.in_front() as wanted:  # before the start, which may take a while
            command = await start_command(
                params.command,
                cwd=folder,
                folder=ctx.kept,
                call={**call, "at": ctx.clock.now().isoformat()},
                limits=ctx.guard,
                env=env,
                starter=ctx.starter or ctx.jobs.starter,
                timeout=params.timeout if ctx.jobs.session else 0.0,
                elsewhere=ctx.recorded,
            )
            ctx.host.started(command.pid)
            return await follow(command, ctx, params.timeout, wanted)

    async def resume(self, params: RunCommandParams, ctx: ToolContext) -> ToolOutput | None:
        """Take over the command of a call that an earlier run of the program left: a job is taken
        over already, so that only its name is missing."""
        if job := ctx.jobs.of_call(ctx.call_id):
            if job.kept.end is not None:
                await job.wait(1.0)
            return _result_of_job(job)
        if ended := ctx.jobs.ended_before.get(ctx.call_id):
            name = ended.name
            text = f"Started in the background as {name}. It has ended since, as you were told."
            return ToolOutput([text_block(text)], summary=name, details={"job": name})
        if params.background or (command := SupervisedCommand.take_over(ctx.kept)) is None:
            return None
        already = command.seconds(ctx.clock.now())
        with ctx.jobs.in_front() as wanted:
            return await follow(command, ctx, params.timeout, wanted, already=already)

    def _folder(self, params: RunCommandParams, ctx: ToolContext) -> Path:
        folder = ctx.workspace.resolve(params.cwd) if params.cwd else ctx.workspace.root
        if not folder.is_dir():
            raise ToolError(f"{params.cwd} isn't a folder.", hint="Use list_dir to find it.")
        return folder


class CommandDetachedError(Exception):
    """A command was left to the next run of the program; this is no failure."""


async def follow(
    command: SupervisedCommand,
    ctx: ToolContext,
    timeout: float,
    wanted: asyncio.Event,
    *,
    already: float = 0.0,
) -> ToolOutput:
    """Show the output of a command until it ends, and stop it if that takes too long. `already` is
    how long it has run; `wanted` is set when it is to be moved, or left. If cancelled, it returns
    only after all of the command has ended.

    Raises CommandDetachedError if the program leaves it.
    """
    capture, live = Capture(ctx.guard), _Live(ctx.host)
    flood = max(_FLOOD_BYTES, 2 * _BYTES_OF_CHAR * ctx.guard.memory_chars)
    reading = _Reading(command, capture, live, flood)
    started = ctx.clock.monotonic() - already
    timed_out = moved = False
    try:
        try:
            while not (timed_out or moved or await command.wait(_TICK_S)):
                await reading.catch_up()
                live.flush()
                timed_out = ctx.clock.monotonic() >= started + timeout
                moved = wanted.is_set() and command.end is None
            if moved and ctx.jobs.leaving:
                command.close()
                raise CommandDetachedError
            if timed_out:
                await command.stop(ctx.clock)
        except asyncio.CancelledError:
            await command.stop(ctx.clock)
            raise
        finally:
            if not (moved and ctx.jobs.leaving):
                await to_the_end(reading.finish(ctx.spill_path))
            live.flush()
    except asyncio.CancelledError:
        # The partial output is still recorded.
        ctx.host.leave(ToolOutput([text_block(capture.text)], full=capture.full, raw=capture.raw))
        command.close()
        raise
    seconds = ctx.clock.monotonic() - started
    if moved:
        return await _moved(command, capture, ctx, seconds)
    command.close()
    return _result(capture, command, seconds, timed_out=timed_out, timeout=timeout)


@dataclass(slots=True)
class _Reading:
    """Reads the output of a command as it grows, in a thread."""

    command: SupervisedCommand
    capture: Capture
    live: _Live
    flood: int

    async def catch_up(self) -> None:
        """Read what is new. Of a flood, most behind its beginning is skipped: nobody could read
        it."""
        await asyncio.to_thread(self._read)

    async def finish(self, place: Path) -> None:
        """Read to the end; a long output gets its lasting name."""
        await asyncio.to_thread(self._finish, place)

    def _read(self) -> None:
        while self.capture.begins and self._more():
            pass
        behind = self.command.size - self.command.read_up_to
        if behind > self.flood:
            self.command.read_up_to += behind - self.flood // 2
            self.capture.skip(behind - self.flood // 2)
        while self._more():
            pass

    def _more(self) -> bool:
        if data := self.command.read():
            self.live.add(self.capture.feed(data), self.capture.picture)
        return bool(data)

    def _finish(self, place: Path) -> None:
        self._read()
        command = self.command
        self.live.add(self.capture.close(command.end, command.output, place))


@dataclass(slots=True)
class _Live:
    """Output on its way to the person: several times a second, never a flood.

    `add` is for the thread that reads, `flush` for the event loop.
    """

    host: CallHost
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _pending: list[str] = field(default_factory=list[str])
    _chars: int = 0
    _skipped: bool = False
    _picture: str = ""
    _shown: str = ""

    def add(self, text: str, picture: str = "") -> None:
        with self._lock:
            self._picture = picture
            if text:
                self._pending.append(text)
                self._chars += len(text)
            while len(self._pending) > 1 and self._chars - len(self._pending[0]) >= _LIVE_CHARS:
                self._chars -= len(self._pending.pop(0))
                self._skipped = True

    def flush(self) -> None:
        with self._lock:
            text, skipped, picture = "".join(self._pending), self._skipped, self._picture
            self._pending, self._chars, self._skipped = [], 0, False
        if skipped or len(text) > 2 * _LIVE_CHARS:
            newest = text[-_LIVE_CHARS:]
            newest = newest.partition("\n")[2] or newest  # starts with a whole line
            text = f"\n[… output too fast to show …]\n{newest}"
        if text or picture != self._shown:
            self._shown = picture
            self.host.emit(text, picture)


def _job_path(ctx: ToolContext) -> Path:
    """Return the file for all output of a call that runs in the background."""
    return ctx.spill_path.with_name(f"job-{ctx.spill_path.name}")


def _use(job: str) -> str:
    return f'Use command_status with job="{job}" to read its output, wait or stop it.'


def _started(job: Job) -> str:
    if job.pid:
        return f"Started in the background as {job.id} ({job.process})."
    return f"The process that watches {job.id} was killed: the command may or may not have started."


def _job_result(text: str, job: Job) -> ToolOutput:
    details = {"job": job.id, "pid": job.pid}
    return ToolOutput([text_block(text)], summary=job.id, details=details)


def _result_of_job(job: Job) -> ToolOutput:
    """Return the result of a background command whose call an earlier run left open."""
    moved = "by the user, " if job.origin.moved_by else ""
    how = f"Moved to the background {moved}as" if moved else "Started in the background as"
    since = f"has ended since: {job.state()}" if job.ended else "it runs on"
    text = f"{how} {job.id} ({job.process}); Holdfast was restarted, and {since}. "
    return _job_result(text + _use(job.id), job)


async def _moved(
    command: SupervisedCommand, capture: Capture, ctx: ToolContext, seconds: float
) -> ToolOutput:
    """Turn the command in the foreground into a background command."""
    job = await ctx.jobs.adopt(
        command,
        path=_job_path(ctx),
        limits=ctx.guard,
        origin=Origin(ctx.call_id, "person", seconds=seconds),
        read=capture.bytes,
    )
    return _result_of_moved(capture, job, seconds)


def _result_of_moved(capture: Capture, job: Job, seconds: float) -> ToolOutput:
    """Return the immediate result of a command that the person moved."""
    body = capture.text or "(no output yet)\n"
    text = (
        f"{body}{'' if body.endswith(chr(10)) else chr(10)}"
        f"[moved to the background by the user, still running as {job.id} ({job.process}) · "
        f"{seconds:.1f} s; its end is said to you, command_status reads what is new]"
    )
    return ToolOutput(
        [text_block(text)],
        summary=f"moved to the background: {job.id}",
        details={
            "job": job.id,
            "pid": job.pid,
            "moved_by": "person",
            "exit_code": None,
            "seconds": round(seconds, 3),
            "bytes": capture.bytes,
            "truncated": capture.truncated,
            "timed_out": False,
        },
        full=capture.full,
        raw=capture.raw,
    )


def _result(
    capture: Capture, command: SupervisedCommand, seconds: float, *, timed_out: bool, timeout: float
) -> ToolOutput:
    end = command.end or CommandEnd(lost=True)
    code, words = (None, END_UNKNOWN) if end.lost else outcome(end.returncode)
    # Its keeper may have ended it while no program was there.
    timed_out = timed_out or end.timed_out
    lines: list[str] = []
    if end.lost:
        lines.append(
            "[the process that watched it was killed: nobody knows how it ended, or whether it "
            f"did; it may still run{f' as process {command.pid}' if command.pid else ''}]"
        )
    if end.rest and not timed_out:
        lines.append(
            "[processes that it left running were stopped; start such a command with "
            "background=true]"
        )
    if timed_out:
        words = f"timed out after {timeout:g} s"
        lines.append(
            "[stopped because it took too long; give a larger timeout (up to 3600), or run "
            "it with background=true and check on it with command_status]"
        )
    lines.append(f"[{words} · {seconds:.1f} s]")
    body = capture.text or "(no output)\n"
    text = body + ("" if body.endswith("\n") else "\n") + "\n".join(lines)
    short = "timed out" if timed_out else words.replace("exit code", "exit")
    return ToolOutput(
        [text_block(text)],
        is_error=timed_out or code != 0,
        summary=short,
        details={
            "exit_code": code,
            "seconds": round(seconds, 3),
            "bytes": capture.bytes,
            "truncated": capture.truncated,
            "timed_out": timed_out,
            "job": None,
        },
        full=capture.full,
        raw=capture.raw,
    )
