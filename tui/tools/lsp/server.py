"""One language server of a session: started with the first edit, asked after each, ended with the
session.

A file that was edited stays open in the server. Its problems before the first edit are found by
showing the server the old text first, so that only new ones are reported.

One rule says when a list is the answer: a server that can be asked answers with it; any other one
is done once it was quiet for longer than it ever paused between two lists (`pace`), and works on
nothing that it announced. Until then nothing in a list counts. Where no list of the old text came
in time, or none at all, only problems in the lines of the edit are new.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
from collections import OrderedDict
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tui.core.checkers import MISTAKES, language_of
from tui.core.config import CheckerSettings
from tui.core.dataclass import dataclass, field
from tui.core.errors import HoldfastError, ToolError
from tui.tools.lsp.base import (
    CHECK_S,
    Checker,
    CheckerPlace,
    FileEdit,
    read_text,
    within,
)
from tui.tools.lsp.file_problems import FileProblems, merged
from tui.tools.lsp.pace import Pace
from tui.tools.lsp.problems import Problem, of_server

if TYPE_CHECKING:
    from tui.tools.lsp.client import Connection

log = logging.getLogger(__name__)

START_S: Final = 30.0
"""Seconds within which the first request must be answered."""
RESTARTS_MAX: Final = 2
"""Number of restarts of a server that ended by itself."""
OPEN_MAX: Final = 64
"""Files that are open at once."""
ELSEWHERE_MAX: Final = 256
"""Other files whose problems are kept."""
PULLED_MAX: Final = 8
"""Open files that are asked for again where another one changed."""
MOMENT_S: Final = 0.001
"""Seconds that are not worth waiting."""
REFRESHES_MAX: Final = 8
"""Times that it may have all of them asked for again after one text."""
MESSAGES_MAX: Final = 3
"""Errors of its own that a server shows to the person."""


class _Answer(Enum):
    """The end of the wait for a list: it is whole, none came, or it was cut off."""

    WHOLE = auto()
    SILENT = auto()
    CUT = auto()


@dataclass(slots=True)
class _OpenFile:
    """A file that the server knows. `based` is True once its problems before the first edit are
    known, or cannot be."""

    problems: FileProblems = field(default_factory=FileProblems)
    pushed: list[Problem] = field(default_factory=list[Problem])
    pulled: list[Problem] = field(default_factory=list[Problem])
    version: int = 0
    based: bool = False
    shown_at: float = 0.0
    said_at: float | None = None
    """When the last list about the text came that is shown."""
    newest: FileEdit | None = None
    """The edit that is to be shown last, of those that wait."""
    state: tuple[int, int] = (0, 0)
    """Time and size of the file on the disk when the server saw it."""
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class LanguageServer(Checker):
    """A program that keeps edited files open, and says their problems."""

    def __init__(
        self, name: str, config: CheckerSettings, words: Sequence[str], place: CheckerPlace
    ) -> None:
        super().__init__(name, config, words, place)
        self._files: OrderedDict[Path, _OpenFile] = OrderedDict()
        self._elsewhere: OrderedDict[Path, FileProblems] = OrderedDict()
        self._shown_at = self._worked_at = self._elsewhere_at = 0.0
        self._edited = False
        self._pace = Pace()
        self._pushes = False
        self._heard = asyncio.Event()
        self._connection: Connection | None = None
        self._starting: asyncio.Task[Connection] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._refreshes = 0
        self._restarts = 0
        self._messages: dict[str, None] = {}

    async def check(self, edit: FileEdit) -> None:
        if self.state == "failed":
            return
        try:
            connection = await self._connected()
            await self._show_changed(connection, edit.path)
            file = self._files.setdefault(edit.path, _OpenFile())
            self._files.move_to_end(edit.path)
            self._close_oldest(connection)
            file.newest = edit
            async with file.turn:
                if file.newest is edit:
                    await self._check(connection, file, edit)
                    file.newest = None if file.newest is edit else file.newest
        except HoldfastError as error:
            log.info("the language server %s: %s", self.name, error.message)

    def take(self, path: Path) -> list[Problem]:
        file = self._files.get(path)
        return file.problems.take() if file is not None else []

    def take_elsewhere(self) -> list[Problem]:
        return [one for problems in self._elsewhere.values() for one in problems.take()]

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

    def published(self, path: Path, version: int | None, said: list[object]) -> None:
        """Keep a list; one of an old version does not count."""
        file, connection = self._files.get(path), self._connection
        if connection is None:
            return
        if file is None:
            self._keep_elsewhere(connection, path, said)
        elif version is None or version >= file.version:
            self._pushes = True
            file.pushed = self._read(connection, path, file.problems.text, said)
            self._note(file)
            if file.based and not file.turn.locked():
                self._later(str(path), self._weigh_late(connection, path, file))

    def working(self) -> None:
        """It began or ended work: more may come, or nothing more."""
        if self._connection is not None and self._connection.works:
            for file in self._files.values():
                self._note_pause(file)
        self._worked_at = self.place.clock.monotonic()
        self._tell()

    def refreshed(self) -> None:
        """Ask for the lists of open files again, which may have changed."""
        connection, self._refreshes = self._connection, self._refreshes + 1
        if connection is not None and connection.pulls and self._refreshes <= REFRESHES_MAX:
            self._later("refresh", self._pull_others(connection, None))
        self._tell()

    def complained(self, text: str) -> None:
        """Show its error to the person, unless it is none or was shown."""
        if text not in self._messages and len(self._messages) < MESSAGES_MAX:
            self._messages[text] = None
            self.complaint = f"{self.name} says: {text}"

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
            command = await place.sandbox.command(self.words, place.environment)
            connection = await Connection.start(
                command,
                env=place.environment,
                cwd=place.workspace.root,
                config=self.config,
                listener=self,
                clock=place.clock,
            )
            self._connection = connection
            await within(place.clock, START_S, connection.initialize(place.workspace.root))
            self._watching = asyncio.create_task(self._watch(connection))
            await self._prove(connection)
            self.state = "ready"
        except TimeoutError as error:
            self.fail(f"it didn't answer within {START_S:.0f} s")
            await self._leave()
            raise ToolError(self.detail) from error
        except OSError as error:
            self.fail(f"it can't be started: {error.strerror or error}")
            raise ToolError(self.detail) from error
        except HoldfastError as error:
            self.fail(error)
            await self._leave()
            raise
        except Exception as error:
            self.fail(f"{type(error).__name__}: {error}")
            await self._leave()
            raise
        return connection

    async def _prove(self, connection: Connection) -> None:
        """Show a server that may lack what it needs a text with a mistake: where it finds none, its
        empty lists mean nothing. Raises ToolError."""
        proof = MISTAKES.get(self.name)
        if proof is None:
            return
        path, file = self.place.workspace.root / f"holdfast-proof{proof.ending}", _OpenFile()
        self._files[path] = file
        self._show(connection, path, file, proof.text)
        answer = await self._answer(connection, path, file)
        self.forget(path)
        if answer is _Answer.WHOLE and not file.problems.current:
            raise ToolError(f"it doesn't find any problems: {proof.needs}")

    async def _watch(self, connection: Connection) -> None:
        """Wait for the end of a server, and note it."""
        await connection.ended.wait()
        self._connection = self._starting = None
        self._clear()
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

    def _clear(self) -> None:
        """Forget what it said."""
        for task in self.late:
            task.cancel()
        self._files.clear()
        self._elsewhere.clear()
        self._edited, self._pushes, self._pace = False, False, Pace()

    async def _leave(self) -> None:
        connection, self._connection = self._connection, None
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait({self._watching})
        self._clear()
        if connection is not None:
            await connection.close(at_once=self.state != "ready")

    async def _check(self, connection: Connection, file: _OpenFile, edit: FileEdit) -> None:
        if not file.based:
            answer = _Answer.WHOLE
            if edit.before is not None:
                self._show(connection, edit.path, file, edit.before)
                answer = await self._answer(connection, edit.path, file)
            file.problems.begin(whole=answer is _Answer.WHOLE)
            file.based = True
        self._edited = True
        file.state = await asyncio.to_thread(_state_of, edit.path)
        self._show(connection, edit.path, file, edit.after)
        await self._weigh(connection, edit.path, file)
        if connection.pulls:
            await self._pull_others(connection, edit.path)

    async def _weigh(self, connection: Connection, path: Path, file: _OpenFile) -> None:
        """Wait for the list of what is shown, and see what is new in it, and elsewhere."""
        answer = await self._answer(connection, path, file)
        if answer is _Answer.CUT:
            return
        file.problems.weigh(said_something=answer is _Answer.WHOLE)

    async def _answer(self, connection: Connection, path: Path, file: _OpenFile) -> _Answer:
        """Wait until the list of the text that is shown is whole. Raises ToolError."""
        clock, version = self.place.clock, file.version
        until, asked, pulled = clock.monotonic() + CHECK_S, False, False
        while clock.monotonic() < until and file.version == version:
            if connection.ended.is_set():
                raise ToolError(connection.why)
            if connection.pulls and not asked:
                asked, pulled = True, await self._pull(connection, path, file)
                if pulled and not self._pushes:
                    self._pace.known = True
                    return _Answer.WHOLE
                continue
            if file.based and file.newest is not None and file.newest.after != file.problems.text:
                break  # a later edit waits
            left = self._remaining_s(connection, file)
            if left < MOMENT_S:
                said = file.said_at is not None
                self._pace.known = self._pace.known or said
                return _Answer.WHOLE if said or pulled else _Answer.SILENT
            await self._hear(connection, left)
        return _Answer.CUT

    async def _hear(self, connection: Connection, seconds: float) -> None:
        """Wait until the server says something or ends, at most `seconds`."""
        heard, clock = self._heard, self.place.clock
        await _first(heard.wait(), connection.ended.wait(), clock.sleep(seconds))

    def _remaining_s(self, connection: Connection, file: _OpenFile) -> float:
        """Seconds of quiet that are still to pass until a list counts as whole."""
        now = self.place.clock.monotonic()
        if connection.works:
            return CHECK_S
        if file.said_at is not None:
            return file.said_at + self._pace.quiet_s - now
        return max(file.shown_at, self._worked_at) + self._pace.patience_s - now

    async def _pull(self, connection: Connection, path: Path, file: _OpenFile) -> bool:
        """Ask for the list of an open file. False where there is none."""
        version, said = file.version, None
        with suppress(TimeoutError):
            said = await within(self.place.clock, CHECK_S, connection.pull(path))
        if said is None or file.version != version or self._files.get(path) is not file:
            return False
        file.pulled = self._read(connection, path, file.problems.text, said)
        file.problems.current = merged((file.pulled, file.pushed))
        return True

    async def _pull_others(self, connection: Connection, but: Path | None) -> None:
        """Ask for the lists of the files that were edited last, which another change may alter."""
        recent = [path for path in reversed(self._files) if path != but][:PULLED_MAX]
        for path in recent:
            file = self._files.get(path)
            if file is None or not file.based or file.turn.locked():
                continue
            if await self._pull(connection, path, file) and not file.turn.locked():
                file.problems.weigh()

    def _show(self, connection: Connection, path: Path, file: _OpenFile, text: str) -> None:
        """Show the server a text of a file."""
        if file.version and file.problems.text == text:
            return
        file.version, self._refreshes = file.version + 1, 0
        file.problems.show(text)
        self._shown_at = file.shown_at = self.place.clock.monotonic()
        file.said_at = None
        if file.version == 1:
            connection.open(path, language_of(path.name), 1, text)
        else:
            connection.change(path, file.version, text, saved=True)

    def _read(
        self, connection: Connection, path: Path, text: str, said: list[object]
    ) -> list[Problem]:
        shown = self.place.workspace.show(path)
        return of_server(said, shown, text.splitlines(), connection.column, self.name)

    def _note(self, file: _OpenFile) -> None:
        """Note that a list of an open file came."""
        now = self.place.clock.monotonic()
        if file.said_at is None:
            self._pace.note_first(now - file.shown_at)
        self._note_pause(file)
        file.said_at = now
        file.problems.current = merged((file.pulled, file.pushed))
        self._tell()

    def _note_pause(self, file: _OpenFile) -> None:
        """Note how long nothing came after a list. What an edit of another file brought about is no
        part of it."""
        if file.said_at is not None and file.said_at >= self._shown_at:
            self._pace.note_pause(self.place.clock.monotonic() - file.said_at)

    def _tell(self) -> None:
        self._heard.set()
        self._heard = asyncio.Event()

    def _later(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        """Do something in the background, unless it is being done."""
        if any(task.get_name() == name for task in self.late):
            work.close()
            return
        task = asyncio.create_task(_quietly(work), name=name)
        self.late.add(task)
        task.add_done_callback(self.late.discard)

    async def _weigh_late(self, connection: Connection, path: Path, file: _OpenFile) -> None:
        async with file.turn:
            await self._weigh(connection, path, file)

    async def _weigh_elsewhere(self, connection: Connection) -> None:
        clock = self.place.clock
        until, left = clock.monotonic() + CHECK_S, self._pace.quiet_s
        while left >= MOMENT_S and clock.monotonic() < until and not connection.ended.is_set():
            await self._hear(connection, left)
            passed = clock.monotonic() - self._elsewhere_at
            left = CHECK_S if connection.works else self._pace.quiet_s - passed
        for problems in self._elsewhere.values():
            problems.weigh()

    def _keep_elsewhere(self, connection: Connection, path: Path, said: list[object]) -> None:
        """Keep the list of a file that was not edited. What was there before the first edit is
        old."""
        workspace = self.place.workspace
        if path not in self._elsewhere and (not said or workspace.root not in path.parents):
            return
        problems = self._elsewhere.setdefault(path, FileProblems())
        problems.text = (read_text(path) or "") if said else ""
        problems.current = self._read(connection, path, problems.text, said)
        self._elsewhere_at = self.place.clock.monotonic()
        if self._edited:
            self._later("elsewhere", self._weigh_elsewhere(connection))
        else:
            problems.begin(whole=True)
        while len(self._elsewhere) > ELSEWHERE_MAX:
            self._elsewhere.popitem(last=False)

    async def _show_changed(self, connection: Connection, but: Path) -> None:
        """Show the server the open files that a command or the person has changed since."""
        known = {path: file.state for path, file in self._files.items() if path != but}
        for path, (state, text) in (await asyncio.to_thread(_changed, known)).items():
            file = self._files.get(path)
            if file is None or file.turn.locked():
                continue
            if text is None:
                self.forget(path)
            elif text != file.problems.text:
                file.state = state
                self._show(connection, path, file, text)

    def _close_oldest(self, connection: Connection) -> None:
        while len(self._files) > OPEN_MAX:
            path, _ = self._files.popitem(last=False)
            connection.close_file(path)


async def _quietly(work: Coroutine[Any, Any, None]) -> None:
    with suppress(HoldfastError):
        await work


async def _first(*waits: Coroutine[Any, Any, Any]) -> None:
    """Wait for one of several, and end the others."""
    tasks = [asyncio.create_task(one) for one in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in tasks:
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
