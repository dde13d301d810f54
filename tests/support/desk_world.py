"""A machine with sessions in a scratch folder, and a desk that watches it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from tests.support.clock import PATIENCE_S
from tui.app.door.lines import FromOwner, LineError
from tui.core.clock import Clock
from tui.core.paths import Folders
from tui.desk.host import Channel, DeskRow
from tui.desk.local_host import LocalHost
from tui.session.records import Header, Record

_Message = TypeVar("_Message", bound=FromOwner)
TIME = "2026-11-21T09:00:00.000Z"


def home_in(folder: Path) -> Folders:
    return Folders(folder / "data", folder / "config", folder / "cache", folder / "log")


def record(id_: str, parent: str | None, text: str = "", type_: str = "user") -> Record:
    """A record of a session's file."""
    content = [{"type": "text", "text": text or id_}]
    return Record(type_, id_, parent, TIME, {"content": content, "text": text or id_})


def chain_of(*ids: str) -> list[Record]:
    """Records that follow one another."""
    return [record(id_, before) for id_, before in zip(ids, (None, *ids), strict=False)]


def write_session(
    home: Folders, id_: str, records: Sequence[Record] = (), *, cwd: str = "/work"
) -> Path:
    """Write a session's file as this program does."""
    folder = home.sessions / "work-00000000"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"20261121-090000-{id_}.jsonl"
    header = Header(id=id_, created=TIME, cwd=cwd, app="holdfast 1")
    path.write_bytes(b"".join((header.to_line(), *(one.to_line() for one in records))))
    return path


class Desk:
    """A host that is followed. `changes` counts how often it said that something had changed."""

    def __init__(self, host: LocalHost) -> None:
        self.host = host
        self.changes = 0
        self._came = asyncio.Event()
        host.follow(self._changed)

    def _changed(self) -> None:
        self.changes += 1
        self._came.set()

    def row(self, id_: str) -> DeskRow | None:
        return next((row for row in self.host.rows if row.id == id_), None)

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait until something holds after a change."""
        async with asyncio.timeout(PATIENCE_S):
            while not holds():
                self._came.clear()
                await self._came.wait()

    async def row_that(self, id_: str, holds: Callable[[DeskRow], object]) -> DeskRow:
        """The row of a session, once something holds for it."""
        await self.until(lambda: (row := self.row(id_)) is not None and holds(row))
        row = self.row(id_)
        assert row is not None
        return row


@asynccontextmanager
async def desk(home: Folders, clock: Clock | None = None, **given: Any) -> AsyncGenerator[Desk]:
    """A desk that watches the sessions in a home, and has seen those that are there."""
    host = LocalHost(home, clock, **given)
    watching = Desk(host)
    try:
        await watching.until(lambda: watching.changes)
        yield watching
    finally:
        await host.close()


async def receive_until(channel: Channel, kind: type[_Message]) -> tuple[list[FromOwner], _Message]:
    """What a channel says until a message of a kind comes, and that one."""
    before: list[FromOwner] = []
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                message = await channel.receive()
            except LineError:
                continue
            assert message is not None
            if isinstance(message, kind):
                return before, message
            before.append(message)
