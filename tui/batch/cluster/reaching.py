"""Waiting for a store that a worker can't reach, before it has a task."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Final, TypeVar

from tui.batch.cluster.task_store import NoStoreError, StoreError
from tui.core.clock import Clock
from tui.core.config import Batch
from tui.core.errors import HoldfastError
from tui.core.git.door import GitError

_T = TypeVar("_T")
_PATIENCE_S: Final = Batch().lease_s
"""As long as a lease: this is before the run's own is known."""
_MOST_S: Final = 15.0


class UnreachableError(HoldfastError):
    """This machine doesn't reach the store: that is no attempt, and no failure of a task."""


async def reached(work: Callable[[], _T], clock: Clock) -> _T:
    """Do something with a store, on a thread; again, ever more seldom, where the store can't be
    reached. Raises UnreachableError after a lease's time, or where there is no store, and other
    errors as they are."""
    began, wait_s = clock.monotonic(), 1.0
    while True:
        try:
            return await asyncio.to_thread(work)
        except StoreError as error:
            if not isinstance(error.__cause__, GitError | StoreError):
                raise  # it isn't that git didn't get there
            if isinstance(error, NoStoreError) or clock.monotonic() - began >= _PATIENCE_S:
                raise UnreachableError(
                    f"The store can't be reached from {socket.gethostname()}: {error.message}",
                    hint=error.hint,
                ) from error
        await clock.sleep(wait_s)
        wait_s = min(2 * wait_s, _MOST_S)
