"""Commands that a killed run left running: they end before the next task begins.

Otherwise what they write late would be committed as another task's work.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

from tui.agent.interrupted_work import Orphan, interrupted_work
from tui.app import unattended_commands as unattended
from tui.core.clock import Clock
from tui.core.errors import SessionError, UsageError
from tui.core.paths import Folders
from tui.session import catalog
from tui.session.reader import read
from tui.tools.process import end_group


async def end_commands(
    session_id: str, folders: Folders, target: Path, clock: Clock
) -> AsyncIterator[str]:
    """End the commands that a session and its sub-agents left running, and forget them: the task
    begins again, with the files as they were. Yields each as it was typed.

    Raises UsageError where one cannot be ended: no task may begin beside it.
    """
    for command in await asyncio.to_thread(unattended.unattended_commands, folders):
        if command.id != session_id:
            continue
        if await unattended.end_commands([command], clock):
            raise UsageError(f"Can't stop a command of the last run: {command.command}.")
        if command.state == "running":
            yield command.command
        await asyncio.to_thread(shutil.rmtree, command.folder, ignore_errors=True)
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
