"""Write, then show: facts go into the record, are synced, and only then published."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tui.agent.events import Event, StorageChanged
from tui.errors import StorageError
from tui.session.records import Record
from tui.session.session import Session


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

    async def commit(self, type_: str, **data: Any) -> Record:
        """Append and wait until the record is on the disk, or is known not to be."""
        record = self.append(type_, **data)
        await self.sync()
        return record

    async def sync(self) -> None:
        try:
            await self.session.sync()
        except StorageError:
            pass  # kept in memory by the session; the light says so
        finally:
            self._report()

    def _report(self) -> None:
        if self.session.saved != self._saved:
            self._saved = self.session.saved
            self.publish(StorageChanged(self._saved, self.session.problem))
