"""Find in the conversation."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from textual.content import Content
from textual.widgets import Static

from tests.support.world import World
from tests.ui.screens.driving import running, say, until
from tui.ui.app import HoldfastApp
from tui.ui.widgets.conversation import search
from tui.ui.widgets.conversation.items import AssistantItem, Item, ToolItem
from tui.ui.widgets.conversation.search import ItemSearch
from tui.ui.widgets.search_bars import FindBar


def at(app: HoldfastApp) -> Item | None:
    return app.chat.conversation.cursor


def standing(app: HoldfastApp) -> str:
    return str(app.chat.query_one("#find-keys").render())


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
        assert standing(app).startswith("1 of 6   ")
        await pilot.press("down")
        assert at(app) is talk[53]
        assert standing(app).startswith("1 of 6 · no more   ")
        await pilot.press("enter", "enter")
        assert standing(app).startswith("3 of 6   ")
        await pilot.press("shift+enter")
        assert standing(app).startswith("2 of 6   ")
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


async def test_while_it_is_still_looked_for_nobody_says_that_there_is_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slices = 0
    advance = ItemSearch.advance

    def some(self: ItemSearch, items: Sequence[Item]) -> None:
        nonlocal slices
        slices += 1
        monkeypatch.setattr(search, "SLICE_S", 1.0 if slices > 40 else 1e-9)
        advance(self, items)

    monkeypatch.setattr(ItemSearch, "advance", some)
    async with running(World()) as (app, pilot):
        app.chat.fill([AssistantItem("a pear" if n < 5 else f"{n}") for n in range(400)])
        await pilot.press("ctrl+f")
        seen: list[str] = []
        keys = app.chat.query_one("#find-keys", Static)

        def update(content: Content) -> None:
            seen.append(content.plain)

        monkeypatch.setattr(keys, "update", update)
        await pilot.press("p")
        await until(pilot, lambda: bool(seen) and "…" not in seen[-1])
        assert seen[-1].startswith("1 of 5   ")
        assert any(text.startswith("searching …") for text in seen)
        assert not any("not found" in text or "no more" in text for text in seen)


async def test_what_stands_nowhere_is_said_so() -> None:
    async with running(World()) as (app, pilot):
        app.chat.add(AssistantItem("apple"))
        await pilot.press("ctrl+f", *"pear")
        await until(pilot, lambda: standing(app).startswith("not found"))
        await pilot.press(*["backspace"] * 4)
        await until(pilot, lambda: standing(app).startswith("↑ ↓"))
