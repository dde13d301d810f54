"""How a screen comes from the keeper of a terminal."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

from tui.keeper import folder as names
from tui.tools.terminal_link import TerminalLink

ROWS, COLS = 200, 500


def rows_of(count: int, cols: int) -> list[bytes]:
    """Rows whose cells have each a color of its own."""
    cells = [["x", f"{n:06x}", f"{n:06x}", "bi"] for n in range(cols)]
    return count * [json.dumps(cells).encode() + b"\n"]


async def test_the_largest_screen_in_all_colors_holds_no_key_up(tmp_path: Path) -> None:
    """Ten milliseconds are the most that anything may take of the event loop."""
    head = {"id": 1, "rows": ROWS, "screen": {"rows": ROWS, "cols": COLS}}
    answer = json.dumps(head).encode() + b"\n" + b"".join(rows_of(ROWS, COLS))
    assert len(answer) > 3_000_000

    async def keeper(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(answer)
        await writer.drain()

    slices: list[float] = []

    async def ticking() -> None:
        while True:
            began = time.thread_time()
            await asyncio.sleep(0)
            slices.append(time.thread_time() - began)

    async with await asyncio.start_unix_server(keeper, tmp_path / names.TERMINAL):
        link = TerminalLink(tmp_path, (ROWS, COLS))
        ticks = asyncio.create_task(ticking())
        screen = await link.refresh()
        ticks.cancel()
        link.close()
    assert [len(line) for line in screen.lines] == ROWS * [COLS]
    assert screen.lines[3][499].color == "0001f3"
    assert max(slices) < 0.01


async def test_rows_that_are_none_end_the_connection_and_no_more(tmp_path: Path) -> None:
    async def keeper(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b'{"id": 1, "rows": 2, "screen": {"rows": 2, "cols": 5}}\n[["a"]]\n{}\n')
        await writer.drain()

    async with await asyncio.start_unix_server(keeper, tmp_path / names.TERMINAL):
        link = TerminalLink(tmp_path, (2, 5))
        async with asyncio.timeout(10):
            assert (await link.refresh()).text == ""
        link.close()
