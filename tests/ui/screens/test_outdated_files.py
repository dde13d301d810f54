"""Files that changed since the model saw them, on the screen: their cards, and F2."""

from __future__ import annotations

from pathlib import Path

from tests.support.agents import events_of, make_agent
from tests.support.provider import ScriptedProvider, call, last_user_text
from tests.support.provider import say as says
from tests.support.script import MODEL
from tests.support.world import World
from tests.ui.screens.driving import (
    WIDE,
    answer,
    app_of,
    items,
    running,
    say,
    session_open,
    turn,
    until,
)
from tui.core import facts
from tui.core.messages import Usage
from tui.ui.screens.context import ContextScreen
from tui.ui.widgets import record_items
from tui.ui.widgets.conversation.items import NoticeItem, ToolItem


async def test_the_card_of_a_read_says_that_it_is_outdated_and_no_longer(tmp_path: Path) -> None:
    world = World()
    reads = [
        facts.AssistantMessage("", "tool_use", Usage(1000, 50)),
        *(
            step
            for name in ("a.py", "b.py")
            for step in (
                facts.ToolStarted(name, "read_file", {"path": name}, name),
                facts.ToolFinished(name, "read_file", False, 0.1, None, "3 lines", "x"),
            )
        ),
        facts.RequestSent(1, 100, MODEL, 1),
    ]
    said = 'Changed since the model last saw it: "a.py".'
    for state in ("changed", "back"):
        file = {"path": "a.py", "state": state, "why": "", "calls": ["a.py"]}
        steps = reads if state == "changed" else []
        world.scripts.append(turn(*steps, facts.FilesChanged((file,), said), *answer("ok")))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: any(one.text == said for one in items(app, NoticeItem)))
        cards = items(app, ToolItem)
        assert [card.outdated for card in cards] == [True, False]
        rows = "\n".join(
            strip.text
            for strip in app.chat.conversation.render_lines(app.chat.conversation.size.region)
        )
        (row,) = [row for row in rows.split("\n") if "a.py" in row and "since" not in row]
        assert row.rstrip().endswith("outdated")
        await until(pilot, lambda: not app.chat.busy)
        await say(pilot, "on")
        await until(pilot, lambda: not any(card.outdated for card in cards))


async def test_f2_marks_what_is_outdated_and_d_shows_the_model_the_difference(
    tmp_path: Path,
) -> None:
    file = tmp_path / "a.py"
    file.write_text("one\ntwo\n")
    provider = ScriptedProvider([call("read_file", path="a.py")], says("ok"), says("ok"))
    agent = make_agent(tmp_path, provider)
    await events_of(agent, "go")
    app = app_of(World())
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: session_open(app))
        screen = ContextScreen(agent, lambda _: None)
        await app.push_screen(screen)
        await until(pilot, lambda: app.screen is screen)
        result = next(at for at, row in enumerate(screen.shown) if row.item.kind == "result")
        screen.rows.move_to(result)
        await pilot.press("d")
        await until(pilot, lambda: "is as the model last saw it" in screen.notice.text)
        file.write_text("one\n2\n")
        await until(pilot, lambda: any(row.outdated for row in screen.shown))
        (row,) = [row for row in screen.shown if row.outdated]
        assert (row.item.kind, row.state) == ("result", "outdated")
        assert "1 outdated" in str(screen.query_one("#title").render())
        screen.rows.move_to(screen.shown.index(row))
        await pilot.press("d")
        await until(pilot, lambda: "The next request shows what changed" in screen.notice.text)
    await events_of(agent, "on")
    assert "-two\n+2\n" in last_user_text(provider.requests[-1])
    await agent.close()


async def test_a_resumed_session_has_its_cards_as_they_were(tmp_path: Path) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("one\n")
    reads = [call("read_file", name, path=name) for name in ("a.py", "b.py")]
    agent = make_agent(tmp_path, ScriptedProvider(reads, says("ok"), *[says("ok")] * 2))
    await events_of(agent, "go")
    for text, outdated in (("two\n", {"a.py"}), ("one\n", set[str]())):
        (tmp_path / "a.py").write_text(text)
        await events_of(agent, "on")
        tools = record_items.restored(agent.session.records).tools.values()
        assert {card.label for card in tools if card.outdated} == outdated
    await agent.close()
