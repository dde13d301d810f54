"""What language servers and linters have in common."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypeVar

from tui.core.clock import Clock
from tui.core.config import CheckerSettings
from tui.core.errors import HoldfastError, ToolError
from tui.core.files import read_small
from tui.tools.lsp.problems import Problem

CheckerState: TypeAlias = Literal["off", "starting", "ready", "failed"]

FILE_MAX: Final = 1024**2
"""Bytes of a file that is checked."""
CHECK_S: Final = 30.0
"""Seconds after which nobody waits any more for what is found in a file."""

StartCommand: TypeAlias = Callable[[Sequence[str], Mapping[str, str]], Awaitable[Sequence[str]]]
"""A command and its environment, to the words that start it: behind the walls, where there are
any. Raises HoldfastError where it may not be started."""

T = TypeVar("T")


class NotConfinedError(ToolError):
    """No sandbox confines a checker here, and the settings don't let it run without one."""


@dataclass(frozen=True, slots=True)
class FileEdit:
    """A file that was changed: its text before, None for a new file, and now."""

    path: Path
    before: str | None
    after: str


@dataclass(frozen=True, slots=True)
class CheckerPlace:
    """Where checkers run, and how they are started. `shown` is how a path is named."""

    root: Path
    environment: Mapping[str, str]
    start_command: StartCommand
    clock: Clock
    shown: Callable[[Path], str]


class Checker(ABC):
    """One program that finds problems in files. `words` start it, the first by its full path.

    `detail` says why it failed; `complaint` is what the person should hear of it, once;
    `unconfined` that it may not be started, since no sandbox confines it.
    """

    def __init__(
        self, name: str, config: CheckerSettings, words: Sequence[str], place: CheckerPlace
    ) -> None:
        self.name, self.config, self.words, self.place = name, config, tuple(words), place
        self.state: CheckerState = "off"
        self.detail = ""
        self.complaint = ""
        self.unconfined = False

    @abstractmethod
    async def check(self, edit: FileEdit) -> None:
        """Find the problems of a file that was edited. Never raises but for a cancellation."""

    @abstractmethod
    def take(self, path: Path) -> list[Problem]:
        """The problems of a file that are there since it was edited, and were not taken yet."""

    @abstractmethod
    async def close(self) -> None:
        """End what runs."""

    @abstractmethod
    def forget(self, path: Path) -> None:
        """A file is gone."""

    def fail(self, why: str | HoldfastError) -> None:
        """It is not used any more in this session."""
        if isinstance(why, HoldfastError):
            self.unconfined = isinstance(why, NotConfinedError)
            why = why.message.rstrip(".")
        self.state, self.detail = "failed", why
        self.complaint = f"{self.name} can't check your files: {why}. It is off in this session."


async def within(clock: Clock, seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """Wait for something, at most some seconds of a clock. Raises TimeoutError."""
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
    """The text of the file at a real path; None where it is gone, too large, or no text. Blocks."""
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
