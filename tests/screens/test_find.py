"""Find in the conversation."""

from __future__ import annotations

from tests.screens.driving import running, say
from tests.support.fake_agent import World
from tui.app import HoldfastApp
from tui.widgets.conversation.items import AssistantItem, Item, ToolItem
from tui.widgets.find_bar import FindBar


def at(app: HoldfastApp) -> Item | None:
    return app.chat.conversation.cursor


async def test_what_is_typed_is_found_from_the_newest_back() -> None:
    async with running(World()) as (app, pilot):
        talk = [AssistantItem(f"the {n} apple" if n % 10 == 3 else f"{n}") for n in range(60)]
        for item in talk:
            app.chat.add(item)
        await pilot.press("ctrl+f", *"APPLE")
        assert at(app) is talk[53]
        await pilot.press("enter")
        assert at(app) is talk[43]
        await pilot.press("up", "down", "down")
        assert at(app) is talk[53]
        keys = app.chat.query_one("#find-keys")
        assert "no more" not in str(keys.render())
        await pilot.press("down")
        assert at(app) is talk[53]
        assert "no more of it" in str(keys.render())
        await pilot.press("escape")
        assert app.focused is app.chat.prompt
        assert app.chat.prompt.text == ""
        assert not app.chat.query_one(FindBar).opened


async def test_the_command_finds_at_once() -> None:
    async with running(World()) as (app, pilot):
        for n in range(60):
            app.chat.add(AssistantItem(f"message {n}"))
        await say(pilot, "/find message 7")
        await pilot.pause()
        assert isinstance(item := at(app), AssistantItem)
        assert item.text == "message 7"
        app.chat.prompt.focus()
        await pilot.press("escape")
        assert not app.chat.query_one(FindBar).opened


async def test_what_is_folded_away_is_opened_where_it_is_found() -> None:
    async with running(World()) as (app, pilot):
        tool = ToolItem("1", "read_file", "a.py", state="ok", preview="one\nneedle\nthree")
        app.chat.add(tool)
        await pilot.press("ctrl+f", *"needle")
        assert at(app) is tool
        assert not tool.folded
