"""The prompt's keys mean what they mean in a shell's line and in other agents."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual import events as keys
from textual.pilot import Pilot

from tests.support.script import Hold
from tests.support.world import World
from tests.ui.screens.driving import answer, items, running, say, turn, until
from tui.ui.screens.help import HelpScreen
from tui.ui.screens.picker import PickScreen
from tui.ui.widgets.conversation.items import ToolItem


async def typed(pilot: Pilot[None], text: str) -> None:
    names = {" ": "space", "\\": "backslash", "\n": "ctrl+j", "/": "slash"}
    await pilot.press(*(names.get(character, character) for character in text))


async def test_alt_and_an_arrow_go_by_words_and_ctrl_b_by_one() -> None:
    async with running(World()) as (app, pilot):
        await typed(pilot, "one two")
        await pilot.press("alt+left", "a", "alt+right", "b", "ctrl+b", "c")
        assert app.chat.prompt.text == "one atwocb"


async def test_the_end_of_the_last_line_is_no_line_more() -> None:
    async with running(World()) as (app, _):
        app.chat.prompt.add_paste("line\n" * 3_000)
        assert "3,000 lines" in app.chat.prompt.text


@pytest.mark.parametrize("key", ["shift+enter", "ctrl+j", "alt+enter", "ctrl+enter"])
async def test_every_usual_key_begins_a_new_line(key: str) -> None:
    world = World()
    async with running(world) as (app, pilot):
        await pilot.press("a", key, "b")
        assert app.chat.prompt.text == "a\nb"
        assert world.agent.sent == []


async def test_a_backslash_before_enter_becomes_a_new_line() -> None:
    world = World()
    async with running(world) as (app, pilot):
        await typed(pilot, "a\\")
        await pilot.press("enter", "b")
        assert app.chat.prompt.text == "a\nb"
        await typed(pilot, "\\c")
        await pilot.press("enter")
        await until(pilot, lambda: world.agent.sent == ["a\nb\\c"])


async def test_a_backslash_goes_on_with_a_shell_command() -> None:
    async with running(World()) as (app, pilot):
        app.chat.prompt.put("!echo a \\")
        await pilot.press("enter", "b")
        assert app.chat.prompt.text == "!echo a \\\nb"


@pytest.mark.parametrize(
    ("text", "cuts", "left"),
    [
        ("one two", ["ctrl+w"], "one "),
        ("one two", ["ctrl+u"], ""),
        ("one two", ["home", "ctrl+k"], ""),
        ("one two", ["home", "alt+d"], " two"),
        ("one two", ["ctrl+w", "ctrl+w"], ""),
        ("one two", ["home", "alt+d", "alt+d"], ""),
        ("one\ntwo", ["ctrl+u", "ctrl+u", "ctrl+u"], ""),
        ("one\ntwo", ["up", "home", "ctrl+k", "ctrl+k", "ctrl+k"], ""),
        ("one two", ["ctrl+left", "ctrl+w", "alt+d"], ""),
    ],
)
async def test_what_was_cut_in_a_row_comes_back_whole(
    text: str, cuts: list[str], left: str
) -> None:
    async with running(World()) as (app, pilot):
        await typed(pilot, text)
        await pilot.press(*cuts)
        assert app.chat.prompt.text == left
        await pilot.press("ctrl+y")
        assert app.chat.prompt.text == text


async def test_a_line_is_whole_however_many_rows_it_takes() -> None:
    async with running(World()) as (app, pilot):
        prompt = app.chat.prompt
        prompt.put("short\n" + "x" * 300 + " end")
        await pilot.press("ctrl+a")
        assert prompt.cursor_location == (1, 0)
        await pilot.press("ctrl+e")
        assert prompt.cursor_location == (1, 304)
        await pilot.press("ctrl+u")
        assert prompt.text == "short\n"
        await pilot.press("ctrl+y", "home", "ctrl+k")
        assert prompt.text == "short\n"


async def test_only_the_last_cut_comes_back_as_often_as_wanted() -> None:
    async with running(World()) as (app, pilot):
        await typed(pilot, "one two")
        await pilot.press("ctrl+w", "x", "ctrl+w", "ctrl+y", "ctrl+y")
        assert app.chat.prompt.text == "one xx"


async def test_a_paste_that_was_cut_and_sent_is_whole() -> None:
    world, paste = World(), "line\n" * 100
    async with running(world) as (app, pilot):
        app.chat.prompt.post_message(keys.Paste(paste))
        await pilot.pause()
        await pilot.press("ctrl+u", "a", "enter")
        await until(pilot, lambda: world.agent.sent == ["a"])
        await pilot.press("ctrl+y")
        assert "[paste" in app.chat.prompt.text
        assert app.chat.prompt.value == paste


async def test_ctrl_y_redoes_where_nothing_was_cut() -> None:
    async with running(World()) as (app, pilot):
        await pilot.press("a", "ctrl+underscore")
        assert app.chat.prompt.text == ""
        await pilot.press("ctrl+y")
        assert app.chat.prompt.text == "a"


async def test_a_question_mark_in_an_empty_prompt_is_the_help() -> None:
    async with running(World()) as (app, pilot):
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        await pilot.press("question_mark")
        await until(pilot, lambda: app.screen is app.chat)
        await pilot.press("a", "question_mark")
        assert app.chat.prompt.text == "a?"


async def test_up_takes_back_what_is_queued() -> None:
    world, hold = World(), Hold()
    world.scripts.append(turn(hold, *answer("done")))
    async with running(world) as (app, pilot):
        await say(pilot, "work")
        await until(pilot, lambda: app.conversation.busy)
        await say(pilot, "one")
        await say(pilot, "two")
        await pilot.press("d", "up")
        assert app.chat.prompt.text == "one\ntwo\nd"
        assert app.chat.queued.texts == ()
        assert world.agent.queue == ()
        await pilot.press("enter")
        assert app.chat.queued.texts == ("one\ntwo\nd",)
        hold.release()
        await until(pilot, lambda: world.agent.sent == ["work", "one\ntwo\nd"])


async def test_up_with_nothing_queued_is_the_history_while_the_agent_works() -> None:
    world, hold = World(), Hold()
    world.scripts.append(turn(hold, *answer("done")))
    async with running(world) as (app, pilot):
        await say(pilot, "work")
        await until(pilot, lambda: app.conversation.busy)
        await pilot.press("up")
        assert app.chat.prompt.text == "work"
        hold.release()


async def test_a_shell_command_waits_for_the_agent(tmp_path: Path) -> None:
    world, hold = World(tmp_path), Hold()
    world.scripts.append(turn(hold, *answer("done")))
    async with running(world) as (app, pilot):
        await say(pilot, "work")
        await until(pilot, lambda: app.conversation.busy)
        await say(pilot, "!echo one")
        await say(pilot, "!echo two")
        assert app.chat.queued.texts == ("!echo one", "!echo two")
        await pilot.press("up")
        assert app.chat.prompt.text == "!echo two"
        assert app.chat.queued.texts == ("!echo one",)
        hold.release()
        await until(pilot, lambda: [item.preview for item in items(app, ToolItem)] == ["one"])
        await until(pilot, lambda: not app.conversation.busy)
        assert app.chat.queued.texts == ()
        assert world.agent.sent == ["work"]


@pytest.mark.parametrize("key", ["escape", "ctrl+c"])
async def test_what_a_key_clears_comes_back_with_up(key: str) -> None:
    async with running(World()) as (app, pilot):
        await pilot.press(*"half a thought")
        if key == "escape":
            await pilot.press(key)
            assert app.chat.notice.text.endswith("Press Esc again to clear.")
            assert app.chat.prompt.text == "half a thought"
        await pilot.press(key)
        assert app.chat.prompt.text == ""
        assert app.screen is app.chat
        assert app.chat.notice.text.endswith("Cleared. Up brings it back.")
        await pilot.press("up")
        assert app.chat.prompt.text == "half a thought"


async def test_two_escapes_with_typing_between_do_not_rewind() -> None:
    world = World()
    async with running(world) as (app, pilot):
        await say(pilot, "work")
        await until(pilot, lambda: not app.conversation.busy and bool(app.chat.conversation.items))
        world.agent.session.append("title", title="t")
        await pilot.press("escape")
        assert "Esc again to rewind" in app.chat.notice.text
        await pilot.press("a", "escape")
        assert "Esc again to clear" in app.chat.notice.text
        await pilot.press("escape", "escape")
        assert "Esc again to rewind" in app.chat.notice.text
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, PickScreen))


async def test_two_ctrl_c_with_typing_between_do_not_quit() -> None:
    async with running(World()) as (app, pilot):
        await pilot.press("ctrl+c", "a", "ctrl+c", "ctrl+c")
        await pilot.pause()
        assert app.is_running
        assert "again to quit" in app.chat.notice.text


@pytest.mark.usefixtures("painted")
async def test_ctrl_l_draws_all_of_it_anew() -> None:
    async with running(World()) as (app, pilot):
        drawn: list[object] = []
        app.chat.prompt_rule.render_lines = lambda crop: drawn.append(crop) or []  # pyright: ignore[reportAttributeAccessIssue]
        await pilot.pause()
        drawn.clear()
        await pilot.press("ctrl+l")
        await until(pilot, lambda: bool(drawn))


@pytest.mark.parametrize("word", ["exit", "quit", ":q"])
async def test_the_words_that_leave_a_shell_or_an_editor_leave(word: str) -> None:
    world = World()
    async with running(world) as (app, pilot):
        await typed(pilot, word)
        await pilot.press("enter")
        await until(pilot, lambda: app.return_code == 0)
        assert world.agent.sent == []


async def test_a_word_that_leaves_is_sent_behind_a_space() -> None:
    world = World()
    async with running(world) as (_, pilot):
        await typed(pilot, " exit")
        await pilot.press("enter")
        await until(pilot, lambda: world.agent.sent == [" exit"])


async def test_a_prompt_that_was_set_aside_returns_behind_the_next_one() -> None:
    world = World()
    world.scripts.append(turn(*answer("done")))
    async with running(world) as (app, pilot):
        prompt = app.chat.prompt
        await typed(pilot, "long plan")
        await pilot.press("ctrl+s")
        assert (prompt.text, app.frontend.prompt_text) == ("", "long plan")
        await typed(pilot, "quick")
        await pilot.press("enter")
        await until(pilot, lambda: prompt.text == "long plan" and not app.conversation.busy)
        assert world.agent.sent == ["quick"]
        await pilot.press("ctrl+s")
        await typed(pilot, "other")
        await pilot.press("ctrl+s")
        assert (prompt.text, prompt.stashed) == ("long plan", "other")
        await pilot.press("ctrl+c", "ctrl+s")
        assert (prompt.text, prompt.stashed) == ("other", "")


async def test_a_line_behind_a_hash_is_kept_in_memory(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with running(world) as (app, pilot):
        await typed(pilot, "# tests need redis")
        await pilot.press("enter")
        await until(pilot, lambda: "Saved to MEMORY.md." in app.chat.notice.text)
        kept = world.workspace / ".holdfast" / "MEMORY.md"
        assert kept.read_text().endswith("tests need redis\n")
        await typed(pilot, "# tests need redis")
        await pilot.press("enter")
        await until(pilot, lambda: "already" in app.chat.notice.text)
        app.chat.prompt.add_paste("# A heading")
        await pilot.press("enter")
        await until(pilot, lambda: world.agent.sent == ["# A heading"])
