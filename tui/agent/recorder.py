"""Write, then show: facts go into the record, are synced, and only then published."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from tui.agent.events import Event, StorageChanged
from tui.core.errors import StorageError
from tui.session.records import Record
from tui.session.session import Session

T = TypeVar("T")


class Recorder:
    """Appends to the session and says when the storage light changes.

    A failing disk does not end a turn: the session keeps what could not be written and tries
    again with the next record; meanwhile nothing claims to be saved.
    """

    def __init__(
        self,
        session: Session,
        publish: Callable[[Event], None],
        count: Callable[[Record], None],
    ) -> None:
        """`count` sees every record as it is appended."""
        self.session = session
        self.publish = publish
        self.count = count
        self._saved = True

    def append(self, type_: str, **data: Any) -> Record:
        """Append without waiting for the disk."""
        record = self.session.append(type_, **data)
        self.count(record)
        self._report()
        return record

    async def sync(self) -> None:
        """Wait until everything appended is on the disk, or is known not to be."""
        try:
            await self.session.sync()
        except StorageError:
            pass  # kept in memory by the session; the light says so
        finally:
            self._report()

    async def show(self, *facts: Event) -> None:
        """Sync, then publish what was appended. Cancelled, it does so first (`to_the_end`)."""
        await to_the_end(self._show(facts))

    async def _show(self, facts: tuple[Event, ...]) -> None:
        await self.sync()
        for fact in facts:
            self.publish(fact)

    def _report(self) -> None:
        if self.session.saved != self._saved:
            self._saved = self.session.saved
            self.publish(StorageChanged(self._saved, self.session.problem))


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Await `work`, which goes on to its end even when cancelled; the cancellation comes then."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({task})
        task.result()
        raise
