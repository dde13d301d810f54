"""/why on the screen: which prompt wrote a line, by which call, at what price; what is unsure."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import tui.session.checkpoints.store as store_module
from tests.support import blame_world
from tests.support.clock import ManualClock
from tests.support.idle import threads_held
from tests.support.world import World
from tests.ui.screens.driving import items, running, say, until
from tui.app.commands import why
from tui.ui.app import HoldfastApp
from tui.ui.widgets.autocomplete import Suggestions
from tui.ui.widgets.conversation.items import NoticeItem


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[blame_world.World]:
    """A file with a line of the person's, lines of before, and a last line by a call."""
    monkeypatch.setattr(store_module, "time", store_module.time)
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "told" / "home"))
    told = blame_world.World(tmp_path / "told", 1)
    told.put(told.root, [("first", "person"), *told.lines()])
    told.commit(words="my own line")
    session = told.session()
    session.edit("edit_file", [*told.lines(), ("last", "")])
    session.prompt()
    session.save()
    yield told
    told.close()


@pytest.fixture
def world(told: blame_world.World) -> World:
    return World(told.root)


def report(app: HoldfastApp) -> NoticeItem:
    return items(app, NoticeItem)[-1]


async def asked(app: HoldfastApp, pilot: object, text: str) -> NoticeItem:
    before = len(items(app, NoticeItem))
    await say(pilot, text)  # type: ignore[arg-type]
    await until(pilot, lambda: len(items(app, NoticeItem)) > before)  # type: ignore[arg-type]
    return report(app)


async def test_a_line_names_its_prompt_call_model_price_and_session(
    told: blame_world.World, world: World
) -> None:
    last, session = len(told.lines()), told.sessions[0]
    async with running(world) as (app, pilot):
        said = await asked(app, pilot, f"/why src/module.py:{last}")
        assert said.text == f"Why src/module.py:{last}"
        rows = dict(line.split(maxsplit=1) for line in said.detail.splitlines())
        assert rows["code"] == "last"
        assert rows["prompt"].startswith("“Please do part 1")
        assert rows["call"] == "edit_file, allowed by a rule"
        assert rows["model"] == "claude-sonnet-5-5, $0.0030 for the request"
        assert rows["session"] == session.id
        prompt = session.prompts[0][0]
        assert rows["open"] == f"holdfast -r {session.id} --at {prompt}"
        assert "fork" not in rows, "nothing comes before the first prompt"


async def test_a_path_may_be_completed_and_the_lines_typed_after_it(
    told: blame_world.World, world: World
) -> None:
    (told.root / "src" / "other.py").write_text("")
    async with running(world) as (app, pilot):
        await pilot.press(*"/why", "space", *"modul")
        popup = app.chat.query_one(Suggestions)
        await until(pilot, lambda: [one.value for one in popup.choices] == ["src/module.py"])
        await pilot.press("enter")
        assert app.chat.prompt.text == "/why src/module.py "
        await pilot.press(*"1-2", "enter")
        await until(pilot, lambda: bool(items(app, NoticeItem)))
        assert report(app).text == "Why src/module.py:1-2"
        assert "Lines 1-2" not in report(app).detail, "one source needs no heading"


async def test_a_whole_file_is_told_by_sources(told: blame_world.World, world: World) -> None:
    async with running(world) as (app, pilot):
        said = await asked(app, pilot, "/why src/module.py")
        assert said.text == "Why src/module.py"
        heads = [line for line in said.detail.splitlines() if line.startswith("Line")]
        assert heads[-1] == f"Line {len(told.lines())}"
        assert len(heads) >= 2


async def test_what_is_uncertain_says_so_with_its_candidates(
    told: blame_world.World, world: World
) -> None:
    session = told.sessions[0]
    lines = len(told.lines())
    one, two = told.session(), told.session()
    call_one = one.call("run_command", {"command": "./generate one"})
    call_two = two.call("run_command", {"command": "./generate two"})
    told.put(told.root, [*told.lines(), ("made by one of them", "")])
    told.tick(1)
    for mine, call in ((one, call_one), (two, call_two)):
        mine.checkpoint(by="call", call=call)
        mine.result(call, "run_command", {})
        mine.save()
    async with running(world) as (app, pilot):
        said = await asked(app, pilot, f"/why src/module.py:{lines + 1}")
        assert "Uncertain: " in said.detail
        assert "1 of " in said.detail
        assert "`./generate one`" in said.detail
        assert "`./generate two`" in said.detail
        assert session.id not in said.detail


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("/why", "asks about a line"),
        ("/why nowhere.py:3", "There is no file"),
        ("/why src/module.py:9999", "there is no line 9999"),
        ("/why src/module.py:x", "names no lines"),
        ("/why ~nobody-here/x.py", "There is no file"),
        (f"/why {'long' * 100}.py 3", "File name too long"),
    ],
)
async def test_what_cannot_be_answered_says_why(world: World, typed: str, words: str) -> None:
    async with running(world) as (app, pilot):
        await say(pilot, typed)
        await until(pilot, lambda: words in app.chat.notice.text)
        assert not app.conversation.busy


async def test_a_long_look_has_a_sign_and_escape_stops_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.clock = ManualClock()
    began, stopped = threading.Event(), threading.Event()

    def slow(*given: object) -> None:
        began.set()
        stop = given[-1]
        assert isinstance(stop, threading.Event)
        stop.wait(30)
        stopped.set()

    monkeypatch.setattr(why, "looked_up", slow)
    async with running(world) as (app, pilot):
        with threads_held():
            await say(pilot, "/why src/module.py")
            await until(pilot, began.is_set)
            assert app.chat.activity.what == ""
            world.clock.advance(0.3)
            await until(pilot, lambda: app.chat.activity.what == "reading the sessions")
            await pilot.press("escape")
            await until(pilot, lambda: not app.conversation.busy and stopped.is_set())
        assert items(app, NoticeItem) == []
