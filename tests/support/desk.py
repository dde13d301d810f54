"""A machine with sessions for the desk, in memory: a test plays the owners."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any, TypeVar

from tests.support.world import record
from tui.app.door.lines import FromOwner, LineError, ToOwner
from tui.core.clock import Clock
from tui.core.errors import HoldfastError
from tui.desk.host import Changed, DeskRow

_Sent = TypeVar("_Sent", bound=ToOwner)


class FakeChannel:
    """A channel whose other end is the test: `tell` is what the owner says, `sent` what it got."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.sent: list[ToOwner] = []
        self.closed = False
        self._coming: asyncio.Queue[FromOwner | LineError | None] = asyncio.Queue()
        self._came = asyncio.Event()

    async def receive(self) -> FromOwner | None:
        message = await self._coming.get()
        if isinstance(message, LineError):
            raise message
        if message is None:
            self.closed = True
        return message

    def send(self, message: ToOwner) -> None:
        if not self.closed:
            self.sent.append(message)
            self._came.set()

    async def close(self) -> None:
        self.closed = True
        self._coming.put_nowait(None)

    def tell(self, *messages: FromOwner | LineError) -> None:
        for message in messages:
            self._coming.put_nowait(message)

    def cut(self) -> None:
        """Cut the line once what was told has come."""
        self._coming.put_nowait(None)

    def sent_of(self, kind: type[_Sent]) -> list[_Sent]:
        """The messages of a kind that came from the watcher."""
        return [one for one in self.sent if isinstance(one, kind)]

    async def got(self, kind: type[_Sent], count: int = 1) -> _Sent:
        """Wait for a message of a kind from the watcher, the `count`th."""
        while len(self.sent_of(kind)) < count:
            self._came.clear()
            await self._came.wait()
        return self.sent_of(kind)[count - 1]


class FakeHost:
    """A `DeskHost` that holds the rows that a test gives it.

    `channels` are those that were opened, in order; `refuses` is raised by `open` and `start`,
    while it is set; `started` holds folder and prompt of each session that was started; `clock` is
    the one that whoever made it was given.
    """

    def __init__(self, name: str = "", rows: Sequence[DeskRow] = ()) -> None:
        self.name = name
        self.problem = ""
        self.clock: Clock | None = None
        self.rows: list[DeskRow] = list(rows)
        self.channels: list[FakeChannel] = []
        self.refuses: HoldfastError | None = None
        self.started: list[tuple[str, str]] = []
        self.dismissed: list[str] = []
        self.closed = False
        self._followers: list[Changed] = []
        self._opened = asyncio.Event()

    def follow(self, changed: Changed) -> None:
        self._followers.append(changed)

    async def open(self, session: str) -> FakeChannel:
        if self.refuses is not None:
            raise self.refuses
        channel = FakeChannel(session)
        self.channels.append(channel)
        self._opened.set()
        return channel

    async def start(self, cwd: str, prompt: str) -> str:
        if self.refuses is not None:
            raise self.refuses
        self.started.append((cwd, prompt))
        return f"s{len(self.started):07}"

    async def dismiss(self, session: str) -> None:
        self.dismissed.append(session)

    async def close(self) -> None:
        self.closed = True

    def put(self, *rows: DeskRow) -> None:
        """Replace the rows with these ids, or add them, and tell who follows."""
        by_id = {row.id: row for row in self.rows} | {row.id: row for row in rows}
        self.rows = list(by_id.values())
        self._changed()

    def say_problem(self, problem: str) -> None:
        """The machine can't be reached from now on, for this reason; "" for it can again."""
        self.problem = problem
        self._changed()

    async def channel(self, count: int = 1) -> FakeChannel:
        """Wait for a channel to be opened, the `count`th."""
        while len(self.channels) < count:
            self._opened.clear()
            await self._opened.wait()
        return self.channels[count - 1]

    def _changed(self) -> None:
        for changed in self._followers:
            changed()


def line(type_: str, number: int, **data: Any) -> str:
    """A line of a session's file; each record follows the one before."""
    made = record(type_, number, **data)
    parent = f"r{number - 1}" if number > 1 else None
    head = {"type": type_, "id": f"r{number}", "parent": parent, "time": made.time}
    return json.dumps(head | data)


def prompt(number: int, text: str) -> str:
    return line("user", number, text=text, content=[{"type": "text", "text": text}])
