"""Keys in the conversation: letters count if a key gave it the focus, not after a click."""

from __future__ import annotations

from textual.pilot import Pilot

from tests.support.world import World
from tests.ui.screens.driving import running, until
from tui.ui.app import HoldfastApp
from tui.ui.widgets.conversation.items import AssistantItem, Item, UserItem


async def talk(app: HoldfastApp, pilot: Pilot[None]) -> list[Item]:
    """A conversation of several screens."""
    more = "more\n\n" * 6
    kinds = (UserItem, AssistantItem)
    items = [kind(f"{kind.__name__} {n}\n\n{more}") for n in range(6) for kind in kinds]
    app.chat.fill(items)
    await pilot.pause()
    return list(items)


def at(app: HoldfastApp) -> Item | None:
    return app.chat.conversation.cursor


async def test_letters_move_once_a_key_has_led_there() -> None:
    async with running(World()) as (app, pilot):
        items = await talk(app, pilot)
        await pilot.press("tab", "k")
        assert at(app) is items[-1]
        await pilot.press("G")
        await pilot.press("N")
        assert at(app) is items[-2]
        await pilot.press("N", "N")
        assert at(app) is items[-6]
        await pilot.press("n")
        assert at(app) is items[-4]
        await pilot.press("n", "n")  # there is no further prompt: the end
        assert app.chat.conversation.following
        await pilot.press("g")
        assert app.chat.conversation.scroll_y == 0
        await pilot.press("j")
        assert at(app) is items[0]
        await pilot.press("ctrl+d")
        rows = app.chat.conversation.scroll_y
        assert rows == app.chat.conversation.size.height // 2
        await pilot.press("ctrl+u")
        assert app.chat.conversation.scroll_y == 0
        assert app.chat.prompt.text == ""


async def test_any_other_letter_goes_to_the_prompt() -> None:
    async with running(World()) as (app, pilot):
        await talk(app, pilot)
        await pilot.press("tab", *"answer")
        assert app.focused is app.chat.prompt
        assert app.chat.prompt.text == "answer"


async def test_after_a_click_every_letter_goes_to_the_prompt() -> None:
    async with running(World()) as (app, pilot):
        await talk(app, pilot)
        await pilot.press("tab")
        await pilot.click("#conversation", offset=(6, 6))
        assert app.focused is app.chat.conversation
        hints = [hint.key for hint in app.chat.status.state.hints]
        assert "ctrl+y" in hints
        assert "j k" not in hints
        await pilot.press(*"jkgGnNy/")
        assert app.chat.prompt.text == "jkgGnNy/"


async def test_what_was_copied_is_said_without_a_shift_of_rows() -> None:
    async with running(World()) as (app, pilot):
        items = await talk(app, pilot)
        await pilot.press("tab", "k")
        height = app.chat.conversation.size.height
        await pilot.press("y")
        assert isinstance(item := items[-1], AssistantItem)
        assert app.clipboard == item.text
        assert app.chat.left.rule.right.plain == f"Copied {len(item.text)} characters."
        assert app.chat.conversation.size.height == height
        assert app.focused is app.chat.conversation


async def test_a_slash_searches_and_n_goes_through_what_was_found() -> None:
    async with running(World()) as (app, pilot):
        items = await talk(app, pilot)
        await pilot.press("tab", "slash", *"AssistantItem")
        await until(pilot, lambda: app.chat.left.finding and at(app) is items[-1])
        app.chat.conversation.focus()
        await pilot.press("n")
        assert at(app) is items[-3]
        await pilot.press("N")
        assert at(app) is items[-1]
        await pilot.press("escape")
        assert not app.chat.left.finding
