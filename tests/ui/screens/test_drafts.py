"""What is typed, queued and streamed is kept, and comes back."""

from __future__ import annotations

import pytest

from tests.support.script import Hold
from tests.support.world import OldSession, World, old_path, record
from tests.ui.screens.driving import answer, items, running, say, session_open, turn, until
from tui.app import drafts
from tui.app.services import SessionChoice
from tui.core import facts
from tui.session.drafts import UnsentWork
from tui.ui.widgets.conversation.items import AssistantItem, NoticeItem, ToolItem


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafts, "TYPED_FOR_S", 0.001)


async def test_what_is_typed_is_kept() -> None:
    world = World()
    async with running(world) as (app, pilot):
        await until(pilot, lambda: session_open(app))
        await pilot.press("h", "i")
        await until(pilot, lambda: world.agent.watched.drafts[-1:] == [("hi", (), "")])


async def test_what_was_sent_is_typed_no_more() -> None:
    world = World()
    world.scripts.append(turn(*answer("done")))
    async with running(world) as (app, pilot):
        await until(pilot, lambda: session_open(app))
        await say(pilot, "hi")
        await until(pilot, lambda: not app.chat.busy and bool(items(app, AssistantItem)))
        await until(pilot, lambda: world.agent.watched.drafts[-1:] == [("", (), "")])


async def test_the_queue_and_the_answer_are_kept_while_it_comes() -> None:
    world, hold = World(), Hold()
    world.scripts.append(turn(facts.TextDelta("Half of"), hold, *answer(" it.")))
    async with running(world) as (app, pilot):
        await until(pilot, lambda: session_open(app))
        await say(pilot, "go")
        await until(pilot, lambda: bool(items(app, AssistantItem)))
        await say(pilot, "then")
        kept = world.agent.watched.drafts
        await until(pilot, lambda: kept[-1:] == [("", ("then",), "Half of")])
        hold.release()
        await until(pilot, lambda: not app.chat.busy)


async def test_what_was_left_behind_comes_back_before_what_is_typed() -> None:
    world = World()
    left = UnsentWork("and a third", ("a second",), "It begins with")
    world.old[old_path()] = OldSession(records=[record("user", 1, text="first")], unsent=left)
    async with running(world, choice=SessionChoice(old_path())) as (app, pilot):
        await until(pilot, lambda: app.chat.prompt.text == "a second\nand a third")
        (partial,) = items(app, AssistantItem)
        assert partial.text == "It begins with"
        assert "hasn't seen" in items(app, NoticeItem)[-1].text


async def test_commands_that_wait_are_kept() -> None:
    world, hold = World(), Hold()
    world.scripts.append(turn(facts.TextDelta("Half of"), hold, *answer(" it.")))
    async with running(world) as (app, pilot):
        await until(pilot, lambda: session_open(app))
        await say(pilot, "go")
        await until(pilot, lambda: bool(items(app, AssistantItem)))
        await say(pilot, "!echo one")
        await say(pilot, "!!echo two")
        session = world.agent.watched
        waiting = ("!echo one", "!!echo two")
        await until(pilot, lambda: session.drafted_commands == waiting)
        assert session.drafts[-1] == ("", (), "Half of")  # not among the prompts
        await app.conversation.close()
        assert session.drafted_commands == waiting
        assert not items(app, ToolItem)  # leaving runs none of them


async def test_a_command_that_waited_is_typed_again_where_it_stands_alone() -> None:
    world = World()
    world.old[old_path()] = OldSession(unsent=UnsentWork(commands=("!echo one", "!echo two")))
    async with running(world, choice=SessionChoice(old_path())) as (app, pilot):
        await until(pilot, lambda: app.chat.prompt.text == "!echo one")
        assert items(app, NoticeItem)[-1].detail == "!echo two"
        assert not items(app, ToolItem)


async def test_a_command_that_waited_is_told_where_a_prompt_did_too() -> None:
    world = World()
    world.old[old_path()] = OldSession(unsent=UnsentWork("a text", commands=("!echo one",)))
    async with running(world, choice=SessionChoice(old_path())) as (app, pilot):
        await until(pilot, lambda: app.chat.prompt.text == "a text")
        assert items(app, NoticeItem)[-1].detail == "!echo one"
        assert not items(app, ToolItem)


async def test_what_the_agent_takes_of_its_queue_hides_no_command_that_waits() -> None:
    world, taken, hold = World(), Hold(), Hold()
    world.scripts.extend([turn(taken), turn(hold, *answer("done"))])
    async with running(world) as (app, pilot):
        await until(pilot, lambda: session_open(app))
        await say(pilot, "go")
        await until(pilot, lambda: app.conversation.busy)
        await say(pilot, "and this")
        await say(pilot, "!echo one")
        assert app.chat.queued.texts == ("!echo one", "and this")
        taken.release()
        await until(pilot, lambda: app.chat.queued.texts == ("!echo one",))
        hold.release()
        await until(pilot, lambda: bool(items(app, ToolItem)) and not app.conversation.busy)
        assert app.chat.queued.texts == ()


async def test_a_session_that_is_only_read_gets_no_drafts() -> None:
    world = World()
    world.old[old_path()] = OldSession(records=[record("user", 1, text="first")], read_only=True)
    async with running(world, choice=SessionChoice(old_path())) as (app, pilot):
        await until(pilot, lambda: session_open(app))
        await pilot.press("h", "i")
        await until(pilot, lambda: app.chat.prompt.text == "hi")
        app.conversation.drafts.leave()
        assert world.agent.watched.drafts == []


async def test_what_is_typed_goes_along_to_another_session() -> None:
    world = World()
    async with running(world) as (app, pilot):
        await until(pilot, lambda: session_open(app))
        await pilot.press("h", "i")
        first = world.agent.watched
        app.frontend.switch_session(SessionChoice())
        await until(pilot, lambda: len(world.agents) == 2 and session_open(app))
        assert first.drafts[-1] == ("", (), "")
        assert app.chat.prompt.text == "hi"
        await until(pilot, lambda: world.agent.watched.drafts[-1:] == [("hi", (), "")])


async def test_a_long_text_comes_back_as_one_word() -> None:
    world, long = World(), "x" * 5000
    world.old[old_path()] = OldSession(unsent=UnsentWork(long))
    async with running(world, choice=SessionChoice(old_path())) as (app, pilot):
        await until(pilot, lambda: app.chat.prompt.value == long)
        assert len(app.chat.prompt.text) < 60


async def test_what_a_request_needs_is_loaded_once_a_prompt_is_begun() -> None:
    world = World()
    async with running(world) as (app, pilot):
        await until(pilot, lambda: session_open(app))
        await pilot.press("up", "f2", "escape")
        assert world.agent.scripted.loads == 0
        await pilot.press("h", "i")
        await until(pilot, lambda: world.agent.scripted.loads == 1)
        await pilot.press("!")
        await until(pilot, lambda: app.chat.prompt.text == "hi!")
    assert world.agent.scripted.loads == 1


async def test_what_a_request_needs_is_loaded_for_a_prompt_that_was_left() -> None:
    world = World()
    world.old[old_path()] = OldSession(unsent=UnsentWork("hi"))
    async with running(world, choice=SessionChoice(old_path())) as (app, pilot):
        await until(pilot, lambda: app.chat.prompt.text == "hi")
        await until(pilot, lambda: world.agent.scripted.loads == 1)
