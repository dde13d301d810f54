"""A linter: a command that is run for each file that was edited, and prints a line a problem."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from tui.core.config import CheckerSettings
from tui.core.dataclass import dataclass, field
from tui.core.errors import HoldfastError
from tui.tools.lsp.base import CHECK_S, Checker, CheckerPlace, FileEdit, within
from tui.tools.lsp.problems import Problem, in_changed_lines, new_problems, of_linter

FILE: Final = "{file}"
"""Placeholder in the command for the path of the file."""
OUTPUT_MAX: Final = 1024**2
_NOT_FOUND: Final = (126, 127)


@dataclass(slots=True)
class _Checked:
    """A file that was checked: its text then, its problems, and those that are known."""

    text: str = ""
    current: list[Problem] = field(default_factory=list[Problem])
    known: list[Problem] = field(default_factory=list[Problem])


class Linter(Checker):
    """A command that checks one file at a time. The problems before the first edit of a file are
    not known: then, only those in the lines of the edit count as new."""

    def __init__(
        self, name: str, config: CheckerSettings, words: Sequence[str], place: CheckerPlace
    ) -> None:
        super().__init__(name, config, words, place)
        self._files: dict[Path, _Checked] = {}
        self._one_by_one = asyncio.Lock()

    async def check(self, edit: FileEdit) -> None:
        if self.state == "failed":
            return
        async with self._one_by_one:
            self.state = "ready"
            try:
                printed = await self._run(edit.path)
            except TimeoutError:
                self.fail(f"it took longer than {CHECK_S:.0f} s")
                return
            except OSError as error:
                self.fail(f"it can't be started: {error.strerror or error}")
                return
            except HoldfastError as error:
                self.fail(error)
                return
        shown = self.place.workspace.show(edit.path)
        names = (shown, str(edit.path), f"./{shown}")
        lines = edit.after.splitlines()
        problems = of_linter(printed, shown, names, lines, self.name)
        before = self._files.get(edit.path)
        # At the first check of a file, the problems outside of the edit are taken as old.
        if before is None:
            fresh = in_changed_lines(problems, edit.before or "", edit.after)
            known = new_problems(fresh, problems)
        else:
            known = before.known
        self._files[edit.path] = _Checked(edit.after, problems, known)

    def take(self, path: Path) -> list[Problem]:
        file = self._files.get(path)
        if file is None:
            return []
        fresh = new_problems(file.known, file.current)
        file.known = file.current
        return fresh

    def forget(self, path: Path) -> None:
        self._files.pop(path, None)

    async def close(self) -> None:
        self._files.clear()

    async def _run(self, path: Path) -> str:
        """Return the command's output about a file. Raises TimeoutError, OSError, HoldfastError."""
        from tui.keeper.mark import marked  # noqa: PLC0415 - with a linter

        place = self.place
        words = [word.replace(FILE, str(path)) for word in self.words]
        root, env = place.workspace.root, place.environment
        command = await place.sandbox.command(words, env)
        process = await asyncio.create_subprocess_exec(
            *marked(command, env, root), cwd=root, env=dict(env),
            stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            data = await within(place.clock, CHECK_S, _output(process))
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        if process.returncode in _NOT_FOUND:
            raise FileNotFoundError(0, "the program isn't there", self.words[0])
        return data.decode("utf-8", "replace")


async def _output(process: Process) -> bytes:
    assert process.stdout
    output = bytearray()
    while chunk := await process.stdout.read(65_536):
        output += chunk[: OUTPUT_MAX - len(output)]
    await process.wait()
    return bytes(output)
