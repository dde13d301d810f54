"""The files of the workspace for `@`: listed by ripgrep, so that ignore files count."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from tui.core.clock import Clock
from tui.core.redaction import child_environment
from tui.tools.search import exclusions, ripgrep

FILES_MAX: Final = 200_000
LIST_S: Final = 10.0
"""Seconds that a listing may take; what was found by then is what there is."""
FRESH_S: Final = 15.0
"""Seconds for which a listing is not made again."""
_CHUNK: Final = 1 << 18


class WorkspaceFiles:
    """Paths relative to `root`, folders with a final slash, made anew when they are old."""

    def __init__(self, root: Path, clock: Clock) -> None:
        self._root = root
        self._clock = clock
        self._made: float | None = None
        self._paths: Sequence[str] = ()
        self._making: asyncio.Task[None] | None = None

    async def paths(self) -> Sequence[str]:
        """All paths. The first call waits for the listing, later ones get the last one."""
        now = self._clock.monotonic()
        old = self._made is None or now - self._made > FRESH_S
        if old and (self._making is None or self._making.done()):
            self._making = asyncio.create_task(self._list(), name="listing files")
        if self._made is None and self._making is not None:
            await asyncio.shield(self._making)
        return self._paths

    async def _list(self) -> None:
        program = ripgrep()
        found = await _ripgrep(program, self._root) if program else []
        self._paths = await asyncio.to_thread(with_folders, found)
        self._made = self._clock.monotonic()


def with_folders(files: Sequence[str]) -> list[str]:
    """The files and every folder that holds one, sorted by depth, then by name."""
    folders = {f"{parent}/" for file in files for parent in _parents(file)}
    return sorted((*files, *folders), key=lambda path: (path.rstrip("/").count("/"), path))


def _parents(file: str) -> list[str]:
    parts = file.split("/")[:-1]
    return ["/".join(parts[:n]) for n in range(1, len(parts) + 1)]


async def _ripgrep(program: Path, root: Path) -> list[str]:
    command = (str(program), "--no-config", "--no-messages", "--files", "--hidden", "--null")
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            *exclusions(),
            cwd=root,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=DEVNULL,
            env=child_environment(),
        )
    except OSError:
        return []
    assert process.stdout is not None
    heard, count = bytearray(), 0
    try:
        async with asyncio.timeout(LIST_S):
            while count < FILES_MAX and (chunk := await process.stdout.read(_CHUNK)):
                heard += chunk
                count += chunk.count(0)
    except TimeoutError:
        pass
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    names = heard.rpartition(b"\0")[0].split(b"\0") if heard else []
    return [name.decode("utf-8", "replace") for name in names[:FILES_MAX]]
