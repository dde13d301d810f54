"""The desk on the screen: what a person sees, and where the cursor is while sessions come and
go."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.support.clock import ManualClock
from tests.support.desk import FakeHost, prompt
from tests.ui.desk.samples import (
    QUESTION,
    LiveSession,
    ago,
    at_cursor,
    call,
    day,
    desk,
    on_screen,
    row,
    text_of,
)
from tests.ui.desk.watching import answer
from tests.ui.screens.driving import NARROW, until
from tui.core.errors import SessionError
from tui.ui.desk.app import DeskApp
from tui.ui.desk.new_session import NewSessionDialog
from tui.ui.screens.help import HelpScreen
from tui.ui.screens.palette import PaletteScreen
from tui.ui.widgets.questions import Confirmation

FLAKY, DATABASE = "fix the flaky test in test_store.py", "move the sessions into a database"


def working(count: int) -> list[object]:
    return [row(f"w{n:03}", "working", f"work {n:03}", started=ago(n + 1)) for n in range(count)]


def notice(app: DeskApp) -> str:
    return app.desk.notice.text[2:]  # after its mark


async def changed(pilot: Pilot[None], host: FakeHost, *rows: object) -> None:
    host.put(*rows)  # pyright: ignore[reportArgumentType]
    await pilot.pause()
    await pilot.pause()


@pytest.mark.parametrize("size", [NARROW, (120, 40), (200, 50)], ids=str)
async def test_every_group_and_question_is_in_sight(size: tuple[int, int]) -> None:
    async with desk(size=size) as (app, _):
        shown = text_of(app)
    assert "2 wait for you · 2 working" in shown
    assert "Waiting for you  2" in shown
    assert "Run pytest -q tests/store --maxfail=1" in shown
    assert "Which database should the sessions live in?" in shown
    assert "Run cargo build" in shown
    assert "$3.10" in shown
    assert any("asks to run" in line and "fix/flaky" in line for line in shown.split("\n")) is (
        size != NARROW
    )
    assert "enter open   a answer" in shown


async def test_the_cursor_begins_on_the_first_that_waits_and_its_question_is_shown_whole() -> None:
    async with desk() as (app, pilot):
        assert at_cursor(app) == FLAKY
        await until(pilot, lambda: "isn't on the read-only list" in text_of(app))
        await pilot.press("j")
        assert at_cursor(app) == DATABASE
        await until(pilot, lambda: "1 SQLite  one file" in text_of(app))


async def test_keys_move_over_sessions_only() -> None:
    async with desk() as (app, pilot):
        seen = [at_cursor(app)]
        for key in ("down", "down", "k", "tab", "tab", "shift+tab", "end", "home"):
            await pilot.press(key)
            seen.append(at_cursor(app))
    assert seen == [
        *(FLAKY, DATABASE, "add a retry banner that never takes the focus", DATABASE),
        *("add a retry banner that never takes the focus", "write the release notes"),
        *("add a retry banner that never takes the focus", "a long run", FLAKY),
    ]


async def test_w_goes_to_the_next_that_waits() -> None:
    async with desk() as (app, pilot):
        seen: list[str] = []
        for _ in range(3):
            await pilot.press("w")
            seen.append(at_cursor(app))
        assert seen == [DATABASE, FLAKY, DATABASE]
    async with desk([FakeHost("", [row("a", "idle", "alone")])]) as (app, pilot):
        await pilot.press("w")
        assert notice(app) == "No session waits for you."


async def test_a_session_keeps_the_cursor_wherever_it_moves() -> None:
    host = FakeHost("", day())
    async with desk([host]) as (app, pilot):
        await pilot.press("tab", "down")
        assert at_cursor(app) == "port the parser to Rust"
        await changed(pilot, host, row("c1b2c3d4e5f6", "done", "port the parser to Rust"))
        assert at_cursor(app) == "port the parser to Rust"
        await changed(
            pilot, host, row("c1b2c3d4e5f6", "waiting", "port the parser to Rust", asked=call())
        )
        assert at_cursor(app) == "port the parser to Rust"
        assert "3 wait for you" in text_of(app)


async def test_a_new_question_comes_on_top_and_is_seen_while_the_cursor_stays_on_its_session() -> (
    None
):
    host = FakeHost("", day())
    async with desk([host]) as (app, pilot):
        await pilot.press("down")
        await changed(pilot, host, row("new", "waiting", "brand new", asked=QUESTION, since=ago(0)))
        assert at_cursor(app) == DATABASE
        assert (
            on_screen(app, "brand new") < on_screen(app, FLAKY[:20]) < on_screen(app, DATABASE[:20])
        )


async def test_what_comes_above_a_scrolled_list_moves_nothing_under_the_cursor() -> None:
    host = FakeHost("", working(60))  # pyright: ignore[reportArgumentType]
    async with desk([host], size=NARROW) as (app, pilot):
        await pilot.press(*["down"] * 30)
        before = on_screen(app, "work 030")
        await changed(pilot, host, row("new", "waiting", "brand new", asked=QUESTION))
        assert at_cursor(app) == "work 030"
        assert on_screen(app, "work 030") == before
        assert "1 waits for you" in text_of(app)
        await changed(pilot, host, row("new", "idle", "brand new"), row("w001", "done", "work 001"))
        assert on_screen(app, "work 030") == before


async def test_a_session_that_is_gone_leaves_the_cursor_to_its_neighbor() -> None:
    host = FakeHost("", day())
    async with desk([host]) as (app, pilot):
        await pilot.press("tab")
        host.rows = [one for one in host.rows if one.title != at_cursor(app)]
        await changed(pilot, host)
        assert at_cursor(app) == "port the parser to Rust"


async def test_enter_opens_a_session_live_and_the_desk_is_as_it_was_afterwards() -> None:
    host = FakeHost("", day())
    async with desk([host]) as (app, pilot):
        await pilot.press("down", "enter")
        live = app.screen
        assert isinstance(live, LiveSession)
        assert (live.host, live.shown.title) == (host, DATABASE)
        await changed(pilot, host, row("b1b2c3d4e5f6", "working", DATABASE, detail="answering"))
        live.dismiss(None)
        await until(pilot, lambda: app.screen is app.desk)
        await until(pilot, lambda: "1 waits for you" in text_of(app))
        assert at_cursor(app) == DATABASE


async def test_saved_sessions_unfold() -> None:
    async with desk() as (app, pilot):
        await pilot.press("f", "end")
        assert at_cursor(app) == "older session 13"
        await pilot.press("f")
        assert at_cursor(app) == "a long run"
        assert "Saved  14   f shows them" in text_of(app)


async def test_the_filter_finds_and_goes() -> None:
    async with desk() as (app, pilot):
        await pilot.press("slash", *"store")
        shown = text_of(app)
        assert FLAKY[:20] in shown
        assert "make the suite faster" in shown
        assert "release notes" not in shown
        assert "enter list   ↑ ↓ move   esc clear" in shown
        await pilot.press("enter", "down")
        assert "enter open" in text_of(app)
        assert at_cursor(app) == "make the suite faster"
        await pilot.press("slash", *" nothing at all", "enter")
        assert "No session matches" in text_of(app)
        await pilot.press("escape")
        assert "release notes" in text_of(app)


async def test_an_empty_desk_says_how_to_start_a_session() -> None:
    async with desk([FakeHost()]) as (app, _):
        shown = text_of(app)
    assert "Press n to start one" in shown
    assert "n new   esc leave" in shown


async def test_a_machine_that_is_out_of_reach_is_named_and_the_others_go_on() -> None:
    far, gone = FakeHost("mill", [row("m", "working", "far away", host="mill")]), FakeHost("barn")
    gone.problem = "Connection refused"
    async with desk([FakeHost("", day()), far, gone], size=(140, 40)) as (app, pilot):
        shown = text_of(app)
        assert "! barn: Connection refused. Check that `ssh barn` works; trying again." in shown
        assert "far away" in shown
        gone.say_problem("")
        await until(pilot, lambda: "barn" not in text_of(app))


async def test_a_session_is_started_where_and_with_what_the_person_says(tmp_path: Path) -> None:
    host = FakeHost("", [row("a", "idle", "one", cwd=str(tmp_path))])
    async with desk([host]) as (app, pilot):
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, NewSessionDialog))
        await pilot.press("enter")
        await until(pilot, lambda: "Write what the session should do." in text_of(app))
        await pilot.press(*"fix", "ctrl+j", *"it", "enter")
        await until(pilot, lambda: bool(host.started))
        assert host.started == [(str(tmp_path), "fix\nit")]
        assert notice(app) == "Started in the background."
        await changed(pilot, host, row("s0000001", "working", "fix it"))
        assert at_cursor(app) == "fix it"


async def test_a_session_is_started_on_another_machine() -> None:
    far = FakeHost("mill", [row("m", "working", "far", host="mill", cwd="/srv/app")])
    async with desk([FakeHost(), far]) as (app, pilot):
        await pilot.press("n", *"go", "enter")
        await until(pilot, lambda: bool(far.started))
        assert far.started == [("/srv/app", "go")]
        await pilot.press("n", *"here", "shift+tab", "shift+tab", "left", "enter")
        await until(pilot, lambda: app.screen.focused is app.screen.query_one("#folder"))
        assert "this machine" in text_of(app)


async def test_a_folder_that_is_not_there_is_said_and_nothing_typed_is_lost() -> None:
    host = FakeHost("", [row("a", "idle", "one", cwd="/nowhere/at/all")])
    async with desk([host]) as (app, pilot):
        await pilot.press("n", *"go", "enter")
        await until(pilot, lambda: "There's no folder /nowhere/at/all." in text_of(app))
        await pilot.press("escape")
        assert "Esc again discards the prompt." in text_of(app)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.desk)
    assert not host.started


async def test_what_cannot_be_started_says_why_and_keeps_what_was_typed() -> None:
    host = FakeHost("", [row("a", "idle", "one", cwd="/")])
    host.refuses = SessionError("No key found.", hint="Run holdfast first.")
    clock = ManualClock()
    async with desk([host], clock=clock) as (app, pilot):
        await pilot.press("n", *"go", "ctrl+j", *"on", "enter")
        await until(pilot, lambda: "No key found. Run holdfast first." in text_of(app))
        host.refuses = None
        clock.advance(2)  # else Enter may still be held down
        await pilot.press("enter")
        await until(pilot, lambda: host.started == [("/", "go\non")])


async def test_d_dismisses_only_what_has_ended() -> None:
    host = FakeHost("", day())
    async with desk([host]) as (app, pilot):
        await pilot.press("d")
        assert notice(app) == "Only a session that has ended can be dismissed."
        await pilot.press("end", "up", "d")
        await until(pilot, lambda: host.dismissed == ["81b2c3d4e5f6"])


async def test_y_copies_the_command_that_opens_it() -> None:
    async with desk() as (app, pilot):
        await pilot.press("y")
        assert app.clipboard == "holdfast attach a1b2c3d4e5f6"
        assert notice(app) == "Copied: holdfast attach a1b2c3d4e5f6"


async def test_help_and_palette_name_the_keys_of_the_desk() -> None:
    async with desk() as (app, pilot):
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        assert "answer its question here" in text_of(app)
        await pilot.press("f1", "ctrl+p")
        await until(pilot, lambda: isinstance(app.screen, PaletteScreen))
        await pilot.press(*"next", "enter")
        await until(pilot, lambda: app.screen is app.desk and at_cursor(app) == DATABASE)


@pytest.mark.parametrize("key", ["escape", "q", "ctrl+q"])
async def test_leaving_closes_the_machines(key: str) -> None:
    host = FakeHost("", day())
    async with desk([host]) as (app, pilot):
        await pilot.press(key)
        await until(pilot, lambda: not app.is_running)
    assert host.closed


async def test_the_title_counts_those_that_wait() -> None:
    host = FakeHost("", day())
    async with desk([host]) as (app, pilot):
        assert (app.terminal.name, app.terminal.waiting, app.terminal.state) == (
            *("desk", 2, "blocked"),
        )
        host.rows = [one for one in host.rows if not one.questions]
        await changed(pilot, host)
        assert (app.terminal.waiting, app.terminal.state) == (0, "working")


async def test_how_long_it_lasts_moves_on_by_itself() -> None:
    clock = ManualClock()
    async with desk([FakeHost("", day())], clock=clock) as (app, pilot):
        assert "42 s" in text_of(app)
        clock.advance(30)
        await until(pilot, lambda: "1 min" in text_of(app))


@pytest.mark.parametrize("key", ["s", "ctrl+c"])
async def test_nothing_is_stopped_where_nothing_runs(key: str) -> None:
    async with desk([FakeHost("", [row("a", "idle", "quiet")])]) as (app, pilot):
        await pilot.press(key)
        assert notice(app) == "Nothing runs in this session."
        assert not isinstance(app.screen, Confirmation)


async def test_odd_texts_are_shown_safely() -> None:
    odd = [
        row("a", "waiting", "x" * 500, asked=call("rm\x1b[2J -rf \u202e/")),
        row("b", "working", "a\x1b]0;pwned\x07\x00title\nsecond", detail="日本語" * 80),
        row("c", "failed", "שלום " * 40, detail="\x9b31mred\r\noverwritten", branch="\x07bell"),
    ]
    for size in (NARROW, (120, 40)):
        async with desk([FakeHost("", odd)], size=size) as (app, pilot):
            await until(pilot, lambda app=app: "Run rm\\x1b[2J" in text_of(app))
            shown = text_of(app)
            assert "\\u202e" in shown
            assert "atitle second" in shown
            assert not any(ord(char) < 32 and char != "\n" for char in shown)


async def test_no_row_of_the_terminal_moves_when_the_cursor_does() -> None:
    async with desk(size=NARROW) as (app, pilot):
        heights: set[int] = set()
        for _ in range(9):
            heights.add(app.desk.query_one("#rows").size.height)
            assert text_of(app).rstrip().split("\n")[-1].endswith("esc leave")
            await pilot.press("j")
    assert len(heights) == 1


async def test_the_preview_shows_the_call_that_waits_as_waiting(tmp_path: Path) -> None:
    called = {"type": "tool_use", "id": "t1", "name": "run_command", "input": {"command": "make"}}
    lines = (prompt(1, "build it"), answer(2, "I build.", called))
    file = tmp_path / "s.jsonl"
    head = '{"type":"session","version":1,"id":"a","created":"2026-11-21T08:00:00Z","cwd":"/"}'
    file.write_text("\n".join((head, *lines, "")))
    waiting = row("a", "waiting", "build", asked=call(), path=str(file))
    async with desk([FakeHost("", [waiting])]) as (app, pilot):
        await until(pilot, lambda: "? Run make  waiting for you" in text_of(app))
