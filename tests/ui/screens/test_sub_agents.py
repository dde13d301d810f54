"""/agents and the screen of a sub-agent: those of an earlier run, and one that works."""

from __future__ import annotations

import asyncio
from pathlib import Path

from textual.pilot import Pilot
from textual.widgets import Static

from tests.support.world import OldSession, World, folders, record
from tests.ui.screens.driving import running, say, until
from tui.agent.sub_agent_list import SubAgent
from tui.app.services import SessionChoice
from tui.core.messages import text_block
from tui.session.copies import write_session
from tui.session.records import Header, Record
from tui.ui.app import HoldfastApp
from tui.ui.screens.sub_agents import AgentsScreen, SubAgentScreen
from tui.ui.widgets.conversation.items import AssistantItem, ToolItem, UserItem
from tui.ui.widgets.conversation.view import ConversationView

ROOT = Path("/home/me/proj")


def call(id_: str, name: str, **arguments: str) -> dict[str, object]:
    return {"type": "tool_use", "id": id_, "name": name, "input": arguments}


def child_records() -> list[Record]:
    """What a sub-agent did: one call, its result, an answer."""
    made = [
        record("user", 1, content=[text_block("Where is it?")], text="Where is it?"),
        record("assistant", 2, content=[call("c1", "list_dir", path=".")], model="m"),
        record("tool_result", 3, call_id="c1", name="list_dir", content=[text_block("a.py")]),
        record("assistant", 4, content=[text_block("It is in a.py.")], model="m"),
    ]
    return [
        Record(one.type, one.id, made[at - 1].id if at else None, one.time, one.data)
        for at, one in enumerate(made)
    ]


def world_with_one() -> tuple[World, Path]:
    """A session whose sub-agent ended in an earlier run, and its file."""
    world = World()
    path = folders().sessions_of(ROOT) / "20261121T080000Z-0199f3a2c1d0.jsonl"
    child = path.with_suffix("") / "20261121T080001Z-5ab5ab5ab5ab.jsonl"
    write_session(child, Header("5ab5ab5ab5ab", "", str(ROOT), "holdfast 1"), child_records())
    usage = {"input_tokens": 2000, "output_tokens": 100}
    given = {"description": "find it", "prompt": "Where is it?", "agent": "explore"}
    facts = {"call_id": "t1", "session": "5ab5ab5ab5ab", "agent": "explore"}
    facts |= {"path": "/moved/20261121T080001Z-5ab5ab5ab5ab.jsonl", "description": "find it"}
    spent = [{"model": "claude-sonnet-5-5", "requests": 2, "usage": usage}]
    world.old[path] = OldSession(
        records=(
            record("user", 1, content=[text_block("look")], text="look"),
            record("assistant", 2, content=[call("t1", "task", **given)], model="m"),
            record("sub_agent", 3, **facts, model="m", state="started"),
            record("sub_agent", 4, **facts, model="m", state="done", calls=3, spent=spent),
            record("tool_result", 5, call_id="t1", name="task", content=[text_block("In a.py.")]),
            record("assistant", 6, content=[text_block("It is in a.py.")], model="m"),
        )
    )
    return world, path


def text_of(app: HoldfastApp, id_: str) -> str:
    return str(app.screen.query_one(f"#{id_}", Static).content)


async def test_one_of_an_earlier_run_is_listed_and_opened():
    world, path = world_with_one()
    async with running(world, (100, 30), choice=SessionChoice(path)) as (app, pilot):
        await say(pilot, "/agents")
        await until(pilot, lambda: isinstance(app.screen, AgentsScreen))
        row = app.screen.query_one("#rows").render_line(0).text
        assert "✓ explore: find it  done · 3 calls · 2.1k tokens · $0.0050" in row
        assert "session 5ab5ab5ab5ab" in text_of(app, "about")
        world.clock.elapsed += 1
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, SubAgentScreen))
        items = app.screen.query_one(ConversationView).items
        assert [type(item) for item in items] == [UserItem, ToolItem, AssistantItem]
        assert "explore: find it" in text_of(app, "title")
        await pilot.press("y", "escape")
        assert app.clipboard == "It is in a.py."
        assert app.screen is app.chat


async def test_enter_on_its_card_opens_it():
    world, path = world_with_one()
    async with running(world, (100, 30), choice=SessionChoice(path)) as (app, pilot):
        card = next(one for one in app.chat.conversation.items if isinstance(one, ToolItem))
        assert card.label == "explore: find it"
        app.chat.conversation.focus()
        app.chat.conversation.go_to(card)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, SubAgentScreen))


async def test_without_any_the_kinds_are_not_chosen():
    async with running(World(), (100, 30)) as (app, pilot):
        await say(pilot, "/agents")
        await until(pilot, lambda: isinstance(app.screen, AgentsScreen))
        await pilot.press("enter", "x", "escape")
        await until(pilot, lambda: app.screen is app.chat)


async def test_one_that_works_is_followed_and_stopped():
    world = World()
    async with running(world, (100, 30)) as (app, pilot):
        stopped = asyncio.Event()

        class Work:
            def cancel(self) -> None:
                stopped.set()

        one = SubAgent("t1", "5ab", None, "explore", "find it", "m", state="running")
        one.work = Work()
        one.started, one.now = 1.0, "list_dir ."
        every, records = child_records(), list[Record]()
        app.push_screen(SubAgentScreen(one, records, world.clock))
        await until(pilot, lambda: isinstance(app.screen, SubAgentScreen))
        screen = app.screen
        assert isinstance(screen, SubAgentScreen)
        records += every[:2]
        one.tell()
        screen.follow()
        card = screen.view.items[1]
        assert isinstance(card, ToolItem)
        assert card.state == "running"
        assert "running" in text_of(app, "title")
        assert "list_dir ." in text_of(app, "title")
        records.append(every[2])
        one.tell()
        screen.follow()
        assert card.state == "ok"
        await pilot.press("x")
        assert stopped.is_set()
        assert one.stopped
        records.append(
            record("assistant", 9, content=[call("c2", "list_dir", path="b")], model="m")
        )
        one.state = "stopped"
        one.tell()
        screen.follow()
        last = screen.view.items[-1]
        assert isinstance(last, ToolItem)
        assert last.state == "interrupted"
        await leave(pilot)
        assert one.watch == []


async def leave(pilot: Pilot[None]) -> None:
    await pilot.press("escape")
    await until(pilot, lambda: not isinstance(pilot.app.screen, SubAgentScreen))
