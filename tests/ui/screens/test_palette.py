"""Ctrl+P: what the palette lists, finds and runs, and what it remembers."""

from __future__ import annotations

import asyncio
import stat
from asyncio.events import Handle
from pathlib import Path
from time import thread_time

import pytest
from textual.geometry import Offset
from textual.pilot import Pilot

from tests.support.script import Ask
from tests.support.world import World
from tests.ui.screens.driving import NARROW, answer, running, say, turn, until
from tui.core.keymap import DEFAULT_KEYS
from tui.core.paths import folders
from tui.permissions.types import Call, Decision
from tui.ui.app import HoldfastApp
from tui.ui.commands.palette import RECENT
from tui.ui.screens.palette import PaletteScreen, load_recent, matching, palette_entries


async def palette(app: HoldfastApp, pilot: Pilot[None], *keys: str) -> PaletteScreen:
    await pilot.press("ctrl+p")
    await until(pilot, lambda: isinstance(app.screen, PaletteScreen))
    assert isinstance(app.screen, PaletteScreen)
    screen = app.screen
    await pilot.press(*keys)
    await pilot.pause()
    return screen


def shown(screen: PaletteScreen) -> list[str]:
    """The rows in sight, as they are drawn."""
    rows = screen.rows
    return [rows.render_line(y).text.rstrip() for y in range(rows.size.height)]


def top(app: HoldfastApp) -> str:
    return type(app.screen).__name__


@pytest.mark.parametrize("size", [(120, 40), NARROW, (40, 10)])
async def test_an_entry_is_one_row_with_its_key_at_the_right(size: tuple[int, int]) -> None:
    async with running(World(), size) as (app, pilot):
        screen = await palette(app, pilot, *"context")
        (row, *_) = shown(screen)
        assert row.startswith("/context")
        assert row.endswith("F2")
        assert "see the" in row
        await pilot.press("enter")
        await until(pilot, lambda: top(app) == "ContextScreen")


def test_every_command_and_every_named_key_is_listed_once() -> None:
    names = [entry.name for entry in palette_entries((), DEFAULT_KEYS)]
    assert len(names) == len(set(names))
    keys = {entry.name: entry.key for entry in palette_entries((), DEFAULT_KEYS)}
    assert keys["/help"] == "F1"
    assert keys["/resume"] == "F3"
    assert keys["fold"] == "Ctrl+O"
    assert keys["/rewind"] == ""  # the undo of the prompt is another one


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("ctx", "/context"),
        ("/theme", "/theme"),
        ("settings", "/config"),
        ("clear", "/new"),
        ("dbg", "debug view"),
        ("tokens and", "/usage"),
    ],
)
def test_it_finds_by_letters_other_names_and_what_it_does(words: str, first: str) -> None:
    assert matching(words, palette_entries((), DEFAULT_KEYS), ())[0].name == first


async def test_what_was_used_last_comes_first_the_next_time() -> None:
    async with running(World()) as (app, pilot):
        await palette(app, pilot, *"doctor", "enter")
        await until(pilot, lambda: top(app) == "DoctorScreen")
        await until(pilot, lambda: load_recent(folders().data / RECENT) == ["/doctor"])
    assert stat.S_IMODE((folders().data / RECENT).stat().st_mode) == 0o600
    async with running(World()) as (app, pilot):
        screen = await palette(app, pilot)
        assert shown(screen)[0].startswith("/doctor")
        assert shown(screen)[1].startswith("/help")


@pytest.mark.parametrize("content", [b"\xff{", b'{"a": 1}', b"[1, null]", b"[" * 3000, b""])
def test_a_damaged_memory_costs_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / RECENT).write_bytes(content)
    assert load_recent(tmp_path / RECENT) == []


async def test_a_command_that_needs_words_goes_to_the_prompt_and_the_draft_waits() -> None:
    world = World()
    world.scripts.append(turn(*answer("hello")))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.status.state.turns == 1 and not app.conversation.busy)
        await pilot.press(*"half", "f2")
        await until(pilot, lambda: top(app) == "ContextScreen")
        await palette(app, pilot, *"rename", "enter")
        await until(pilot, lambda: app.chat.prompt.text == "/rename ")
        assert app.screen is app.chat
        await pilot.press(*"two", "enter")
        await until(pilot, lambda: app.chat.header.state.title == "two")
        await until(pilot, lambda: app.chat.prompt.text == "half")


async def test_tab_puts_a_command_into_the_prompt_that_could_run_without_words() -> None:
    async with running(World()) as (app, pilot):
        await palette(app, pilot, *"model", "tab")
        await until(pilot, lambda: app.chat.prompt.text == "/model ")


async def test_a_click_runs_and_escape_and_ctrl_p_close() -> None:
    async with running(World()) as (app, pilot):
        screen = await palette(app, pilot, *"doctor")
        await pilot.click(screen.rows, offset=Offset(3, 0))
        await until(pilot, lambda: top(app) == "DoctorScreen")
        for key in ("escape", "ctrl+p"):
            await palette(app, pilot)
            await pilot.press(key)
            await until(pilot, lambda: top(app) == "DoctorScreen")


async def test_what_nothing_matches_is_said_and_enter_waits() -> None:
    async with running(World()) as (app, pilot):
        screen = await palette(app, pilot, *"zzz\x1b[31m", "enter")
        assert app.screen is screen
        assert "No command matches" in str(screen.query_one("#about").render())


async def test_over_a_question_what_needs_the_prompt_is_not_offered() -> None:
    world = World()
    call = Call("t1", "run_command", "run", "make", "make", (), "command", "make", "this")
    world.scripts.append(turn(Ask(call, Decision("ask", "It runs.", "default", "standard"))))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: top(app) == "ApprovalModal")
        await palette(app, pilot, *"rename")
        assert not any(row.startswith("/rename") for row in shown(app.screen))  # pyright: ignore[reportArgumentType]
        await pilot.press("ctrl+u", *"status", "enter")
        await until(pilot, lambda: top(app) == "ApprovalModal")
        assert world.agent.answers == []


async def test_opening_keeps_the_loop_busy_for_less_than_a_frame(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first time it imports; measured is the third."""
    steps: list[float] = []
    run = Handle._run  # pyright: ignore[reportPrivateUsage]

    def measured(handle: Handle) -> None:
        began = thread_time()
        run(handle)
        steps.append(thread_time() - began)

    async with running(World()) as (app, pilot):
        best = 1.0
        for _ in range(3):
            monkeypatch.setattr(Handle, "_run", measured)
            steps.clear()
            await palette(app, pilot)
            monkeypatch.setattr(Handle, "_run", run)
            best = min(best, max(steps))
            await pilot.press("escape")
            await asyncio.sleep(0)
        assert best < 0.02  # 8 ms where nothing else runs


async def test_what_keys_do_in_the_chat_is_done_from_another_screen_too() -> None:
    world = World()
    world.scripts.append(turn(*answer("hello")))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.status.state.turns == 1 and not app.conversation.busy)

        async def chosen(*keys: str) -> None:
            await pilot.press("f2")
            await until(pilot, lambda: top(app) == "ContextScreen")
            await palette(app, pilot, *keys, "enter")

        await chosen(*"mode")
        await until(pilot, lambda: world.agent.permissions.mode == "accept_edits")
        assert app.screen is app.chat
        await pilot.press(*"half")
        await chosen(*"stash")
        await until(pilot, lambda: app.chat.prompt.stashed == "half")
        await chosen(*"history")
        await until(pilot, lambda: bool(app.chat.query("PromptSearch")))
        assert app.screen is app.chat


@pytest.mark.parametrize(("columns", "beside"), [(40, 0), (49, 0), (80, 2)])
async def test_a_narrow_terminal_is_filled_from_edge_to_edge(columns: int, beside: int) -> None:
    """One column of the prompt beside it looked like a part of its border."""
    async with running(World(), (columns, 10)) as (app, pilot):
        box = (await palette(app, pilot)).query_one("#box")
        await until(pilot, lambda: box.region.width == columns - beside)
