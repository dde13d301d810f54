"""One language server of a session: started with the first edit, asked after each, ended with the
session.

A file that was edited stays open in the server. Its problems before the first edit are found by
showing the server the old text first, so that only new ones are reported.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui.core.checkers import language_of
from tui.core.config import CheckerSettings
from tui.core.errors import HoldfastError, ToolError
from tui.tools.lsp.base import (
    CHECK_S,
    Checker,
    CheckerPlace,
    FileEdit,
    read_text,
    within,
)
from tui.tools.lsp.problems import Problem, new_problems, of_server

if TYPE_CHECKING:
    from tui.tools.lsp.client import Connection

log = logging.getLogger(__name__)

START_S: Final = 30.0
"""Seconds within which the first request must be answered."""
SILENT_MAX: Final = 3
"""Checks in a row without any answer, after which the server is given up."""
RESTARTS_MAX: Final = 2
"""Number of restarts of a server that ended by itself."""
OPEN_MAX: Final = 64
"""Files that are open at once."""


@dataclass(slots=True)
class _OpenFile:
    """A file that the server knows. `current` are its problems, `known` those that were there
    before the edit or were taken; while `settling` nothing is new."""

    text: str = ""
    version: int = 0
    current: list[Problem] = field(default_factory=list[Problem])
    known: list[Problem] = field(default_factory=list[Problem])
    settling: bool = True
    state: tuple[int, int] = (0, 0)
    """Time and size of the file on the disk when the server saw it."""
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class LanguageServer(Checker):
    """A program that keeps edited files open, and publishes their problems."""

    def __init__(
        self, name: str, config: CheckerSettings, words: Sequence[str], place: CheckerPlace
    ) -> None:
        super().__init__(name, config, words, place)
        self._files: OrderedDict[Path, _OpenFile] = OrderedDict()
        self._connection: Connection | None = None
        self._starting: asyncio.Task[Connection] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._restarts = 0
        self._silent = 0

    async def check(self, edit: FileEdit) -> None:
        if self.state == "failed":
            return
        try:
            connection = await self._connected()
            await self._show_changed(connection, edit.path)
            file = self._files.setdefault(edit.path, _OpenFile())
            self._files.move_to_end(edit.path)
            self._close_oldest(connection)
            async with file.turn:
                if file.settling and edit.before is not None:
                    await self._show(connection, edit.path, file, edit.before)
                if file.settling:
                    file.known, file.settling = file.current, False
                file.state = await asyncio.to_thread(_state_of, edit.path)
                await self._show(connection, edit.path, file, edit.after)
            self._silent = 0
        except TimeoutError:
            self._silent += 1
            if self._silent >= SILENT_MAX:
                self.fail(f"it said nothing for {CHECK_S:.0f} s after each of {SILENT_MAX} edits")
                await self._leave()
        except HoldfastError as error:
            log.info("the language server %s: %s", self.name, error.message)

    def take(self, path: Path) -> list[Problem]:
        file = self._files.get(path)
        if file is None or file.settling:
            return []
        fresh = new_problems(file.known, file.current)
        file.known = file.current
        return fresh

    def forget(self, path: Path) -> None:
        if self._files.pop(path, None) is not None and self._connection is not None:
            self._connection.close_file(path)

    async def close(self) -> None:
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait({self._starting})
        await self._leave()
        if self.state != "failed":
            self.state = "off"

    async def _connected(self) -> Connection:
        """Return the connection once it is there; starts the server if it does not run. Raises
        ToolError."""
        if self._starting is None:
            self.state = "starting"
            self._starting = asyncio.create_task(self._start(), name=f"start {self.name}")
        starting = self._starting  # reset if it fails
        await asyncio.wait({starting})
        if starting.cancelled():
            raise ToolError("it was ended")
        return starting.result()

    async def _start(self) -> Connection:
        try:
            await asyncio.to_thread(importlib.import_module, "tui.tools.lsp.client")
            from tui.tools.lsp.client import Connection  # noqa: PLC0415 - 0.6 s

            place = self.place
            words = await place.sandbox.command(self.words, place.environment)
            connection = await Connection.start(
                words,
                env=place.environment,
                cwd=place.workspace.root,
                config=self.config,
                published=self._take_published,
            )
            self._connection = connection
            self._watching = asyncio.create_task(self._watch(connection))
            await within(place.clock, START_S, connection.initialize(place.workspace.root))
            self.state = "ready"
        except TimeoutError as error:
            self.fail(f"it didn't answer within {START_S:.0f} s")
            await self._leave()
            raise ToolError(self.detail) from error
        except OSError as error:
            self.fail(f"it can't be started: {error.strerror or error}")
            raise ToolError(self.detail) from error
        except HoldfastError as error:
            if self._connection is None:
                self.fail(error)
            raise
        except Exception as error:
            self.fail(f"{type(error).__name__}: {error}")
            await self._leave()
            raise
        return connection

    async def _watch(self, connection: Connection) -> None:
        """Wait for the end of a server, and note it."""
        await connection.ended.wait()
        self._connection = self._starting = None
        self._files.clear()
        await connection.close()
        if self.state == "failed":
            return
        self._restarts += 1
        if connection.gave_up or self._restarts > RESTARTS_MAX:
            often = "" if connection.gave_up else f" {self._restarts} times"
            self.fail(f"it ended{often}: {connection.why}" if often else connection.why)
            return
        self.state, self.detail = "off", f"it ended: {connection.why}"
        if self._restarts == 1:
            self.complaint = f"{self.name} ended: {connection.why}. The next edit starts it again."

    async def _leave(self) -> None:
        connection, self._connection = self._connection, None
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait({self._watching})
        self._files.clear()
        if connection is not None:
            await connection.close(at_once=self.state != "ready")

    async def _show(self, connection: Connection, path: Path, file: _OpenFile, text: str) -> None:
        """Show the server a text of a file, and wait for its problems. Raises TimeoutError,
        ToolError."""
        if file.version and file.text == text:
            return
        file.arrived.clear()
        self._send(connection, path, file, text)
        both = _either(file.arrived, connection.ended)
        await within(self.place.clock, CHECK_S, both)

    def _send(self, connection: Connection, path: Path, file: _OpenFile, text: str) -> None:
        file.text, file.version = text, file.version + 1
        if file.version == 1:
            connection.open(path, language_of(path.name), 1, text)
        else:
            connection.change(path, file.version, text, saved=True)

    def _take_published(self, path: Path, version: int | None, said: list[object]) -> None:
        """Keep the problems of an open file; those of other files, or of old versions, do not
        count."""
        file, connection = self._files.get(path), self._connection
        if file is None or connection is None or (version is not None and version < file.version):
            return
        lines, shown = file.text.splitlines(), self.place.workspace.show(path)
        file.current = of_server(said, shown, lines, connection.column, self.name)
        file.arrived.set()

    async def _show_changed(self, connection: Connection, but: Path) -> None:
        """Show the server the open files that a command or the person has changed since."""
        known = {path: file.state for path, file in self._files.items() if path != but}
        for path, (state, text) in (await asyncio.to_thread(_changed, known)).items():
            file = self._files.get(path)
            if file is None or file.turn.locked():
                continue
            if text is None:
                self.forget(path)
            elif text != file.text:
                file.state = state
                self._send(connection, path, file, text)

    def _close_oldest(self, connection: Connection) -> None:
        while len(self._files) > OPEN_MAX:
            path, _ = self._files.popitem(last=False)
            connection.close_file(path)


async def _either(first: asyncio.Event, second: asyncio.Event) -> None:
    waits = [asyncio.create_task(event.wait()) for event in (first, second)]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waits:
            one.cancel()


def _state_of(path: Path) -> tuple[int, int]:
    try:
        stat = os.stat(path)  # noqa: PTH116 - as cheap as it gets
    except OSError:
        return 0, 0
    return stat.st_mtime_ns, stat.st_size


def _changed(
    known: dict[Path, tuple[int, int]],
) -> dict[Path, tuple[tuple[int, int], str | None]]:
    """Return the files that have changed, with their state and text now. Blocks."""
    now = {path: _state_of(path) for path in known}
    return {path: (now[path], read_text(path)) for path in known if now[path] != known[path]}
