"""Taking a session up again, whoever asks the person: what is found, what an answer leads to."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from tui.agent.events import StorageChanged
from tui.agent.interrupted_work import Leftovers, Orphan, new_findings
from tui.app.damage_report import beyond_interruption
from tui.app.ports import Agent, AppServices, Session, SessionChoice
from tui.app.session_repository import Shelf
from tui.context.interrupted_calls import Interrupted
from tui.core.clock import Clock
from tui.core.formatting import plural
from tui.session import copies
from tui.session.reader import read
from tui.session.records import Finding, Record, new_session_id
from tui.tools.process import end_group

RECHECK_S: Final = 2.0
"""How often it is looked whether everything is saved and the session still ours."""

MIXED_UP: Final = "Two programs that write one session would mix it up."

IN_USE: Final[Mapping[str, str]] = {
    "take_over": "Take it over: the other program writes no more",
    "read_only": "Open it read-only",
    "fork": "Fork it: go on with a copy",
    "back": "Back",
}
"""The ways on from a session that another program has: names of answers, what they say."""

_KNOWN = {
    "never_started": "never started",
    "finished_result_lost": "finished; its result was lost",
    "unknown": "started; whether it finished is not known",
}
_FILE = {
    "written": "the file holds what was to be written",
    "unchanged": "the file is as it was before",
    "changed": "the file has changed since",
    "unknown": "",
}


def shelf_of(services: AppServices) -> Shelf:
    """The sessions there are."""
    return Shelf(services.folders, services.workspace, services.clock, Path.home())


async def damage(agent: Agent) -> list[Finding]:
    """What is wrong with a session that was read: no mere interruption, and not told before."""
    seen = await asyncio.to_thread(agent.view)
    session = agent.session
    found = new_findings(session.records, (*session.findings, *seen.findings))
    return beyond_interruption(found)


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Another agent's session: what is wrong with it, and the records of its branch."""

    path: Path
    records: Sequence[Record]
    findings: Sequence[Finding]

    async def taken_over(self, services: AppServices) -> SessionChoice:
        """A copy of it that is ours. Raises SessionError, StorageError."""
        shelf = shelf_of(services)
        return SessionChoice(await asyncio.to_thread(shelf.take_over, self.path))


async def elsewhere(path: Path, services: AppServices) -> Elsewhere:
    """Read another agent's session. Raises SessionError."""
    from tui.session import importers  # noqa: PLC0415 - on demand

    loaded = await asyncio.to_thread(importers.load, path)
    found = await asyncio.to_thread(shelf_of(services).damage, loaded)
    return Elsewhere(path, loaded.branch, beyond_interruption(found))


def copy_of(path: Path, clock: Clock) -> tuple[Path, str]:
    """Where a repaired copy of a session goes, and its id."""
    id_ = new_session_id()
    return path.with_name(f"{clock.now():%Y%m%dT%H%M%SZ}-{id_}.jsonl"), id_


async def after_damage(
    answer: str | None, choice: SessionChoice, copy: tuple[Path, str], clock: Clock
) -> SessionChoice | None:
    """What an answer to the damage of `choice` leads to: continue, read_only, copy, or back. None
    for back. Raises SessionError, StorageError."""
    match answer:
        case "continue":
            return choice
        case "read_only":
            return replace(choice, read_only=True)
        case "copy" if choice.path is not None:
            await asyncio.to_thread(written_copy, choice.path, *copy, clock)
            return SessionChoice(copy[0])
        case _:
            return None


async def after_in_use(
    answer: str | None, choice: SessionChoice, services: AppServices
) -> SessionChoice | None:
    """What an answer of `IN_USE` leads to; None for back. Raises SessionError, StorageError."""
    match answer:
        case "take_over":
            return replace(choice, take_over=True)
        case "read_only":
            return replace(choice, read_only=True)
        case "fork" if choice.path is not None:
            return SessionChoice(await asyncio.to_thread(_forked_file, choice.path, services))
        case _:
            return None


@dataclass(slots=True)
class Watch:
    """Tries again what could not be saved, and notices a session that was taken away."""

    _told: str = ""
    _lost: str = ""

    async def look(self, session: Session) -> tuple[StorageChanged | None, bool]:
        """What has changed with the saving since the last look, and whether the session was taken
        away, told once."""
        before, self._told = self._told, await session.recheck()
        changed = StorageChanged(not self._told, self._told) if self._told != before else None
        lost = session.read_only and bool(session.lost) and session.id != self._lost
        self._lost = session.id if lost else self._lost
        return changed, lost

    def opened(self) -> None:
        """A session was opened: it can be taken away, even if it was before."""
        self._lost = ""


async def stopped(orphans: Sequence[Orphan], clock: Clock) -> tuple[bool, str]:
    """Stop commands that still run. Whether all could be, and that in words."""
    ended = [await end_group(each.pid, each.born, clock) for each in orphans]
    if all(ended):
        return True, f"{plural(len(ended), 'command')} stopped."
    return False, "Not every command could be stopped."


def _forked_file(path: Path, services: AppServices) -> Path:
    """A copy of a session's file, as it stands on the disk. Blocks; raises SessionError."""
    return copies.fork(
        read(path), folders=services.folders, clock=services.clock, cwd=services.workspace
    )


async def forked(session: Session, services: AppServices) -> SessionChoice:
    """A copy of a session that is open, as it stands in memory. Raises StorageError."""
    make = partial(
        copies.fork_records,
        folders=services.folders,
        clock=services.clock,
        cwd=services.workspace,
    )
    return SessionChoice(await asyncio.to_thread(make, session.header, list(session.records)))


def written_copy(path: Path, copy: Path, id_: str, clock: Clock) -> None:
    """Write a repaired copy of a session, with an id, beside its original bytes. Blocks."""
    from tui.context.history import history  # noqa: PLC0415 - on demand
    from tui.context.repair import repair  # noqa: PLC0415 - on demand

    loaded = read(path)
    messages, _ = repair(history(loaded.branch).messages, tail="open")
    header = copies.header_of(loaded, clock=clock)
    copies.write_repaired(loaded, replace(header, id=id_), messages, copy)


def told(left: Leftovers) -> str:
    """What the model is told of an interruption: for each call what is known, no more."""
    lines = ["The last run of this session was interrupted."]
    if left.calls:
        lines.append("What is known of the calls that have no result:")
        lines += [
            f"- {call.tool} {call.label}".rstrip() + f": {known(call)}." for call in left.calls
        ]
    if left.orphans:
        lines.append("Still running since then:")
        lines += [f"- process {each.pid}: {each.command}" for each in left.orphans]
    return "\n".join([*lines, "Look at what is uncertain first, then go on."])


def known(call: Interrupted) -> str:
    """What is known of an interrupted call, in words."""
    return "; ".join(filter(None, (_KNOWN[call.outcome], _FILE[call.file])))
