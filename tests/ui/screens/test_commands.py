"""What is typed with a slash or an exclamation mark."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from math import isclose
from types import SimpleNamespace
from typing import Any

import pytest
from textual.content import Content
from textual.widgets import Static

from tests.support.script import MODEL, Hold
from tests.support.spent_session import spent_session
from tests.support.world import World
from tests.ui.screens.driving import answer, items, running, say, turn, until
from tui.agent.limits import session_cost
from tui.app.commands import find
from tui.app.commands.table import COMMANDS, ELSEWHERE
from tui.app.reports.usage import SessionUsage, usage_tables
from tui.app.reports.usage_table import UsageTable
from tui.context.system_prompt import Injected
from tui.context.usage.attribution import attribute
from tui.core import facts
from tui.core.paths import folders
from tui.ui.screens.help import HelpScreen, HelpTable
from tui.ui.screens.usage import UsageScreen
from tui.ui.widgets.conversation.items import (
    AssistantItem,
    NoticeItem,
)
from tui.ui.widgets.keys import HELP


async def test_an_unknown_command_keeps_what_was_typed() -> None:
    world = World()
    async with running(world) as (app, pilot):
        await say(pilot, "/modle x")
        assert app.chat.prompt.text == "/modle x"
        assert "Unknown command /modle. Did you mean /model?" in app.chat.notice.text
        assert world.agent.sent == []
        await pilot.press("y")
        assert app.chat.notice.text == ""


@pytest.mark.parametrize(("name", "of"), sorted(ELSEWHERE.items()))
def test_a_name_of_other_agents_stands_for_one_command(name: str, of: str) -> None:
    assert find(name) is None
    command = find(of)
    assert command is not None
    assert command.name == of


def switched(world: World) -> dict[str, bool]:
    """The directives that were recorded last."""
    told = [one.data for one in world.agent.session.records if one.type == "directive"]
    return told[-1] if told else {}


async def test_a_name_of_other_agents_does_what_it_does_here() -> None:
    world = World()
    async with running(world) as (app, pilot):
        await say(pilot, "/models claude-opus-5-5")
        await until(pilot, lambda: world.agent.models.current == "claude-opus-5-5")
        assert app.chat.prompt.text == ""
        await say(pilot, "/yolo off")
        await until(pilot, lambda: switched(world).get("elevated") is False)


async def test_a_command_of_ones_own_goes_before_a_name_of_other_agents() -> None:
    world = World()
    own = folders().config / "commands" / "models.md"
    own.parent.mkdir(parents=True)
    own.write_text("Compare our models.")
    async with running(world) as (_, pilot):
        await say(pilot, "/models")
        await until(pilot, lambda: world.agent.sent == ["/models"])


@pytest.mark.parametrize("text", ["/usr/bin/x is broken", " /modle x", "//"])
async def test_what_is_no_command_is_sent(text: str) -> None:
    world = World()
    async with running(world) as (_, pilot):
        await say(pilot, text)
        await until(pilot, lambda: world.agent.sent == [text])


@pytest.mark.parametrize(
    ("text", "wanted", "sent"),
    [
        ("/think", {"think": True}, []),
        ("/think /verbose look at it", {"think": True, "verbose": True}, ["look at it"]),
        ("/elevated off", {"elevated": False}, []),
    ],
)
async def test_directives_go_to_the_agent_as_typed(
    text: str, wanted: dict[str, bool], sent: list[str]
) -> None:
    world = World()
    async with running(world) as (_, pilot):
        await say(pilot, text)
        await until(pilot, lambda: wanted.items() <= switched(world).items())
        await until(pilot, lambda: world.agent.sent == sent)


async def test_model_switches_by_name() -> None:
    world = World()
    async with running(world) as (app, pilot):
        await say(pilot, "/model claude-opus-5-5")
        await until(pilot, lambda: world.agent.models.current == "claude-opus-5-5")
        assert app.chat.header.state.model == "claude-opus-5-5"
        assert f"/model {MODEL} switches back" in app.chat.notice.text


async def test_theme_switches_and_is_kept() -> None:
    world = World()
    async with running(world) as (app, pilot):
        await say(pilot, "/theme daylight")
        await until(pilot, lambda: app.theme == "daylight")
        assert world.themes_saved == ["daylight"]
        await say(pilot, "/theme mauve")
        await until(pilot, lambda: "no such theme" in app.chat.notice.text)
        assert app.theme == "daylight"


async def test_copy_takes_the_last_answer() -> None:
    world = World()
    world.scripts.append(turn(*answer("**the** answer")))
    async with running(world) as (app, pilot):
        await say(pilot, "/copy")
        assert "No answer" in app.chat.notice.text
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.status.state.turns == 1)
        await say(pilot, "/copy")
        assert app.clipboard == "**the** answer"


async def test_copy_takes_a_stopped_answer_and_an_unfinished_one() -> None:
    world = World()
    half = [facts.TextDelta("\n"), facts.TextDelta("half an")]
    world.scripts += [turn(*answer("whole")), turn(*half, Hold()), turn(Hold())]
    async with running(world) as (app, pilot):
        await say(pilot, "one")
        await until(pilot, lambda: app.chat.status.state.turns == 1)
        for turns, phase in ((2, "answering"), (3, "waiting for")):
            await say(pilot, "more")
            await until(pilot, lambda: phase in app.chat.prompt_rule.title.plain)  # noqa: B023 - awaited at once
            await pilot.press("escape")
            await until(pilot, lambda: app.chat.status.state.turns == turns)  # noqa: B023 - as above
            await say(pilot, "/copy")
            assert app.clipboard == "half an"
        app.frontend.show_unfinished("cut off by a crash")
        await say(pilot, "/copy")
        assert app.clipboard == "cut off by a crash"


async def test_reports_stand_in_the_conversation() -> None:
    async with running(World()) as (app, pilot):
        await say(pilot, "/status")
        report = items(app, NoticeItem)[-1]
        assert len(report.detail.splitlines()) >= 5
        assert not report.folded


async def test_help_is_made_from_the_tables() -> None:
    async with running(World()) as (app, pilot):
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        text = str(app.screen.query_one(HelpTable).render())
        for command in COMMANDS:
            assert f"/{command.name}" in text
        for _, table in HELP:
            assert all(key.shown in text for key in table)
        await pilot.press("escape")
        assert app.screen is app.chat


async def test_the_start_card_names_the_files_in_the_prompt() -> None:
    world = World()
    whole = Injected("project", "AGENTS.md", 3210, 3210)
    world.injected = (whole, Injected("memory", "MEMORY.md", 31_000, 20_000))
    async with running(world) as (app, _):
        (card,) = [item for item in items(app, NoticeItem) if "Loaded" in item.text]
        assert "MEMORY.md  31,000 → 20,000 chars, cut" in card.detail
        assert not card.folded


async def test_usage_follows_a_session_and_sorts_its_prompts_by_what_they_cost() -> None:
    world = World()
    world.scripts.extend([turn(*answer(f"{n}.")) for n in range(5)])
    async with running(world) as (app, pilot):
        for n in range(4):
            await say(pilot, f"prompt {n}")
            await until(pilot, lambda n=n: len(items(app, AssistantItem)) == n + 1)
        await say(pilot, "/usage")
        await until(pilot, lambda: isinstance(app.screen, UsageScreen))
        screen = app.screen
        assert isinstance(screen, UsageScreen)
        await until(pilot, lambda: len(screen.table.rows) == 4)
        assert screen.rows.cursor == 3
        about = screen.query_one("#about", Static)
        assert "Dearest: " in str(about.visual)
        app.conversation.submit("one more")
        await until(pilot, lambda: len(items(app, AssistantItem)) == 5)
        screen.follow()
        await until(pilot, lambda: len(screen.table.rows) == 5)
        assert screen.rows.cursor == 4
        await pilot.press("s")
        costs = [row.amount.usd for row in screen.table.rows]
        assert costs == sorted(costs, reverse=True)
        assert screen.rows.cursor == 0
        assert "Dearest: " not in str(about.visual)


async def test_usage_groups_by_what_is_asked_for_and_by_the_arrows() -> None:
    async with running(World()) as (app, pilot):
        await say(pilot, "/usage tool")
        await until(pilot, lambda: isinstance(app.screen, UsageScreen))
        screen = app.screen
        assert isinstance(screen, UsageScreen)
        assert screen.table.by == "tool"
        await pilot.press("right")
        assert screen.table.by == "file"
        await pilot.press("left", "left")
        assert screen.table.by == "kind"
        about = screen.query_one("#about", Static)
        await until(pilot, lambda: str(about.visual) == "Nothing was spent yet.")
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)


async def test_usage_of_a_long_session_shows_what_the_bills_say_while_the_rest_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tui.app.reports.usage.LOOK_S", 0.0)
    records, read_on = spent_session(), threading.Event()
    agent: Any = SimpleNamespace(
        models=SimpleNamespace(prices={}),
        session=SimpleNamespace(records=records, elsewhere=(), header=SimpleNamespace(cwd="/w")),
        spending=lambda: session_cost(records, {}),
    )

    class Slow(SessionUsage):
        """Reads a third, and then nothing until it may."""

        def read(self) -> Iterator[tuple[dict[str, UsageTable], Sequence[str]]]:
            for number, known in enumerate(super().read()):
                yield known
                if number == len(records) // 3:
                    read_on.wait(30)

    async with running(World()) as (app, pilot):
        screen = UsageScreen(Slow(agent))
        await app.push_screen(screen)
        about, total = (screen.query_one(name, Static) for name in ("#about", "#total"))
        await until(pilot, lambda: "3% of" in str(about.visual).replace(" %", "%"))
        prompts = screen.table
        assert str(total.visual).startswith("total ")
        await pilot.press("right")
        assert str(total.visual).startswith("so far ")
        part = screen.table.total.usd
        assert 0 < part < prompts.total.usd
        read_on.set()
        await until(pilot, lambda: str(total.visual).startswith("total "))
        assert isclose(screen.table.total.usd, prompts.total.usd)
        assert "of the record" not in str(about.visual)
        await pilot.press("left")
        assert screen.table == prompts


async def test_usage_says_whole_lines_on_a_small_screen_and_all_groupings_on_a_wide_one() -> None:
    found = usage_tables(attribute(spent_session(), {}, cwd="/w"))
    said = ["Session: $2.78 for 350 requests; last prompt: $0.11 for 13 requests; 84 % of the"]
    known: Any = SimpleNamespace(version=0, read=lambda: iter([found]), summary=lambda: said)
    for size in ((80, 24), (120, 33), (200, 50)):
        async with running(World(), size=size) as (app, pilot):
            screen = UsageScreen(known)
            await app.push_screen(screen)
            await until(pilot, lambda screen=screen: len(screen.table.rows) > 3)
            about, tabs = screen.query_one("#about", Static), screen.query_one("#tabs", Static)
            words = Content(str(about.visual))
            rows = words.wrap(about.content_size.width)
            assert len(rows) <= about.content_size.height
            assert rows[-1].plain.endswith(("sets it.", "of the", "…"))
            assert str(tabs.visual).startswith("‹ prompt ›")  # there are too many for a box
