"""`holdfast serve --stdio`: the sessions of this machine for a desk on another one.

ssh starts it, and it ends with its stdin. It listens nowhere.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import stat
from collections.abc import Coroutine, Iterable, Iterator
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any, Final

import tui
from tui.app.door.lines import (
    AskedLine,
    Ended,
    FromOwner,
    Hello,
    LineError,
    OwnerNotice,
    RequestOutcome,
    SessionStatus,
    Settled,
    line_of,
    to_owner,
)
from tui.core.clock import Clock, SuspendAwareClock
from tui.core.errors import HoldfastError, UsageError
from tui.desk.far_lines import (
    CONTROL,
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
    far_line_of,
    far_message_of,
)
from tui.desk.far_link import READ_LIMIT, FarLink, Rank, SessionLine
from tui.desk.host import Channel, DeskHost, DeskRow

log = logging.getLogger(__name__)

_GREETING_S: Final = 60.0
_AHEAD: Final = 1 << 18
"""Bytes of a channel that wait to be sent before more of it is received: a session's door closes
on a watcher that is too far behind, and its channel then goes on from the record."""
_ROWS: Final = 32
_ROWS_URGENT: Final = 65_536


def serve_stdio(home: Path, source_fd: int, out_fd: int, host: DeskHost) -> int:
    """Serve `host` to whoever is at the other end of two descriptors, until the first one ends.
    `home` is the person's home folder. Returns an exit code; raises UsageError for files.

    The descriptors are taken over: nothing else that prints gets between the lines, and no process
    that is started from here holds the line open.
    """
    if any(stat.S_ISREG(os.fstat(one).st_mode) for one in (source_fd, out_fd)):
        raise UsageError(
            "serve --stdio speaks with a desk over pipes, as ssh has them.",
            hint="Name this machine at a desk instead: holdfast desk --host HOST",
        )
    source = os.fdopen(os.dup(source_fd), "rb", buffering=0)
    out = os.fdopen(os.dup(out_fd), "wb", buffering=0)
    nothing = os.open(os.devnull, os.O_RDWR)
    for taken in (source_fd, out_fd):
        os.dup2(nothing, taken)
    os.close(nothing)
    asyncio.run(_serve(home, source, out, host))
    return 0


async def _serve(home: Path, source: FileIO, out: FileIO, host: DeskHost) -> None:
    reader, writer = await _streams(source, out)
    task = asyncio.ensure_future(serve(home, reader, writer, host, SuspendAwareClock()))
    for name in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, task.cancel)
    with suppress(asyncio.CancelledError):
        await task


async def _streams(
    source: FileIO, out: FileIO
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open two files, which may be pipes, sockets, or, as sshd has it, one socket twice."""
    loop = asyncio.get_running_loop()
    there, here = os.fstat(source.fileno()), os.fstat(out.fileno())
    if stat.S_ISSOCK(here.st_mode):
        # A write pipe would take what comes in by such a socket for its end.
        connection = socket.socket(fileno=os.dup(out.fileno()))
        out.close()
        reader, writer = await asyncio.open_connection(sock=connection, limit=READ_LIMIT)
        if os.path.samestat(there, here):
            source.close()
            return reader, writer
    else:
        flow = asyncio.StreamReaderProtocol(asyncio.StreamReader())
        transport, _ = await loop.connect_write_pipe(lambda: flow, out)
        writer = asyncio.StreamWriter(transport, flow, None, loop)
    reader = asyncio.StreamReader(limit=READ_LIMIT)
    protocol = asyncio.StreamReaderProtocol(reader)
    await loop.connect_read_pipe(lambda: protocol, source)
    return reader, writer


async def serve(
    home: Path,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    host: DeskHost,
    clock: Clock,
) -> None:
    """Greet a desk, and serve it until the line is cut. Closes `host`."""
    link = FarLink(reader, writer, clock)
    try:
        greeting = Greeting(
            version=tui.__version__, machine=socket.gethostname(), home=str(home), pid=os.getpid()
        )
        writer.write(MARKER + far_line_of(greeting))
        with suppress(OSError):
            await writer.drain()
        theirs = await _greeting(reader)
        if theirs is None or (theirs.protocol, theirs.lines) != (greeting.protocol, greeting.lines):
            log.info("serve: no desk of this protocol: %r", theirs)
            return
        log.info("serve: a desk of Holdfast %s on %s", theirs.version, theirs.machine)
        serving = _Serving(host, link)
        try:
            log.info("serve: the line is cut: %s", await link.run(serving.take))
        finally:
            await serving.close()
    finally:
        await host.close()
        link.close()


async def _greeting(reader: asyncio.StreamReader) -> Greeting | None:
    try:
        async with asyncio.timeout(_GREETING_S):
            message = far_message_of(await reader.readuntil(b"\n"))
    except (TimeoutError, EOFError, OSError, asyncio.LimitOverrunError, BrokenLineError):
        return None
    return message if isinstance(message, Greeting) else None


class _Serving:
    """A desk that is served."""

    def __init__(self, host: DeskHost, link: FarLink) -> None:
        self._host = host
        self._link = link
        self._channels: dict[int, Channel] = {}
        self._pumps: dict[int, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        host.follow(self._changed.set)
        self._run(self._send_rows())

    def _run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)
        return task

    def _over(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("serve: a fault", exc_info=error)
            self._link.close()  # the desk says that the line is cut, and begins again

    async def close(self) -> None:
        """Close all channels and end all work."""
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def take(self, message: FarLine | SessionLine) -> None:
        """Do what the desk asks."""
        match message:
            case SessionLine(number, line):
                self._pass_on(number, line)
            case OpenChannel(channel=number, session=session):
                self._pumps[number] = self._run(self._pump(number, session))
            case ChannelClosed(channel=number):
                if pump := self._pumps.pop(number, None):
                    pump.cancel()
            case StartSession():
                self._run(self._start(message))
            case DismissSession(session=session):
                self._run(self._host.dismiss(session))
            case _:
                log.info("serve: a desk sent %r", message)

    def _pass_on(self, number: int, line: bytes) -> None:
        channel = self._channels.get(number)
        if channel is None:
            return
        try:
            channel.send(to_owner(line))
        except LineError as error:
            self._tell(number, OwnerNotice(text=str(error), level="warning"))

    async def _start(self, asked: StartSession) -> None:
        try:
            session = await self._host.start(asked.cwd, asked.prompt)
        except HoldfastError as error:
            reason = error.message
            self._link.send(StartOutcome(number=asked.number, reason=reason, hint=error.hint))
        else:
            self._link.send(StartOutcome(number=asked.number, session=session))

    async def _pump(self, number: int, session: str) -> None:
        """Open a session's lines, and pass them on until they end."""
        try:
            channel = await self._host.open(session)
        except HoldfastError as error:
            self._pumps.pop(number, None)
            self._link.send(ChannelClosed(channel=number, reason=error.message, hint=error.hint))
            return
        self._channels[number] = channel
        try:
            self._link.send(ChannelOpened(channel=number))
            while await self._pass_back(number, channel):
                pass
            await self._link.drained(number)
            self._link.send(ChannelClosed(channel=number))
        finally:
            self._channels.pop(number, None)
            self._pumps.pop(number, None)
            self._link.forget(number)
            await channel.close()

    async def _pass_back(self, number: int, channel: Channel) -> bool:
        """Pass the next message of a channel on. False at its end."""
        try:
            message = await channel.receive()
        except LineError as error:
            message = OwnerNotice(text=str(error), level="warning")
        if message is None:
            return False
        self._tell(number, message)
        await self._link.drained(number, _AHEAD)
        return True

    def _tell(self, number: int, message: FromOwner) -> None:
        self._link.send_line(number, line_of(message), _rank(message))

    async def _send_rows(self) -> None:
        """Send what has changed of the rows, again and again. What changes meanwhile, or while the
        line is busy, is sent once, as it is then."""
        sent: dict[str, DeskRow] = {}
        problem: str | None = None
        while True:
            await self._changed.wait()
            self._changed.clear()
            rows = {row.id: row for row in self._host.rows}
            changed = [row for id_, row in rows.items() if sent.get(id_) is not row]
            gone = tuple(id_ for id_ in sent if id_ not in rows)
            if not changed and not gone and problem == self._host.problem:
                continue
            every = (*rows,) if problem is None else None
            sent, problem = rows, self._host.problem
            waiting = tuple(row for row in changed if row.questions)
            first = ChangedRows(rows=waiting, gone=gone, every=every, problem=problem)
            if len(far_line_of(first)) > _ROWS_URGENT:
                self._link.send_later(first)
            else:
                self._link.send(first)
            for part in _parts(row for row in changed if not row.questions):
                self._link.send_later(ChangedRows(rows=part, problem=problem))
            await self._link.drained(CONTROL)


def _parts(rows: Iterable[DeskRow]) -> Iterator[tuple[DeskRow, ...]]:
    every = [*rows]
    for first in range(0, len(every), _ROWS):
        yield tuple(every[first : first + _ROWS])


def _rank(message: FromOwner) -> Rank:
    match message:
        case SessionStatus() | AskedLine() | Settled() | OwnerNotice() | RequestOutcome():
            return "urgent"
        case Hello() | Ended():
            return "mark"
        case _:
            return "in order"
