"""Checkers over real processes, for tests."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.clock import PATIENCE_S
from tui.core.clock import Clock, SystemClock
from tui.core.config import CheckerSettings, DiagnosticSettings
from tui.core.workspace import Workspace
from tui.tools.lsp import CheckerPlace, Checkers, FileEdit, problem_lines
from tui.tools.lsp.base import CHECK_S

WILD = Path(__file__).with_name("wild_server.py")


def wild(mode: str, **fields: Any) -> CheckerSettings:
    """The server of tests, for `*.txt`."""
    command = (sys.executable, str(WILD), mode)
    return CheckerSettings(command=command, files=("*.txt",), **fields)


class BriskClock(SystemClock):
    """Real time for what a process takes to start, ten times as fast for the quiet that is waited
    for after each list."""

    def monotonic(self) -> float:
        return 10 * super().monotonic()

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds if seconds >= CHECK_S else seconds / 10)


class NoSandbox:
    async def command(self, words: Sequence[str], environment: Mapping[str, str]) -> Sequence[str]:
        return words

    async def close(self) -> None:
        pass


def checkers_of(
    root: Path,
    settings: DiagnosticSettings,
    *,
    clock: Clock | None = None,
    search_path: str = "",
    brought: Sequence[str] = (),
) -> Checkers:
    """Checkers that nothing confines."""
    workspace = Workspace.at(root, ceiling="/")
    place = CheckerPlace(workspace, dict(os.environ), NoSandbox(), clock or BriskClock())
    return Checkers(settings, place, search_path, brought)


def with_wild(root: Path, mode: str, *, clock: Clock | None = None, **fields: Any) -> Checkers:
    """Checkers with one language server, the one of tests."""
    settings = DiagnosticSettings(checkers={"wild": wild(mode, **fields)})
    return checkers_of(root, settings, clock=clock)


async def edited(checkers: Checkers, path: Path, before: str | None, after: str) -> list[str]:
    """The lines about an edit, once all has come that is to come."""
    path.write_text(after)
    async with asyncio.timeout(PATIENCE_S):
        await checkers.begin([FileEdit(path, before, after)])
    return problem_lines(checkers.take([path]))


async def until(done: Callable[[], object]) -> None:
    """Wait for what a process does."""
    async with asyncio.timeout(PATIENCE_S):
        while not done():  # noqa: ASYNC110 - it happens in a program of its own
            await asyncio.sleep(0.005)
