"""What terminals sent for the keys of whole layouts, and pastes, arrives in the prompt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests import terminals
from tests.support.clock import FakeClock
from tests.support.world import World
from tests.terminals.drive import LIGATURES
from tests.ui.screens.driving import running
from tui.ui.app import HoldfastApp
from tui.ui.toolkit.key_parser import KeyParser

ROWS: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(terminals.__file__).parent / "typed.jsonl").read_text().splitlines()
]


async def comes(app: HoldfastApp, pilot: Pilot[None], data: bytes, size: int) -> None:
    """Let the terminal send this, in reads of one size."""
    clock = FakeClock()
    parser = KeyParser(str, now=clock.monotonic)
    for at in range(0, len(data), size):
        clock.elapsed += 0.01
        for message in parser.feed(data[at : at + size]):
            message.set_sender(app)
            app.post_message(message)
    await pilot.pause()


@pytest.mark.parametrize(
    "row",
    [pytest.param(row, id=f"{row['terminal']} {row['name']}") for row in ROWS],
)
@pytest.mark.parametrize("size", [3, 1_000])
async def test_a_layout_typed_by_its_keys(row: dict[str, Any], size: int) -> None:
    async with running(World(), (80, 24)) as (app, pilot):
        await comes(app, pilot, b" " + bytes.fromhex(row["data"]), size)
        came, meant = app.chat.prompt.text, " " + row["meant"]
        assert came.translate(LIGATURES) == meant.translate(LIGATURES)


async def test_a_paste_of_5000_lines() -> None:
    text = "\n".join(f"line {number} é 日本 👩‍💻" for number in range(5_000))
    async with running(World(), (80, 24)) as (app, pilot):
        await comes(app, pilot, b"\x1b[200~" + text.encode() + b"\x1b[201~", 4_096)
        assert app.chat.prompt.value == text
