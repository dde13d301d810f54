"""A machine that sends what no Holdfast would: the desk stays quick, small and whole."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from itertools import count, repeat
from zlib import crc32

import pytest

from tests.support.clock import PATIENCE_S
from tui.desk import far_host, far_link
from tui.desk.far_host import FarHost
from tui.desk.far_lines import (
    MARKER,
    ChangedRows,
    Greeting,
    Heartbeat,
    LinePiece,
    far_line_of,
)
from tui.desk.far_link import READ_LIMIT
from tui.desk.far_ssh import LineEnd
from tui.desk.host import DeskRow


class HostileLine:
    """A line whose far side greets, then sends `blocks` as fast as they are taken."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self.reader: asyncio.StreamReader
        self.writer: asyncio.StreamWriter
        self._blocks = blocks
        self._sending: asyncio.Task[None]

    async def __call__(self) -> HostileLine:
        one, other = socket.socketpair()
        self.reader, self.writer = await asyncio.open_connection(sock=one, limit=READ_LIMIT)
        reader, writer = await asyncio.open_connection(sock=other, limit=READ_LIMIT)
        self._sending = asyncio.create_task(self._send(reader, writer))
        return self

    async def _send(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(MARKER + far_line_of(Greeting()))
        await reader.readline()
        with suppress(OSError):
            for block in self._blocks:
                writer.write(block)
                await writer.drain()
            await reader.read()
        writer.close()

    async def close(self) -> LineEnd:
        self._sending.cancel()
        self.writer.close()
        return LineEnd(0, "")


@asynccontextmanager
async def desk_of(blocks: Iterator[bytes]) -> AsyncGenerator[FarHost]:
    host = FarHost("box", dial=HostileLine(blocks))
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield host
    finally:
        await host.close()


async def until_cut(host: FarHost) -> str:
    came = asyncio.Event()
    host.follow(came.set)
    while "cut" not in host.problem:
        came.clear()
        await came.wait()
    return host.problem


def piece(channel: int, data: bytes) -> bytes:
    return far_line_of(LinePiece(channel=channel, size=len(data), crc=crc32(data))) + data


@pytest.mark.parametrize("channels", [1, 1000])
async def test_lines_that_never_end_are_not_gathered(
    channels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither one that grows, nor many that have begun, nor pieces of a byte."""
    for name in ("_LINE_MOST", "_BEGUN_MOST"):
        monkeypatch.setattr(far_link, name, 200_000)
    pieces = (piece(number % channels, b"x") for number in count())
    async with desk_of(pieces) as host:
        assert "too long" in await until_cut(host)


async def test_a_flood_of_lines_leaves_others_their_turn() -> None:
    """Counted in lines, since time depends on the machine."""
    taken = 0

    def beats() -> Iterator[bytes]:
        nonlocal taken
        for _ in repeat(None, 200):
            taken += 100
            yield far_line_of(Heartbeat()) * 100
        yield far_line_of(ChangedRows(every=()))

    async with desk_of(beats()) as host:
        rows = asyncio.Event()
        host.follow(rows.set)
        turns = 0
        while not rows.is_set():
            await asyncio.sleep(0)
            turns += 1
        assert turns > taken / (2 * 32)


async def test_a_machine_lists_no_more_sessions_than_a_desk_can_show() -> None:
    def rows() -> Iterator[bytes]:
        for first in range(0, far_host._ROWS_MOST * 2, 100):  # pyright: ignore[reportPrivateUsage]
            some = tuple(DeskRow(id=f"s{first + one}") for one in range(100))
            yield far_line_of(ChangedRows(rows=some))
        yield far_line_of(ChangedRows(problem="that was all"))

    async with desk_of(rows()) as host:
        told = 0

        def changed() -> None:
            nonlocal told
            told += 1

        host.follow(changed)
        while "all" not in host.problem:  # noqa: ASYNC110 - as below
            await asyncio.sleep(0.01)
        assert len(host.rows) == far_host._ROWS_MOST  # pyright: ignore[reportPrivateUsage]
        assert told < 50  # of a hundred changes, some times a second


async def test_a_row_with_a_name_that_a_shell_would_take_apart_is_left_out() -> None:
    odd = ("../x", "-r", "a b", "a;id", "$(id)", "a/b", "", "é", "a\n", "x" * 200)
    named = tuple(DeskRow(id=one, host="", title="t") for one in (*odd, "fine"))
    async with desk_of(iter([far_line_of(ChangedRows(rows=named, every=()))])) as host:
        host.follow(lambda: None)
        while not host.rows:  # noqa: ASYNC110 - the machine is in this process
            await asyncio.sleep(0.01)
        assert [(row.id, row.host) for row in host.rows] == [("fine", "box")]
