"""Commands that an earlier run of a session left under their keepers: where they are, which are
taken over, and when nothing of them is needed any more.

A command of a call that has no result is taken over when the call is made again
(`Tool.resume`); a background command as soon as the session is opened.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from secrets import token_hex
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tui.agent.events import Notice
from tui.context.interrupted_calls import Interrupted
from tui.core.files import safe_name
from tui.core.messages import object_of, string_of
from tui.core.paths import Folders
from tui.keeper import folder as names
from tui.keeper.command import SupervisedCommand, command_folders, lives, note
from tui.session.records import JOB_ENDED, Record
from tui.tools.jobs import Origin

if TYPE_CHECKING:
    from tui.agent.agent_context import AgentContext

_KEPT_S = 30 * 24 * 3600.0
Kept: TypeAlias = Literal["", "running", "finished"]


def place_of(folders: Folders, session_id: str) -> Path:
    """Where the commands of a session are kept."""
    return folders.running / safe_name(session_id)


def state_of(folder: Path) -> Kept:
    """What is kept of a command; "" where its keeper was killed, or there was none. Blocks."""
    if not (folder / names.CALL).is_file():
        return ""
    if lives(folder):
        return "running"
    return "finished" if isinstance(note(folder, names.STATE).get("status"), int) else ""


def with_command_states(
    calls: Sequence[Interrupted], place: Path | None
) -> tuple[Interrupted, ...]:
    """The calls, each with what is kept of its command. Blocks."""
    if place is None or not place.is_dir():
        return tuple(calls)
    return tuple(replace(one, kept=state_of(place / safe_name(one.call_id))) for one in calls)


def discard(folder: Path) -> None:
    """Nothing of a command is needed any more, unless it is a job: all is recorded. Blocks."""
    if folder.is_dir() and not note(folder, names.CALL).get("job"):
        names.send(folder, names.KILL)  # it was left to a later run, and its call was stopped then
        shutil.rmtree(folder, ignore_errors=True)


def sweep(place: Path, now: float) -> None:
    """Remove what is left of commands that ended long ago and that no session took over. Blocks."""
    with suppress(OSError):
        for session in [one for one in place.iterdir() if one.is_dir()]:
            for folder in command_folders(session):
                if now - folder.stat().st_mtime > _KEPT_S and not lives(folder):
                    shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):
                session.rmdir()


@dataclass(slots=True)
class SupervisedCommands:
    """Those of one agent's session."""

    ctx: AgentContext
    _own: Path = field(default_factory=lambda: Path(gettempdir()) / f"holdfast-{token_hex(8)}")
    """In the place of one that a later run finds, where there will be none. Not made by asking."""

    def folder(self, call_id: str) -> Path:
        """Where the command of a call is kept."""
        return (self.ctx.kept or self._own) / safe_name(call_id)

    async def seconds(self, call_id: str) -> float:
        """How long the command of a call has run under an earlier run of the program; 0 where
        there is none."""
        if not self.ctx.session.resumed:
            return 0.0
        began = (await asyncio.to_thread(note, self.folder(call_id), names.CALL)).get("at")
        with suppress(ValueError, TypeError):
            start = datetime.fromisoformat(string_of(began))
            return max(0.0, (self.ctx.clock.now() - start).total_seconds())
        return 0.0

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
        jobs, records, place = self.ctx.jobs, self.ctx.records, self.ctx.kept
        jobs.first_number = 1 + await asyncio.to_thread(_last_number, records)
        if place is None or self.ctx.session.read_only:
            return
        found = await asyncio.to_thread(_folders_in, place)
        if not found:
            return
        known = ends_in(records)
        confinement = self.ctx.confinement
        for folder, call in found:
            if confinement is not None:
                await asyncio.to_thread(confinement.take_over, folder)
            call_id, job = string_of(call.get("call_id")), string_of(call.get("job"))
            if (call_id, job) in known:
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            elif job and (command := SupervisedCommand.take_over(folder)) is not None:
                await self._take_over(command, call_id, job)
        for line in await confinement.tidy() if confinement is not None else ():
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
        await ctx.jobs.adopt(
            command,
            path=ctx.workspace.tool_results / f"job-{safe_name(call_id)}.txt",
            limits=ctx.config.guard,
            origin=origin,
            read=read if isinstance(read, int) else 0,
            job_id=job,
        )


def _folders_in(place: Path) -> list[tuple[Path, dict[str, Any]]]:
    return [(folder, note(folder, names.CALL)) for folder in command_folders(place)]


def ends_in(records: Sequence[Record]) -> set[tuple[str, str]]:
    """The commands whose end is recorded: the call of each, and the job, "" for none."""
    found: set[tuple[str, str]] = set()
    for record in records:
        if record.type == "tool_result":
            found.add((string_of(record.data.get("call_id")), ""))
        elif record.type == JOB_ENDED:
            found.add((string_of(record.data.get("call_id")), string_of(record.data.get("job"))))
    return found


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
