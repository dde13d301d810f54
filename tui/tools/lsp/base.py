"""The common base of language servers and linters."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias, TypeVar

from tui.core.clock import Clock
from tui.core.config import CheckerSettings
from tui.core.dataclass import dataclass
from tui.core.errors import HoldfastError, ToolError
from tui.core.files import read_small
from tui.core.workspace import Workspace
from tui.tools.lsp.problems import Problem

CheckerState: TypeAlias = Literal["off", "starting", "ready", "failed"]

FILE_MAX: Final = 1024**2
"""Maximum bytes of a file that is checked."""
CHECK_S: Final = 30.0
"""Seconds after which the problems of a file are no longer waited for."""

T = TypeVar("T")


class NotConfinedError(ToolError):
    """No sandbox confines a checker here, and the settings don't let it run without one."""


@dataclass(frozen=True, slots=True)
class FileEdit:
    """A file that was changed: its text before, None for a new file, and now."""

    path: Path
    before: str | None
    after: str


class CheckerSandbox(Protocol):
    """The sandbox of all checkers."""

    async def command(self, words: Sequence[str], environment: Mapping[str, str]) -> Sequence[str]:
        """Return the words that start a command: in a sandbox, if there is one. Raises
        HoldfastError if it may not be started."""
        ...

    async def close(self) -> None:
        """End it, once all checkers have ended."""


@dataclass(frozen=True, slots=True)
class CheckerPlace:
    """The place where checkers run, and how they are started."""

    workspace: Workspace
    environment: Mapping[str, str]
    sandbox: CheckerSandbox
    clock: Clock


class Checker(ABC):
    """A program that finds problems in files. `words` start it, the first by its full path.

    `detail` is the reason why it failed; `complaint` is a message for the person, given once;
    `unconfined` is True if it may not be started, since no sandbox confines it; `late` is what it
    does about that which came after a check.
    """

    def __init__(
        self, name: str, config: CheckerSettings, words: Sequence[str], place: CheckerPlace
    ) -> None:
        self.name, self.config, self.words, self.place = name, config, tuple(words), place
        self.state: CheckerState = "off"
        self.detail = ""
        self.complaint = ""
        self.unconfined = False
        self.late: set[asyncio.Task[None]] = set()

    @abstractmethod
    async def check(self, edit: FileEdit) -> None:
        """Find the problems of a file that was edited. Raises nothing but cancellation."""

    @abstractmethod
    def take(self, path: Path) -> list[Problem]:
        """Return the problems of a file that are new since it was edited, and were not taken
        yet."""

    def take_elsewhere(self) -> list[Problem]:
        """Return the new problems of files that were not edited."""
        return []

    @abstractmethod
    async def close(self) -> None:
        """End what runs."""

    @abstractmethod
    def forget(self, path: Path) -> None:
        """Note that a file is gone."""

    def fail(self, why: str | HoldfastError) -> None:
        """Note that it is not used any more in this session."""
        if isinstance(why, HoldfastError):
            self.unconfined = isinstance(why, NotConfinedError)
            why = why.message.rstrip(".")
        self.state, self.detail = "failed", why
        self.complaint = f"{self.name} can't check your files: {why}. It is off in this session."


async def within(clock: Clock, seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """Wait for a coroutine, at most `seconds` of a clock. Raises TimeoutError."""
    task, timer = asyncio.create_task(work), asyncio.create_task(clock.sleep(seconds))
    try:
        await asyncio.wait({task, timer}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise TimeoutError
    finally:
        timer.cancel()
        if not task.done():
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task


def read_text(path: Path) -> str | None:
    """Return the text of the file at a real path; None if it is gone, too large, or no text.
    Blocks."""
    try:
        data, _ = read_small(path, limit=FILE_MAX, real=True)
    except OSError:
        return None
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None
