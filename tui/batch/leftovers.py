"""Commands that a killed run left running: they end before the next task begins.

Otherwise what they write late would be committed as another task's work.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

from tui.agent.interrupted_work import Orphan, interrupted_work
from tui.agent.supervised_commands import place_of
from tui.core.clock import Clock
from tui.core.errors import SessionError, UsageError
from tui.core.paths import Folders
from tui.keeper.command import command_folders, lives, note
from tui.keeper.folder import CALL, KILL, send
from tui.session import catalog
from tui.session.reader import read
from tui.tools.process import end_group

_PATIENCE_S = 5.0
_POLL_S = 0.02


async def end_commands(
    session_id: str, folders: Folders, target: Path, clock: Clock
) -> AsyncIterator[str]:
    """End the commands that a session left running; yields each as it was typed.

    Raises UsageError where one cannot be ended: no task may begin beside it.
    """
    for folder in await asyncio.to_thread(command_folders, place_of(folders, session_id or "none")):
        call = await asyncio.to_thread(note, folder, CALL)
        if await asyncio.to_thread(lives, folder):
            command = str(call.get("command"))
            send(folder, KILL)
            until = clock.monotonic() + _PATIENCE_S
            while await asyncio.to_thread(lives, folder):
                if clock.monotonic() > until:
                    raise UsageError(f"Can't stop a command of the last run: {command}.")
                await clock.sleep(_POLL_S)
            yield command
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    for orphan in await asyncio.to_thread(_orphans, session_id, folders, target):
        if not await end_group(orphan.pid, orphan.born, clock):
            raise UsageError(
                f"Can't stop a command of the last run: {orphan.command}.",
                hint=f"Stop process {orphan.pid} yourself, then run again.",
            )
        yield orphan.command


def _orphans(session_id: str, folders: Folders, target: Path) -> tuple[Orphan, ...]:
    try:
        path = catalog.resolve(session_id, folders)
        loaded = read(path)
    except SessionError:
        return ()  # what is not known cannot be ended
    return interrupted_work(loaded.records, target, path).orphans
