"""A start of a command that takes as long as a test wants."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from tui.keeper.command import Keep, MonitorReport, Starter


class HeldStarter:
    """Starts as another one does, once it is let: `begun` when it was asked to."""

    def __init__(self, starter: Starter) -> None:
        self.begun, self.go = asyncio.Event(), asyncio.Event()
        self._starter = starter

    async def __call__(
        self, argv: Sequence[str], cwd: Path, env: Mapping[str, str], keep: Keep
    ) -> tuple[int, MonitorReport]:
        self.begun.set()
        await self.go.wait()
        return await self._starter(argv, cwd, env, keep)
