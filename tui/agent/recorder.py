"""Write, then show: facts go into the record, are synced, and only then published."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar, cast

from tui.context.token_ledger import Ledger
from tui.core.cancellation import to_the_end
from tui.core.errors import StorageError
from tui.core.facts import DurableFact, Fact, RecordFact, StorageChanged
from tui.session.records import Record
from tui.session.session import Session

P = ParamSpec("P")
T = TypeVar("T")


class FactStream:
    """The events that an agent publishes, in order.

    One piece of work runs at a time, in a task of its own; what is published meanwhile comes out of
    `run`. What is published while nothing runs is for the method that caused it, which hands it on
    with `take`. What is in `at_rest` is called after each piece of work.
    """

    def __init__(self) -> None:
        self.at_rest: list[Callable[[], None]] = []
        self.aside: Callable[[Fact], None] | None = None
        """Shows what comes while nothing runs and nobody asked for it."""
        self._queue: asyncio.Queue[Fact | None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._between: list[Fact] = []
        self._interruptible = False
        self._cancelled = False

    @property
    def busy(self) -> bool:
        """True while work runs."""
        return self._queue is not None

    def publish(self, event: Fact) -> None:
        if self._queue is None:
            self._between.append(event)
        else:
            self._queue.put_nowait(event)

    def tell(self, event: Fact) -> None:
        """Publish what nobody asked for, and that can come at any time."""
        if self._queue is None and self.aside is not None:
            self.aside(event)
        else:
            self.publish(event)

    def take(self) -> list[Fact]:
        """Take what was published while nothing ran."""
        events, self._between = self._between, []
        return events

    async def run(
        self, work: Callable[P, Coroutine[Any, Any, None]], *args: P.args, **kwargs: P.kwargs
    ) -> AsyncGenerator[Fact]:
        """Run the work and yield its events. Closing the iterator interrupts it.

        Raises RuntimeError where other work runs.
        """
        if self._queue is not None:
            raise RuntimeError("a turn is running; use steer()")
        queue = self._queue = asyncio.Queue()
        self._cancelled = False
        task = self._task = asyncio.create_task(work(*args, **kwargs), name="turn")
        task.add_done_callback(self._end)
        try:
            while (event := await queue.get()) is not None:
                yield event
        finally:
            if not task.done():
                self.cancel()
                await asyncio.wait({task})

    def cancel(self) -> None:
        """Interrupt what runs, if anything; what closes its books ends as it would have."""
        if self._task is not None and self.busy and not self._cancelled:
            self._cancelled = True
            if self._interruptible:
                self._task.cancel()

    @contextmanager
    def interruptible(self) -> Generator[None]:
        """Within it `cancel` interrupts the work; CancelledError where it came before."""
        if self._cancelled:
            raise asyncio.CancelledError
        self._interruptible = True
        try:
            yield
        finally:
            self._interruptible = False

    async def close(self) -> None:
        """Interrupt what runs, and wait for its end."""
        self.cancel()
        if self._task is not None:
            await asyncio.wait({self._task})

    async def rest(self) -> None:
        """Wait until nothing runs."""
        if self._task is not None:
            await asyncio.wait({self._task})

    def _end(self, _task: asyncio.Task[None]) -> None:
        if self._queue is not None:
            self._queue.put_nowait(None)
            self._queue = None
            for call in self.at_rest:
                call()


class Recorder:
    """Appends to the session and says when the storage light changes.

    A failing disk does not end a turn: the session keeps what could not be written and tries
    again with the next record; meanwhile nothing claims to be saved.
    """

    def __init__(self, session: Session, events: FactStream, ledger: Ledger) -> None:
        """`ledger` counts every record as it is appended."""
        self._session = session
        self._events = events
        self._ledger = ledger
        self._saved = True

    def write(self, fact: DurableFact) -> Record:
        """Append a fact without waiting for the disk, and tell nobody."""
        record = self._session.record(fact)
        self._ledger.add(record)
        self._report()
        return record

    def record(self, fact: DurableFact) -> Record:
        """Append a fact, and publish it unless it is for the record alone."""
        record = self.write(fact)
        if not isinstance(fact, RecordFact):
            self._events.publish(cast("Fact", fact))
        return record

    async def sync(self) -> None:
        """Wait until everything appended is on the disk, or is known not to be."""
        try:
            await self._session.sync()
        except StorageError:
            pass  # kept in memory by the session; the light says so
        finally:
            self._report()

    async def record_synced(self, fact: Fact, *more: Fact) -> None:
        """Append a fact; publish it, with what comes of it, once it is on the disk."""
        self.write(cast("DurableFact", fact))
        await self.show(fact, *more)

    async def show(self, *events: Fact) -> None:
        """Sync, then publish what was appended. Cancelled, it does so first (`to_the_end`)."""
        await to_the_end(self._show(events))

    async def _show(self, events: tuple[Fact, ...]) -> None:
        await self.sync()
        for event in events:
            self._events.publish(event)

    def _report(self) -> None:
        if self._session.saved != self._saved and not self._session.opened_to_read:
            self._saved = self._session.saved
            self._events.publish(StorageChanged(self._saved, self._session.problem))
