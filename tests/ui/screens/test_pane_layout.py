"""The panes: their widths are changed, kept within reason, and remembered."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.geometry import Offset

from tests.support.world import World
from tests.ui.screens.driving import NARROW, ROOMY, WIDE, begun, running, say
from tui.ui.screens.chat import ChatScreen
from tui.ui.screens.pane_layout import LEFT_MIN, SIDE_MIN, PaneLayout, load_layout, save_layout
from tui.ui.widgets.conversation.items import AssistantItem


def side(chat: ChatScreen) -> int:
    shown = chat.query_one("#side")
    return shown.size.width if shown.display else 0


def joined(chat: ChatScreen) -> bool:
    """Whether the lines between the panes meet."""
    column = chat.splitter.region.x
    return chat.prompt_rule.joint == column


async def test_the_line_between_the_panes_is_dragged_and_remembered() -> None:
    async with running(World(), ROOMY) as (app, pilot):
        await begun(app, pilot)
        line = app.chat.splitter.region
        await pilot.mouse_down("#splitter", offset=(0, 5))
        await pilot.hover(offset=Offset(line.x - 10, line.y + 5))
        await pilot.mouse_up(offset=Offset(line.x - 10, line.y + 5))
        wide = side(app.chat)
        assert app.chat.splitter.region.x == line.x - 10
        assert joined(app.chat)
        await pilot.hover(offset=Offset(40, 10))
        assert side(app.chat) == wide
    async with running(World(), ROOMY) as (app, pilot):
        await begun(app, pilot)
        assert side(app.chat) == wide
        await pilot.resize_terminal(200, 60)
        assert abs(side(app.chat) - wide * 200 / 160) <= 1


async def test_keys_and_a_command_change_the_width_too() -> None:
    async with running(World(), ROOMY) as (app, pilot):
        await begun(app, pilot)
        before = side(app.chat)
        app.chat.output.focus()
        await pilot.press("less_than_sign")
        assert side(app.chat) == before + 4
        await pilot.press("greater_than_sign", "greater_than_sign")
        assert side(app.chat) == before - 4
        await say(pilot, "/output 60")
        assert side(app.chat) == 96
        await say(pilot, "/output wide")
        assert "percentage" in app.chat.notice.text
        assert side(app.chat) == 96


async def test_neither_pane_is_pushed_out() -> None:
    async with running(World(), (100, 30)) as (app, pilot):
        await say(pilot, "/output 50")
        assert not app.chat.notice.text
        await say(pilot, "/output 99")
        assert "59 % is the most that fits here" in app.chat.notice.text
        assert app.chat.query_one("#left").size.width >= LEFT_MIN
        await say(pilot, "/output 1")
        assert "30 % is the least that fits here" in app.chat.notice.text
        assert side(app.chat) >= SIDE_MIN
        await pilot.resize_terminal(*NARROW)
        assert side(app.chat) == 0
        await pilot.press("f4")
        assert side(app.chat) == NARROW[0]


async def test_a_closed_side_stays_closed_in_the_next_run() -> None:
    async with running(World(), ROOMY) as (app, pilot):
        await begun(app, pilot)
        await pilot.press("f4")
        assert side(app.chat) == 0
        assert app.chat.prompt_rule.joint is None
    async with running(World(), ROOMY) as (app, pilot):
        await begun(app, pilot)
        assert side(app.chat) == 0
        await pilot.press("f4")
        assert side(app.chat) > 0
        assert joined(app.chat)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"side": "wide"}', '{"side": NaN, "open": 3}', '{"side": 7.5}', "[" * 9000],
)
def test_a_damaged_file_costs_nothing(tmp_path: Path, text: str) -> None:
    file = tmp_path / "screen.json"
    file.write_text(text)
    assert load_layout(file) == PaneLayout()


def test_a_layout_comes_back_as_it_was_kept(tmp_path: Path) -> None:
    file = tmp_path / "new" / "screen.json"
    assert load_layout(file) == PaneLayout()
    save_layout(file, PaneLayout(0.5, open=False))
    assert load_layout(file) == PaneLayout(0.5, open=False)
    assert [path.name for path in file.parent.iterdir()] == ["screen.json"]


def test_a_folder_that_cannot_be_written_is_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    save_layout(tmp_path / "file" / "screen.json", PaneLayout(0.5))


async def test_one_column_has_the_screen_until_the_output_is_wanted() -> None:
    async with running(World(), WIDE) as (app, pilot):
        app.chat.add(AssistantItem("Hello."))
        await pilot.pause()
        assert side(app.chat) == 0
        assert app.chat.query_one("#conversation").content_size.width >= 116
        await pilot.press("f4")
        await pilot.pause()
        assert side(app.chat) > 0
        app.chat.output.focus()
        await pilot.press("escape")
        await pilot.pause()
        assert side(app.chat) == 0
        await pilot.press("f4")
    async with running(World(), WIDE) as (app, pilot):
        await pilot.pause()
        assert side(app.chat) > 0
    async with running(World(), ROOMY) as (app, pilot):
        assert side(app.chat) > 0
