"""Says when background commands begin and end: by records, by events, and so to the model."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from tui.agent.agent_context import AgentContext
from tui.context.job_endings import TAIL_CHARS, TAIL_LINES, unreported
from tui.core.dataclass import dataclass, field
from tui.core.facts import Fact, JobFinished, JobMoved, JobStarted, ProcessBegan
from tui.core.messages import string_of
from tui.core.process_birth import born
from tui.keeper.command import SupervisedCommand
from tui.tools.jobs import Job, Origin

COMMAND_CHARS = 200
"""Characters of a command in its records and events."""


@dataclass(frozen=True, slots=True)
class OwnedJob:
    """A background command; `owner` is the sub-agent that it belongs to, "" for the session."""

    job: Job
    owner: str = ""


@dataclass(slots=True)
class BackgroundJobs:
    """Watches the background commands of one agent."""

    ctx: AgentContext
    _tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    def __post_init__(self) -> None:
        self.ctx.toolbox.jobs.watcher = self

    @property
    def unreported(self) -> bool:
        """True if a command has ended and the model does not know it."""
        return bool(unreported(self.ctx.records))

    async def adopt(self, command: SupervisedCommand, *, path: Path, origin: Origin) -> Job:
        """Keep a command of the person's own, which is recorded from now on: it may outlive the
        program."""
        birth = await asyncio.to_thread(born, command.pid)
        label = _short(string_of(command.call.get("command")))
        self.ctx.record(ProcessBegan(origin.call_id, command.pid, birth, label))
        limits = self.ctx.config.guard
        return await self.ctx.toolbox.jobs.adopt(command, path=path, limits=limits, origin=origin)

    async def settle(self) -> None:
        """Until all that has happened is recorded."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def began(self, job: Job) -> None:
        moved = job.origin.moved_by
        if moved and not job.origin.taken_over:
            self.ctx.record(JobMoved(job.origin.call_id, job.id, job.pid, moved))
        started = JobStarted(job.id, job.origin.call_id, _short(job.command), job.pid, moved)
        self._do(self._tell(started))

    def ended(self, job: Job) -> None:
        self._do(self._finish(job))

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="background command")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _finish(self, job: Job) -> None:
        """Record the end of a command, then show it."""
        ctx, there = self.ctx, job.bytes > 0
        text = await asyncio.to_thread(job.tail, lines=TAIL_LINES, chars=TAIL_CHARS)
        if there and ctx.toolbox.outputs is not None and not job.origin.hidden:
            await asyncio.to_thread(ctx.toolbox.outputs.note, job.path)
        finished = JobFinished(
            job.id,
            job.origin.call_id,
            _short(job.command),
            job.exit_code,
            job.state(),
            job.stopped_by,
            round(job.seconds, 3),
            str(job.path) if there else "",
            job.bytes,
            text,
            hidden=job.origin.hidden,
            end_read=job.end_read,
        )
        ctx.recorder.write(finished)
        await self._tell(finished)
        if ctx.session.saved:
            await asyncio.to_thread(job.settle)

    async def _tell(self, event: Fact) -> None:
        """Show it in the turn that runs, else at once."""
        await self.ctx.recorder.sync()
        self.ctx.events.tell(event)


def _short(command: str) -> str:
    return " ".join(command.split())[:COMMAND_CHARS]
