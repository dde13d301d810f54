"""Keys in the conversation, which count if a key gave it the focus; and what is copied there."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot

from tests.support.world import World
from tests.ui.screens.driving import running, say, until
from tui.core.config import Config
from tui.ui.app import HoldfastApp
from tui.ui.widgets.conversation.items import AssistantItem, Item, NoticeItem, ToolItem, UserItem
from tui.ui.widgets.line_view import view


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
        await pilot.press("k", "k", "G")
        assert at(app) is items[-1]
        assert app.chat.conversation.following
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
        assert at(app) is items[0]
        await pilot.press("ctrl+d")
        rows = app.chat.conversation.scroll_y
        assert rows == app.chat.conversation.size.height // 2
        await pilot.press("ctrl+u")
        assert app.chat.conversation.scroll_y == 0
        assert app.chat.prompt.text == ""


async def test_space_pages_there_and_writes_nothing() -> None:
    async with running(World()) as (app, pilot):
        await talk(app, pilot)
        await pilot.press("tab", "g", "space")
        assert app.chat.conversation.scroll_y > 1
        assert app.focused is app.chat.conversation
        await pilot.press("enter")  # no blank was sent with it
        assert app.chat.prompt.text == ""
        await pilot.press(*"fix it")
        assert app.chat.prompt.text == "fix it"


async def test_what_a_command_reports_is_seen_by_who_had_scrolled_up() -> None:
    async with running(World()) as (app, pilot):
        await talk(app, pilot)
        await pilot.press("tab", "g")
        await say(pilot, "/status")
        await until(pilot, lambda: isinstance(app.chat.conversation.items[-1], NoticeItem))
        assert app.chat.conversation.following


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


def rows(app: HoldfastApp) -> list[str]:
    """The rows of the conversation, as they are on the screen."""
    view = app.chat.conversation
    return [strip.text.rstrip() for strip in view.render_lines(view.size.region)]


async def test_what_was_copied_is_said_on_its_row() -> None:
    async with running(World()) as (app, pilot):
        items = [UserItem("hello"), AssistantItem("one"), AssistantItem("two"), UserItem("bye")]
        app.chat.fill(items)
        await pilot.pause()
        await pilot.press("tab", "k", "k")
        height = app.chat.conversation.size.height
        await pilot.press("y")
        assert app.clipboard == "two"
        (row,) = (row for row in rows(app) if "● two" in row)
        assert row.endswith(" Copied 3 characters.")
        assert app.chat.conversation.size.height == height
        assert app.focused is app.chat.conversation


async def test_y_and_enter_leave_alone_what_is_out_of_sight() -> None:
    async with running(World()) as (app, pilot):
        items = await talk(app, pilot)
        await pilot.press("tab", "k", "pageup", "pageup", "y")
        seen, item = rows(app), at(app)
        assert isinstance(item, UserItem | AssistantItem)
        assert app.clipboard == item.text
        (said,) = (row for row in seen if row.endswith(f" Copied {len(item.text)} characters."))
        assert item.text.split("\n")[0] in said or said == seen[0]
        before = [each.folded for each in items if isinstance(each, UserItem)]
        await pilot.press("end", "enter")
        assert at(app) in items[-2:]
        assert [each.folded for each in items if isinstance(each, UserItem)] == before


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


async def drag(pilot: Pilot[None], start: tuple[int, int], end: tuple[int, int]) -> None:
    await pilot.mouse_down("#conversation", offset=start)
    await pilot.hover("#conversation", offset=end)
    await pilot.mouse_up("#conversation", offset=end)
    await pilot.pause()


@pytest.mark.parametrize(
    ("column", "times", "copied"),
    [
        (5, 2, "see"),
        (8, 2, "tui/app/x.py:10"),
        (4, 2, "see"),
        (7, 2, ""),  # the blank between them
        (8, 3, "see tui/app/x.py:10."),
    ],
)
async def test_a_double_click_copies_the_word_and_a_third_the_row(
    column: int, times: int, copied: str
) -> None:
    async with running(World()) as (app, pilot):
        app.chat.fill([UserItem("see tui/app/x.py:10."), AssistantItem("one two")])
        await pilot.pause()
        await pilot.click("#conversation", offset=(column, 0), times=times)
        await pilot.pause()
        assert app.clipboard == copied


async def test_a_double_click_on_a_call_leaves_it_unfolded() -> None:
    async with running(World()) as (app, pilot):
        call = ToolItem("t1", "run_command", "make", "ok", preview="built")
        app.chat.fill([call])
        await pilot.pause()
        await pilot.click("#conversation", offset=(8, 0), times=2)
        await pilot.pause()
        assert not call.folded


async def test_what_the_mouse_selects_is_copied_once() -> None:
    async with running(World()) as (app, pilot):
        app.chat.fill([UserItem("hello there"), AssistantItem("one two")])
        await pilot.pause()
        await drag(pilot, (3, 0), (8, 0))
        assert app.clipboard == "hello"
        assert rows(app)[0].startswith("  ▌ hello there ")
        assert rows(app)[0].endswith(" Copied 5 characters.")
        app.copy_to_clipboard("something else")
        await pilot.mouse_down("#splitter")  # the selection is still there
        await pilot.mouse_up("#splitter")
        await pilot.pause()
        assert app.clipboard == "something else"
        await drag(pilot, (3, 0), (8, 0))  # the same text, selected again
        assert app.clipboard == "hello"


async def test_what_keys_select_is_copied_once_they_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "SELECTED_S", 0.01)
    async with running(World()) as (app, pilot):
        app.chat.fill([UserItem("hello there")])
        await pilot.press("tab", *["shift+right"] * 5)
        await until(pilot, lambda: app.clipboard == "hello")


async def test_selecting_copies_nothing_if_that_is_switched_off() -> None:
    world = World()
    world.config = Config(copy_on_select=False)
    async with running(world) as (app, pilot):
        app.chat.fill([UserItem("hello there")])
        await pilot.pause()
        await drag(pilot, (3, 0), (8, 0))
        assert app.clipboard == ""
        await pilot.press("ctrl+y")
        assert app.clipboard == "hello"


async def test_code_blocks_of_the_newest_answer_with_code_have_numbers() -> None:
    several = "A:\n\n```py\nx = a\n\ny = b\n```\n\n- b\n  ```\n  z\n  ```\n"
    async with running(World()) as (app, pilot):
        conversation = app.chat.conversation

        def numbers() -> list[str]:
            size = conversation.size
            rows = [strip.text.rstrip() for strip in conversation.render_lines(size.region)]
            return [row.split()[-1] for row in rows if row[-1:].isdecimal() and row[-2] == " "]

        await say(pilot, "/copy 1")
        assert "No code block" in app.chat.notice.text
        app.chat.fill([AssistantItem(several)])
        await until(pilot, lambda: numbers() == ["1", "2"])
        for number, text in (("1", "x = a\n\ny = b"), ("2", "z")):
            await say(pilot, f"/copy {number}")
            await until(pilot, lambda: app.clipboard == text)  # noqa: B023 - awaited at once
        await say(pilot, "/copy 3")
        await until(pilot, lambda: "/copy 1 to 2" in app.chat.notice.text)
        app.chat.add(AssistantItem("no code"))
        await pilot.pause()
        assert numbers() == ["1", "2"]
        app.chat.add(AssistantItem("```\nlast\n```"))
        await until(pilot, lambda: numbers() == [])  # a single one needs no number
        await say(pilot, "/copy 1")
        await until(pilot, lambda: app.clipboard == "last")


async def test_copy_offers_the_blocks_with_their_first_lines() -> None:
    async with running(World()) as (app, pilot):
        app.chat.fill([AssistantItem("```\n\nfirst\nsecond\n```\n\n~~~\nother\n~~~")])
        await pilot.press(*"/copy ")
        popup = app.chat.prompt.suggestions
        assert popup is not None
        await until(pilot, lambda: len(popup.choices) == 2)
        offered = [(choice.value, choice.detail) for choice in popup.choices]
        assert offered == [("1", "first"), ("2", "other")]


async def test_a_key_of_the_prompt_acts_there_after_a_click_in_the_conversation() -> None:
    async with running(World()) as (app, pilot):
        await talk(app, pilot)
        await pilot.press(*"draft")
        await pilot.click(app.chat.conversation)
        assert app.focused is app.chat.conversation
        await pilot.press("ctrl+home")
        assert app.chat.conversation.scroll_y == 0
        await pilot.click(app.chat.conversation)
        await pilot.press("ctrl+s")
        assert app.chat.prompt.stashed == "draft"
        assert app.focused is app.chat.prompt


async def test_a_key_that_ones_own_keys_gave_to_the_prompt_acts_there_too() -> None:
    world = World()
    world.config = Config(keys={"stash": "f9"})
    async with running(world) as (app, pilot):
        await pilot.press(*"draft")
        await pilot.click(app.chat.conversation)
        await pilot.press("ctrl+s")
        assert app.chat.prompt.text == "draft"
        await pilot.press("f9")
        assert app.chat.prompt.stashed == "draft"


@pytest.mark.parametrize("key", ["ctrl+d", "ctrl+u", "ctrl+y"])
async def test_a_key_that_the_conversation_has_itself_stays_there(key: str) -> None:
    async with running(World()) as (app, pilot):
        await talk(app, pilot)
        await pilot.click(app.chat.conversation)
        await pilot.press(key)
        assert app.focused is app.chat.conversation
