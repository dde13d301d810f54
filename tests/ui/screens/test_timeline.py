"""The timeline on the screen: what it shows of a moment, and where its keys lead."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console
from textual.pilot import Pilot
from textual.widgets import Static

from tests.context.worked_session import WorkedSession
from tests.support.world import World
from tests.ui.screens.driving import (
    NARROW,
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
from tui.app.reports.timeline_picture import CACHED, PARTS
from tui.app.services import SessionChoice
from tui.context.timeline import SessionTimeline
from tui.session.records import Header, Record
from tui.ui.app import HoldfastApp
from tui.ui.frontend import ScreenFrontend
from tui.ui.screens.read_screen import ReadScreen
from tui.ui.screens.reports import DiffScreen
from tui.ui.screens.sent_request import SentRequestScreen
from tui.ui.screens.timeline import TimelineScreen
from tui.ui.screens.timeline_moment import MomentOpener
from tui.ui.toolkit.compositor import draw_now
from tui.ui.toolkit.themes import available, contrast
from tui.ui.widgets.conversation.items import AssistantItem
from tui.ui.widgets.panes import PaneRule
from tui.ui.widgets.timeline_view import TimelineView


@asynccontextmanager
async def looking(
    records: Sequence[Record], size: tuple[int, int] = WIDE
) -> AsyncGenerator[tuple[TimelineScreen, Pilot[None], list[Record]]]:
    """The timeline of records, which may grow."""
    app, grown = app_of(World()), list(records)
    agent: Any = SimpleNamespace(
        session=SimpleNamespace(header=SimpleNamespace(cwd="/w"), records=grown),
        sub_agents=SimpleNamespace(of_call=dict[str, Any]().get),
        checkpoints=None,
    )
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: session_open(app))
        opener = MomentOpener(app.frontend)
        screen = TimelineScreen(agent, {}, opener)
        await app.push_screen(screen)
        await until(pilot, lambda: bool(screen.timeline.steps) or not records)
        yield screen, pilot, grown


def words(screen: TimelineScreen, id_: str = "moment") -> str:
    return str(screen.query_one(f"#{id_}", Static).visual)


def drawn(screen: TimelineScreen) -> list[str]:
    view = screen.view
    return [view.render_line(y).text for y in range(view.size.height)]


async def test_f9_opens_the_moment_that_is_now_and_follows_the_session() -> None:
    world = World()
    world.scripts.extend([turn(*answer("One.")), turn(*answer("Two."))])
    async with running(world) as (app, pilot):
        await say(pilot, "first")
        await until(pilot, lambda: len(items(app, AssistantItem)) == 1)
        await pilot.press("f9")
        await until(pilot, lambda: isinstance(app.screen, TimelineScreen))
        screen = cast("TimelineScreen", app.screen)
        await until(pilot, lambda: "dearest prompt 1 “first”" in words(screen))
        assert "1 prompt" in words(screen, "title")
        await pilot.press("s")
        await until(pilot, lambda: "In prompt 1: “first”" in words(screen))
        app.conversation.submit("second")
        await until(pilot, lambda: len(items(app, AssistantItem)) == 2)
        screen.follow()
        assert "2 prompts" in words(screen, "title")
        assert "In prompt 2: “second”" in words(screen)
        await pilot.press("f9")
        await until(pilot, lambda: app.screen is app.chat)


async def test_the_whole_session_is_told_until_the_cursor_is_moved_and_with_s_again() -> None:
    for size in ((120, 33), (80, 24), (40, 12)):
        async with looking(WorkedSession().made(8, 12), size) as (screen, pilot, _):
            await until(pilot, lambda screen=screen: "money" in words(screen))
            whole = words(screen)
            heads = [line.split()[0] for line in whole.splitlines()]
            assert heads[:4] == ["money", "context", "cache", "tests"]
            assert screen.query_one("#moment", Static).size.height >= 4
            assert str(screen.query_one("#moment-rule", PaneRule).title) == "the whole session"
            await pilot.press("B")
            await until(pilot, lambda screen=screen: "money" not in words(screen))
            await pilot.press("s")
            assert words(screen) == whole
            await pilot.press("s")
            assert "money" not in words(screen)


@pytest.mark.usefixtures("painted")
async def test_what_is_behind_the_timeline_grows_without_drawing_it_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, drawn_again = World(), 0

    def redraw(*_: object) -> None:
        nonlocal drawn_again
        drawn_again += 1

    world.scripts.append(turn(*answer("One.")))
    async with running(world) as (app, pilot):
        await say(pilot, "first")
        await until(pilot, lambda: len(items(app, AssistantItem)) == 1)
        await pilot.press("f9")
        await until(pilot, lambda: isinstance(app.screen, TimelineScreen))
        await until(pilot, lambda: "1 prompt" in shown(app))
        with monkeypatch.context() as patch:
            patch.setattr(TimelineScreen, "refresh", redraw)
            for n in range(5):
                app.chat.conversation.append(AssistantItem(f"Word {n}."))
                app.chat.conversation.refresh()
                draw_now(app.chat.conversation)
        assert drawn_again == 0
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)
        await until(pilot, lambda: "Word 4." in shown(app))


def shown(app: HoldfastApp) -> str:
    """The text on the terminal."""
    screen: Any = app.screen
    return "\n".join(row.text for row in screen._compositor.render_strips())


async def test_a_number_is_that_of_the_prompt_where_it_begins() -> None:
    world = World()
    world.scripts.extend([turn(*answer("One.")), turn(*answer("Two."))])
    async with running(world) as (app, pilot):
        for count, text in enumerate(("first", "second"), 1):
            await say(pilot, text)
            await until(pilot, lambda count=count: len(items(app, AssistantItem)) == count)
        await say(pilot, "/timeline 1")
        await until(pilot, lambda: isinstance(app.screen, TimelineScreen))
        screen = cast("TimelineScreen", app.screen)
        await until(pilot, lambda: words(screen) == "1 · first")


async def test_enter_opens_the_request_as_it_was_sent() -> None:
    world = World()
    world.scripts.append(turn(*answer("One.")))
    async with running(world) as (app, pilot):
        await say(pilot, "first")
        await until(pilot, lambda: len(items(app, AssistantItem)) == 1)
        await pilot.press("f9")
        await until(pilot, lambda: isinstance(app.screen, TimelineScreen))
        screen = cast("TimelineScreen", app.screen)
        await until(pilot, lambda: bool(screen.timeline.steps))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, SentRequestScreen))
        title = str(app.screen.query_one("#title", Static).visual)
        assert title == "Request 1, exactly as it was sent"
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen)


async def test_the_picture_tells_context_cache_calls_checks_and_cost() -> None:
    async with looking(WorkedSession().made(8, 12)) as (screen, _, _grown):
        rows = {line[:9].strip(): line[10:] for line in drawn(screen)}
        assert {"cache", "context", "prompts", "model", "calls", "agents"} <= rows.keys()
        assert {"you", "waits", "tests", "files", "cost"} <= rows.keys()
        assert rows["context"].count("▼") == 2
        assert "!" in rows["context"]
        assert "✗" in rows["tests"]
        assert "✓" in rows["tests"]
        assert "┬8" in rows["prompts"]
        assert "8 prompts" in words(screen, "title")
        assert "pale: from the cache" in words(screen, "legend")


async def test_keys_lead_through_time() -> None:
    async with looking(WorkedSession().made(8, 12)) as (screen, pilot, _):
        await pilot.press("home")
        assert words(screen).startswith("1 · Fix the parser")
        await pilot.press("n")
        assert words(screen).startswith("2 · Now the error messages")
        await pilot.press("down")
        assert "tokens in" in words(screen)
        await pilot.press("up", "N")
        assert words(screen).startswith("1 · Fix the parser")
        await pilot.press("b")
        assert "messages summarized" in words(screen)
        await pilot.press("b")
        assert "5,000 tokens cached again, $0.02" in words(screen)
        await pilot.press("home", "t")
        assert "turned red" in words(screen)
        await pilot.press("t")
        assert "turned green" in words(screen)
        await pilot.press("home", "x")
        assert "overloaded" in words(screen)
        await pilot.press("end")
        assert screen.view.cursor == len(screen.timeline.steps) - 1


async def test_keys_to_marks_go_on_at_the_other_end_where_the_cursor_begins() -> None:
    """The cursor stands at the end when it is opened, where nothing is further on."""
    async with looking(WorkedSession().made(8, 12)) as (screen, pilot, _):
        await pilot.press("t")
        assert "turned red" in words(screen)
        assert "From the beginning again." in screen.notice.text
        first = screen.view.cursor
        await pilot.press("T")
        assert screen.view.cursor > first
        assert "From the end again." in screen.notice.text
        await pilot.press("end", "b")
        assert "messages summarized" in words(screen)
        await pilot.press("end", "n")
        assert words(screen).startswith("1 · Fix the parser")


async def test_keys_to_marks_say_that_there_is_no_other() -> None:
    session = WorkedSession()
    session.add("user", 1, content=[{"type": "text", "text": "Go"}], text="Go")
    session.request(2, [], 50)
    async with looking(session.records) as (screen, pilot, _):
        for key, said in (("b", "No other cache restart."), ("t", "No checks were run.")):
            await pilot.press(key)
            assert said in screen.notice.text
        await pilot.press("home", "n")
        assert "No other prompt." in screen.notice.text


async def test_left_and_right_go_on_in_time_and_never_stand_still() -> None:
    async with looking(WorkedSession().made(3, 8)) as (screen, pilot, _):
        await pilot.press("home")
        seen = [screen.view.cursor]
        while seen[-1] < len(screen.timeline.steps) - 1:
            await pilot.press("right")
            seen.append(screen.view.cursor)
        assert seen == sorted(set(seen))
        assert len(seen) > 20
        back = [seen[-1]]
        while back[-1] > 0:
            await pilot.press("left")
            back.append(screen.view.cursor)
        assert back == sorted(set(back), reverse=True)


async def test_looking_closer_names_the_calls_and_0_shows_everything() -> None:
    async with looking(WorkedSession().made(4, 12)) as (screen, pilot, _):
        every = drawn(screen)
        await pilot.press("home", "t", *["plus"] * 6)
        close = "\n".join(drawn(screen))
        assert "Run pytest" in close
        assert "claude" in close
        await pilot.press("0")
        assert [line[:9] for line in drawn(screen)] == [line[:9] for line in every]
        assert "Run pytest" not in "\n".join(drawn(screen))


async def test_enter_on_a_call_shows_what_was_asked_and_what_came() -> None:
    async with looking(WorkedSession().made(3, 12)) as (_, pilot, _grown):
        await pilot.press("home", "t", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReadScreen))
        text = cast("ReadScreen", pilot.app.screen).text
        assert '"command": "pytest -q tests"' in text
        assert "self.at" in text


async def test_enter_on_an_edit_shows_its_diff() -> None:
    session = WorkedSession()
    session.add("user", 0, content=[{"type": "text", "text": "go"}], text="go")
    edit = {"type": "tool_use", "id": "e", "name": "edit_file", "input": {"path": "a.py"}}
    session.request(2, [edit], 20)
    diff = "--- a.py\n+++ a.py\n@@ -1 +1 @@\n-one\n+two\n"
    session.add("tool_result", 1, call_id="e", name="edit_file", content=[], display=diff)
    async with looking(session.records) as (_, pilot, _grown):
        await pilot.press("end", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, DiffScreen))


async def test_w_says_where_no_checkpoint_is() -> None:
    async with looking(WorkedSession().made(2, 6)) as (screen, pilot, _):
        await pilot.press("w")
        await until(pilot, lambda: "No checkpoint" in screen.notice.text)


async def test_an_empty_session_says_so() -> None:
    async with looking([]) as (screen, pilot, _):
        await until(pilot, lambda: "Nothing has happened yet." in words(screen))
        await pilot.press("left", "right", "n", "t", "enter", "w", "y", "plus", "0")
        assert words(screen) == "Nothing has happened yet."


async def test_what_comes_is_followed_only_from_the_end() -> None:
    records = WorkedSession().made(4, 10)
    async with looking(records[:-40]) as (screen, pilot, grown):
        await pilot.press("home")
        grown.extend(records[-40:-20])
        screen.follow()
        assert screen.view.cursor == 0
        await pilot.press("end")
        grown.extend(records[-20:])
        screen.follow()
        assert screen.view.cursor == len(screen.timeline.steps) - 1


async def test_after_a_rewind_the_branch_is_read_again() -> None:
    records = WorkedSession().made(4, 10)
    async with looking(records) as (screen, pilot, grown):
        count = len(screen.timeline.steps)
        del grown[-60:]
        screen.follow()
        await until(pilot, lambda: len(screen.timeline.steps) < count)


async def test_every_size_has_whole_words_and_no_row_is_too_wide() -> None:
    records = WorkedSession().made(8, 12)
    for size in ((40, 10), NARROW, (300, 60)):
        async with looking(records, size) as (screen, pilot, _):
            await pilot.press("home", "b")
            rows = drawn(screen)
            assert {len(row) for row in rows} == {size[0]}
            assert any("prompt" in row for row in rows)
            assert all(len(line) <= size[0] - 2 for line in words(screen).splitlines())


async def test_the_keys_of_a_usual_terminal_name_the_sums() -> None:
    async with looking(WorkedSession().made(2, 3), (80, 24)) as (screen, _, _grown):
        assert words(screen, "keys").endswith("s sums   n prompt   b break   t checks   esc back")


async def test_without_colors_the_parts_differ_by_their_characters(monkeypatch: Any) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with looking(WorkedSession().made(8, 12)) as (screen, _, _grown):
        rows = drawn(screen)
        picture = "".join(rows[: [row[:9].strip() for row in rows].index("cache")])
        assert set("▒█░▚") <= set(picture)
        assert "▚ thinking" in words(screen, "legend")


@pytest.mark.parametrize("theme", sorted(available(Path("none"))))
async def test_parts_beside_each_other_differ_in_lightness(theme: str) -> None:
    async with looking(WorkedSession().made(1, 3)) as (screen, pilot, _):
        cast("HoldfastApp", pilot.app).use_theme(theme)
        await pilot.pause()
        view, ground = screen.view, screen.view.background_colors[1]
        for ending in ("", CACHED):
            fills = [view.fill(part + ending) for part in PARTS]
            assert all(contrast(*pair) > 1.35 for pair in pairwise(fills))
            assert all(contrast(fill, ground) > 2 for fill in fills)
        for part in PARTS:
            assert contrast(view.fill(part), view.fill(part + CACHED)) > 2.9


async def test_on_sixteen_colors_the_parts_differ_by_their_characters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Console, "color_system", "standard")
    async with looking(WorkedSession().made(8, 12)) as (screen, _, _grown):
        rows = drawn(screen)
        picture = "".join(rows[: [row[:9].strip() for row in rows].index("cache")])
        assert set("▒█░▚") <= set(picture)
        assert "pale" not in words(screen, "legend")


@pytest.mark.parametrize(("size", "last"), [((80, 24), "▼ compaction"), (WIDE, "✓ green")])
async def test_the_signs_below_the_picture_are_told(size: tuple[int, int], last: str) -> None:
    async with looking(WorkedSession().made(8, 12), size) as (screen, pilot, _):
        await pilot.press("s")
        rule = str(screen.query_one("#moment-rule", PaneRule).render())
        assert "! cache restart" in rule
        assert f"{last} ──" in rule


async def test_facts_that_do_not_fit_are_left_out_whole() -> None:
    async with looking(WorkedSession().made(12, 12), NARROW) as (screen, _, _grown):
        assert words(screen, "title").endswith("cache restarts…")
        assert "34 % results…" in words(screen)


async def test_a_long_session_is_drawn_while_it_is_read_and_keys_are_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slices, pictures, told = list[int](), list[int](), set[str]()
    extend, show = SessionTimeline.extend, TimelineView.show

    def extended(timeline: SessionTimeline, records: Sequence[Record]) -> None:
        slices.append(len(records))
        extend(timeline, records)

    def shown(view: TimelineView, timeline: SessionTimeline, cursor: int) -> None:
        pictures.append(timeline.count)
        told.add(str(view.screen.query_one("#moment-rule", PaneRule).title))
        show(view, timeline, cursor)

    monkeypatch.setattr(SessionTimeline, "extend", extended)
    monkeypatch.setattr(TimelineView, "show", shown)
    records = WorkedSession(words=5).made(80, 12)
    async with looking(records) as (screen, pilot, _):
        await pilot.press("home")
        await until(pilot, lambda: pictures[-1] == len(records))
        assert max(slices) <= 200
        assert len(pictures) > 2
        assert screen.view.cursor == 0
        assert "what has been read so far" in told


async def test_while_a_session_is_read_the_rest_is_an_outline_and_no_figure_is_told_as_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    records = WorkedSession(words=5).made(80, 12)
    titles, lowest = list[str](), list[str]()
    show = TimelineView.show

    def shown(view: TimelineView, timeline: SessionTimeline, cursor: int) -> None:
        show(view, timeline, cursor)
        if timeline.count < len(records):
            screen = cast("TimelineScreen", view.screen)
            screen.on_resize()
            titles.append(words(screen, "title"))
            lines = drawn(screen)
            cache = next(n for n, line in enumerate(lines) if line.split()[:1] == ["cache"])
            lowest.append(lines[cache - 1])

    monkeypatch.setattr(TimelineView, "show", shown)
    async with looking(records) as (screen, pilot, _):
        await until(pilot, lambda: "of work" in words(screen, "title"))
        assert titles
        assert all("%, the rest is an outline" in title for title in titles)
        outlined = [line.count("░") for line in lowest]
        assert outlined == sorted(outlined, reverse=True)
        assert outlined[0] > 3 * outlined[-1], outlined
        assert screen.view.left is None
        assert screen.view.every.end < screen.timeline.now * 1.01


async def test_another_session_is_drawn_below_from_its_first_prompt_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = Header("0123456789ab", "2026-11-21T09:00:00Z", "/w", "holdfast 1.0.0")
    path = tmp_path / "other.jsonl"
    records = WorkedSession(seed=4).made(3, 10)
    path.write_bytes(b"".join([header.to_line(), *(one.to_line() for one in records)]))

    async def picked(_: object) -> SessionChoice:
        return SessionChoice(path)

    monkeypatch.setattr(ScreenFrontend, "pick_session", picked)
    async with looking(WorkedSession().made(8, 12)) as (screen, pilot, _):
        await pilot.press("c")
        await until(pilot, lambda: screen.other.size.height > 3)
        await pilot.pause()
        rows = [
            next(
                line
                for y in range(view.size.height)
                if "prompts" in (line := view.render_line(y).text)
            )
            for view in (screen.view, screen.other)
        ]
        assert rows[0].index("┬") == rows[1].index("┬")
        assert len(rows[1].rstrip()) < len(rows[0].rstrip())  # on one scale
        await pilot.press("home", "plus", "plus")
        sights = [view.sight.end - view.sight.start for view in (screen.view, screen.other)]
        assert abs(sights[0] - sights[1]) < 1e-6
        assert screen.other.cursor == 0
        await pilot.press("c")
        await until(pilot, lambda: not screen.other.display)
