"""Vim's modes in the prompt: said over it, sent from both, and off without a trace."""

from __future__ import annotations

from textual import events as textual_events

from tests.support.script import Hold
from tests.support.world import World
from tests.ui.screens.driving import answer, running, turn, until
from tui.core.config import Config
from tui.core.partly_typed import count_typed
from tui.core.paths import folders
from tui.settings.layers import read
from tui.ui.app import HoldfastApp


def vim_world() -> World:
    world = World()
    world.config = Config(vim=True)
    return world


def said(app: HoldfastApp) -> str:
    return app.chat.prompt_rule.right.plain


async def test_the_mode_is_said_and_normal_mode_edits() -> None:
    async with running(vim_world()) as (app, pilot):
        prompt = app.chat.prompt
        await until(pilot, lambda: said(app) == "INSERT · ask first")
        await pilot.press(*"two", "space", *"words", "escape")
        await until(pilot, lambda: said(app) == "NORMAL · ask first")
        await pilot.press("b", "d", "w", "0", "i", *"x", "escape", "p")
        assert prompt.text == "xwordstwo "
        await pilot.press("u", "u")
        assert prompt.text == "two "
        await pilot.press("ctrl+r")
        assert prompt.text == "xtwo "
        prompt.post_message(textual_events.Paste("a pasted text"))
        await until(pilot, lambda: "a pasted text" in prompt.text)
        assert said(app).startswith("NORMAL")


async def test_a_burst_of_keys_is_taken_in_its_order() -> None:
    async with running(vim_world()) as (app, pilot):
        for key in ("a", "b", "c", "escape", "d", "d", "i", "x", "escape", "A", "y", "z"):
            app.post_message(textual_events.Key(key, key if len(key) == 1 else None))
        await until(pilot, lambda: app.chat.prompt.text == "xyz")


async def test_escape_and_a_letter_at_once_is_not_a_key_with_alt() -> None:
    world = vim_world()
    world.config = Config(vim=True, keys={"find": "alt+x"})
    async with running(world) as (app, pilot):
        await pilot.press(*"one", "alt+b", *"iz")
        assert app.chat.prompt.text == "zone"
        await pilot.press("alt+shift+a", "!")
        assert app.chat.prompt.text == "zone!"
        await pilot.press("alt+x")
        await until(pilot, lambda: app.chat.left.finding)
        assert app.chat.prompt.text == "zone!"


async def test_enter_sends_from_normal_mode_and_the_next_prompt_begins_in_insert() -> None:
    world = vim_world()
    world.scripts.append(turn(*answer("Done.")))
    async with running(world) as (app, pilot):
        await pilot.press(*"go", "escape", "enter")
        await until(pilot, lambda: world.agent.sent == ["go"])
        await until(pilot, lambda: said(app).startswith("INSERT"))
        await pilot.press("escape", "k")
        await until(pilot, lambda: app.chat.prompt.text == "go")
        await pilot.press("j")
        await until(pilot, lambda: app.chat.prompt.text == "")


async def test_escape_stops_and_rewinds_from_normal_mode() -> None:
    world, hold = vim_world(), Hold()
    world.scripts.append(turn(hold))
    async with running(world) as (app, pilot):
        await pilot.press(*"go", "enter")
        await until(pilot, lambda: app.chat.busy)
        await pilot.press("escape")
        assert app.chat.busy
        await pilot.press("escape")
        await until(pilot, lambda: not app.chat.busy)
        await pilot.press("escape")
        await until(pilot, lambda: "Esc again" in app.chat.notice.text)
        await pilot.press("escape")
        await until(pilot, lambda: type(app.screen).__name__ == "PickScreen")


async def test_directives_and_suggestions_work_in_insert_mode() -> None:
    async with running(vim_world()) as (app, pilot):
        await pilot.press("slash", *"the")
        popup = app.chat.prompt.suggestions
        assert popup is not None
        await until(pilot, lambda: popup.opened)
        await pilot.press("escape")
        assert not popup.opened
        assert said(app).startswith("INSERT")
        await pilot.press("escape", "slash")
        await until(pilot, lambda: said(app).startswith("NORMAL"))
        assert app.chat.prompt.text == "/the"


async def test_what_was_cut_from_a_paste_does_not_count_as_typed() -> None:
    async with running(vim_world()) as (app, pilot):
        prompt = app.chat.prompt
        prompt.add_paste("/elevated")
        await pilot.press("escape", "d", "d", "p", "k", "J", "i")
        assert count_typed(prompt.submission) == 0
        await pilot.press("escape", "d", "d", "i", "x", "escape", "full_stop")
        assert prompt.text == "xx"
        assert count_typed(prompt.submission) <= 1


async def test_the_command_switches_it_for_good() -> None:
    async with running(World()) as (app, pilot):
        assert said(app) == "ask first"
        await app.action_command("vim")
        await until(pilot, lambda: said(app).startswith("INSERT"))
        await until(pilot, lambda: read(folders().config_file) == {"vim": True})
        await pilot.press("escape")
        await app.action_command("vim")
        await until(pilot, lambda: said(app) == "ask first")
        await until(pilot, lambda: "vim" not in read(folders().config_file))
        await pilot.press("x")
        assert app.chat.prompt.text == "x"
