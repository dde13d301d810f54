"""The layout at every size, and what the panes show."""

from __future__ import annotations

import pytest

from tests.support.script import Hold
from tests.support.world import World
from tests.ui.screens.driving import NARROW, ROOMY, begun, items, running, say, turn, until
from tui.core import facts
from tui.ui.widgets.conversation.items import (
    NoticeItem,
)


async def test_storage_trouble_is_shown_until_it_is_over() -> None:
    world, hold = World(), Hold()
    broken, mended = facts.StorageChanged(False, "no space left"), facts.StorageChanged(True)
    world.scripts.append(turn(broken, hold, mended))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.status.state.trouble == "no space left")
        assert app.chat.notice.text.startswith("✗ Not saved: no space left. Free up")
        await pilot.press("x")
        assert app.chat.notice.text.startswith("✗ Not saved: no space left.")
        hold.release()
        await until(pilot, lambda: not app.conversation.busy)
        assert app.chat.status.state.trouble == ""
        assert app.chat.notice.text == "✓ Everything is saved again."


async def test_the_whole_of_a_long_trouble_is_shown() -> None:
    where = "/home/somebody/.local/share/holdfast/sessions/work-1b0f9f7a/20261129T053625Z-7eb.jsonl"
    trouble = f"only part of a line fit; the disk may be full: can't write {where}."
    world, hold = World(), Hold()
    world.scripts.append(turn(facts.StorageChanged(False, trouble), hold))
    async with running(world, (80, 24)) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.notice.display)
        notice = app.chat.notice
        rows = notice.lines(notice.content_size.width)
        assert "make the folder writable" in notice.text
        assert rows[-1].plain.rstrip().endswith("automatically.")
        assert len(rows) <= notice.content_size.height


async def test_todos_live_while_something_is_open() -> None:
    world, hold = World(), Hold()
    todo = {"text": "test it", "status": "in_progress"}
    done = todo | {"status": "completed"}
    world.scripts.append(turn(facts.TodosChanged((todo,)), hold, facts.TodosChanged((done,))))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.todos.display)
        hold.release()
        await until(pilot, lambda: not app.conversation.busy)
        assert not app.chat.todos.display


async def test_on_the_smallest_terminal_a_row_each_says_what_waits_and_what_is_done() -> None:
    world, todos = World(), tuple({"text": f"step {n}", "status": "pending"} for n in range(9))
    retry = facts.RetryScheduled(2, 3, 4.0, "rate limited", 429, "rate_limit")
    world.scripts.append(turn(facts.TodosChanged(todos), retry, Hold()))
    async with running(world, (40, 10)) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.retry.display)
        await say(pilot, "and then")
        await until(pilot, lambda: app.chat.queued.display)
        chat = app.chat
        for part in (chat.conversation, chat.todos, chat.queued, chat.retry, chat.prompt):
            place = chat.find_widget(part)
            assert place.visible_region == place.region
            assert place.region.height
        assert str(chat.todos.render()) == "○ step 0 · 0 of 9 done"


async def test_shift_tab_goes_through_the_modes() -> None:
    world = World()
    async with running(world) as (app, pilot):
        seen: list[str] = []
        for _ in range(3):
            await pilot.press("shift+tab")
            seen.append(world.agent.permissions.mode)
        assert seen == ["accept_edits", "plan", "ask"]
        await pilot.press("shift+tab")
        assert app.chat.prompt_rule.right.plain == "accept edits"


async def test_f4_folds_the_side_and_opens_it_over_on_narrow_screens() -> None:
    async with running(World(), ROOMY) as (app, pilot):
        await begun(app, pilot)
        side, left = app.chat.query_one("#side"), app.chat.query_one("#left")
        assert side.display
        await pilot.press("f4")
        assert not side.display
    async with running(World(), NARROW) as (app, pilot):
        await begun(app, pilot)
        side, left = app.chat.query_one("#side"), app.chat.query_one("#left")
        assert not side.display
        assert app.chat.query_one("#meter").display
        await pilot.press("f4")
        assert side.display
        assert not left.display
        await pilot.press("escape")
        assert left.display


@pytest.mark.parametrize("size", [(200, 60), (120, 40), (100, 30), (80, 24), (60, 20)])
async def test_nothing_is_clipped_at_any_size(size: tuple[int, int]) -> None:
    async with running(World(), size) as (app, _):
        screen = app.chat.region
        for widget in app.chat.query("*"):
            if widget.display and widget.region.area and widget.parent is not app.chat.prompt:
                assert widget.region in screen, widget
        assert app.chat.status.region.bottom == size[1]
        assert app.chat.prompt.region.height == 1


async def test_the_end_stays_in_sight_when_rows_around_it_come_and_go() -> None:
    async with running(World()) as (app, pilot):
        for n in range(60):
            app.chat.add(NoticeItem(f"line {n}"))
        await until(pilot, lambda: app.chat.conversation.max_scroll_y > 0)
        for texts in (("a", "b"), (), ("c",), ()):
            app.chat.queued.texts = texts
            await pilot.pause()
            await pilot.pause()
            assert app.chat.conversation.following
        await pilot.resize_terminal(*NARROW)
        await pilot.pause()
        assert app.chat.conversation.following


async def test_sending_goes_to_the_end() -> None:
    async with running(World()) as (app, pilot):
        for n in range(60):
            app.chat.add(NoticeItem(f"line {n}"))
        await until(pilot, lambda: app.chat.conversation.max_scroll_y > 0)
        await pilot.press("pageup")
        await until(pilot, lambda: not app.chat.conversation.following)
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.conversation.following)


async def test_tool_text_is_never_markup() -> None:
    world = World()
    evil = "[bold red]x[/] [@click=app.quit]here[/]"
    world.scripts.append(
        turn(
            facts.TodosChanged(({"text": evil, "status": "pending"},)),
            facts.ToolStarted("t1", "run_command", {"command": evil}, evil),
            facts.ToolOutputChunk("t1", evil),
            facts.Notice(evil),
            Hold(),
        )
    )
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: bool(items(app, NoticeItem)))
        assert evil in app.chat.side.rule.title.plain
        assert evil in app.chat.todos.render().plain
        assert app.chat.output.text == evil


@pytest.mark.parametrize(("width", "shown"), [(60, False), (120, False), (159, False), (160, True)])
async def test_the_side_is_there_from_160_columns_on(width: int, shown: bool) -> None:
    async with running(World(), (width, 30)) as (app, pilot):
        await begun(app, pilot)
        side = app.chat.query_one("#side")
        assert side.display == shown
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: not side.display)
        await pilot.resize_terminal(width, 30)
        await until(pilot, lambda: side.display == shown)


async def test_the_keys_say_how_to_come_back_from_the_output_over_the_conversation() -> None:
    async with running(World(), NARROW) as (app, pilot):

        def keys() -> list[str]:
            return [f"{hint.key} {hint.text}" for hint in app.chat.status.state.hints]

        before = keys()
        await pilot.press("f4")
        await until(pilot, lambda: keys()[0] == "esc conversation")
        assert "f4 output" not in keys()
        await pilot.press("escape")
        await until(pilot, lambda: keys() == before)
        await pilot.press("f4")
        await pilot.resize_terminal(120, 40)  # there is room for both now
        await until(pilot, lambda: keys() == before)
