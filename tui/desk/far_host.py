"""Another machine at the desk, over a line that may be cut at any moment."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import msgspec

import tui
from tui.app.door.lines import MAX_LINE, FromOwner, ToOwner, from_owner, line_of
from tui.core.clock import Clock, SuspendAwareClock
from tui.core.errors import HoldfastError
from tui.core.text_cleaning import one_line, visible
from tui.desk.far_lines import (
    MARKER,
    BrokenLineError,
    ChangedRows,
    ChannelClosed,
    ChannelOpened,
    DismissSession,
    FarLine,
    Greeting,
    OpenChannel,
    StartOutcome,
    StartSession,
    far_message_of,
)
from tui.desk.far_link import SLEEP_S, FarLink, SessionLine
from tui.desk.far_ssh import (
    Dial,
    Unreachable,
    address_of,
    dial_command,
    ssh_words,
    unreachable,
)
from tui.desk.host import Changed, DeskRow, call_all

log = logging.getLogger(__name__)

_GREETING_S: Final = 45.0
"""Seconds for connecting, signing in, the shell's own start, and that of Holdfast there."""
_BACKOFF_S: Final = 0.5
_BACKOFF_MOST_S: Final = 30.0
_FLAPPING_MOST_S: Final = 5.0
_LASTING_S: Final = 300.0
"""For what only a person changes: servers lock out who fails to sign in too often."""
_STEADY_S: Final = 10.0
_DOUBLINGS: Final = 6
_PRINTED: Final = 8192
_ROWS_MOST: Final = 5000
"""Sessions of one machine that are listed: it names no more than some hundred by itself."""
_TELL_S: Final = 0.1
"""The least seconds between two calls of `changed`."""
_OBJECT: Final = 128
"""Bytes that a line takes beside its own."""
_AT_ONCE: Final = 32
"""Lines that are received before others in this process have their turn."""
_ID: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}\Z")


class FarChannel:
    """The lines of a session on another machine."""

    def __init__(self, host: FarHost, link: FarLink, number: int) -> None:
        self._host = host
        self._link: FarLink | None = link
        self._number = number
        self._lines: deque[bytes] = deque()
        self._size = self._received = 0
        self._came = asyncio.Event()

    async def receive(self) -> FromOwner | None:
        self._received += 1
        if self._received % _AT_ONCE == 0:
            await asyncio.sleep(0)
        while not self._lines:
            if self._link is None:
                return None
            self._came.clear()
            await self._came.wait()
        line = self._lines.popleft()
        self._size -= len(line) + _OBJECT
        return from_owner(line)

    def send(self, message: ToOwner) -> None:
        if self._link is not None:
            behind = self._link.waiting(self._number)
            rank = "in order" if behind else "urgent"
            self._link.send_line(self._number, line_of(message), rank)

    async def close(self) -> None:
        self._lines.clear()
        if self._link is not None:
            self._host.forget(self._number)
            self._link.forget(self._number)
            self._link.send(ChannelClosed(channel=self._number))
            self.cut()

    def take(self, line: bytes) -> bool:
        """Take a line that came. False if nobody receives them, and too many wait."""
        self._lines.append(line)
        self._size += len(line) + _OBJECT
        self._came.set()
        return self._size <= MAX_LINE or len(self._lines) == 1

    def cut(self) -> None:
        """End the channel, after what has come already."""
        self._link = None
        self._came.set()


class _Followers:
    """Calls those who follow a machine when it changes, some times a second at most."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._every: list[Changed] = []
        self._told_at = float("-inf")
        self._due: asyncio.TimerHandle | None = None

    def add(self, changed: Changed) -> None:
        self._every.append(changed)

    def tell_soon(self) -> None:
        if self._clock.monotonic() - self._told_at >= _TELL_S:
            self.tell()
        elif self._due is None:
            self._due = asyncio.get_running_loop().call_later(_TELL_S, self.tell)

    def tell(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None
        self._told_at = self._clock.monotonic()
        call_all(self._every)

    def close(self) -> None:
        self._every.clear()
        if self._due is not None:
            self._due.cancel()


class FarHost:
    """A `DeskHost` that is reached by the system's ssh, again and again.

    `name` is `ssh://[user@]host[:port]`, or what ssh knows it by; UsageError for any other. `dial`
    opens lines in the place of ssh. `clock` runs while this machine sleeps.
    """

    def __init__(self, name: str, *, dial: Dial | None = None, clock: Clock | None = None) -> None:
        self.name = name.removeprefix("ssh://").rstrip("/")
        self.greeting: Greeting | None = None
        """The other side's words about itself, the last time it was reached."""
        self._address = address_of(name)
        self._dial = dial or partial(dial_command, ssh_words(self._address))
        self._clock = clock or SuspendAwareClock()
        self._rows: dict[str, DeskRow] = {}
        self._awaited: set[str] = set()
        """The ids of rows that haven't come since it was connected."""
        self._listed: Sequence[DeskRow] = ()
        self._problem = f"Connecting to {self.name} …"
        self._far_problem = ""
        self._followers = _Followers(self._clock)
        self._task: asyncio.Task[None] | None = None
        self._link: FarLink | None = None
        self._tried = asyncio.Event()
        self._retry = asyncio.Event()
        self._number = 0
        self._channels: dict[int, FarChannel] = {}
        self._opening: dict[int, asyncio.Future[ChannelOpened | ChannelClosed]] = {}
        self._starting: dict[int, asyncio.Future[StartOutcome]] = {}
        self._dismissed: set[str] = set()

    @property
    def problem(self) -> str:
        return self._problem or self._far_problem

    @property
    def rows(self) -> Sequence[DeskRow]:
        return self._listed

    def follow(self, changed: Changed) -> None:
        self._followers.add(changed)
        self._begin()

    def retry(self) -> None:
        """Try again at once, if it is cut."""
        self._retry.set()

    async def open(self, session: str) -> FarChannel:
        link = await self._linked()
        self._number += 1
        number = self._number
        self._opening[number] = asyncio.get_running_loop().create_future()
        link.send(OpenChannel(channel=number, session=session))
        channel = self._channels[number] = FarChannel(self, link, number)
        try:
            outcome = await self._opening[number]
        except BaseException:
            await channel.close()
            raise
        finally:
            self._opening.pop(number, None)
        if isinstance(outcome, ChannelClosed):
            raise HoldfastError(outcome.reason, hint=outcome.hint)
        return channel

    async def start(self, cwd: str, prompt: str) -> str:
        link = await self._linked()
        self._number += 1
        number = self._number
        self._starting[number] = asyncio.get_running_loop().create_future()
        link.send_later(StartSession(number=number, cwd=cwd, prompt=prompt))
        try:
            outcome = await self._starting[number]
        finally:
            self._starting.pop(number, None)
        if outcome.reason:
            raise HoldfastError(outcome.reason, hint=outcome.hint)
        return outcome.session

    async def dismiss(self, session: str) -> None:
        if self._link is not None:
            self._link.send(DismissSession(session=session))
        else:
            self._dismissed.add(session)

    async def close(self) -> None:
        self._followers.close()
        if self._task is not None:
            await asyncio.sleep(0)  # what was sent just now goes out
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def forget(self, number: int) -> None:
        """Take nothing more of a channel."""
        self._channels.pop(number, None)

    def _begin(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._stay_connected())

    async def _linked(self) -> FarLink:
        """The line, once it has been tried. Raises HoldfastError if it is cut."""
        self._begin()
        await self._tried.wait()
        if self._link is None:
            raise HoldfastError(self._problem)
        return self._link

    async def _stay_connected(self) -> None:
        """Connect, and again whenever the line is cut."""
        failures = 0
        while True:
            began = self._clock.monotonic()
            self._retry.clear()
            try:
                end = await self._connection()
            except Exception as error:  # the boundary: the next line may do without it
                log.exception("the line to %s failed", self.name)
                why = f"something went wrong ({type(error).__name__}); the log file has details"
                end = Unreachable(f"The line to {self.name} is cut: {why}.")
            self._lose(end.problem)
            steady = end.greeted and self._clock.monotonic() - began > _STEADY_S
            most = _FLAPPING_MOST_S if end.greeted else _BACKOFF_MOST_S
            delay = _LASTING_S if end.lasting else min(_BACKOFF_S * 2**failures, most)
            failures = 0 if steady else min(failures + 1, _DOUBLINGS)
            await self._pause(delay)

    async def _pause(self, seconds: float) -> None:
        """Wait for so long, for `retry`, or for this machine to wake up."""
        last = self._clock.monotonic()
        until = last + seconds
        while (remaining := until - last) > 0:
            waits = [
                asyncio.create_task(self._clock.sleep(min(remaining, 1.0))),
                asyncio.create_task(self._retry.wait()),
            ]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for one in waits:
                    one.cancel()
            now = self._clock.monotonic()
            if self._retry.is_set() or now - last > SLEEP_S:
                return
            last = now

    async def _connection(self) -> Unreachable:
        """Connect, and stay so until the line is cut. Returns why it is."""
        try:
            connection = await self._dial()
        except OSError as error:
            why = error.strerror or str(error)
            return Unreachable(f"ssh can't be started on this machine: {why}.", lasting=True)
        try:
            greeting, printed = await _greeting(connection.reader)
            if greeting is None:
                return unreachable(self.name, self._address, await connection.close(), printed)
            self.greeting = greeting
            if problem := _mismatch(self.name, greeting):
                return Unreachable(problem, lasting=True)
            link = FarLink(connection.reader, connection.writer, self._clock)
            link.send(
                Greeting(
                    version=tui.__version__,
                    machine=socket.gethostname(),
                    home=str(Path.home()),
                    pid=os.getpid(),
                )
            )
            self._gain(link)
            reason = await link.run(self._take)
            log.info("the line to %s is cut: %s", self.name, reason)
            return Unreachable(f"The line to {self.name} is cut: {reason}.", greeted=True)
        finally:
            await connection.close()

    def _gain(self, link: FarLink) -> None:
        self._link = link
        for session in self._dismissed:
            link.send(DismissSession(session=session))
        self._dismissed.clear()
        self._tried.set()

    def _lose(self, problem: str) -> None:
        self._link, self._problem = None, problem
        channels, self._channels = [*self._channels.values()], {}
        for channel in channels:
            channel.cut()
        for opening in self._opening.values():
            _fail(opening, HoldfastError(problem))
        for starting in self._starting.values():
            _fail(
                starting,
                HoldfastError(
                    f"{problem} The session may have been started.",
                    hint="Start it again only if it isn't in the list once the line is back.",
                ),
            )
        self._tried.set()
        self._followers.tell()

    def _take(self, message: FarLine | SessionLine) -> None:
        match message:
            case SessionLine(number, line):
                channel = self._channels.get(number)
                if channel is not None and not channel.take(line):
                    self._drop(number)
            case ChangedRows():
                self._change(message)
            case ChannelOpened(channel=number):
                _settle(self._opening.get(number), message)
            case ChannelClosed(channel=number):
                _settle(self._opening.get(number), message)
                if channel := self._channels.pop(number, None):
                    channel.cut()
            case StartOutcome(number=number):
                _settle(self._starting.get(number), message)
            case _:
                log.info("%s sent %r", self.name, message)

    def _drop(self, number: int) -> None:
        """Cut a channel whose lines nobody receives; opened again, it begins with the record."""
        channel = self._channels.pop(number)
        channel.cut()
        if self._link is not None:
            self._link.forget(number)
            self._link.send(ChannelClosed(channel=number))

    def _change(self, message: ChangedRows) -> None:
        rows = self._rows
        if message.every is not None:
            every = message.every[:_ROWS_MOST]
            self._awaited = {*every}
            rows = {id_: row for id_ in every if (row := rows.get(id_)) is not None}
        self._awaited.difference_update(row.id for row in message.rows)
        for row in message.rows:
            if not _ID.match(row.id):  # it goes into commands that a person copies
                log.warning("%s has a session with an odd id: %.200r", self.name, row.id)
                continue
            if len(rows) >= _ROWS_MOST and row.id not in rows:
                continue
            ours = msgspec.structs.replace(row, host=self.name)
            if rows.get(row.id) != ours:
                rows[row.id] = ours
        for id_ in message.gone:
            rows.pop(id_, None)
        self._rows, self._listed = rows, (*rows.values(),)
        self._far_problem = f"{self.name}: {message.problem}" if message.problem else ""
        if not self._awaited:
            self._problem = ""
            self._followers.tell_soon()


async def _greeting(reader: asyncio.StreamReader) -> tuple[Greeting | None, bytes]:
    """Wait for the other side's greeting, past all that its shell prints. Returns what that was,
    too."""
    printed = b""
    try:
        async with asyncio.timeout(_GREETING_S):
            while True:
                line = await reader.readuntil(b"\n")
                before, marker, rest = line.partition(MARKER)
                printed = (printed + before)[-_PRINTED:]
                if marker:
                    message = far_message_of(rest)
                    return (message if isinstance(message, Greeting) else None), printed
    except asyncio.IncompleteReadError as error:
        return None, printed + error.partial
    except (TimeoutError, OSError, asyncio.LimitOverrunError, BrokenLineError):
        return None, printed


def _mismatch(name: str, greeting: Greeting) -> str:
    """The reason why this program and that one don't understand each other; "" if they do."""
    own = Greeting(version=tui.__version__)
    if (own.protocol, own.lines) == (greeting.protocol, greeting.lines):
        return ""
    there = one_line(visible(greeting.version))[:40]
    newer = (greeting.protocol, greeting.lines) > (own.protocol, own.lines)
    return (
        f"{name} has Holdfast {there}, this machine {own.version}, and they don't understand each"
        f" other (protocol {greeting.protocol}.{greeting.lines} there,"
        f" {own.protocol}.{own.lines} here). Update it {'here' if newer else 'there'}."
    )


_Outcome = TypeVar("_Outcome")


def _settle(future: asyncio.Future[_Outcome] | None, outcome: _Outcome) -> None:
    if future is not None and not future.done():
        future.set_result(outcome)


def _fail(future: asyncio.Future[_Outcome], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
