"""Taking a session up again: what is told of what was left open, and the copies that are made."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from pathlib import Path

from tui.agent.leftovers import Leftovers
from tui.clock import Clock
from tui.context.interrupted import Interrupted
from tui.live.services import AppServices, Session, SessionChoice
from tui.screens.shelf import Shelf
from tui.session import copies
from tui.session.reader import read

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


def forked_file(path: Path, services: AppServices) -> Path:
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
