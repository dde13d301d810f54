"""The conversation on a screen: following, anchoring, folding, cursor, streams, selecting."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.selection import Selection
from textual.widget import Widget
from textual.widgets import Static

from tests.support.clock import ManualClock
from tests.ui.widgets.stage import Stage
from tui.core import gc_pause
from tui.ui.toolkit.compositor import draw_now
from tui.ui.widgets.conversation.items import (
    AssistantItem,
    Item,
    NoticeItem,
    ThinkingItem,
    ToolItem,
    UserItem,
)
from tui.ui.widgets.conversation.view import ConversationView
from tui.ui.widgets.line_view import view

SIZE = (60, 12)


class Talk(Stage):
    """A conversation of `count` numbered messages."""

    def __init__(self, count: int = 0) -> None:
        self.talk = ConversationView()
        super().__init__(self.talk)
        self.items: list[Item] = [AssistantItem(f"message {n}") for n in range(count)]

    def on_mount(self) -> None:
        super().on_mount()
        self.talk.extend(self.items)

    def chosen(self) -> list[Item]:
        return [m.item for m in self.heard if isinstance(m, ConversationView.ItemSelected)]


async def flushed(app: Talk, pilot: Pilot[None]) -> None:
    """Wait until the stream's frame was drawn."""
    while any(
        not item.text.endswith("§")
        for item in app.talk.items
        if isinstance(item, AssistantItem) and item.streaming
    ):
        await pilot.pause()


async def test_it_follows_the_end_and_says_what_is_new_when_it_does_not() -> None:
    app = Talk(30)
    async with app.run_test(size=SIZE) as pilot:
        assert app.rows()[-1] == " ● message 29"
        app.talk.append(AssistantItem("newest"))
        await pilot.pause()
        assert app.rows()[-1] == " ● newest"
        await pilot.press("pageup")
        before = app.rows()
        app.talk.extend([AssistantItem("one"), AssistantItem("two")])
        await pilot.pause()
        assert app.rows()[:-1] == before[:-1]
        assert app.rows()[-1].endswith(" ↓ 2 new")
        await pilot.press("end")
        assert app.rows()[-1] == " ● two"


async def test_the_scroll_bar_stands_where_the_view_does_from_its_first_moment() -> None:
    app = Talk()
    async with app.run_test(size=SIZE) as pilot:
        app.talk.extend([AssistantItem(f"message {n}") for n in range(30)])
        await pilot.pause()
        bar = app.talk.vertical_scrollbar
        assert app.talk.show_vertical_scrollbar
        assert bar.position == app.talk.scroll_y == bar.window_virtual_size - bar.window_size


async def test_a_click_on_the_pill_goes_to_the_end() -> None:
    app = Talk(30)
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("home")
        app.talk.append(AssistantItem("newest"))
        await pilot.pause()
        await pilot.click(ConversationView, offset=(SIZE[0] - 6, SIZE[1] - 1))
        assert app.talk.following
        assert app.rows()[-1] == " ● newest"


async def test_nothing_in_sight_moves_when_heights_above_are_other_than_guessed() -> None:
    app = Talk()
    app.items = [AssistantItem("\n\n".join("word" for _ in range(n % 9 + 1))) for n in range(30)]
    async with app.run_test(size=SIZE) as pilot:
        for _ in range(200):
            before = app.rows()
            await pilot.press("pageup")
            assert app.rows()[-1] == before[0]
            if app.talk.scroll_y <= SIZE[1]:
                break
        await pilot.press("home")
        assert app.rows()[0] == " ● word"


async def test_a_new_width_keeps_the_place_and_wraps_again() -> None:
    app = Talk()
    app.items = [AssistantItem(f"start{n} " + "word " * 40) for n in range(50)]
    async with app.run_test(size=SIZE) as pilot:
        app.talk.find("start20")
        await pilot.pause()
        assert "start20" in app.rows()[1]
        await pilot.resize_terminal(40, 12)
        assert "start20" in app.rows()[1]
        assert all(len(row) <= 40 for row in app.rows())


async def test_the_cursor_walks_folds_and_copies() -> None:
    app = Talk()
    tool = ToolItem("1", "run_command", "pytest", state="ok", preview="3 passed")
    app.items = [UserItem("go"), tool, AssistantItem("**done**")]
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("down", "down")
        assert app.talk.cursor is tool
        assert app.rows()[2].startswith("▎✓ Run pytest")
        await pilot.press("enter")
        assert app.rows()[3] == "▎  │ 3 passed"
        await pilot.press("enter")
        assert "3 passed" not in "".join(app.rows())
        await pilot.press("down", "ctrl+y")
        assert app.clipboard == "**done**"
        assert app.chosen() == [app.items[0], tool, tool, tool, app.items[2]]


async def test_the_cursor_reads_an_item_that_is_higher_than_the_screen() -> None:
    app = Talk()
    app.items = [
        UserItem("a"),
        AssistantItem("\n\n".join(str(n) for n in range(20))),
        UserItem("z"),
    ]
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("home", "down", "down")
        seen = set[str]()
        for _ in range(20):
            seen |= {row.strip("▎ ●") for row in app.rows()}
            if app.talk.cursor is app.items[2]:
                break
            await pilot.press("down")
        assert {str(n) for n in range(20)} <= seen
        assert app.talk.cursor is app.items[2]


async def test_a_click_opens_a_card_and_selects_it() -> None:
    app = Talk()
    app.items = [ToolItem("1", "read_file", "a.py", state="ok", preview="text")]
    async with app.run_test(size=SIZE) as pilot:
        await pilot.click(ConversationView, offset=(10, 0))
        assert app.rows()[1] == "▎  │ text"
        await pilot.click(ConversationView, offset=(10, 1))
        assert app.rows()[1] == "▎  │ text"
        assert app.chosen() == [app.items[0]] * 2


async def test_a_stream_ends_as_the_whole_text_would_be_drawn() -> None:
    text = (
        "# T\n\n"
        + "".join(f"- item {n} with **bold**\n" for n in range(9))
        + "\n```py\nx = 1\n```\n§"
    )
    app = Talk()
    async with app.run_test(size=SIZE) as pilot:
        item = AssistantItem()
        app.talk.append(item)
        for start in range(0, len(text), 3):
            app.talk.stream(item, text[start : start + 3])
        assert item.streaming
        await flushed(app, pilot)
        assert item.text == text
        assert app.rows()[-1] == "   §"
        app.talk.finish(item)
        await pilot.pause()
        streamed = app.rows()
        app.talk.clear()
        app.talk.append(AssistantItem(text))
        await pilot.pause()
        assert app.rows() == streamed
        assert not item.streaming


@pytest.mark.parametrize("drawn", [True, False])
async def test_a_burst_is_parsed_as_it_comes_and_ends_as_the_whole_text_would_be_drawn(
    drawn: bool,
) -> None:
    """So that no key waits while all that came between two frames is parsed."""
    section = "## Part {0}\n\n- **one** thing\n- two\n\n```py\nx = {0}\n```\n\n"
    text = "".join(section.format(n) for n in range(600)) + "§"
    app, whole = Talk(), Talk()
    whole.items = [AssistantItem(text)]
    async with app.run_test(size=SIZE) as pilot, whole.run_test(size=SIZE) as other:
        item = AssistantItem()
        app.talk.append(item)
        app.talk.stream(item, text[:9])
        while not any("Part 0" in row for row in app.rows()):
            await pilot.pause()
        for start in range(9, len(text), 1000):  # no frame comes meanwhile
            app.talk.stream(item, text[start : start + 1000])
            assert len(item.text) > start - 4000
        while drawn and app.rows()[-1] != "   §":
            await pilot.pause()
        app.talk.finish(item)
        await pilot.pause()
        for key in ("end", "pageup", "home"):
            await pilot.press(key)
            await other.press(key)
            assert app.rows() == whole.rows()


async def test_code_above_an_answer_that_came_at_once_is_colored_when_it_comes_into_sight() -> None:
    def colors() -> int:
        strips = app.talk.render_lines(app.talk.size.region)
        return len({part.style.color for strip in strips for part in strip if part.style})

    text = "".join(f"```python\ndef f{n}():\n    return 'x'  # {n}\n```\n\n" for n in range(200))
    app = Talk()
    async with app.run_test(size=SIZE) as pilot:
        item = AssistantItem(streaming=True)
        app.talk.append(item)
        app.talk.stream(item, text)
        app.talk.finish(item)
        await pilot.pause()
        seen = colors()
        assert seen > 4
        seen_text: list[str] = []
        for _ in range(6):
            seen_text = app.rows() + seen_text
            await pilot.press("pageup")
            assert app.rows()[-1] == seen_text[0]
            assert colors() == seen
        whole = Talk()
        whole.items = [AssistantItem(text)]
        async with whole.run_test(size=SIZE) as other:
            await pilot.press("home")
            await other.press("home")
            assert app.rows() == whole.rows()
            assert colors() == seen


async def test_a_frame_of_an_answer_waits_for_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock()
    app = Talk()
    async with app.run_test(size=SIZE) as pilot:
        item = AssistantItem()
        app.talk.append(item)
        await pilot.pause()
        monkeypatch.setattr(gc_pause, "monotonic", clock.monotonic)
        gc_pause.key_read()
        app.talk.stream(item, "a word")
        await pilot.pause(0.05)  # some frames long: it is a timer of the loop that waits
        assert item.text == ""
        clock.elapsed += 0.001
        gc_pause.key_drawn()
        while not app.rows()[0].endswith("a word"):
            await pilot.pause()


async def test_a_frame_is_drawn_in_another_turn_of_the_loop_than_what_it_takes_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[str] = []

    def draw(*widgets: Widget) -> None:
        drawn.append(item.text)
        draw_now(*widgets)

    monkeypatch.setattr(view, "draw_now", draw)
    app, item = Talk(), AssistantItem()
    async with app.run_test(size=SIZE) as pilot:
        app.talk.append(item)
        await pilot.pause()
        app.talk.stream(item, "one")
        while not item.text:  # noqa: ASYNC110 - each turn counts
            await asyncio.sleep(0)
        assert drawn == []
        app.talk.stream(item, " two§")  # comes between
        while not app.rows()[0].endswith("one two§"):
            await pilot.pause()
        assert drawn == ["one", "one two§"]


async def test_an_item_may_go_between_the_two_turns_of_a_frame() -> None:
    app, item, errors = Talk(), AssistantItem(), list[dict[str, Any]]()
    async with app.run_test(size=SIZE) as pilot:
        asyncio.get_running_loop().set_exception_handler(lambda _, error: errors.append(error))
        app.talk.extend([AssistantItem("before"), item])
        await pilot.pause()
        app.talk.stream(item, "a\n\nb\n\nc\n\nd")
        while not item.text:  # noqa: ASYNC110 - each turn counts
            await asyncio.sleep(0)
        app.talk.take_out(item)
        await pilot.pause()
        assert app.rows()[0].endswith("before")
        assert errors == []


async def test_rows_out_of_sight_cost_an_answer_that_grows_no_objects() -> None:
    """Each would be looked at by all collections to come."""
    app = Talk()
    async with app.run_test(size=SIZE) as pilot:
        item = AssistantItem()
        app.talk.append(item)
        app.talk.stream(item, "```\n" + "row\n" * 200 + "end of the first part\n")
        while not any("end of the first" in row for row in app.rows()):
            await pilot.pause()
        gc.collect()
        before, rows = len(gc.get_objects()), 20_000
        app.talk.stream(item, "row\n" * rows + "end of the last part\n")
        while not any("end of the last" in row for row in app.rows()):
            await pilot.pause()
        gc.collect()
        assert len(gc.get_objects()) - before < rows / 2


async def test_finish_takes_what_was_not_drawn_yet() -> None:
    app = Talk()
    async with app.run_test(size=SIZE) as pilot:
        item = AssistantItem()
        app.talk.append(item)
        app.talk.stream(item, "all of it")
        app.talk.finish(item)
        await pilot.pause()
        assert item.text == "all of it"
        assert app.rows()[0] == " ● all of it"


async def test_void_text_goes_with_its_stream() -> None:
    app = Talk(2)
    async with app.run_test(size=SIZE) as pilot:
        item = AssistantItem()
        app.talk.append(item)
        app.talk.stream(item, "void")
        app.talk.take_out(item)
        app.talk.append(NoticeItem("again"))
        await pilot.pause()
        assert [row for row in app.rows() if row] == [" ● message 0", " ● message 1", " · again"]
        assert list(app.talk.items) == [*app.items, app.talk.items[-1]]


async def test_a_stream_below_the_screen_moves_nothing() -> None:
    app = Talk(30)
    async with app.run_test(size=SIZE) as pilot:
        item = AssistantItem()
        app.talk.append(item)
        await pilot.press("home")
        before = app.rows()
        app.talk.stream(item, "line\n\n" * 50 + "§")
        await flushed(app, pilot)
        assert app.rows()[:-1] == before[:-1]
        assert app.rows()[-1].endswith("↓ more")
        app.talk.finish(item)
        await pilot.press("end")
        assert app.rows()[-1] == "   §"


async def test_thinking_shows_its_end_while_it_streams_and_folds_then() -> None:
    app = Talk()
    async with app.run_test(size=SIZE) as pilot:
        item = ThinkingItem()
        app.talk.append(item)
        app.talk.stream(item, "first line\nsecond line\nthird line\nfourth line")
        while not item.text:
            await pilot.pause()
        await pilot.pause()
        assert app.rows()[0] == " ▸ thinking…"
        assert app.rows()[3] == "   │ fourth line"
        app.talk.finish(item)
        await pilot.pause()
        assert app.rows()[0] == " ▸ thinking · 8 words  first line"
        assert app.rows()[1] == ""


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("## **Planning** the `fix` of [it](http://a)\nmore", "Planning the fix of it"),
        ("\n\n- first of a list", "first of a list"),
        ("\x1b[31mred\x1b[0m 2 * 3 a_b_c", "red 2 * 3 a_b_c"),
        ("a very long line " * 20, "a very long line a very long"),
    ],
)
async def test_folded_thinking_shows_its_first_line_without_marks(text: str, begins: str) -> None:
    app = Talk()
    app.items = [ThinkingItem(text)]
    async with app.run_test(size=SIZE):
        row = app.rows()[0]
        assert row.partition(" words  ")[2].lstrip("•- ").startswith(begins), row
        assert len(row) <= SIZE[0]
        assert "more" not in row
        assert app.rows()[1] == ""


@pytest.mark.parametrize("folded", [True, False])
async def test_a_call_that_failed_says_why(folded: bool) -> None:
    why = (
        "Wrong arguments for todo_write: Object missing required field `status` - at `$.todos[0]`."
    )
    item = ToolItem(
        "1", "todo_write", state="error", summary=why, tail=f"{why} Its arguments are: todos."
    )
    item.folded, item.preview = folded, item.tail
    app = Talk()
    app.items = [item]
    async with app.run_test(size=SIZE):
        rows = app.rows()
        assert rows[0].startswith(" ✗ To-do list")
        said = " ".join(row.partition("│ ")[2].strip() for row in rows if "│" in row)
        assert said == item.tail


async def test_notes_between_calls_have_a_blank_line_around_them() -> None:
    app = Talk()
    read = [ToolItem(str(n), "read_file", f"{n}.py", state="ok") for n in range(2)]
    run = ToolItem("9", "run_command", "make", state="ok")
    note = AssistantItem("Now the *tests*.")
    app.items = [read[0], note, read[1], ThinkingItem("Hm."), run]
    async with app.run_test(size=SIZE):
        rows = [row.strip() for row in app.rows()]
        assert rows[:5] == ["✓ Read 0.py", "", "● Now the tests.", "", "✓ Read 1.py"]
        assert rows[5:7] == ["▸ thinking · 1 word  Hm.", "✓ Run make"]


async def test_changed_draws_the_item_anew() -> None:
    app = Talk()
    item = ToolItem("1", "run_command", "make", state="waiting")
    app.items = [item]
    async with app.run_test(size=SIZE) as pilot:
        assert app.rows()[0].startswith(" ? ")
        assert app.rows()[0].endswith("  waiting for you")
        item.state, item.seconds = "ok", 2.0
        app.talk.changed(item)
        await pilot.pause()
        assert app.rows()[0].startswith(" ✓ Run make")
        assert app.rows()[0].endswith(" 2 s")


async def test_a_mouse_selection_copies_text_without_what_is_drawn_around_it() -> None:
    app = Talk()
    app.items = [
        UserItem("first\nsecond"),
        AssistantItem("A paragraph that is long enough to be wrapped once at least.\n\n- point"),
    ]
    async with app.run_test(size=SIZE) as pilot:
        await pilot.mouse_down(ConversationView, offset=(3, 1))
        await pilot.hover(ConversationView, offset=(9, 4))
        await pilot.mouse_up(ConversationView, offset=(9, 4))
        assert app.screen.get_selected_text() == (
            "second\n\nA paragraph that is long enough to be wrapped once at least."
        )


async def test_selecting_all_gives_the_source_of_every_item() -> None:
    app = Talk()
    app.items = [UserItem("do *it*"), AssistantItem("| a |\n|---|\n| **b** |")]
    async with app.run_test(size=SIZE):
        text = app.talk.get_selection(Selection(None, None))
        assert text == ("do *it*\n\n| a |\n|---|\n| **b** |", "\n")


async def test_a_part_of_a_table_is_copied_as_its_rows() -> None:
    app = Talk()
    app.items = [AssistantItem("| a | b |\n|---|---|\n| 1 | 2 |\n\nafter")]
    async with app.run_test(size=SIZE):
        text = app.talk.get_selection(Selection(Offset(0, 2), Offset(9, 4)))
        assert text == ("| --- | --- |\n| 1 | 2 |", "\n")


async def test_find_goes_back_from_the_end() -> None:
    app = Talk(500)
    async with app.run_test(size=SIZE) as pilot:
        assert app.talk.find("MESSAGE 7")
        assert app.talk.cursor is app.items[79]
        assert app.talk.find("message 7")
        assert app.talk.cursor is app.items[78]
        assert not app.talk.find("not kept")
        await pilot.pause()
        assert any("message 78" in row for row in app.rows())


async def test_find_goes_from_row_to_row_of_a_long_item_and_shows_each() -> None:
    app = Talk(3)
    lines = [f"row {n} needle" if n in {10, 50} else f"row {n}" for n in range(80)]
    app.items.insert(1, AssistantItem("\n\n".join(lines)))
    async with app.run_test(size=SIZE) as pilot:
        for row in (50, 10):
            assert app.talk.find("needle")
            await pilot.pause()
            assert app.talk.cursor is app.items[1]
            assert any(f"row {row} needle" in shown for shown in app.rows())
        assert not app.talk.find("needle")
        assert app.talk.find("needle", back=False)
        await pilot.pause()
        assert any("row 50 needle" in shown for shown in app.rows())
        assert app.talk.find("needle", from_end=True)
        app.talk.end_find()
        assert app.talk.cursor is app.items[1]


async def test_what_is_found_is_marked_until_the_end_of_it() -> None:
    app = Talk(5)
    async with app.run_test(size=SIZE):
        plain = app.talk.render_line(0)
        app.talk.find("MESSAGE", from_end=True)
        assert app.talk.render_line(0).text == plain.text
        assert list(app.talk.render_line(0)) != list(plain)
        app.talk.end_find()
        assert list(app.talk.render_line(0)) == list(plain)


async def test_an_unfolded_card_comes_into_sight() -> None:
    app = Talk(30)
    preview = "\n".join(f"line {n}" for n in range(8))
    app.items.append(ToolItem("1", "run_command", state="ok", preview=preview))
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("up", "enter")
        assert "line 7" in app.rows()[-1]


async def test_fifty_thousand_items_draw_only_what_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Item] = []
    from tui.ui.widgets.conversation import item_renderer  # noqa: PLC0415 - to count its calls

    real = item_renderer.draw

    def counting(item: Item, *args: object, **named: object) -> object:
        drawn.append(item)
        return real(item, *args, **named)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(item_renderer, "draw", counting)
    app = Talk(50_000)
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("pageup", "home", "pagedown", "end")
        app.talk.append(AssistantItem("last"))
        await pilot.pause()
        assert app.rows()[-1] == " ● last"
    assert len(drawn) < 120


async def test_the_widget_itself_can_be_taken_away() -> None:
    app = Talk(3)
    async with app.run_test(size=SIZE):
        await app.talk.remove()
        assert not app.talk.is_attached


async def test_text_is_selected_by_keys_and_its_source_is_copied() -> None:
    app = Talk()
    app.items = [
        UserItem("please"),
        AssistantItem("Some **bold** words\n\n- one\n- two"),
        NoticeItem("x"),
    ]
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("ctrl+home", *["shift+down"] * 12)
        chosen = app.talk.selected_text
        assert "Some **bold** words\n\n- one\n- two" in chosen
        await pilot.press("ctrl+y")
        assert app.clipboard == chosen
        await pilot.press("escape")
        assert app.talk.selected_text == ""
        assert app.talk.cursor is None


async def test_a_part_of_a_row_is_selected_by_keys() -> None:
    app = Talk()
    app.items = [AssistantItem("a plain answer")]
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press(*["shift+right"] * 7)
        assert app.talk.selected_text == "a plain"
        await pilot.press("shift+left")
        assert app.talk.selected_text == "a plai"


async def test_it_goes_on_following_when_it_grows_before_what_came_is_laid_out() -> None:
    app = Talk(30)
    async with app.run_test(size=SIZE) as pilot:
        below = Static("1\n2\n3")
        await app.mount(below)
        await pilot.pause()
        busy = asyncio.Event()
        app.talk.call_later(busy.wait)
        app.talk.append(AssistantItem("newest"))
        below.display = False
        app.call_after_refresh(app.screen.call_after_refresh, busy.set)
        await busy.wait()
        await pilot.pause()
        assert app.talk.following
        assert app.rows()[-1] == " ● newest"


async def test_files_that_are_read_fold_into_one_row_until_it_is_opened() -> None:
    app = Talk()
    calls = [ToolItem(str(n), "read_file", f"{n}.py", state="ok", preview="x") for n in range(3)]
    app.items = [UserItem("go"), *calls, AssistantItem("done")]
    async with app.run_test(size=SIZE) as pilot:
        assert app.rows()[2:5] == [" ✓ Read 3 files  0.py, 1.py, 2.py", "", " ● done"]
        await pilot.press("home", "down", "down", "down")
        assert app.talk.cursor is app.items[4]
        await pilot.press("up", "enter")
        assert [row.strip("▎ ✓") for row in app.rows()[2:5]] == [f"Read {n}.py" for n in range(3)]
        app.talk.action_fold_tools()
        app.talk.action_fold_tools()
        await pilot.pause()
        assert app.rows()[2] == "▎✓ Read 3 files  0.py, 1.py, 2.py"
        calls[1].state = "error"
        app.talk.changed(calls[1])
        await pilot.pause()
        assert [row.strip("▎ ") for row in app.rows()[2:5]] == [
            "✓ Read 0.py",
            "✗ Read 1.py  failed",
            "✓ Read 2.py",
        ]
        calls[1].state = "ok"
        app.talk.changed(calls[1])
        await pilot.pause()
        assert app.rows()[2:4] == ["▎✓ Read 3 files  0.py, 1.py, 2.py", ""]
        more = ToolItem("3", "read_file", "3.py", state="running")
        app.talk.take_out(app.items[4])
        app.talk.append(more)
        await pilot.pause()
        assert app.rows()[2].endswith("Read 4 files  0.py, 1.py, 2.py, 3.py")
        app.talk.take_out(more)
        await pilot.pause()
        assert app.rows()[2].endswith("Read 3 files  0.py, 1.py, 2.py")


async def test_the_cursor_moves_when_styles_have_changed_and_nothing_was_laid_out_since() -> None:
    app = Talk(30)
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        app.talk.notify_style_update()
        app.talk.extend([AssistantItem("more")])
        app.talk.action_outermost(-1)
        await pilot.pause()
        assert app.rows()[0].endswith("● message 0")
