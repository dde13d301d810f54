"""Esc and a command that come in one read: the command is one, and no prompt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.world import World
from tests.ui.screens.driving import running, until
from tui.ui.screens.context import ContextScreen
from tui.ui.toolkit.key_parser import KeyParser


@pytest.mark.parametrize(
    "reads",
    [
        [b"\x1b/context\r"],
        [b"\x1b/", b"context\r"],
        [b"\x1b[27u/context\r"],
        [b"\x1b[27u\x1b[47;;47u", b"context\r"],
        [b"\x1b", b"/context\r"],
    ],
)
async def test_the_command_is_run(tmp_path: Path, reads: list[bytes]) -> None:
    world = World(tmp_path)
    async with running(world) as (app, pilot):
        driver: Any = app._driver  # pyright: ignore[reportPrivateUsage]
        parser = KeyParser(str)
        for data in reads:
            for message in parser.feed(data):
                driver.process_message(message)
        await until(pilot, lambda: isinstance(app.screen, ContextScreen))
        assert world.agent.sent == []
        assert app.chat.prompt.text == ""
