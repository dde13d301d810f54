"""A lock that many may share, or one has alone. Within this process only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from threading import Condition, Lock

_POLL_S = 0.005


class SharedLock:
    """A lock to share or to hold alone. Those that wait for it alone come before later sharers."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._one_by_one = Lock()
        self._sharing = 0
        self._alone = 0
        """Number of those that have it alone, or wait for that."""

    @contextmanager
    def alone(self) -> Generator[None]:
        """Hold it alone. Blocks."""
        with self._changed:
            self._alone += 1
        try:
            with self._one_by_one:
                with self._changed:
                    self._changed.wait_for(lambda: not self._sharing)
                yield
        finally:
            with self._changed:
                self._alone -= 1

    @asynccontextmanager
    async def shared(self) -> AsyncGenerator[None]:
        """Share it. No thread waits, so that a task that is cancelled leaves nothing behind."""
        while not self._share():  # noqa: ASYNC110 - threads release it
            await asyncio.sleep(_POLL_S)
        try:
            yield
        finally:
            with self._changed:
                self._sharing -= 1
                self._changed.notify_all()

    def _share(self) -> bool:
        with self._changed:
            free = not self._alone
            self._sharing += free
        return free
