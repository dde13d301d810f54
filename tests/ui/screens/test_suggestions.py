"""Suggestions above the prompt: which keys they take, what they put in, what runs at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual import events as keys

from tests.support.world import World
from tests.ui.screens.driving import NARROW, WIDE, running, say, until
from tui.app.dialog_data import ModelRow, ProfileRow
from tui.provider.prices import Payer
from tui.ui.app import HoldfastApp
from tui.ui.screens.help import HelpScreen
from tui.ui.widgets.autocomplete import IGNORED, Suggestions


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def popup(app: HoldfastApp) -> Suggestions:
    return app.chat.query_one(Suggestions)


def values(app: HoldfastApp) -> list[str]:
    return [choice.value for choice in popup(app).choices]


@pytest.mark.parametrize("size", [WIDE, NARROW])
async def test_a_slash_opens_all_commands_above_the_prompt(
    world: World, size: tuple[int, int]
) -> None:
    async with running(world, size) as (app, pilot):
        await pilot.press("slash")
        await until(pilot, lambda: popup(app).size.height > 0)
        assert values(app)[:2] == ["help", "new"]
        assert popup(app).region.bottom == app.chat.query_one("#prompt-row").region.y
        assert popup(app).region.right <= size[0]
        assert app.focused is app.chat.prompt


async def test_enter_runs_a_command_that_needs_nothing(world: World) -> None:
    async with running(world) as (app, pilot):
        await pilot.press("slash", "h", "e", "enter")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        assert app.chat.prompt.text == ""
        assert app.chat.prompt.past.entries[-1] == "/help"


async def test_enter_only_completes_a_command_that_needs_an_argument(world: World) -> None:
    async with running(world) as (app, pilot):
        await pilot.press(*"/rena", "enter")
        assert app.chat.prompt.text == "/rename "
        assert world.agent.sent == []


async def test_tab_completes_and_typing_goes_on(world: World) -> None:
    async with running(world) as (app, pilot):
        await pilot.press(*"/theme"[:4], "tab")
        assert app.chat.prompt.text == "/theme "
        await until(pilot, lambda: "daylight" in values(app))
        await pilot.press("d", "a", "y", "enter")
        await until(pilot, lambda: app.theme == "daylight")
        assert app.chat.prompt.text == ""


async def test_up_and_down_choose_and_the_history_stays(world: World) -> None:
    async with running(world) as (app, pilot):
        await say(pilot, "earlier")
        await until(pilot, lambda: not app.conversation.busy)
        await pilot.press("slash", "down", "up", "up")
        assert popup(app).cursor == len(values(app)) - 1
        assert app.chat.prompt.text == "/"
        await pilot.press("escape", "up")
        assert app.chat.prompt.text == "earlier"


async def test_escape_closes_them_before_it_stops_anything(world: World) -> None:
    async with running(world) as (app, pilot):
        await pilot.press("slash", "m")
        assert popup(app).opened
        await pilot.press("escape")
        assert not popup(app).opened
        assert app.chat.prompt.text == "/m"
        await pilot.press("o")
        assert not popup(app).opened, "closed for the word"


async def test_an_optional_argument_is_not_chosen_by_enter_alone(world: World) -> None:
    async with running(world) as (app, pilot):
        await pilot.press(*"/think", "space")
        await until(pilot, lambda: values(app) == ["on", "off"])
        await pilot.press("enter")
        await until(pilot, lambda: world.agent.directives.think)
        await until(pilot, lambda: not app.conversation.busy)
        await pilot.press(*"/think", "space")
        await until(pilot, lambda: values(app) == ["on", "off"])
        await pilot.press("down", "enter")
        await until(pilot, lambda: not world.agent.directives.think)


async def test_models_and_sessions_are_offered(world: World) -> None:
    world.models = (ModelRow("claude-opus-5-5", 200_000), ModelRow("other-one", 1000))
    world.add_row("fix the flaky test", hours=1)
    async with running(world) as (app, pilot):
        await pilot.press(*"/model", "space", "o", "p")
        await until(pilot, lambda: values(app) == ["claude-opus-5-5"])
        await pilot.press("ctrl+c", *"/resume", "space", *"flaky")
        await until(pilot, lambda: values(app) == [world.rows[0].id])
        assert popup(app).choices[0].detail == "fix the flaky test"
        await pilot.press("tab")
        assert app.chat.prompt.text == f"/resume {world.rows[0].id} "


async def test_profiles_are_offered_with_what_each_is(world: World) -> None:
    payer = Payer("", "https://api.anthropic.com", {})
    world.profiles = (
        ProfileRow("default", "claude-sonnet-5-5", payer.server, "your usual key", payer, now=True),
        ProfileRow("work", "claude-opus-5-5", "https://gateway", "its own key", payer),
    )
    async with running(world) as (app, pilot):
        await pilot.press(*"/profile", "space")
        await until(pilot, lambda: values(app) == ["default", "work"])
        assert [one.detail for one in popup(app).choices] == [
            "claude-sonnet-5-5 · api.anthropic.com · your usual key · in use",
            "claude-opus-5-5 · gateway · its own key",
        ]


async def test_the_folders_next_to_this_one_may_be_added(tmp_path: Path) -> None:
    for name in ("here/inside", "other", ".hidden"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "file").touch()
    world = World(tmp_path / "here")
    async with running(world) as (app, pilot):
        await pilot.press(*"/add-dir", "space")
        await until(pilot, lambda: values(app) == ["../other/"])
        await pilot.press("tab", "enter")
        await until(
            pilot, lambda: (tmp_path / "other").resolve() in world.agent.permissions.folders
        )
        await pilot.press(*"/add-dir", "space", *"/o", "e")
        await pilot.pause()
        assert values(app) == []  # a path that is typed out is never taken for another one


async def test_files_that_git_ignores_come_last(world: World) -> None:
    root = world.workspace
    (root / ".git").mkdir()
    (root / ".gitignore").write_text("built.py\n")
    (root / "src").mkdir()
    for name in ("src/main.py", "built.py"):
        (root / name).write_text("")
    async with running(world) as (app, pilot):
        await pilot.press(*"see", "space", "at", *"py")
        await until(pilot, lambda: popup(app).opened)
        choices = [(choice.value, choice.detail) for choice in popup(app).choices]
        assert choices == [("src/main.py", ""), ("built.py", IGNORED)]
        await pilot.press("enter")
        assert app.chat.prompt.text == "see @src/main.py "
        assert world.agent.sent == []


async def test_a_paste_and_a_recalled_prompt_open_nothing(world: World) -> None:
    async with running(world) as (app, pilot):
        app.chat.prompt.post_message(keys.Paste("/mo"))
        await pilot.pause()
        assert app.chat.prompt.text == "/mo"
        assert not popup(app).opened
        await pilot.press("ctrl+c", "up")
        assert app.chat.prompt.text == "/mo"
        assert not popup(app).opened


async def test_a_click_picks_and_the_prompt_keeps_the_focus(world: World) -> None:
    async with running(world) as (app, pilot):
        await pilot.press(*"/th")
        await until(pilot, lambda: popup(app).size.height > 1)
        second = values(app)[1]
        await pilot.click(popup(app), offset=(4, 1))
        await until(pilot, lambda: app.chat.prompt.text == f"/{second} ")
        assert app.focused is app.chat.prompt


async def test_an_alias_runs_what_it_stands_for(world: World) -> None:
    async with running(world) as (_, pilot):
        await say(pilot, "/clear")
        await until(pilot, lambda: len(world.agents) == 2)
