"""F3: found, looked at, and changed, with real session files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from tests.support.foreign import ClaudeCode, claude_code, lines
from tests.support.world import OldSession, World
from tests.ui.screens.driving import NARROW, WIDE, running, until
from tui.app.dialog_data import SessionRow
from tui.app.services import SessionChoice
from tui.app.session_repository import SessionRepository
from tui.core.clock import SystemClock
from tui.core.messages import text_block
from tui.core.paths import folders
from tui.session import catalog
from tui.session.reader import read
from tui.session.session import Session
from tui.ui.app import HoldfastApp
from tui.ui.screens.session_rows import row_parts
from tui.ui.screens.sessions import SessionsScreen
from tui.ui.widgets.conversation.items import AssistantItem, UserItem
from tui.ui.widgets.conversation.view import ConversationView
from tui.ui.widgets.row_list import Part


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Three sessions in a workspace that can be written, and a home without other agents."""
    for name in ("CLAUDE_CONFIG_DIR", "PI_CODING_AGENT_DIR", "OPENCLAW_STATE_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "work").mkdir()
    made = World(tmp_path / "work")
    made.add_row("fix the flaky test", hours=1)
    made.add_row("write the manual", hours=5, messages=40)
    made.add_row("broken one", hours=9, state="needs_repair")
    return made


async def browser(app: HoldfastApp, pilot: Pilot[None], count: int = 3) -> SessionsScreen:
    await pilot.press("f3")
    await until(pilot, lambda: isinstance(app.screen, SessionsScreen))
    screen = app.screen
    assert isinstance(screen, SessionsScreen)
    await until(pilot, lambda: len(screen.shown) == count)
    return screen


def said(screen: SessionsScreen) -> list[str]:
    view = screen.query_one("#preview", ConversationView)
    return [each.text for each in view.items if isinstance(each, UserItem | AssistantItem)]


def empty(screen: SessionsScreen) -> str:
    return str(screen.query_one("#empty", Static).render())


async def test_typing_filters_and_the_preview_follows_the_cursor(world: World) -> None:
    async with running(world) as (app, pilot):
        screen = await browser(app, pilot)
        assert [row.title for row in screen.shown] == [
            "fix the flaky test",
            "write the manual",
            "broken one",
        ]
        await until(pilot, lambda: bool(said(screen)))
        assert said(screen)[0] == "fix the flaky test"
        await pilot.press("down")
        await until(pilot, lambda: said(screen)[:1] == ["write the manual"])
        await pilot.press(*"damaged")
        await until(pilot, lambda: [row.title for row in screen.shown] == ["broken one"])
        assert screen.shown[0].problems == ("B52",)
        await pilot.press("escape")
        assert len(screen.shown) == 3
        assert app.screen is screen


async def test_a_key_shows_those_of_sub_agents_below_their_parents(world: World) -> None:
    clock = SystemClock()
    parent = Session.open(world.rows[1].path, clock=clock)
    child = Session.create_child(parent, "toolu_1", clock=clock)
    child.append("user", content=[text_block("find it")], text="find it")
    await child.close()
    await parent.close()
    async with running(world) as (app, pilot):
        screen = await browser(app, pilot)
        await pilot.press("ctrl+g")
        await until(pilot, lambda: len(screen.shown) == 4)
        titles = [row.title for row in screen.shown]
        assert titles[titles.index("write the manual") + 1] == "find it"
        await pilot.press("ctrl+f", *"find", "space", *"it")
        await until(pilot, lambda: bool(screen.places))
        assert screen.places
        assert [place.row.id for place in screen.places] == [child.id]
        await pilot.press("escape", "escape", "ctrl+g")
        await until(pilot, lambda: len(screen.shown) == 3)


async def test_sorting_goes_round(world: World) -> None:
    async with running(world) as (app, pilot):
        screen = await browser(app, pilot)
        firsts: list[str] = []
        for _ in range(5):
            await pilot.press("ctrl+s")
            firsts.append(screen.shown[0].title)
        assert firsts == [
            "broken one",
            "write the manual",
            "write the manual",
            "broken one",
            "fix the flaky test",
        ]


async def test_a_search_finds_what_was_said_and_opens_there(world: World) -> None:
    async with running(world) as (app, pilot):
        screen = await browser(app, pilot)
        await pilot.press("ctrl+f", *"part", "space", *"17")
        await until(pilot, lambda: bool(screen.places))
        assert screen.places
        assert [place.row.title for place in screen.places] == ["write the manual"]
        wanted = read(world.rows[1].path).branch[17].id
        assert screen.chosen
        assert screen.chosen.message == wanted
        await pilot.press("enter")
        await until(pilot, lambda: len(world.chosen) == 2)
        assert world.chosen[-1] == SessionChoice(world.rows[1].path, message=wanted)


async def test_all_folders_are_a_tab_away(world: World, tmp_path: Path) -> None:
    elsewhere = World(tmp_path / "elsewhere")
    elsewhere.add_row("in another folder", hours=2)
    async with running(world) as (app, pilot):
        screen = await browser(app, pilot)
        await pilot.press("tab")
        await until(pilot, lambda: len(screen.shown) == 4)
        assert {row.cwd for row in screen.shown} == {
            str(world.workspace),
            str(elsewhere.workspace),
        }
        drawn = [strip.text for strip in screen.rows.render_lines(screen.rows.size.region)]
        assert "folder" in str(screen.query_one("#columns").render())
        row = next(line for line in drawn if "in another folder" in line)
        assert "/elsewhere" in row


async def test_ten_rows_show_sessions_and_keys_and_the_preview_comes_with_room(
    world: World,
) -> None:
    async with running(world, (40, 10)) as (app, pilot):
        screen = await browser(app, pilot)
        await pilot.press("down")
        assert screen.rows.size.height >= 3
        assert "esc back" in str(screen.query_one("#keys").render())
        assert not said(screen)
        await pilot.resize_terminal(*NARROW)
        await until(pilot, lambda: said(screen)[:1] == ["write the manual"])


async def test_rename_fork_and_delete(world: World) -> None:
    async with running(world) as (app, pilot):
        screen = await browser(app, pilot)
        before = world.rows[0].path.read_bytes()
        await pilot.press("ctrl+r")
        await until(pilot, lambda: app.screen is not screen)
        app.screen.query_one("#text", Input).value = "a better name"
        await pilot.press("enter")
        await until(pilot, lambda: [r.title for r in screen.shown][:1] == ["a better name"])
        assert world.rows[0].path.read_bytes().startswith(before)

        await pilot.press("ctrl+b")
        await until(pilot, lambda: len(screen.shown) == 4)
        assert [row.title for row in screen.shown].count("a better name") == 2

        await pilot.press("ctrl+d")
        await until(pilot, lambda: app.screen is not screen)
        await pilot.press("enter")  # keep it: the focus is on no
        await until(pilot, lambda: app.screen is screen)
        assert len(catalog.files(folders())) == 4
        await pilot.press("ctrl+d")
        await until(pilot, lambda: app.screen is not screen)
        await pilot.press("y")
        await until(pilot, lambda: len(screen.shown) == 3)
        assert len(list((folders().data / "trash").rglob("*.jsonl"))) == 1


@pytest.mark.parametrize(("key", "suffix"), [("m", "md"), ("h", "html"), ("j", "jsonl")])
async def test_export_says_where(world: World, key: str, suffix: str) -> None:
    async with running(world) as (app, pilot):
        screen = await browser(app, pilot)
        await pilot.press("ctrl+e")
        await until(pilot, lambda: app.screen is not screen)
        await pilot.press(key)
        path = world.workspace / f"session-{world.rows[0].id}.{suffix}"
        await until(pilot, lambda: "Written to" in screen.notice.text)
        assert "fix the flaky test" in path.read_text(encoding="utf-8")


async def test_the_session_that_is_open_is_not_deleted_and_is_renamed_in_place(
    world: World,
) -> None:
    world.old[world.rows[0].path] = OldSession()
    async with running(world, choice=SessionChoice(world.rows[0].path)) as (app, pilot):
        screen = await browser(app, pilot)
        await pilot.press("ctrl+d")
        await until(pilot, lambda: "open here" in screen.notice.text)
        await pilot.press("ctrl+r")
        await until(pilot, lambda: app.screen is not screen)
        app.screen.query_one("#text", Input).value = "named by hand"
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is screen)
        await until(pilot, lambda: app.chat.header.state.title == "named by hand")
        assert world.agent.session.records[-1].type == "title"


async def test_another_agents_session_is_copied_and_its_file_stays(
    world: World, tmp_path: Path
) -> None:
    theirs = tmp_path / "home" / ".claude" / "projects" / "-w" / "one.jsonl"
    theirs.parent.mkdir(parents=True)
    theirs.write_bytes(claude_code(4).bytes())
    before = theirs.read_bytes()
    async with running(world) as (app, pilot):
        screen = await browser(app, pilot)
        await pilot.press("shift+tab")
        await until(pilot, lambda: len(screen.shown) == 1)
        assert screen.shown[0].agent == "Claude Code"
        await pilot.press("ctrl+d")
        await until(pilot, lambda: "never changes" in screen.notice.text)
        await pilot.press("enter")
        await until(pilot, lambda: len(world.chosen) == 2)
        made = world.chosen[-1].path
        assert made is not None
        assert folders().sessions in made.parents
        header = json.loads(made.read_bytes().splitlines()[0])
        assert header["origin"].startswith("claude_code:")
        assert theirs.read_bytes() == before


async def test_a_search_in_other_agents_sessions_opens_a_copy_at_the_place(
    world: World, tmp_path: Path
) -> None:
    theirs = tmp_path / "home" / ".claude" / "projects" / "-w" / "one.jsonl"
    theirs.parent.mkdir(parents=True)
    made = ClaudeCode()
    for n in range(80):
        made.user("the kumquat" if n == 7 else f"prompt {n}")
    theirs.write_bytes(lines(made.records))
    async with running(world) as (app, pilot):
        screen = await browser(app, pilot)
        await pilot.press("shift+tab")
        await until(pilot, lambda: len(screen.shown) == 1)
        await pilot.press("ctrl+f", *"kumquat")
        await until(pilot, lambda: bool(screen.places))
        assert screen.places
        assert [(one.kind, one.row.agent) for one in screen.places] == [("prompt", "Claude Code")]
        await until(pilot, lambda: "the kumquat" in said(screen))
        assert "prompt 79" not in said(screen)
        await pilot.press("enter")
        await until(pilot, lambda: len(world.chosen) == 2)
        path = world.chosen[-1].path
        assert path is not None
        assert screen.places[0].message in {record.id for record in read(path).records}


async def test_words_that_help_where_there_is_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    async with running(World(tmp_path)) as (app, pilot):
        screen = await browser(app, pilot, 0)
        await until(pilot, lambda: "No sessions in this folder yet" in empty(screen))
        await pilot.press("tab")
        await until(pilot, lambda: "No sessions yet" in empty(screen))
        await pilot.press("tab")
        await until(pilot, lambda: "Claude Code" in empty(screen))


@pytest.mark.parametrize("size", [WIDE, NARROW, (60, 20)])
async def test_ten_thousand_sessions_are_listed_with_only_those_in_sight_drawn(
    tmp_path: Path, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    world.add_row("number 0", hours=1, messages=2)
    row = world.rows[0]
    many = [
        replace(row, id=str(n), path=row.path.with_name(f"{n}.jsonl"), title=f"number {n}")
        for n in range(10_000)
    ]

    def ours(_: SessionRepository, **__: Any) -> list[SessionRow]:
        return many

    monkeypatch.setattr(SessionRepository, "ours", ours)
    drawn: list[str] = []

    def counting(row: SessionRow, *more: Any, **named: Any) -> Sequence[Part]:
        drawn.append(row.title)
        return row_parts(row, *more, **named)

    monkeypatch.setattr("tui.ui.screens.session_rows.row_parts", counting)
    async with running(world, size) as (app, pilot):
        screen = await browser(app, pilot, 10_000)
        await pilot.press(*"9876")
        await until(pilot, lambda: len(screen.shown) == 1)
        assert screen.shown[0].title == "number 9876"
        assert len(drawn) < 1000
