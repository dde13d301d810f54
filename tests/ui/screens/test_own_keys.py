"""`[keys]`: a person's own keys work, and are named wherever keys are."""

from __future__ import annotations

import pytest

from tests.support.script import Hold
from tests.support.world import World
from tests.ui.screens.driving import answer, running, say, turn, until
from tui.core.config import Config
from tui.core.errors import ConfigError
from tui.core.paths import folders
from tui.settings.layers import parse, read
from tui.settings.validation import check
from tui.ui.app import HoldfastApp
from tui.ui.screens.help import HelpScreen, HelpTable


def hints(app: HoldfastApp) -> list[str]:
    return [f"{hint.key} {hint.text}" for hint in app.chat.status.state.hints]


def world_with(**own: str | tuple[str, ...]) -> World:
    world = World()
    world.config = Config(keys=own)
    return world


async def test_an_own_key_works_in_the_place_of_the_default() -> None:
    own = world_with(find="ctrl+t", tasks="", desk="", context=("f7", "alt+c"))
    async with running(own) as (app, pilot):
        await pilot.press("ctrl+f")
        await pilot.pause()
        assert not app.chat.left.finding
        await pilot.press("ctrl+t")
        await until(pilot, lambda: app.chat.left.finding)
        await pilot.press("escape")
        for key in ("f7", "alt+c"):  # F7 selects all in a text area that knows nothing of it
            await pilot.press(key)
            await until(pilot, lambda: type(app.screen).__name__ == "ContextScreen")
            await pilot.press("escape")
            await until(pilot, lambda: app.screen is app.chat)
        await pilot.press("f2")
        await pilot.pause()
        assert app.screen is app.chat


async def test_an_editing_key_that_is_given_away_edits_no_more() -> None:
    async with running(world_with(fold_tools="ctrl+k")) as (app, pilot):
        folded: list[bool] = []
        app.chat.action_fold_tools = lambda: folded.append(True)  # type: ignore[method-assign]
        await pilot.press("a", "b", "home", "ctrl+k")
        await until(pilot, lambda: bool(folded))
        assert app.chat.prompt.text == "ab"


async def test_enter_can_begin_a_line_and_ctrl_enter_send() -> None:
    world = world_with(send="ctrl+enter", newline="enter")
    world.scripts.append(turn(*answer("Done.")))
    async with running(world) as (app, pilot):
        await pilot.press("a", "enter", "b")
        assert app.chat.prompt.text == "a\nb"
        await pilot.press("ctrl+enter")
        await until(pilot, lambda: world.agent.sent == ["a\nb"])


async def test_escape_still_stops_where_stop_has_a_key_too() -> None:
    world, hold = world_with(stop="f8"), Hold()
    world.scripts += [turn(hold), turn(hold)]
    async with running(world) as (app, pilot):
        for key in ("escape", "f8"):
            await say(pilot, "go")
            await until(pilot, lambda: app.chat.busy)
            await pilot.press(key)
            await until(pilot, lambda: not app.chat.busy)


async def test_help_and_footer_name_the_own_keys() -> None:
    world = world_with(palette="ctrl+k", sessions="", page_up="alt+up", help="f8")
    async with running(world) as (app, pilot):
        assert {"ctrl+k commands", "f8 help", "f2 context"} <= set(hints(app))
        assert not [hint for hint in hints(app) if hint.endswith("sessions")]
        await pilot.press("f8")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        lines = [line.plain for line in app.screen.query_one(HelpTable).lines(100)]
        assert any(line.split()[:3] == ["Ctrl+K", "command", "palette"] for line in lines)
        assert any(line.startswith("Alt+Up, PgDn ") for line in lines)
        assert any(line.split()[:3] == ["no", "key", "sessions"] for line in lines)
        assert "Sessions" in lines
        assert "Tasks (Ctrl+T)" in lines


async def test_a_change_in_the_settings_counts_at_once() -> None:
    async with running(World()) as (app, pilot):
        file = folders().config_file
        file.parent.mkdir(parents=True, exist_ok=True)
        await app.action_command("config keys by action")
        await until(pilot, lambda: type(app.screen).__name__ == "SettingsScreen")
        await until(pilot, lambda: bool(app.screen.query_one("#rows").has_focus))
        await pilot.press("enter")
        await until(pilot, lambda: type(app.screen).__name__ == "EditText")
        await pilot.press(
            *"find", "space", "equals_sign", "space", *"f8", "comma", *"f10", "ctrl+s"
        )
        await until(pilot, lambda: app.own_keys["find"] == ("f8", "f10"))
        assert read(file) == {"keys": {"find": ["f8", "f10"]}}


@pytest.mark.parametrize(
    ("text", "key", "message"),
    [
        ('find = "x"', "keys.find", "X isn't allowed: it types into the prompt."),
        ('find = "ctrl+m"', "keys.find", "Ctrl+M isn't allowed: it reaches programs as Enter."),
        ('fnid = "f8"', "keys.fnid", "isn't an action."),
        ('find = "f2"', "keys.find", "F2 is also the key of context."),
        ("find = 3", "keys.find", '3 isn\'t allowed; it must be a key such as "ctrl+k"'),
    ],
)
def test_a_wrong_key_is_named(text: str, key: str, message: str) -> None:
    table = parse(f"[keys]\n{text}\n".encode(), folders().config_file)
    with pytest.raises(ConfigError) as caught:
        check(table, table, "config.toml")
    assert f"{key}" in caught.value.message
    assert message in caught.value.message
