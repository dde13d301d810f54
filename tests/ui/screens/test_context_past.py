"""F2's past: the context at each request as the model saw it, and what changed between two."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from textual.pilot import Pilot
from textual.widgets import Static

from tests.support.agents import events_of, make_agent
from tests.support.foreign import Codex, Pi, codex, pi
from tests.support.provider import ScriptedProvider, call
from tests.support.provider import say as says
from tests.support.world import World
from tests.ui.screens.driving import WIDE, app_of, session_open, until
from tui.agent.agent import Agent
from tui.context.frame import FRAME
from tui.context.timeline import SessionTimeline
from tui.core.clock import SystemClock
from tui.core.dataclass import replace
from tui.core.facts import Overlay
from tui.core.formatting import tokens
from tui.core.paths import folders
from tui.session import copies, importers
from tui.session.session import Session
from tui.ui.screens.context import ContextScreen
from tui.ui.screens.context_past import ContextPastScreen
from tui.ui.screens.sent_request import SentRequestScreen
from tui.ui.screens.timeline_moment import MomentOpener
from tui.ui.widgets.file_viewer.pane import FilePane
from tui.ui.widgets.panes import PaneRule


async def worked(root: Path) -> Agent:
    """Three requests: a file is read, answered, hidden, and another prompt answered."""
    (root / "a.py").write_text("one two three\n" * 400)
    provider = ScriptedProvider([call("read_file", path="a.py")], says("ok"), says("again"))
    agent = make_agent(root, provider)
    await events_of(agent, "read it")
    (result,) = [one for one in agent.session.records if one.type == "tool_result"]
    await agent.context.overlay([Overlay(result.id, "masked")])
    await events_of(agent, "go on")
    return agent


@asynccontextmanager
async def past(
    root: Path, size: tuple[int, int] = WIDE
) -> AsyncGenerator[tuple[ContextPastScreen, Pilot[None]]]:
    """The past of that session, opened from F2."""
    agent = await worked(root)
    app = app_of(World())
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: session_open(app))
        opener = MomentOpener(app.frontend)
        await app.push_screen(ContextScreen(agent, lambda _: None, root, opener))
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, ContextPastScreen))
        screen: Any = app.screen
        await until(pilot, lambda: bool(screen.shown))
        yield screen, pilot
    await agent.close()


def text_of(screen: Any, id_: str) -> str:
    return str(screen.query_one(f"#{id_}", Static).visual)


def states(screen: ContextPastScreen) -> list[str]:
    return [row.state for row in screen.shown if row.item.kind == "result"]


async def test_left_and_right_show_what_the_model_saw_at_each_request(tmp_path: Path) -> None:
    async with past(tmp_path) as (screen, pilot):
        assert "request 3 (3 of 3)" in text_of(screen, "title")
        assert "read-only" in text_of(screen, "title")
        await pilot.resize_terminal(50, 24)
        await pilot.pause()
        assert text_of(screen, "title") == "context then   request 3 (3 of 3) · 100…"
        await pilot.resize_terminal(*WIDE)
        assert states(screen) == ["hidden"]
        await pilot.press("left")
        await until(pilot, lambda: states(screen) == [""])
        await pilot.press("left")
        await until(pilot, lambda: "user" in [row.item.kind for row in screen.shown])
        await until(pilot, lambda: states(screen) == [])
        assert text_of(screen, "moment").endswith("the first request")
        assert screen.strip.cursor == screen.timeline.requests.steps[0]
        await pilot.press("right", "right")
        await until(pilot, lambda: states(screen) == ["hidden"])
        await pilot.press("right")
        assert "This was the last request" in screen.notice.text


async def test_the_largest_items_come_first_as_now_and_t_gives_the_order_of_the_request(
    tmp_path: Path,
) -> None:
    async with past(tmp_path) as (screen, pilot):
        await pilot.press("left")
        await until(pilot, lambda: states(screen) == [""])
        sizes = [row.item.tokens for row in screen.shown]
        assert sizes == sorted(sizes, reverse=True)
        assert "largest first" in str(screen.query_one("#items-rule", PaneRule).right)
        await pilot.press("t")
        kinds = [row.item.kind for row in screen.shown]
        assert (kinds[0], kinds[-1]) == ("system", "result")
        await pilot.press("k")
        assert "by kind" in str(screen.query_one("#items-rule", PaneRule).right)


async def test_what_changed_is_said_in_short_then_in_words_and_as_a_diff(tmp_path: Path) -> None:
    async with past(tmp_path) as (screen, pilot):
        await until(pilot, lambda: "1 hidden" in text_of(screen, "moment"))
        assert "2 added, " in text_of(screen, "moment")
        await pilot.press("d")
        await until(pilot, lambda: isinstance(pilot.app.screen, SentRequestScreen))
        text = pilot.app.screen.query_one(FilePane).view.text()
        assert text.startswith("Request 2: ")
        assert "1 item hidden, −" in text
        assert "  result: " in text
        assert any(line.startswith("-") and "one two three" in line for line in text.split("\n"))
        assert "+++ request 3" in text


async def test_a_marked_request_is_what_others_are_compared_with(tmp_path: Path) -> None:
    async with past(tmp_path) as (screen, pilot):
        await pilot.press("home", "m", "right", "right")
        await until(pilot, lambda: "since request 1: " in text_of(screen, "moment"))
        await pilot.press("m", "m")
        await until(pilot, lambda: "since request 2: " in text_of(screen, "moment"))


async def test_end_and_esc_return_to_now(tmp_path: Path) -> None:
    async with past(tmp_path) as (screen, pilot):
        await pilot.press("end")
        await until(pilot, lambda: isinstance(pilot.app.screen, ContextScreen))
        await pilot.press("e")
        await until(pilot, lambda: isinstance(pilot.app.screen, ContextPastScreen))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, ContextScreen))
        assert not screen.is_attached


async def test_enter_shows_an_item_as_the_model_saw_it_then(tmp_path: Path) -> None:
    async with past(tmp_path) as (screen, pilot):
        result = next(n for n, row in enumerate(screen.shown) if row.item.kind == "result")
        screen.rows.move_to(result)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, SentRequestScreen))
        assert "one two three" not in pilot.app.screen.query_one(FilePane).view.text()
        await pilot.press("escape", "left")
        await until(pilot, lambda: states(screen) == [""])
        screen.rows.move_to(result)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, SentRequestScreen))
        assert "one two three" in pilot.app.screen.query_one(FilePane).view.text()


async def test_a_request_that_cannot_be_rebuilt_is_told_by_its_kinds(tmp_path: Path) -> None:
    async with past(tmp_path) as (seen, pilot):
        whole: Any = seen
        sent_as = whole._agent.session.records
        records = [replace(one, data={}) if one.type == FRAME else one for one in sent_as]
        agent: Any = SimpleNamespace(
            session=SimpleNamespace(header=SimpleNamespace(cwd="/w"), records=records),
            models=SimpleNamespace(window=200_000),
        )
        screen = ContextPastScreen(agent, SessionTimeline({}))
        await pilot.app.push_screen(screen)
        await until(pilot, lambda: "as estimated" in text_of(screen, "empty"))
        told = text_of(screen, "empty").splitlines()
        sent = next(one.sent for one in reversed(screen.timeline.steps) if one.sent)
        kinds = {line.split()[-1]: line.split()[0] for line in told if "%" in line}
        assert kinds == {name: tokens(size) for name, size in sent.parts._asdict().items() if size}
        assert "Its items can't be listed" in told[-1]
        assert "Compared with request" in text_of(screen, "moment")


@asynccontextmanager
async def imported(
    root: Path, made: Codex | Pi, name: str
) -> AsyncGenerator[tuple[ContextPastScreen, Pilot[None]]]:
    """The past of another program's session, continued here with one prompt."""
    path = root / name
    path.write_bytes(made.bytes())
    copy = copies.fork(importers.load(path), folders=folders(), clock=SystemClock(), cwd=root)
    session = Session.open(copy, clock=SystemClock())
    agent = make_agent(root, ScriptedProvider(says("ours")), session=session)
    await events_of(agent, "go on")
    app = app_of(World())
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: session_open(app))
        await app.push_screen(
            ContextScreen(agent, lambda _: None, root, MomentOpener(app.frontend))
        )
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, ContextPastScreen))
        screen: Any = app.screen
        await until(pilot, lambda: bool(screen.shown))
        yield screen, pilot
    await agent.close()


async def test_an_imported_request_is_told_by_its_messages_and_that_is_said(
    tmp_path: Path,
) -> None:
    made = pi(2)
    for one in made.records:
        if one.get("message", {}).get("role") == "assistant":
            one["message"]["usage"] = {"input": 900, "output": 5, "cacheRead": 300, "cacheWrite": 0}
    async with imported(tmp_path, made, "pi.jsonl") as (screen, pilot):
        await until(pilot, lambda: "what the model saw then" in rule_of(screen))
        await pilot.press("home")
        await until(pilot, lambda: "the request isn't in the record" in rule_of(screen))
        assert "request 1 (1 of 5) · 1.2k, 25 % cached" in text_of(screen, "title")
        items = [row.item for row in screen.shown]
        assert [one.kind for one in items] == ["system", "user"]
        assert items[0].label == "system prompt and tools: not in the record"
        assert sum(one.tokens for one in items) == 1_200
        screen.rows.move_to(0)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, SentRequestScreen))
        text = pilot.app.screen.query_one(FilePane).view.text()
        assert "another program sent it" in text
        assert "their sizes are estimates" in text
        await pilot.press("escape", "right")
        await until(pilot, lambda: [row.item.kind for row in screen.shown].count("result") == 2)
        assert "4 added" in text_of(screen, "moment") or "3 added" in text_of(screen, "moment")
        await pilot.press("d")
        await until(pilot, lambda: isinstance(pilot.app.screen, SentRequestScreen))
        text = pilot.app.screen.query_one(FilePane).view.text()
        assert "There is no diff: a request isn't in the record." in text


async def test_an_imported_request_is_not_taken_for_one_of_ours(tmp_path: Path) -> None:
    async with imported(tmp_path, codex(1), "rollout-2026-02-10T22-00-00-codex-1.jsonl") as found:
        screen, pilot = found
        await pilot.press("home")
        await until(pilot, lambda: "the request isn't in the record" in rule_of(screen))
        assert all("go on" not in row.item.label for row in screen.shown)
        assert ", not counted" in text_of(screen, "title")
        assert "cached" not in text_of(screen, "title")
        await pilot.press("tab")
        await until(pilot, lambda: isinstance(pilot.app.screen, SentRequestScreen))
        text = pilot.app.screen.query_one(FilePane).view.text()
        assert "another program sent it" in text
        assert "prompt 0" in text
        assert "go on" not in text


def rule_of(screen: Any) -> str:
    return str(screen.query_one("#items-rule").title)
