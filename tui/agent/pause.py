"""A turn stops where nothing is lost, so that another process can continue it.

What has begun is finished and recorded; calls that have not begun, and those whose question was
taken back, are left without a result for `Agent.go_on` to make.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class TurnPausedError(Exception):
    """Ends a turn that was paused; no failure."""


class Pause:
    """A request that the turn stop. An agent and its sub-agents share one."""

    def __init__(self) -> None:
        self.wanted = False
        self._questions = set[asyncio.Future[Any]]()

    def begin(self) -> None:
        """Let the turn stop at the next place where it can, and take back what is asked."""
        self.wanted = True
        for question in tuple(self._questions):
            question.cancel()

    async def question(self, put: Coroutine[Any, Any, T]) -> T:
        """Put a question to the person. Raises CancelledError where it is taken back."""
        future = asyncio.ensure_future(put)
        self._questions.add(future)
        if self.wanted:
            future.cancel()
        try:
            return await future
        finally:
            self._questions.discard(future)
