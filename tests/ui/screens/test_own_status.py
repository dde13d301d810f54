"""`[status] command`: its line at the foot of the screen, and its settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.world import World
from tests.ui.screens.driving import answer, running, say, turn, until
from tui.core.config import Config, Status
from tui.settings.trust import items
from tui.ui.widgets.bars import KeyHint, StatusState, status_line


async def test_it_is_shown_after_each_turn(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.config = Config(status=Status(command="grep -o '\"turns\": [0-9]*'"))
    world.scripts.append(turn(*answer("Done.")))
    async with running(world) as (app, pilot):
        await until(pilot, lambda: app.chat.status.state.own == '"turns": 0')
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.status.state.own == '"turns": 1')
        assert '"turns": 1   1 prompt   ● saved' in status_line(app.chat.status.state, 120).plain


async def test_a_failing_one_is_named(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.config = Config(status=Status(command="exit 4"))
    async with running(world) as (app, pilot):
        await until(
            pilot, lambda: "Your status command failed (exit code 4)." in app.chat.notice.text
        )


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
def test_it_gives_way_to_the_first_keys_and_to_what_is_saved(width: int) -> None:
    hints = (KeyHint("enter", "send"), KeyHint("ctrl+p", "commands"), KeyHint("f1", "help"))
    line = status_line(StatusState(hints, 3, own="漢字 " * 60), width)
    assert line.cell_length <= width
    assert "saved" in line.plain
    assert width < 60 or "ctrl+p commands" in line.plain
    assert width < 60 or "漢" in line.plain


def test_a_folder_that_brings_one_is_asked_about(tmp_path: Path) -> None:
    world = World(tmp_path)
    file = world.workspace / ".holdfast" / "config.toml"
    file.parent.mkdir()
    file.write_text('[status]\ncommand = "curl x"\n')
    assert [item.does for item in items(world.workspace)] == [
        "Runs after each turn, outside the sandbox: curl x"
    ]
