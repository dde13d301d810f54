"""run_command: run a shell command, with a time limit, and end its whole process group."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar

from tui.core.errors import ToolError
from tui.core.messages import ToolOutput, text_block
from tui.tools.base import CallPreview, Effect, Params, Tool, ToolContext, about
from tui.tools.jobs import Job, Origin
from tui.tools.limits.receipt import Keep
from tui.tools.output_capture import Capture
from tui.tools.process import Process, outcome

_TICK_S = 0.1
_LIVE_CHARS = 32_000
"""At most this much is streamed per tick; of a flood, the newest."""


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
        """Exit code 0 is a success, anything else an error. If cancelled, returns only after the
        process group has ended. The person may move it to the background meanwhile."""
        folder = await asyncio.to_thread(self._folder, params, ctx)
        env = ctx.environment
        if params.background:
            job = await ctx.jobs.start(
                params.command,
                cwd=folder,
                path=_job_path(ctx),
                limits=ctx.guard,
                env=env,
                starter=ctx.starter,
                call_id=ctx.call_id,
            )
            ctx.started(job.pid)
            text = (
                f"Started in the background as {job.id} (process {job.pid}). "
                f'Use command_status with job="{job.id}" to read its output, wait or stop it.'
            )
            return ToolOutput(
                [text_block(text)], summary=job.id, details={"job": job.id, "pid": job.pid}
            )
        capture = Capture(ctx.spill_path, ctx.guard)
        live = _Live(ctx.emit)
        started = ctx.clock.monotonic()
        process = await Process.start(
            params.command,
            cwd=folder,
            sink=lambda data: live.add(capture.feed(data)),
            env=env,
            starter=ctx.starter,
        )
        job: Job | None = None
        ended = _Ended()
        try:
            ctx.started(process.pid)
            try:
                with ctx.jobs.in_front() as wanted:
                    ended = await _until_end(process, params.timeout, ctx, live, wanted)
                    if ended.moved:
                        job = await _moved(params.command, process, capture, ctx, started)
            finally:
                if not ended.moved:
                    process.close()
                live.add(capture.close())
                live.flush()
        except asyncio.CancelledError:
            ctx.leave(ToolOutput([text_block(capture.text)], full=capture.full, raw=capture.raw))
            raise
        seconds = ctx.clock.monotonic() - started
        if job is not None:
            return _result_of_moved(capture, job, seconds)
        return _result(capture, ended, process.returncode, seconds, params.timeout)

    def _folder(self, params: RunCommandParams, ctx: ToolContext) -> Path:
        folder = ctx.workspace.resolve(params.cwd) if params.cwd else ctx.workspace.root
        if not folder.is_dir():
            raise ToolError(f"{params.cwd} isn't a folder.", hint="Use list_dir to find it.")
        return folder


@dataclass(frozen=True, slots=True)
class _Ended:
    """How a command came to its end."""

    timed_out: bool = False
    left_running: bool = False
    moved: bool = False


@dataclass(slots=True)
class _Live:
    """Output on its way to the person: several times a second, never a flood.

    `add` is for the thread that reads, `flush` for the event loop.
    """

    emit: Callable[[str], None]
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _pending: list[str] = field(default_factory=list[str])
    _chars: int = 0
    _skipped: bool = False

    def add(self, text: str) -> None:
        with self._lock:
            if text:
                self._pending.append(text)
                self._chars += len(text)
            while len(self._pending) > 1 and self._chars - len(self._pending[0]) >= _LIVE_CHARS:
                self._chars -= len(self._pending.pop(0))
                self._skipped = True

    def flush(self) -> None:
        with self._lock:
            text, skipped = "".join(self._pending), self._skipped
            self._pending, self._chars, self._skipped = [], 0, False
        if skipped or len(text) > 2 * _LIVE_CHARS:
            newest = text[-_LIVE_CHARS:]
            newest = newest.partition("\n")[2] or newest  # from a whole line on
            text = f"\n[… output too fast to show …]\n{newest}"
        if text:
            self.emit(text)


async def _until_end(
    process: Process, timeout: float, ctx: ToolContext, live: _Live, wanted: asyncio.Event
) -> _Ended:
    """Wait for the shell, then for its output; stop what runs too long or is still running. Once it
    is `wanted` in the background, it runs on."""
    deadline = ctx.clock.monotonic() + timeout
    timed_out = left_running = False
    try:
        while not timed_out and not await process.wait(_TICK_S):
            live.flush()
            if wanted.is_set():
                return _Ended(moved=True)
            timed_out = ctx.clock.monotonic() >= deadline
        if not timed_out:
            drained = await process.drain()
            left_running = not drained or await asyncio.to_thread(process.group_alive)
            left_running = left_running or process.outlived
        if timed_out or left_running:
            await process.end(ctx.clock)
            await process.drain()
    except asyncio.CancelledError:
        await process.end(ctx.clock)
        await process.drain()
        raise
    return _Ended(timed_out, left_running)


def _job_path(ctx: ToolContext) -> Path:
    """Where all output of a call goes that runs in the background."""
    return ctx.spill_path.with_name(f"job-{ctx.spill_path.name}")


async def _moved(
    command: str, process: Process, capture: Capture, ctx: ToolContext, started: float
) -> Job:
    """The command that runs in front, as a background command."""
    origin = Origin(ctx.call_id, "person", seconds=ctx.clock.monotonic() - started)
    return await ctx.jobs.adopt(
        command, process, capture.copy_to, path=_job_path(ctx), limits=ctx.guard, origin=origin
    )


def _result_of_moved(capture: Capture, job: Job, seconds: float) -> ToolOutput:
    """What the model gets at once of a command that the person moved."""
    body = capture.text or "(no output yet)\n"
    text = (
        f"{body}{'' if body.endswith(chr(10)) else chr(10)}"
        f"[moved to the background by the user, still running as {job.id} (process {job.pid}) · "
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
    capture: Capture, ended: _Ended, returncode: int | None, seconds: float, timeout: float
) -> ToolOutput:
    code, words = outcome(returncode) if returncode is not None else (None, "did not end")
    lines: list[str] = []
    if ended.left_running:
        lines.append(
            "[processes that it left running were stopped; start such a command with "
            "background=true]"
        )
    if ended.timed_out:
        words = f"timed out after {timeout:g} s"
        lines.append(
            "[stopped because it took too long; give a larger timeout (up to 3600), or run "
            "it with background=true and check on it with command_status]"
        )
    lines.append(f"[{words} · {seconds:.1f} s]")
    body = capture.text or "(no output)\n"
    text = body + ("" if body.endswith("\n") else "\n") + "\n".join(lines)
    short = "timed out" if ended.timed_out else words.replace("exit code", "exit")
    return ToolOutput(
        [text_block(text)],
        is_error=ended.timed_out or code != 0,
        summary=short,
        details={
            "exit_code": code,
            "seconds": round(seconds, 3),
            "bytes": capture.bytes,
            "truncated": capture.truncated,
            "timed_out": ended.timed_out,
            "job": None,
        },
        full=capture.full,
        raw=capture.raw,
    )
