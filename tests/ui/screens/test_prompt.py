"""The prompt: lines, history, pastes, and what Ctrl+C and Ctrl+D do."""

from __future__ import annotations

import asyncio

import pytest
from textual import events as keys
from textual.widgets import Input

from tests.support.script import Hold
from tests.support.world import World
from tests.ui.screens.driving import answer, running, say, session_open, turn, until
from tests.ui.widgets.test_whole_characters import SCRIPTS
from tui.core import facts
from tui.core.messages import Usage
from tui.core.text_cleaning import as_typed
from tui.ui import frontend
from tui.ui.screens import external_programs
from tui.ui.screens.external_programs import EditedText
from tui.ui.screens.sessions import SessionsScreen
from tui.ui.toolkit.key_parser import KeyParser
from tui.ui.widgets.conversation.items import UserItem
from tui.ui.widgets.prompt import Prompt


async def test_shift_enter_and_ctrl_j_make_new_lines() -> None:
    async with running(World()) as (app, pilot):
        await pilot.press("a", "shift+enter", "b", "ctrl+j", "c")
        assert app.chat.prompt.text == "a\nb\nc"
        assert app.chat.prompt.size.height == 3


async def test_the_prompt_grows_to_eight_rows() -> None:
    async with running(World()) as (app, pilot):
        for _ in range(12):
            await pilot.press("x", "ctrl+j")
        await pilot.pause()
        assert app.chat.prompt.size.height == 8


async def test_what_cannot_be_loaded_ahead_takes_no_prompt_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The program was upgraded while it ran, and a module that the turn would need is gone."""

    def gone() -> None:
        raise ImportError

    monkeypatch.setattr(frontend, "warm_turn", gone)
    world = World()
    async with running(world) as (app, pilot):
        await say(pilot, "keep this")
        await until(pilot, lambda: not app.conversation.busy)
        assert app.failure is None
        assert world.agent.sent


async def test_what_a_request_needs_is_loaded_before_what_its_answer_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, loaded = World(), list[int]()
    monkeypatch.setattr(frontend, "warm_turn", lambda: loaded.append(world.agent.scripted.loads))
    async with running(world) as (app, pilot):
        await until(pilot, lambda: app.ready)
        await pilot.press("x")
        await until(pilot, lambda: bool(loaded))
    assert loaded == [1]


async def test_a_paste_has_a_request_loaded_before_it_is_drawn_a_key_after(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, drawn = World(), asyncio.Event()
    async with running(world) as (app, pilot):
        await until(pilot, lambda: app.ready)
        monkeypatch.setattr(app, "painted", drawn.wait)
        app.post_message(keys.Paste("all of it"))
        await until(pilot, lambda: world.agent.scripted.loads == 1)
        assert app.chat.prompt.text == "all of it"
    world = World()
    async with running(world) as (app, pilot):
        await until(pilot, lambda: app.ready)
        monkeypatch.setattr(app, "painted", drawn.wait)
        await pilot.press("x")
        await until(pilot, lambda: app.chat.prompt.text == "x")
        await pilot.pause()
        assert world.agent.scripted.loads == 0
        drawn.set()
        await until(pilot, lambda: world.agent.scripted.loads == 1)


async def test_nothing_is_sent_from_an_empty_prompt() -> None:
    world = World()
    async with running(world) as (_, pilot):
        await pilot.press("space", "enter")
        assert world.agent.sent == []


async def test_up_and_down_recall_what_was_sent() -> None:
    world = World()
    async with running(world) as (app, pilot):
        for text in ("one", "two"):
            await say(pilot, text)
            await until(pilot, lambda: not app.conversation.busy)
        await pilot.press("d")
        shown: list[str] = []
        for key in ("up", "up", "up", "down", "down"):
            await pilot.press(key)
            shown.append(app.chat.prompt.text)
        assert shown == ["two", "one", "one", "two", "d"]


async def test_history_is_kept_for_the_next_run_of_the_folder() -> None:
    async with running(World()) as (app, pilot):
        await say(pilot, "remember me")
        await until(pilot, lambda: not app.conversation.busy)
    async with running(World()) as (app, pilot):
        await pilot.press("up")
        assert app.chat.prompt.text == "remember me"


async def test_a_paste_of_a_megabyte_is_one_word_and_sent_whole() -> None:
    world = World()
    text = "line of text\n" * 80_000
    async with running(world) as (app, pilot):
        await pilot.press("a", "space")
        app.chat.prompt.post_message(keys.Paste(text))
        await pilot.pause()
        assert app.chat.prompt.text.startswith("a [paste 1: 80,000 lines, ")
        await pilot.press("enter")
        await until(pilot, lambda: bool(world.agent.sent))
        assert world.agent.sent == ["a " + text]


async def test_a_short_paste_stays_as_it_is() -> None:
    async with running(World()) as (app, pilot):
        app.chat.prompt.post_message(keys.Paste("two\r\nlines"))
        await pilot.pause()
        assert app.chat.prompt.text == "two\nlines"


async def test_ctrl_c_stops_then_clears_then_quits() -> None:
    world = World()
    world.scripts.append(turn(Hold()))
    async with running(world) as (app, pilot):
        await say(pilot, "work")
        await until(pilot, lambda: app.conversation.busy)
        await pilot.press("ctrl+c")
        await until(pilot, lambda: not app.conversation.busy)
        await pilot.press("x", "ctrl+c")
        assert app.chat.prompt.text == ""
        await pilot.press("ctrl+c")
        assert "again to quit" in app.chat.notice.text
        world.clock.elapsed += 3
        await pilot.press("ctrl+c")
        assert app.is_running
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert world.agent.closed
    assert app.return_code == 0


async def test_ctrl_c_on_another_screen_says_there_what_a_second_one_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    async with running(world) as (app, pilot):
        await pilot.press("d", "f3")
        await until(pilot, lambda: isinstance(app.screen, SessionsScreen))
        said: list[str] = []
        monkeypatch.setattr(app.screen, "note", said.append)
        await pilot.press("ctrl+c")
        assert said == ["Press Ctrl+C again to quit."]
        await pilot.press("x", "ctrl+c")
        assert app.is_running, "what is typed between shows that no second press was meant"
        assert app.chat.prompt.text == "d", "a draft that is out of sight stays"
        await pilot.press("ctrl+c")
        await until(pilot, lambda: world.agent.closed)


async def test_what_ctrl_c_cleared_comes_back_with_up() -> None:
    async with running(World()) as (app, pilot):
        await pilot.press("l", "o", "s", "t", "ctrl+c", "up")
        assert app.chat.prompt.text == "lost"


async def test_ctrl_d_quits_only_when_the_prompt_is_empty() -> None:
    world = World()
    async with running(world) as (app, pilot):
        await pilot.press("a", "b", "left", "ctrl+d")
        assert app.chat.prompt.text == "a"
        await pilot.press("backspace", "ctrl+d")
        assert app.chat.notice.text == "· Press Ctrl+D again to quit."
        await pilot.press("ctrl+d")
        await until(pilot, lambda: world.agent.closed)


async def test_a_selected_tool_call_shows_its_output_again() -> None:
    world = World()
    world.scripts.append(
        turn(
            *(
                step
                for n in ("1", "2")
                for step in (
                    facts.AssistantMessage("", "tool_use", Usage()),
                    facts.ToolStarted(n, "read_file", {"path": n}, f"{n}.py"),
                    facts.ToolFinished(n, "read_file", False, 0.1, None, "", f"text of {n}"),
                )
            )
        )
    )
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.status.state.turns == 1)
        assert app.chat.output.text == "text of 2"
        app.chat.conversation.focus()
        await until(pilot, lambda: app.focused is app.chat.conversation)
        await pilot.press("up", "up")
        await until(pilot, lambda: app.chat.output.text == "text of 1")


async def test_typing_reaches_the_prompt_from_anywhere() -> None:
    async with running(World()) as (app, pilot):
        app.chat.output.focus()
        await pilot.pause()
        await pilot.press("Z")
        assert app.chat.prompt.text == "Z"
        assert app.focused is app.chat.prompt


async def test_keys_of_the_pane_stay_with_the_pane() -> None:
    async with running(World()) as (app, pilot):
        app.chat.side.show("x", "line\n" * 100)
        app.chat.output.focus()
        await pilot.pause()
        await pilot.press("g")
        assert app.chat.prompt.text == ""


async def test_what_is_typed_before_the_session_stands_is_sent_then() -> None:
    world = World()
    async with running(world, prompt="first") as (_, pilot):
        await until(pilot, lambda: world.agent.sent == ["first"])


async def test_what_is_typed_in_one_go_elsewhere_reaches_the_prompt_whole() -> None:
    world = World()
    async with running(world) as (app, pilot):
        await until(pilot, lambda: session_open(app))
        app.chat.add(UserItem("hello"))
        await pilot.click("#conversation")
        for key, character in (("slash", "/"), ("p", "p"), ("i", "i"), ("n", "n")):
            app.post_message(keys.Key(key, character))
        await until(pilot, lambda: app.chat.prompt.text == "/pin")


async def test_what_is_typed_while_a_prompt_is_taken_stays() -> None:
    world, hold = World(), Hold()
    world.scripts.append(turn(hold, *answer("Yes.")))
    async with running(world) as (app, pilot):
        prompt = app.chat.prompt
        prompt.focus()
        prompt.insert("first")
        prompt.post_message(Prompt.Submitted(prompt, prompt.value))
        prompt.insert(" next")
        await until(pilot, lambda: world.agent.sent == ["first"])
        assert prompt.text == " next"
        hold.release()


LONG = "line of a paste\n" * 30


async def test_what_is_quoted_in_a_paste_is_no_other_paste() -> None:
    async with running(World()) as (app, pilot):
        prompt = app.chat.prompt
        prompt.add_paste(LONG)
        word = prompt.text
        prompt.add_paste(f"{LONG}and {word}\n")
        prompt.add_paste(f"short, {word}")
        await pilot.pause()
        assert prompt.value == f"{LONG}{LONG}and {word}\nshort, {word}"


async def test_what_was_typed_beside_a_paste_is_typed_when_it_comes_back() -> None:
    async with running(World()) as (app, pilot):
        prompt = app.chat.prompt
        await pilot.press(*"fix ")
        prompt.add_paste(LONG)
        await pilot.press(*" now")
        shown, value = prompt.text, prompt.value
        assert shown.startswith("fix [paste 1: 30 lines, ")
        await pilot.press("enter")
        await until(pilot, lambda: not prompt.text and not app.conversation.busy)
        await pilot.press("up")
        assert (prompt.text, prompt.value) == (shown, value)
        await pilot.press("ctrl+s", "ctrl+s")
        assert (prompt.text, prompt.value) == (shown, value)


async def test_what_was_typed_beside_a_paste_is_typed_in_the_next_run() -> None:
    async with running(World()) as (app, pilot):
        await pilot.press(*"fix ")
        app.chat.prompt.add_paste(LONG)
        await pilot.press("enter")
        await until(pilot, lambda: not app.chat.prompt.text and not app.conversation.busy)
    async with running(World()) as (app, pilot):
        await pilot.press("up")
        assert app.chat.prompt.text.startswith("fix [paste 1: 30 lines, ")
        assert app.chat.prompt.value == f"fix {LONG}"


async def test_a_paste_that_made_the_prompt_scroll_can_be_undone() -> None:
    async with running(World()) as (app, pilot):
        await pilot.press("x")
        app.chat.prompt.add_paste("\n".join("abcdefghijkl"))
        await pilot.pause()
        await pilot.press("ctrl+underscore")
        assert app.chat.prompt.text == "x"


async def test_a_draft_is_kept_when_another_prompt_is_edited() -> None:
    async with running(World()) as (app, pilot):
        await say(pilot, "one")
        await until(pilot, lambda: not app.conversation.busy)
        await pilot.press(*"draft", "up", "x", "up")
        assert app.chat.prompt.text == "draft"
        await pilot.press("down")
        assert app.chat.prompt.text == "onex"


async def test_an_editor_that_fails_changes_nothing_and_its_text_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def editor(_: object, text: str) -> EditedText:
        return EditedText(problem="vi closed with exit code 1.", refused=f"{text} and more\n")

    monkeypatch.setattr(external_programs, "edited", editor)
    async with running(World()) as (app, pilot):
        await pilot.press(*"draft", "ctrl+g")
        await until(pilot, lambda: "exit code 1" in app.chat.notice.text)
        assert app.chat.prompt.text == "draft"
        await pilot.press("up")
        assert app.chat.prompt.text == "draft and more"
        await pilot.press("down")
        assert app.chat.prompt.text == "draft"


@pytest.mark.parametrize("command", ["/help", "/context", "/jobs", "/permissions"])
async def test_a_paste_over_any_screen_is_in_the_prompt_or_in_a_field(command: str) -> None:
    async with running(World()) as (app, pilot):
        await say(pilot, command)
        await until(pilot, lambda: app.screen is not app.chat)
        app.post_message(keys.Paste("two\nlines"))
        await pilot.pause()
        fields = [field.value for field in app.screen.query(Input)]
        assert app.chat.prompt.value == "two\nlines" or "two lines" in fields


async def test_characters_of_twelve_scripts_arrive_whole() -> None:
    world = World()
    text = " ".join(SCRIPTS.values())
    text = (text * (1 + 2000 // len(text)))[:2000]
    async with running(world) as (app, pilot):
        keyboard = KeyParser(as_typed)
        for start in range(0, len(text), 7):
            for message in keyboard.feed(text[start : start + 7].encode()):
                app.post_message(message)
        await until(pilot, lambda: len(app.chat.prompt.text) == len(text))
        await pilot.press("enter")
        await until(pilot, lambda: bool(world.agent.sent))
        assert world.agent.sent == [text]
