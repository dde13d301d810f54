"""The screen of a new session: its rows, its prompt in the middle, and what the digits mean."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from textual import events as keys
from textual.pilot import Pilot

from tests.support.world import WatchedAgent, World
from tests.ui.screens.driving import NARROW, ROOMY, WIDE, answer, items, running, say, turn, until
from tui.app.services import SessionChoice
from tui.core import facts
from tui.core.facts import Fact
from tui.ui.app import HoldfastApp
from tui.ui.start import first_frame
from tui.ui.widgets.bars import status_line
from tui.ui.widgets.conversation.items import NoticeItem
from tui.ui.widgets.welcome_text import Intro, StartNotices

SIZES = [(40, 10), (60, 20), NARROW, (100, 22), WIDE, (160, 50), (300, 100)]


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A folder with tests and a session of two hours ago."""
    folder = tmp_path / "proj"
    folder.mkdir()
    (folder / "pytest.ini").write_text("")
    world = World(folder)
    world.add_row("fix the flaky test", hours=2)
    return world


async def offered(app: HoldfastApp, pilot: Pilot[None]) -> Intro:
    """The rows, once they are there."""
    start = app.chat.start
    assert start
    await until(pilot, lambda: bool(start.rows))
    return start


async def test_the_rows_are_made_from_the_folder(world: World) -> None:
    async with running(world) as (app, pilot):
        start = await offered(app, pilot)
        assert [row.label for row in start.rows or ()] == [
            "Resume “fix the flaky test”",
            "Run the tests and fix failures",
            "Explain this folder",
        ]
        text = start.render().plain
        assert "1  Resume “fix the flaky test” · 2 h ago" in text
        assert "2  Run the tests and fix failures · pytest" in text


async def test_a_digit_sends_the_prompt_of_its_row(world: World) -> None:
    world.scripts.append(turn(*answer("They pass.")))
    async with running(world) as (app, pilot):
        await offered(app, pilot)
        await pilot.press("2")
        await until(pilot, lambda: bool(world.agent.sent))
        assert world.agent.sent == ["Run the tests with `pytest` and fix what fails."]
        assert app.chat.prompt.text == ""


async def test_the_first_row_resumes_the_last_session(world: World) -> None:
    async with running(world) as (app, pilot):
        await offered(app, pilot)
        await pilot.press("1")
        await until(pilot, lambda: world.chosen[-1] == SessionChoice(world.rows[0].path))
        await until(pilot, lambda: not app.chat.has_class("-fresh"))


async def test_tab_and_enter_or_a_click_choose_a_row_too(world: World) -> None:
    world.scripts += [turn(*answer("1")), turn(*answer("2"))]
    async with running(world) as (app, pilot):
        start = await offered(app, pilot)
        await pilot.press("tab")
        assert start.has_focus
        assert status_line(app.chat.status.state, 120).plain.startswith(" enter choose   ↑ ↓ move")
        await pilot.press("down", "down", "down", "up", "enter")
        await until(pilot, lambda: len(world.agent.sent) == 1)
        assert app.chat.prompt.has_focus
        await say(pilot, "/new")
        await until(pilot, lambda: len(world.agents) == 2)
        start = await offered(app, pilot)
        lines = start.render().plain.split("\n")
        y = next(at for at, line in enumerate(lines) if "2  Run the tests" in line)
        await pilot.click(Intro, offset=(lines[y].index("Run"), y))
        await until(pilot, lambda: len(world.agent.sent) == 1)


async def test_a_digit_that_is_typed_is_text(world: World) -> None:
    async with running(world) as (app, pilot):
        await offered(app, pilot)
        await pilot.press("4")
        assert app.chat.prompt.text == "4"
        await pilot.press("backspace", "1")
        assert app.chat.prompt.text == "1"  # something was typed before
        await pilot.press("2")
        assert app.chat.prompt.text == "12"
        await pilot.press("ctrl+u")
        app.post_message(keys.Paste("x"))
        await until(pilot, lambda: app.chat.prompt.text == "x")
        await pilot.press("backspace", "3")
        assert app.chat.prompt.text == "3"
        assert world.agent.sent == []


async def test_after_the_first_message_a_digit_is_text(world: World) -> None:
    world.scripts.append(turn(*answer("yes")))
    async with running(world) as (app, pilot):
        await offered(app, pilot)
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.status.state.turns == 1)
        await pilot.press("1")
        assert app.chat.prompt.text == "1"


async def test_before_the_rows_are_known_a_digit_is_text(world: World) -> None:
    async with running(world) as (app, pilot):
        start = await offered(app, pilot)
        start.rows = ()
        await pilot.press("1")
        assert app.chat.prompt.text == "1"


@pytest.mark.parametrize("size", SIZES)
async def test_nothing_is_clipped_and_the_prompt_goes_to_its_place(
    world: World, size: tuple[int, int]
) -> None:
    world.scripts.append(turn(*answer("yes")))
    async with running(world, size) as (app, pilot):
        start = await offered(app, pilot)
        await pilot.pause()
        text = start.render().plain.split("\n")
        assert len(text) <= start.region.height
        assert all(any(f"{at}  " in line for line in text) for at in (1, 2, 3))
        rows = [line.rstrip() for line in text]
        assert max(map(len, rows)) <= size[0]
        before = app.chat.prompt.region
        assert before.bottom <= size[1] - 1
        assert len(app.chat.prompt.placeholder) < before.width
        await pilot.press("slash")  # the popup grows above the prompt
        popup = app.chat.prompt.suggestions
        assert popup
        await until(pilot, lambda: popup.opened)
        await pilot.pause()
        assert popup.region in app.chat.region
        assert app.chat.prompt.region.y == before.y
        await pilot.press("escape", "backspace")
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.status.state.turns == 1)
        await pilot.pause()
        after = app.chat.prompt.region
        assert after.y == size[1] - (3 if size[1] >= first_frame.SMALL_ROWS else 2)
        assert after.x == 3


async def test_saved_is_said_once_there_is_something(world: World) -> None:
    world.scripts.append(turn(*answer("yes")))
    async with running(world, ROOMY) as (app, pilot):
        assert "saved" not in status_line(app.chat.status.state, 160).plain
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.status.state.turns == 1)
        assert "● saved" in status_line(app.chat.status.state, 160).plain


class _Written:
    """What the first frame writes, and where its caret stands in that."""

    def __init__(self) -> None:
        self.data = b""

    def __call__(self, data: bytes) -> None:
        self.data += data

    @property
    def caret(self) -> tuple[int, int]:
        found = re.search(r"\x1b\[(\d+);(\d+)H(?:\x1b\[[\d;]*m)*›", self.data.decode())
        assert found
        return int(found[2]) - 1, int(found[1]) - 1

    @property
    def rules(self) -> list[tuple[int, int, int]]:
        found = re.findall(r"\x1b\[(\d+);(\d+)H(?:\x1b\[[\d;]*m)*(─+)", self.data.decode())
        return [(int(x) - 1, int(y) - 1, len(line)) for y, x, line in found]


@pytest.mark.parametrize("argv", [(), ("-c",)])
@pytest.mark.parametrize("size", SIZES)
async def test_the_painted_prompt_is_where_the_real_one_comes(
    world: World, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int], argv: tuple[str, ...]
) -> None:
    written = _Written()
    with monkeypatch.context() as patched:
        patched.setattr("termios.tcgetattr", dict[int, list[int]]({0: []}).get)
        patched.setattr("os.get_terminal_size", {1: size}.get)
        patched.setattr(first_frame, "_write", written)
        early = first_frame.EarlyPrompt((*argv, "--practice"))
        early.paint()
    async with running(world, size) as (app, pilot):
        await offered(app, pilot)
        if argv:
            app.chat.add(NoticeItem("an earlier session"))
        await pilot.pause()
        await pilot.pause()
        chat = app.chat
        rules = [chat.prompt_rule.region, chat.query_one("#foot-rule").region]
        assert written.caret == tuple(chat.query_one("#caret").region.offset)
        assert written.rules == [(rule.x, rule.y, rule.width) for rule in rules if rule.area]


async def test_a_notice_at_the_start_stands_beside_the_first_screen(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = WatchedAgent.start

    async def start(agent: WatchedAgent) -> list[Fact]:
        told = [facts.Notice("claude-old retires on 2026-11-30."), facts.Notice("And more.")]
        return [*await begin(agent), *told]

    monkeypatch.setattr(WatchedAgent, "start", start)
    world.scripts.append(turn(*answer("yes")))
    async with running(world, NARROW) as (app, pilot):
        await offered(app, pilot)
        said = app.chat.query_one(StartNotices).render().plain
        assert "· claude-old retires on 2026-11-30." in said
        assert "· And more." in said
        assert app.chat.query_one(Intro).display
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.status.state.turns == 1)
        assert not app.chat.query(StartNotices)
        assert [item.text for item in items(app, NoticeItem)] == [
            "claude-old retires on 2026-11-30.",
            "And more.",
        ]
