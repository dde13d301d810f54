"""The checkers of a session: the choice for each file, and their results.

Nothing is installed, and no checker is started before a file is edited that it fits.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

from tui.core.checkers import KNOWN, PROGRAM_FOLDERS, configured, program_of
from tui.core.config import CheckerSettings, DiagnosticSettings
from tui.core.dataclass import dataclass, field
from tui.tools.lsp.base import Checker, CheckerPlace, FileEdit, within
from tui.tools.lsp.linter import FILE, Linter
from tui.tools.lsp.problems import Problem

log = logging.getLogger(__name__)

FILES_MAX: Final = 20
"""Files of one call that are checked."""
FINISH_S: Final = 2.0
"""Seconds that the end of a turn waits at most for what is still to come."""
LAST_S: Final = 15.0
"""Likewise, where there is no next turn that could tell of it."""


@dataclass(slots=True)
class Checkers:
    """All checkers of a session and its sub-agents.

    `search_path` is where programs are looked for, `brought` are the paths of the folder's own
    programs that the person trusts. `patience_s` is how long the end of a turn waits at most for
    what is still to come.
    """

    settings: DiagnosticSettings
    place: CheckerPlace
    search_path: str
    brought: Sequence[str] = ()
    patience_s: float = FINISH_S
    _known: dict[str, Checker | None] = field(default_factory=dict[str, "Checker | None"])
    """Checkers by name; None if the program does not exist."""
    _tasks: set[asyncio.Task[None]] = field(default_factory=set["asyncio.Task[None]"])
    _at_work: Counter[str] = field(default_factory=Counter[str])
    """The numbers of files that each is checking."""

    @property
    def wait_s(self) -> float:
        """Seconds that an edit's result waits at most."""
        return self.settings.wait_s

    @property
    def all(self) -> list[Checker]:
        """The checkers that were used so far."""
        return [one for one in self._known.values() if one is not None]

    def fits(self, path: Path) -> bool:
        """True if any checker could check a file, by its name."""
        every = (*self._configured().values(), *KNOWN.values())
        return any(_fits(one, path) for one in every)

    def begin(self, edits: Sequence[FileEdit]) -> asyncio.Task[None]:
        """Check files that were edited, in a task that ends when all results have come."""
        task = asyncio.create_task(self._check(edits[:FILES_MAX]), name="diagnostics")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def take(self, paths: Iterable[Path]) -> list[Problem]:
        """Return the new problems of files, and of those that nobody edited, that were not taken
        yet."""
        edited = [one for path in paths for checker in self.all for one in checker.take(path)]
        return [*edited, *(one for checker in self.all for one in checker.take_elsewhere())]

    async def finish(self, seconds: float | None = None) -> list[str]:
        """Wait until all results have come, at most `seconds` instead of its patience; return the
        names of the checkers whose results are still to come."""
        tasks = self._tasks.union(*(one.late for one in self.all))
        if tasks:
            with suppress(TimeoutError):
                await within(self.place.clock, seconds or self.patience_s, asyncio.wait(tasks))
        return [one.name for one in self.all if self._at_work[one.name] or one.late]

    def take_complaints(self) -> list[str]:
        """Return the failures of checkers that were not reported yet."""
        complaints: list[str] = []
        for one in self.all:
            if one.complaint and (not one.unconfined or one.name in self.settings.checkers):
                complaints.append(one.complaint)
            one.complaint = ""
        return complaints

    def forget(self, path: Path) -> None:
        """Note that a file is gone."""
        for checker in self.all:
            checker.forget(path)

    async def close(self) -> None:
        """End all of them."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(one.close() for one in self.all))
        await self.place.sandbox.close()

    async def _check(self, edits: Sequence[FileEdit]) -> None:
        work = [
            self._check_by(checker, edit)
            for edit in edits
            for checker in await self._checkers_of(edit.path)
        ]
        for error in await asyncio.gather(*work, return_exceptions=True):
            if isinstance(error, Exception):
                log.error("a checker failed", exc_info=error)

    async def _check_by(self, checker: Checker, edit: FileEdit) -> None:
        self._at_work[checker.name] += 1
        try:
            await checker.check(edit)
        finally:
            self._at_work[checker.name] -= 1

    async def _checkers_of(self, path: Path) -> list[Checker]:
        """Return the checkers that a file fits: all that are configured, otherwise the first known
        one that exists and works. Those of the project come before those installed elsewhere."""
        own = self._configured()
        mine = {n: one for n, one in own.items() if _fits(one, path) and not one.off}
        if mine:
            checkers = [await self._checker(name, one) for name, one in mine.items()]
            return [one for one in checkers if one is not None]
        off = {name for name, one in own.items() if one.off}
        known = {n: one for n, one in KNOWN.items() if n not in off and _fits(one, path)}
        chosen = await asyncio.to_thread(self._choose, known)
        one = await self._checker(chosen, known[chosen]) if chosen else None
        return [one] if one is not None else []

    def _configured(self) -> dict[str, CheckerSettings]:
        return {name: configured(one, name) for name, one in self.settings.checkers.items()}

    def _choose(self, known: dict[str, CheckerSettings]) -> str:
        """Return the name of the checker to use, "" for none. Blocks."""
        known = {name: one for name, one in known.items() if not self._failed(name)}
        if started := [name for name in known if self._known.get(name)]:
            return started[0]
        for folder in (*PROGRAM_FOLDERS, ""):
            for name, one in known.items():
                if folder and f"{folder}/{one.words[0]}" in self.brought:
                    return name
                if not folder and shutil.which(one.words[0], path=self.search_path):
                    return name
        return ""

    def _failed(self, name: str) -> bool:
        checker = self._known.get(name)
        return checker is not None and checker.state == "failed"

    async def _checker(self, name: str, config: CheckerSettings) -> Checker | None:
        if name not in self._known:
            from tui.tools.lsp.server import LanguageServer  # noqa: PLC0415 - few edits need it

            words = await asyncio.to_thread(self._words, config)
            kind = Linter if any(FILE in word for word in config.words) else LanguageServer
            self._known.setdefault(name, kind(name, config, words, self.place) if words else None)
            if not words and name in self.settings.checkers:
                missing = LanguageServer(name, config, (), self.place)
                program = config.words[0] if config.words else "it has no command, and"
                missing.fail(f"{program} wasn't found")
                self._known[name] = missing
        return self._known[name]

    def _words(self, config: CheckerSettings) -> tuple[str, ...]:
        """Return the words that start a checker, with the full path of its program; none if it does
        not exist. Blocks."""
        program = program_of(config, self.place.workspace.root, self.brought, self.search_path)
        return (program, *config.words[1:]) if program else ()


def _fits(config: CheckerSettings, path: Path) -> bool:
    return any(fnmatch(path.name, glob) for glob in config.files)
