"""Every promised key is pressed and every promised command is run, and each does what it says.

The tables here are held against those of `test_interface`: what is promised there and not tried
here fails.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from textual.app import App
from textual.pilot import Pilot

from tests.context.sessions import answer as answered
from tests.context.sessions import prompt, records
from tests.support.script import Hold
from tests.support.world import World
from tests.ui.screens.driving import answer, items, running, say, turn, until
from tests.ui.screens.test_interface import BOUND, SHOWN, promised
from tui.core import facts
from tui.ui.app import HoldfastApp
from tui.ui.widgets.conversation.items import NoticeItem, ToolItem

Seen: TypeAlias = Callable[[HoldfastApp, World], bool]

LONG = "\n\n".join(f"paragraph {number}" for number in range(80))


def shows(name: str) -> Seen:
    """A screen of that class is on top."""
    return lambda app, _: type(app.screen).__name__ == name


def says(text: str) -> Seen:
    return lambda app, _: text in str(app.chat.notice.text)


def reports(text: str) -> Seen:
    return lambda app, _: any(text in item.text for item in items(app, NoticeItem))


def sends(text: str) -> Seen:
    return lambda _, world: world.agent.sent[-1].startswith(text)


def switches(name: str) -> Seen:
    return lambda _, world: getattr(world.agent.directives, name)


def begins_anew(app: HoldfastApp, world: World) -> bool:
    return len(world.agents) == 2 and app.conversation.agent is world.agents[1]


def leaves(app: HoldfastApp, _: World) -> bool:
    return app.return_code == 0


def written(_: HoldfastApp, world: World) -> bool:
    return "hello" in "".join(p.read_text() for p in world.workspace.glob("session-*.md"))


COMMANDS: dict[str, Seen] = {
    "help": shows("HelpScreen"),
    "new": begins_anew,
    "clear": begins_anew,
    "resume": shows("SessionsScreen"),
    "sessions": shows("SessionsScreen"),
    "rename two words": lambda app, _: app.chat.header.state.title == "two words",
    "fork": begins_anew,
    "rewind": shows("PickScreen"),
    "undo": shows("PickScreen"),
    "export": written,
    "copy": lambda app, _: app.clipboard == "hello",
    "compact": says("Nothing to compact"),
    "uncompact": reports("Nothing to undo: the context isn't compacted."),
    "context": shows("ContextScreen"),
    "btw": says("There is no conversation to ask about yet."),
    "side": says("There is no conversation to ask about yet."),
    "output": lambda app, _: not app.chat.has_class("-side-closed"),
    "prune": says("No old result"),
    "pin": says("No tool call here to pin"),
    "memory": says("No MEMORY.md"),
    "status": reports("Status"),
    "usage": shows("UsageScreen"),
    "cost": shows("UsageScreen"),
    "model other": lambda _, world: world.agent.models.current == "other",
    "retry": says("Nothing to retry"),
    "think": switches("think"),
    "effort low": lambda app, _: app.chat.header.state.effort == "low",
    "verbose": switches("verbose"),
    "elevated": switches("elevated"),
    "plan": lambda _, world: world.agent.permissions.mode == "plan",
    "todos": says("No to-do list"),
    "permissions": shows("PermissionsScreen"),
    "add-dir /tmp": lambda _, world: Path("/tmp").resolve() in world.agent.permissions.folders,
    "mcp": shows("McpScreen"),
    "theme": shows("ThemePicker"),
    "config": shows("SettingsScreen"),
    "diff": says("No files changed"),
    "init": sends("Look at this folder and write AGENTS.md"),
    "tasks": shows("TasksScreen"),
    "repair": says("needs no repair"),
    "vim": says("Vim keys are on."),
    "doctor": shows("DoctorScreen"),
    "tour": says("can't be shared"),  # a test has no terminal to hand over
    "drill": says("can't be shared"),
    "quit": leaves,
    "exit": leaves,
}


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    made.scripts.append(turn(*answer("hello")))
    return made


async def begun(app: HoldfastApp, pilot: Pilot[None], world: World) -> None:
    """One turn lies behind, on the screen and in the record."""
    await say(pilot, "go")
    await until(pilot, lambda: app.chat.status.state.turns == 1 and not app.conversation.busy)
    world.agent.session.records = records(prompt("go"), answered("hello"))


def test_every_promised_command_is_run_here() -> None:
    assert {line.split()[0] for line in COMMANDS} == {name for name, _ in promised()}


@pytest.mark.parametrize("line", COMMANDS)
async def test_a_command_does_what_it_says(world: World, line: str) -> None:
    done = COMMANDS[line]
    async with running(world) as (app, pilot):
        await begun(app, pilot, world)
        assert not done(app, world)
        await say(pilot, f"/{line}")
        await until(pilot, lambda: done(app, world))


SCREENS = {
    "f1": "HelpScreen",
    "f2": "ContextScreen",
    "f3": "SessionsScreen",
    "f12": "DebugLogScreen",
    "ctrl+p": "PaletteScreen",
    "ctrl+t": "TasksScreen",
}
OTHERS = (
    "enter shift+enter ctrl+j escape ctrl+c ctrl+d ctrl+z shift+tab ctrl+o ctrl+r ctrl+g f4 f5"
    " pageup pagedown up down slash at exclamation_mark"
)
TRIED = {*SCREENS, *OTHERS.split()}


def test_every_promised_key_is_pressed_here() -> None:
    assert set(BOUND.split()) <= TRIED
    names = {"esc": "escape", "pgup": "pageup", "pgdn": "pagedown", "esc esc": "escape"}
    signs = {"/": "slash", "@": "at", "!": "exclamation_mark", "!!": "exclamation_mark"}
    shown = {one.strip().lower() for line in SHOWN for one in line.split(",")}
    assert {(names | signs).get(one, one) for one in shown} <= TRIED


@pytest.mark.parametrize(("key", "screen"), SCREENS.items())
async def test_a_key_opens_its_screen_and_escape_closes_it(
    world: World, key: str, screen: str
) -> None:
    async with running(world) as (app, pilot):
        await begun(app, pilot, world)
        await pilot.press(key)
        await until(pilot, lambda: type(app.screen).__name__ == screen)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)


@pytest.mark.parametrize("key", ["shift+enter", "ctrl+j"])
async def test_a_new_line_and_enter(world: World, key: str) -> None:
    async with running(world) as (app, pilot):
        await pilot.press("a", key, "b")
        assert app.chat.prompt.text == "a\nb"
        assert world.agent.sent == []
        await pilot.press("enter")
        await until(pilot, lambda: world.agent.sent == ["a\nb"])


@pytest.mark.parametrize("key", ["escape", "ctrl+c"])
async def test_a_running_turn_is_stopped(world: World, key: str) -> None:
    world.scripts.clear()
    world.scripts.append(turn(facts.TextDelta("I be"), Hold()))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.conversation.busy)
        await pilot.press(key)
        await until(pilot, lambda: not app.conversation.busy)
        assert app.return_code is None


async def test_escape_twice_rewinds(world: World) -> None:
    async with running(world) as (app, pilot):
        await begun(app, pilot, world)
        await pilot.press("escape", "escape")
        await until(pilot, lambda: type(app.screen).__name__ == "PickScreen")


async def test_ctrl_c_clears_the_prompt_and_then_quits(world: World) -> None:
    async with running(world) as (app, pilot):
        await pilot.press("a", "ctrl+c")
        assert app.chat.prompt.text == ""
        assert app.return_code is None
        await pilot.press("ctrl+c", "ctrl+c")
        await until(pilot, lambda: app.return_code == 0)


async def test_ctrl_d_deletes_forwards_and_quits_when_empty(world: World) -> None:
    async with running(world) as (app, pilot):
        await pilot.press("a", "b", "home", "ctrl+d")
        assert app.chat.prompt.text == "b"
        assert app.return_code is None
        await pilot.press("ctrl+d", "ctrl+d", "ctrl+d")
        await until(pilot, lambda: app.return_code == 0)


async def test_ctrl_z_suspends(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def suspend(_: App[None]) -> None:
        asked.append("suspend")

    monkeypatch.setattr(App, "action_suspend_process", suspend)
    async with running(world) as (_, pilot):
        await pilot.press("ctrl+z")
        await until(pilot, lambda: asked == ["suspend"])


async def test_shift_tab_goes_through_the_modes(world: World) -> None:
    async with running(world) as (app, pilot):
        seen: list[str] = []
        for _ in range(3):
            await pilot.press("shift+tab")
            seen.append(world.agent.permissions.mode)
        assert seen == ["accept_edits", "plan", "ask"]
        assert "ask first" in str(app.chat.prompt_rule.render())


async def test_ctrl_o_unfolds_every_call_and_folds_it(world: World) -> None:
    world.scripts.clear()
    tool = [
        facts.ToolStarted("t1", "read_file", {"path": "a"}, "a"),
        facts.ToolFinished("t1", "read_file", False, 0.1, None, "3 lines", "one\ntwo\nthree"),
    ]
    world.scripts.append(turn(*tool, *answer("read")))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.status.state.turns == 1)
        (card,) = items(app, ToolItem)
        assert card.folded
        await pilot.press("ctrl+o")
        await until(pilot, lambda: not items(app, ToolItem)[0].folded)
        await pilot.press("ctrl+o")
        await until(pilot, lambda: items(app, ToolItem)[0].folded)


async def test_ctrl_r_finds_an_earlier_prompt(world: World) -> None:
    async with running(world) as (app, pilot):
        await begun(app, pilot, world)
        await pilot.press("ctrl+r", "g", "o")
        await until(pilot, lambda: bool(app.chat.query("PromptSearch")))
        await pilot.press("enter")
        await until(pilot, lambda: app.chat.prompt.text == "go")


async def test_ctrl_g_hands_the_prompt_to_an_editor(world: World) -> None:
    async with running(world) as (app, pilot):
        await pilot.press("a", "ctrl+g")
        await until(pilot, lambda: "can't be handed to another program" in app.chat.notice.text)
        assert app.chat.prompt.text == "a"


async def test_f5_goes_through_the_efforts(world: World) -> None:
    async with running(world) as (app, pilot):
        first = world.agent.models.effort
        seen: list[str] = []
        for _ in world.agent.models.efforts:
            before = world.agent.models.effort
            await pilot.press("f5")
            await until(pilot, lambda before=before: world.agent.models.effort != before)
            seen.append(world.agent.models.effort)
        assert seen[-1] == first
        assert sorted(seen) == sorted(world.agent.models.efforts)
        await until(pilot, lambda: app.chat.header.state.effort == first)


async def test_f4_closes_the_output_and_opens_it(world: World) -> None:
    async with running(world) as (app, pilot):
        before = app.chat.has_class("-side-closed")
        await pilot.press("f4")
        await until(pilot, lambda: app.chat.has_class("-side-closed") != before)
        await pilot.press("f4")
        await until(pilot, lambda: app.chat.has_class("-side-closed") == before)


async def test_the_conversation_is_scrolled_by_pages_and_to_its_ends(world: World) -> None:
    world.scripts.clear()
    world.scripts.append(turn(*answer(LONG)))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        shown = app.chat.conversation
        await until(pilot, lambda: app.chat.status.state.turns == 1 and shown.max_scroll_y > 0)
        await until(pilot, lambda: shown.scroll_y == shown.max_scroll_y)
        end = shown.scroll_y
        await pilot.press("pageup", "pageup")
        await until(pilot, lambda: shown.scroll_y < end)
        up = shown.scroll_y
        await pilot.press("pagedown")
        await until(pilot, lambda: shown.scroll_y > up)
        await pilot.press("home")
        await until(pilot, lambda: shown.scroll_y == 0)
        await pilot.press("end")
        await until(pilot, lambda: shown.scroll_y == end)


async def test_up_and_down_go_through_the_history(world: World) -> None:
    async with running(world) as (app, pilot):
        await begun(app, pilot, world)
        await pilot.press("up")
        assert app.chat.prompt.text == "go"
        await pilot.press("down")
        assert app.chat.prompt.text == ""


@pytest.mark.parametrize(
    ("keys", "offered"), [(("slash", "t"), "theme"), (("at", "n"), "notes.md")]
)
async def test_what_is_begun_with_a_sign_is_suggested(
    world: World, keys: tuple[str, ...], offered: str
) -> None:
    (world.workspace / "notes.md").write_text("x")
    async with running(world) as (app, pilot):
        await pilot.press(*keys)

        def there() -> bool:
            found = [one for one in app.chat.query("Suggestions") if one.display]
            return any(offered in str(one.render()) for one in found)

        await until(pilot, there)


async def test_an_exclamation_mark_runs_a_command_of_the_shell(world: World) -> None:
    async with running(world) as (app, pilot):
        await say(pilot, "!echo from-the-shell")
        await until(pilot, lambda: not app.conversation.busy and bool(items(app, ToolItem)))
        assert "from-the-shell" in str(items(app, ToolItem)[-1])
        assert world.agent.sent == []
