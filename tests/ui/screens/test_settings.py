"""/config: what is in force and from where; every key of the screen, and what it writes."""

from __future__ import annotations

import tomllib
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Input, Static, TextArea

from tests.support.world import World
from tests.ui.screens.driving import NARROW, WIDE, running, say, session_open, until
from tui.app.dialog_data import ModelRow
from tui.core.paths import folders
from tui.settings.layers import project_file
from tui.settings.trust import Trust
from tui.ui.app import HoldfastApp
from tui.ui.screens.mcp import McpScreen
from tui.ui.screens.picker import ModelsScreen, PickScreen
from tui.ui.screens.settings import ChoicesScreen, SettingsScreen
from tui.ui.widgets.questions import EditText

TEXT = """\
# mine
model = "claude-opus-5-5"  # the good one

[retry]
# the network here is bad
max_attempts = 5

[permissions]
allow = [
    "read_file",  # always
]
"""
SECRET = "sk-ant-" + "a1b2" * 8
SIZES = pytest.mark.parametrize("size", [WIDE, NARROW, (60, 20)], ids=["120", "80", "60"])


@pytest.fixture
def world(tmp_path: Path) -> World:
    write(TEXT)
    return World(tmp_path)


def write(text: str) -> None:
    folders().config.mkdir(parents=True, exist_ok=True)
    folders().config_file.write_text(text)


def text() -> str:
    return folders().config_file.read_text()


def data() -> dict[str, Any]:
    return tomllib.loads(text())


@asynccontextmanager
async def settings(
    world: World, words: str = "", size: tuple[int, int] = WIDE
) -> AsyncGenerator[tuple[SettingsScreen, Pilot[None]]]:
    """The settings, with the cursor on the first that `words` find."""
    async with running(world, size) as (app, pilot):
        await until(pilot, lambda: session_open(app))
        await say(pilot, f"/config {words}".strip())
        await until(pilot, lambda: isinstance(app.screen, SettingsScreen))
        screen = app.screen
        assert isinstance(screen, SettingsScreen)
        await until(pilot, lambda: bool(screen.shown) or screen.has_class("-broken"))
        world.clock.elapsed += 1  # the next Enter is not the held one that opened it
        yield screen, pilot


def about(screen: SettingsScreen) -> str:
    return str(screen.query_one("#details", Static).content)


def name(screen: SettingsScreen) -> str:
    return screen.chosen.name if screen.chosen else ""


def field(screen: SettingsScreen) -> Input:
    return screen.query_one("#field", Input)


def line(screen: SettingsScreen, row: int) -> str:
    """A row of the table as it is drawn."""
    rows = screen.rows
    return "".join(segment.text for segment in rows.render_line(row - round(rows.scroll_y)))


async def fill(pilot: Pilot[None], value: str) -> None:
    """Put another value into the field that is open."""
    screen = pilot.app.screen
    assert isinstance(screen, SettingsScreen)
    await until(pilot, lambda: field(screen).has_focus)
    field(screen).value = value
    await pilot.press("enter")


async def pick(world: World, pilot: Pilot[None], *keys: str) -> None:
    """Choose in the list of a setting's choices, which was opened by Enter or a click."""
    await until(pilot, lambda: isinstance(pilot.app.screen, ChoicesScreen))
    world.clock.elapsed += 2
    await pilot.press(*keys, "enter")
    await until(pilot, lambda: isinstance(pilot.app.screen, SettingsScreen))


# What is shown


@SIZES
async def test_every_setting_is_there_with_value_and_origin(
    world: World, size: tuple[int, int]
) -> None:
    async with settings(world, size=size) as (screen, pilot):
        assert name(screen) == "model"
        assert "claude-opus-5-5" in line(screen, screen.rows.cursor)
        assert "your file" in line(screen, screen.rows.cursor)
        assert "default: claude-sonnet-5-5" in about(screen)
        assert "new sessions" in about(screen)
        seen = {name(screen)}
        for _ in range(len(screen.shown)):
            await pilot.press("down")
            seen.add(name(screen))
            assert screen.chosen is not None
            assert screen.chosen.description.help in about(screen)
        assert seen == {row.name for row in screen.shown}
        assert screen.query_one("#keys").region.bottom == size[1]
        assert screen.rows.size.height > 4


async def test_home_and_end_and_pages_never_rest_on_a_heading(world: World) -> None:
    async with settings(world, size=NARROW) as (screen, pilot):
        for key in ("end", "pageup", "pageup", "pagedown", "home", "up", "up", "pagedown"):
            await pilot.press(key)
            assert name(screen)
        await pilot.press("home")
        assert name(screen) == "model"
        assert round(screen.rows.scroll_y) == 0, "the first heading is in sight"
        await pilot.press("end")
        assert name(screen) == "mcp"


async def test_the_columns_stand_under_their_names(world: World) -> None:
    async with settings(world) as (screen, pilot):
        await pilot.pause()
        head = str(screen.query_one("#columns", Static).content)
        row = line(screen, screen.rows.cursor)
        assert row.index("claude-opus") == head.index("value")
        assert row.index("your file") == head.index("source")


async def test_what_differs_from_the_default_is_marked_and_found(world: World) -> None:
    write(TEXT + "[compaction]\nthreshold = 0.8\n")
    async with settings(world) as (screen, pilot):
        assert line(screen, screen.rows.cursor).startswith("• Model ")
        await pilot.press("down")
        assert line(screen, screen.rows.cursor).startswith("  Model for small jobs ")
        assert "• 3 of " in str(screen.query_one("#title", Static).content)
        await pilot.press("slash", *"changed")
        names = {"model", "retry.max_attempts", "permissions.allow"}
        await until(pilot, lambda: {row.name for row in screen.shown} == names)


async def test_a_label_finds_a_setting_whose_key_stays_in_sight(world: World) -> None:
    async with settings(world, "compact at") as (screen, pilot):
        assert name(screen) == "compaction.threshold"
        row = line(screen, screen.rows.cursor)
        assert row.startswith("  Compact at ")
        assert " threshold " in row
        assert about(screen).startswith("Compact at  compaction.threshold  ")
        await pilot.resize_terminal(*NARROW)
        await until(pilot, lambda: " threshold " not in line(screen, screen.rows.cursor))
        assert "compaction.threshold" in about(screen)


async def test_ten_rows_show_settings_and_keys(world: World) -> None:
    async with settings(world, size=(40, 10)) as (screen, _):
        assert screen.rows.size.height >= 3
        assert screen.query_one("#keys").region.bottom == 10
        assert "…" not in str(screen.query_one("#title", Static).content)


async def test_the_command_line_and_the_environment_are_named(world: World) -> None:
    world.env = {"ANTHROPIC_BASE_URL": f"http://me:{SECRET}@h"}
    world.overrides = {"model": "other"}
    async with settings(world) as (screen, pilot):
        assert "command line" in line(screen, screen.rows.cursor)
        assert "The command line overrides your file" in about(screen)
        assert "Your file says claude-opus-5-5." in about(screen)
        await pilot.press(*"base_url")
        await until(pilot, lambda: name(screen) == "base_url")
        assert "ANTHROPIC_BASE_URL (environment) overrides" in about(screen)
        assert SECRET not in about(screen) + line(screen, screen.rows.cursor)


# Finding


async def test_typing_filters_and_esc_shows_all_again(world: World) -> None:
    async with settings(world) as (screen, pilot):
        everything = len(screen.shown)
        await pilot.press(*"theme")
        await until(pilot, lambda: [row.name for row in screen.shown] == ["theme"])
        await pilot.press(*"xyz")
        await until(pilot, lambda: not screen.shown)
        assert "No setting matches “themexyz”" in str(screen.query_one("#empty", Static).content)
        await pilot.press("enter", "down")
        await pilot.press("escape")
        await until(pilot, lambda: len(screen.shown) == everything)
        assert screen.rows.has_focus
        await pilot.press("escape")
        assert not isinstance(pilot.app.screen, SettingsScreen)


async def test_slash_filters_by_what_would_be_a_key(world: World) -> None:
    async with settings(world) as (screen, pilot):
        await pilot.press("slash", *"deny")
        await until(pilot, lambda: "permissions.deny" in {row.name for row in screen.shown})
        assert text() == TEXT
        await pilot.press("down", "up")
        assert screen.query_one("#filter", Input).has_focus


async def test_config_takes_words_to_filter_by(world: World) -> None:
    async with settings(world, "stall_timeout") as (screen, _):
        assert [row.name for row in screen.shown] == ["retry.stall_timeout_s"]


# Changing


async def test_a_number_is_changed_in_its_row_and_the_comments_stay(world: World) -> None:
    async with settings(world, "retry.max_attempts") as (screen, pilot):
        await pilot.press("enter")
        await until(pilot, lambda: field(screen).has_focus)
        assert field(screen).value == "5"
        assert field(screen).region.y == screen.rows.region.y + screen.rows.cursor
        await fill(pilot, "7")
        await until(pilot, lambda: text() == TEXT.replace("= 5", "= 7"))
        await until(pilot, lambda: "retry.max_attempts is now 7" in screen.notice.text)
        assert "new sessions" in screen.notice.text
        assert screen.rows.has_focus
        assert "7" in line(screen, screen.rows.cursor)


async def test_what_is_wrong_is_refused_in_the_words_of_the_check(world: World) -> None:
    async with settings(world, "retry.max_attempts") as (screen, pilot):
        await pilot.press("enter")
        await fill(pilot, "often")
        await until(pilot, lambda: "whole number of at least 0" in screen.notice.text)
        assert "config.toml: retry.max_attempts" in screen.notice.text
        assert text() == TEXT
        assert field(screen).has_focus, "it can be set right"
        await pilot.press("escape")
        assert screen.rows.has_focus
        assert not screen.notice.text


async def test_enter_on_an_unchanged_field_writes_nothing(world: World) -> None:
    async with settings(world, "stall") as (screen, pilot):
        await pilot.press("enter")
        await until(pilot, lambda: field(screen).has_focus)
        await pilot.press("enter")
        await until(pilot, lambda: screen.rows.has_focus)
        assert text() == TEXT


async def test_a_rule_over_two_keys_counts_over_two_files(world: World) -> None:
    project = project_file(world.workspace)
    project.parent.mkdir()
    project.write_text("[retry]\nmax_delay_ms = 2000\n")
    world.trust = Trust(everything=True)
    async with settings(world, "initial_delay") as (screen, pilot):
        await pilot.press("enter")
        await fill(pilot, "20000")
        await until(pilot, lambda: "retry.max_delay_ms" in screen.notice.text)
        assert text() == TEXT


@pytest.mark.parametrize("key", ["enter", "space"])
async def test_words_are_gone_through_one_by_one(world: World, key: str) -> None:
    async with settings(world, "memory_flush") as (screen, pilot):
        await pilot.press(key)
        await until(pilot, lambda: data().get("compaction") == {"memory_flush": False})
        await until(pilot, lambda: "off" in line(screen, screen.rows.cursor))
        await pilot.press(key)
        await until(pilot, lambda: data()["compaction"] == {"memory_flush": True})


@SIZES
async def test_choices_say_what_they_do_and_esc_changes_nothing(
    world: World, size: tuple[int, int]
) -> None:
    async with settings(world, "cache.ttl", size=size) as (screen, pilot):
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ChoicesScreen))
        choices = pilot.app.screen
        assert isinstance(choices, ChoicesScreen)
        await pilot.press("down", "down")
        shown = [choices.rows.render_line(y).text for y in range(3)]
        assert [row.split()[:2] for row in shown] == [["●", "auto"], ["○", "5m"], ["○", "1h"]]
        said = shown[2] + str(choices.query_one("#about", Static).content)
        assert "an hour; writing costs 2 × the input price" in said
        assert choices.query_one("#box").region.height < 12
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is screen)
        assert "cache" not in data()


async def test_keys_in_a_row_are_changes_in_a_row(world: World) -> None:
    async with settings(world, "memory_flush") as (screen, pilot):
        await pilot.press("enter", "enter", "enter", "escape", "escape")
        await until(pilot, lambda: pilot.app.screen is not screen)
        assert data()["compaction"] == {"memory_flush": False}


async def test_a_list_has_a_line_for_each_entry(world: World) -> None:
    async with settings(world, "permissions.allow") as (screen, pilot):
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, EditText))
        modal = pilot.app.screen
        area = modal.query_one("#text", TextArea)
        assert area.text == "read_file"
        area.text = "read_file\ntwo words"
        await pilot.press("ctrl+s")
        problem = modal.query_one("#problem", Static)
        await until(pilot, lambda: "tool or tool(glob)" in str(problem.content))
        assert text() == TEXT
        area.text = "read_file\nrun_command(git status*)\n"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: pilot.app.screen is screen)
        assert data()["permissions"]["allow"] == ["read_file", "run_command(git status*)"]
        assert '"read_file",  # always' in text()
        await until(pilot, lambda: bool(world.agent.taken_up))
        assert world.agent.taken_up[-1].permissions.allow[-1] == "run_command(git status*)"


async def test_esc_leaves_a_list_as_it_was_and_twice_where_it_was_changed(world: World) -> None:
    async with settings(world, "permissions.allow") as (screen, pilot):
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, EditText))
        await pilot.press("escape")
        assert pilot.app.screen is screen
        await pilot.press("enter")
        await until(pilot, lambda: pilot.app.screen is not screen)
        modal = pilot.app.screen
        await pilot.press("x", "escape")
        assert "Esc again" in str(modal.query_one("#problem", Static).content)
        await pilot.press("y")
        assert not modal.query_one("#problem", Static).display
        await pilot.press("escape", "escape")
        assert pilot.app.screen is screen
        assert text() == TEXT


async def test_the_limits_of_tools_are_lines_too(world: World) -> None:
    async with settings(world, "guard.bytes") as (screen, pilot):
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, EditText))
        pilot.app.screen.query_one("#text", TextArea).text = "grep_search = 9,000"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: pilot.app.screen is screen)
        assert data()["guard"] == {"bytes": {"grep_search": 9000}}
        await pilot.press("d")
        await until(pilot, lambda: not data().get("guard"))


async def test_prices_of_the_model_in_use_can_be_given(world: World) -> None:
    async with settings(world, "prices output") as (screen, pilot):
        assert "—" in line(screen, screen.rows.cursor)
        await pilot.press("enter")
        await fill(pilot, "15")
        await until(pilot, lambda: "prices" in data())
        assert data()["prices"] == {world.agent.models.current: {"output": 15.0}}


async def test_servers_are_shown_by_their_own_screen(world: World) -> None:
    async with settings(world, "servers with more tools") as (screen, pilot):
        await pilot.press("d", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, McpScreen))
        await pilot.press("escape")
        assert pilot.app.screen is screen


# Back


@pytest.mark.parametrize("key", ["d", "delete"])
async def test_d_takes_a_key_out_of_the_file_and_u_puts_it_back(world: World, key: str) -> None:
    async with settings(world) as (screen, pilot):
        await pilot.press(key)
        await until(pilot, lambda: "model" not in data())
        await until(pilot, lambda: "claude-sonnet-5-5" in line(screen, screen.rows.cursor))
        assert "# mine" in text()
        await pilot.press("u")
        await until(pilot, lambda: text() == TEXT)
        await until(pilot, lambda: "Undone" in screen.notice.text)
        await pilot.press("u")
        await until(pilot, lambda: "Nothing to undo" in screen.notice.text)


async def test_d_on_a_default_says_that_there_is_nothing(world: World) -> None:
    async with settings(world, "stall") as (screen, pilot):
        await pilot.press("d")
        await until(pilot, lambda: "isn't set in your file" in screen.notice.text)
        assert text() == TEXT


async def test_u_does_not_undo_what_another_program_wrote(world: World) -> None:
    async with settings(world) as (screen, pilot):
        await pilot.press("d")
        await until(pilot, lambda: "model" not in data())
        await until(pilot, lambda: bool(screen.notice.text))
        write("# another\n")
        await pilot.press("u")
        await until(pilot, lambda: "changed since" in screen.notice.text)
        assert text() == "# another\n"


# What counts at once


async def test_a_theme_is_tried_while_it_is_chosen(world: World) -> None:
    async with settings(world, "theme") as (screen, pilot):
        before = pilot.app.theme
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, PickScreen))
        await pilot.press("home")
        await until(pilot, lambda: pilot.app.theme != before)
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.theme == before)
        assert "theme" not in data()
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, PickScreen))
        await pilot.press("home", "enter")
        await until(pilot, lambda: data().get("theme") == pilot.app.theme != before)
        await until(pilot, lambda: "applies right away" in screen.notice.text)
        await pilot.press("d")
        await until(pilot, lambda: pilot.app.theme == before)


async def test_bell_and_motion_change_at_once(world: World) -> None:
    async with settings(world, "motion") as (screen, pilot):
        app = pilot.app
        assert isinstance(app, HoldfastApp)
        assert not app.chat.calm
        await pilot.press("enter")
        await pick(world, pilot, "down")
        await until(pilot, lambda: app.chat.calm)
        await pilot.press("d")
        await until(pilot, lambda: not app.chat.calm)
        await pilot.press("escape", *"notify")
        await until(pilot, lambda: name(screen) == "notify")
        await pilot.press("enter")
        await pick(world, pilot, "down")
        await until(pilot, lambda: app.frontend.services.settings.now.notify == "off")


async def test_redaction_reaches_the_running_agent(world: World) -> None:
    async with settings(world, "redact") as (_, pilot):
        await pilot.press("enter")
        await pick(world, pilot, "down")
        await until(pilot, lambda: [one.redact for one in world.agent.taken_up] == ["record"])


async def test_a_change_that_is_not_in_force_says_so(world: World) -> None:
    world.overrides = {"model": "other"}
    async with settings(world) as (screen, pilot):
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ModelsScreen))
        world.clock.elapsed += 2
        await pilot.press(*"mine", "enter")
        await until(pilot, lambda: "another source overrides it" in screen.notice.text)
        assert "The command line overrides your file" in screen.notice.text
        assert data()["model"] == "mine"


# What goes wrong


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("theme = 3", "text in quotes, not empty"),
        ("no toml", "not valid TOML"),
        ("[retry]\nx = 1", "known key"),
    ],
)
async def test_a_broken_file_is_explained_and_never_overwritten(
    world: World, broken: str, said: str
) -> None:
    write(broken)
    async with settings(world) as (screen, pilot):
        empty = str(screen.query_one("#empty", Static).content)
        assert said in empty
        assert "config.toml" in empty
        await pilot.press("enter", "d", "u", "space")
        assert text() == broken


async def test_a_file_that_breaks_behind_the_screen_is_not_overwritten(world: World) -> None:
    async with settings(world, "stall") as (screen, pilot):
        write("theme = 3")
        await pilot.press("enter")
        await fill(pilot, "9")
        await until(pilot, lambda: "theme" in screen.notice.text)
        assert text() == "theme = 3"


async def test_a_read_only_file_is_a_message(world: World) -> None:
    folders().config_file.chmod(0o444)
    async with settings(world, "stall") as (screen, pilot):
        await pilot.press("enter")
        await fill(pilot, "9")
        await until(pilot, lambda: "it is read-only" in screen.notice.text)
        assert text() == TEXT


async def test_what_is_secret_is_typed_anew_and_not_shown(world: World) -> None:
    write(f'base_url = "http://me:{SECRET}@h"\n[permissions]\ndeny = ["x({SECRET})"]\n')
    async with settings(world, "base_url") as (screen, pilot):
        await pilot.press("enter")
        await until(pilot, lambda: field(screen).has_focus)
        assert field(screen).value == ""
        assert "type a new value" in field(screen).placeholder
        await pilot.press("escape", "escape", "escape")
    async with settings(world, "deny") as (screen, pilot):
        await pilot.press("enter")
        await until(pilot, lambda: "hidden" in screen.notice.text)
        assert pilot.app.screen is screen
        assert SECRET in text()


# The editor


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('theme = "linen"', "settings are valid"),
        ("theme = 3", "theme"),
        ("no toml at all", "config.toml"),
    ],
)
async def test_e_opens_the_file_and_it_is_checked_afterwards(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, said: str
) -> None:
    @contextmanager
    def suspend(_: App[None]) -> Generator[None]:
        yield

    monkeypatch.setattr(App, "suspend", suspend)
    editor = tmp_path / "editor"
    editor.write_text(f"#!/bin/sh\nprintf '%s\\n' '{written}' > $1\n")
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    async with settings(world) as (screen, pilot):
        await pilot.press("e")
        await until(pilot, lambda: said in screen.notice.text)
        assert text() == f"{written}\n"
        assert screen.has_class("-broken") == (said != "settings are valid")
        if not screen.has_class("-broken"):
            assert pilot.app.theme == "linen"


# The mouse


async def test_a_click_chooses_a_row_and_another_changes_it(world: World) -> None:
    async with settings(world) as (screen, pilot):
        place = next(n for n, row in enumerate(screen.shown) if row.name == "notify") + 1
        await pilot.click("#rows", offset=(5, place))
        assert name(screen) == "notify"
        await pilot.click("#rows", offset=(5, place))
        await pick(world, pilot, "down")
        await until(pilot, lambda: data().get("notify") == "off")
        await pilot.click("#rows", offset=(5, 0))
        assert name(screen) == "model", "a heading is passed over"


async def test_a_click_elsewhere_leaves_the_field(world: World) -> None:
    async with settings(world, "retry.max_attempts") as (screen, pilot):
        await pilot.press("enter")
        await until(pilot, lambda: field(screen).has_focus)
        await pilot.click("#rows", offset=(5, 5))
        await until(pilot, lambda: not screen.has_class("-field"))
        assert text() == TEXT


async def test_a_model_is_chosen_from_the_list_of_models_or_typed(world: World) -> None:
    world.models = (
        ModelRow("claude-sonnet-5-5", 200_000, price="$2/$10"),
        ModelRow("claude-haiku-5-5", 200_000),
    )
    async with settings(world, "model") as (screen, pilot):
        assert name(screen) == "model"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ModelsScreen))
        picker = pilot.app.screen
        assert isinstance(picker, ModelsScreen)
        rows = [picker.rows.render_line(n).text.split() for n in range(3)]
        assert rows[0][:2] == ["●", "claude-opus-5-5"]
        assert [row[0] for row in rows[1:]] == ["claude-sonnet-5-5", "claude-haiku-5-5"]
        world.clock.elapsed += 2
        await pilot.press("down", "enter")
        await until(pilot, lambda: data()["model"] == "claude-sonnet-5-5")
        await until(pilot, lambda: pilot.app.screen is screen)
        world.clock.elapsed += 2
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ModelsScreen))
        await pilot.press(*"my-own", "enter")
        await until(pilot, lambda: data()["model"] == "my-own")
        assert "# the good one" in text()
