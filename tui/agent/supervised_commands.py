"""Commands that an earlier run of a session left under their keepers: where they are, which are
taken over, and when nothing of them is needed any more.

Each has one owner. A background command is taken over as soon as the session is opened: it is a
job then, and gives its call a result that says so. Any other is taken over when its call gets its
result (`Tool.resume`). How the recovery of a call is decided: `tui.context.interrupted_calls`.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from secrets import token_hex
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any

from tui.context.interrupted_calls import Interrupted, with_command
from tui.core.dataclass import dataclass, field
from tui.core.facts import Notice
from tui.core.facts.work import END_UNKNOWN
from tui.core.files import safe_name
from tui.core.messages import object_of, string_of
from tui.core.paths import Folders
from tui.keeper import folder as names
from tui.keeper.command import (
    Kept,
    SupervisedCommand,
    command_folders,
    forbid_start,
    lives,
    note,
    remove,
    state_of,
)
from tui.session.records import JOB_ENDED, Record
from tui.tools.jobs import EndedJob, Origin

if TYPE_CHECKING:
    from tui.agent.agent_context import AgentContext
    from tui.core.output_store import OutputStore

log = logging.getLogger(__name__)

_KEPT_S = 30 * 24 * 3600.0


def place_of(folders: Folders, session_id: str) -> Path:
    """Return the folder of a session's commands."""
    return folders.running / safe_name(session_id)


def with_command_states(
    calls: Sequence[Interrupted],
    place: Path | None,
    jobs: Mapping[str, Kept],
) -> tuple[Interrupted, ...]:
    """The calls, each with what is kept of its command: `jobs` are background commands of which
    more is known than their folders say, by their calls. Blocks."""

    def command_state(call: Interrupted) -> Kept:
        if (known := jobs.get(call.call_id)) is not None:
            return known
        return state_of(place / safe_name(call.call_id)) if place is not None else ""

    return tuple(with_command(call, command_state(call)) for call in calls)


def discard(folder: Path) -> None:
    """Nothing of a command is needed any more, unless it is a job: all is recorded. Blocks."""
    if forbid_start(folder) or (folder.is_dir() and not note(folder, names.CALL).get("job")):
        names.send(folder, names.KILL)  # it was left to a later run, and its call was stopped then
        remove(folder)


def sweep(place: Path, now: float) -> None:
    """Remove what is left of commands that ended long ago and that no session took over. Blocks."""
    with suppress(OSError):
        for session in [one for one in place.iterdir() if one.is_dir()]:
            for folder in session.iterdir():
                if now - folder.stat().st_mtime > _KEPT_S and not lives(folder):
                    shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):
                session.rmdir()


async def sweep_outputs(ctx: AgentContext, stop: threading.Event) -> None:
    """Remove full outputs that no session names and that have had their time, and what is left of
    commands that nobody took over."""
    if ctx.toolbox.kept is not None:
        await asyncio.to_thread(sweep, ctx.toolbox.kept.parent, ctx.clock.now().timestamp())
    if ctx.toolbox.outputs is not None:
        gone = await asyncio.to_thread(_swept, ctx.toolbox.outputs, ctx.clock.now(), stop)
        if gone:
            log.info("removed %d kept outputs that no session names", gone)


def _swept(outputs: OutputStore, now: datetime, stop: threading.Event) -> int:
    gone = outputs.sweep(now, stop)
    for unpacked in outputs.unpacked():
        gone += unpacked.sweep(now, stop)
        unpacked.close()
    return gone


@dataclass(slots=True)
class SupervisedCommands:
    """The commands of one agent's session that outlive the program."""

    ctx: AgentContext
    _own: Path = field(default_factory=lambda: Path(gettempdir()) / f"holdfast-{token_hex(8)}")
    """In the place of one that a later run finds, where there will be none. Not made by asking."""

    def folder(self, call_id: str) -> Path:
        """Return the folder of a call's command."""
        return (self.ctx.toolbox.kept or self._own) / safe_name(call_id)

    async def seconds(self, call_id: str) -> float:
        """Return for how long the command of a call has run under an earlier run of the program; 0
        where there is none."""
        if not self.ctx.session.resumed:
            return 0.0
        began = (await asyncio.to_thread(note, self.folder(call_id), names.CALL)).get("at")
        with suppress(ValueError, TypeError):
            start = datetime.fromisoformat(string_of(began))
            return max(0.0, (self.ctx.clock.now() - start).total_seconds())
        return 0.0

    def exists(self, call_id: str) -> bool:
        """True if a call of this id has a command already, which another branch may have."""
        return self.ctx.toolbox.kept is not None and self.folder(call_id).exists()

    def jobs(self) -> dict[str, Kept]:
        """Return the states of the background commands, by their calls: the folder of one that has
        ended may be gone already."""
        jobs = self.ctx.toolbox.jobs
        states = states_of(jobs.ended_before)
        for job in jobs.list():
            end = job.kept.end
            known: Kept = "running" if end is None else "lost" if end.lost else "finished"
            states[job.origin.call_id] = known
        return states

    async def state(self, call_id: str) -> Kept:
        """Return the state of a call's command. One that was not started never is: the call may
        start it."""
        if call_id in self.jobs():
            return self.jobs()[call_id]
        folder = self.folder(call_id)
        known_state = await asyncio.to_thread(state_of, folder)
        if known_state != "unstarted":
            return known_state
        if not await asyncio.to_thread(forbid_start, folder):
            return await asyncio.to_thread(state_of, folder)
        await self.forget(call_id)
        return ""

    async def forget(self, call_id: str) -> None:
        """Let a call have another command: how the first ended is known, or never will be."""
        await asyncio.to_thread(remove, self.folder(call_id))

    async def recorded(self, call_id: str) -> None:
        """The result of a call is in the record."""
        folder = self.folder(call_id)
        if self.ctx.session.saved:
            await asyncio.to_thread(discard, folder)
        with suppress(OSError):
            folder.parent.rmdir()

    async def take_over_jobs(self) -> None:
        """Let the background commands that an earlier run left belong to this one. What is in the
        record already is removed."""
        jobs, records, place = self.ctx.toolbox.jobs, self.ctx.records, self.ctx.toolbox.kept
        jobs.first_number = 1 + await asyncio.to_thread(_last_number, records)
        jobs.ended_before = await asyncio.to_thread(ended_jobs, records)
        if place is None or self.ctx.session.read_only:
            return
        folders = await asyncio.to_thread(_folders_in, place)
        if not folders:
            return
        known = ends_in(records)
        confinement = self.ctx.toolbox.confinement
        for folder, call in folders:
            if confinement is not None:
                await asyncio.to_thread(confinement.traces.take_over, folder)
            call_id, job = string_of(call.get("call_id")), string_of(call.get("job"))
            if (call_id, job) in known:
                await asyncio.to_thread(remove, folder)
            elif not job or await asyncio.to_thread(state_of, folder) == "unstarted":
                continue  # until its call gets its result
            elif (command := SupervisedCommand.take_over(folder)) is not None:
                await self._take_over(command, call_id, job)
        for line in await confinement.traces.tidy() if confinement is not None else ():
            self.ctx.publish(Notice(line))

    async def _take_over(self, command: SupervisedCommand, call_id: str, job: str) -> None:
        ctx, call = self.ctx, command.call
        moved, read = call.get("moved_by"), call.get("read")
        origin = Origin(
            call_id,
            "person" if moved == "person" else "",
            bool(call.get("hidden")),
            command.seconds(ctx.clock.now()),
            taken_over=True,
        )
        await ctx.toolbox.jobs.adopt(
            command,
            path=ctx.workspace.tool_results / f"job-{safe_name(call_id)}.txt",
            limits=ctx.config.guard,
            origin=origin,
            read=read if isinstance(read, int) else 0,
            job_id=job,
        )


def _folders_in(place: Path) -> list[tuple[Path, dict[str, Any]]]:
    return [(folder, note(folder, names.CALL)) for folder in command_folders(place)]


def ended_jobs(records: Sequence[Record]) -> dict[str, EndedJob]:
    """The background commands whose end is recorded, and not the result of their call: by their
    calls."""
    ends = ends_in(records)
    ended: dict[str, EndedJob] = {}
    for record in records:
        call, job = (string_of(record.data.get(name)) for name in ("call_id", "job"))
        if record.type == JOB_ENDED and job and (call, "") not in ends:
            ended[call] = EndedJob(job, record.data.get("state") == END_UNKNOWN)
    return ended


def states_of(ended: Mapping[str, EndedJob]) -> dict[str, Kept]:
    """The state of each background command whose end is recorded, by its call."""
    return {call: "lost" if one.lost else "finished" for call, one in ended.items()}


def ends_in(records: Sequence[Record]) -> set[tuple[str, str]]:
    """The commands whose end is recorded: the call of each, and the job, "" for none."""
    ends: set[tuple[str, str]] = set()
    for record in records:
        if record.type == "tool_result":
            ends.add((string_of(record.data.get("call_id")), ""))
        elif record.type == JOB_ENDED:
            ends.add((string_of(record.data.get("call_id")), string_of(record.data.get("job"))))
    return ends


def _last_number(records: Sequence[Record]) -> int:
    """The highest number of a background command that a session has had."""
    most = 0
    for record in records:
        data: Mapping[str, Any] = record.data
        if record.type == "tool_result":
            data = object_of(data.get("details"))
        elif record.type != JOB_ENDED:
            continue
        number = string_of(data.get("job")).removeprefix("job-")
        if number.isdecimal() and len(number) < 10:
            most = max(most, int(number))
    return most
