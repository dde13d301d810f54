"""Which pane has the focus can be seen, and the footer says what the keys do there."""

from __future__ import annotations

from rich.style import Style
from textual.widgets import Static

from tests.support.script import Hold, Step
from tests.support.world import World
from tests.ui.screens.driving import NARROW, ROOMY, begun, running, say, turn, until
from tui.core import facts
from tui.ui.app import HoldfastApp
from tui.ui.widgets.bars import status_line


def lit(app: HoldfastApp) -> list[str]:
    """The titles of the panes that are marked."""
    rules = (app.chat.left.rule, app.chat.side.rule)
    return [rule.title.plain for rule in rules if rule.lit]


def keys(app: HoldfastApp, count: int = 3) -> list[str]:
    return [f"{hint.key} {hint.text}" for hint in app.chat.status.state.hints[:count]]


def printed(text: str = "out") -> list[Step]:
    return turn(
        facts.ToolStarted("t", "run_command", {"command": "x"}, "x"),
        facts.ToolFinished("t", "run_command", False, 2, None, "done", text),
    )


async def test_the_pane_with_the_focus_is_marked_and_the_footer_has_its_keys() -> None:
    world = World()
    world.scripts.append(printed())
    async with running(world, ROOMY) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.status.state.turns == 1)
        assert (lit(app), keys(app, 1)) == ([], ["enter send"])
        await pilot.press("tab")
        assert lit(app) == ["conversation"]
        assert keys(app) == ["enter fold", "esc back", "j k move"]
        await pilot.press("tab")
        assert lit(app) == ["output · Run x"]
        assert keys(app) == ["o open", "/ find", "esc back"]
        await pilot.press("o")
        await until(pilot, lambda: keys(app, 2) == ["/ find", "esc smaller"])
        await pilot.press("escape", "escape")
        assert (lit(app), keys(app, 1)) == ([], ["enter send"])


async def test_on_a_narrow_terminal_the_first_keys_stand_before_the_number_of_turns() -> None:
    world = World()
    world.scripts.append(printed())
    async with running(world, (40, 10)) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.status.state.turns == 1)
        await pilot.press("tab")
        shown = status_line(app.chat.status.state, 40).plain
        assert shown.startswith(" enter fold   esc back  ")
        assert shown.endswith(" ● saved ")
        assert "1 prompt   ● saved" in status_line(app.chat.status.state, 80).plain


async def test_the_mark_is_bold_in_the_first_colour() -> None:
    async with running(World()) as (app, pilot):
        await begun(app, pilot)
        rule = app.chat.left.rule

        def look(x: int) -> Style:
            (segment,) = rule.render_line(0).crop(x, x + 1)
            return segment.style or Style()

        line, title = look(0), look(3)
        rule.lit = True
        await pilot.pause()
        assert look(0).color == look(3).color not in {line.color, title.color}
        assert look(3).bold


async def test_the_keys_of_a_narrow_terminal_are_those_of_the_focus() -> None:
    world = World()
    world.scripts.append(printed())
    async with running(world, NARROW) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.status.state.turns == 1)
        await pilot.press("tab")
        shown = status_line(app.chat.status.state, 60).plain
        assert "enter fold   esc back   j k move" in shown


async def test_while_the_agent_works_esc_says_that_it_stops() -> None:
    world, hold = World(), Hold()
    world.scripts.append([*turn(), hold])
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.busy)
        app.chat.conversation.focus()
        await pilot.pause()
        assert keys(app) == ["esc stop", "enter fold", "j k move"]
        await pilot.press("ctrl+f")
        await until(pilot, lambda: app.chat.left.finding)
        assert keys(app, 2) == ["↑ ↓ older, newer", "esc close"]
        assert lit(app) == ["conversation"]


async def test_a_command_of_ones_own_does_not_look_like_a_prompt() -> None:
    async with running(World()) as (app, pilot):

        def standing() -> tuple[str, str, str]:
            caret = str(app.chat.query_one("#caret", Static).render())
            return caret, app.chat.prompt_rule.right.plain, keys(app, 1)[0]

        before = standing()
        assert before == ("›", "ask first", "enter send")
        await pilot.press("!", "l")
        await until(pilot, lambda: standing() == ("$", "shell command, run by you", "enter run"))
        await pilot.press("home", "!")
        await until(pilot, lambda: standing()[1].endswith("hidden from the model"))
        app.chat.prompt.put("a prompt")
        await until(pilot, lambda: standing() == before)


async def test_a_note_says_that_it_is_one_before_it_is_saved() -> None:
    async with running(World()) as (app, pilot):

        def standing() -> tuple[str, str]:
            return app.chat.prompt_rule.right.plain, keys(app, 1)[0]

        await pilot.press(*"# use tabs")
        await until(pilot, lambda: standing() == ("note to MEMORY.md", "enter save"))
        await pilot.press("shift+enter", "x")  # several lines are a prompt
        await until(pilot, lambda: standing() == ("ask first", "enter send"))
        app.chat.prompt.put("")
        app.chat.prompt.add_paste("# a heading")
        await until(pilot, lambda: app.chat.prompt.text == "# a heading")
        assert standing() == ("ask first", "enter send")
